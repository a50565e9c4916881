//! Nanoseconds per row of typical programs over one warm chunk. `cargo run --release -p eris-exec --example throughput`

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use arrow_schema::{Field, Schema};
use eris_column::{ColumnChunk, Dictionary, ObjectMemory};
use eris_exec::{Program, Work};
use eris_fragment::*;
use eris_numa::{HugePages, Memory, Topology};
use eris_store::{Chunk, ChunkView, InsertedRun, RowIds};
use eris_types::{ColumnId, NodeId, ObjectId, RowId, Timestamp};
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 65_536;

fn random(seed: u64, row: usize, end: u64) -> u64 {
    let mixed = (row as u64 ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % end
}

fn main() {
    let int = |seed, end| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(
            (0..ROWS).map(|row| (random(seed, row, end) % end) as i32),
        ))
    };
    let brands: Vec<String> = (0..1_000).map(|brand| format!("MFGR#{brand:04}")).collect();
    let dictionary = Dictionary::new().extend(brands.iter().map(String::as_str));
    let brand = |row| &*brands[(random(9, row, 1_000) % 1_000) as usize];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("quantity", int(1, 50)),
        ("discount", int(2, 11)),
        ("price", int(3, 10_000_000)),
        ("year", int(4, 7)),
        (
            "brand",
            Arc::new(StringViewArray::from_iter_values((0..ROWS).map(brand))),
        ),
        (
            "key",
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| {
                (random(5, row, 1 << 31) * 1_000_003) as i64 % (1 << 40)
            }))),
        ),
    ];
    let dictionaries: Vec<_> = columns
        .iter()
        .map(|(name, _)| (*name == "brand").then(|| dictionary.clone()))
        .collect();
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, None)
        .expect("memory")
        .node(NodeId(0));
    let home = ObjectMemory {
        memory: &memory,
        object: ObjectId(0),
    };
    let encoded: Vec<ColumnChunk> = columns
        .iter()
        .zip(&dictionaries)
        .map(|((_, array), dictionary)| {
            ColumnChunk::encode(array, dictionary.as_ref(), home).expect("encoded")
        })
        .collect();
    for ((name, _), chunk) in columns.iter().zip(&encoded) {
        println!("{name:>10}  {}", chunk.encoding());
    }
    let begin = InsertedRun {
        at: Timestamp(1),
        end: ROWS,
    };
    let view = ChunkView {
        chunk: Arc::new(Chunk::new(
            encoded,
            RowIds::from(RowId(0), ROWS),
            vec![begin],
        )),
        deleted: None,
        rows: None,
    };
    let schema = Schema::new(
        columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect::<Vec<_>>(),
    );

    let column = Expr::Column;
    let literal = |value: i128| {
        Expr::Literal(Scalar {
            data_type: Type::Int32,
            value: Value::Integer(value),
        })
    };
    let binary = |op, left, right| Expr::Binary {
        op,
        left: Box::new(left),
        right: Box::new(right),
    };
    let between = |number: usize, low: i128, high: i128| {
        vec![
            binary(BinaryOp::GtEq, column(number), literal(low)),
            binary(BinaryOp::LtEq, column(number), literal(high)),
        ]
    };
    let wide = |number: usize| Expr::Cast {
        operand: Box::new(column(number)),
        to: Type::Int64,
    };
    let aggregate = |function, input| Aggregate {
        function,
        input,
        filter: None,
        state: Type::Int64,
    };
    let sum = |input| aggregate(AggregateFunction::Sum, Some(input));
    let groups = |keys, aggregates| Output::Groups { keys, aggregates };
    let count = || groups(vec![], vec![aggregate(AggregateFunction::Count, None)]);
    let brand_is = |text: &str| {
        vec![Expr::Like {
            operand: Box::new(column(4)),
            pattern: text.to_owned(),
            negated: false,
            case_insensitive: false,
        }]
    };

    let q1 = || [between(0, 0, 24), between(1, 4, 6)].concat();
    let revenue = || binary(BinaryOp::Multiply, wide(2), wide(1));
    let cases: Vec<(&str, Vec<Expr>, Output)> = vec![
        (
            "count(*) where quantity between",
            between(0, 5, 24),
            count(),
        ),
        (
            "count(*) where price between",
            between(2, 5_000, 2_000_000),
            count(),
        ),
        ("count(*) where quantity, discount", q1(), count()),
        ("count(*) where brand like", brand_is("%7_"), count()),
        ("sum(price)", vec![], groups(vec![], vec![sum(column(2))])),
        (
            "sum(price*discount) where q1",
            q1(),
            groups(vec![], vec![sum(revenue())]),
        ),
        (
            "sum(price*discount)",
            vec![],
            groups(vec![], vec![sum(revenue())]),
        ),
        (
            "sum(price) by year",
            vec![],
            groups(vec![column(3)], vec![sum(column(2))]),
        ),
        (
            "sum(price) by year, brand",
            vec![],
            groups(vec![column(3), column(4)], vec![sum(column(2))]),
        ),
        (
            "sum by year, brand where q1",
            q1(),
            groups(vec![column(3), column(4)], vec![sum(column(2))]),
        ),
        (
            "count, min, max by year",
            vec![],
            groups(
                vec![column(3)],
                vec![
                    aggregate(AggregateFunction::Count, None),
                    Aggregate {
                        state: Type::Int32,
                        ..aggregate(AggregateFunction::Min, Some(column(2)))
                    },
                    Aggregate {
                        state: Type::Int32,
                        ..aggregate(AggregateFunction::Max, Some(column(2)))
                    },
                ],
            ),
        ),
        (
            "count(*) by key (hash)",
            vec![],
            groups(
                vec![column(5)],
                vec![aggregate(AggregateFunction::Count, None)],
            ),
        ),
        (
            "count(*) by key, price (hash)",
            vec![],
            groups(
                vec![column(5), column(2)],
                vec![aggregate(AggregateFunction::Count, None)],
            ),
        ),
        (
            "price, brand where q1",
            q1(),
            Output::Rows {
                columns: vec![column(2), column(4)],
                limit: None,
            },
        ),
        (
            "count(*) where price > quantity",
            vec![binary(BinaryOp::Gt, column(2), column(0))],
            count(),
        ),
    ];
    println!(
        "{:>34}  {:>9}  {:>7}  {:>9}  {:>9}",
        "program", "µs/chunk", "passed", "ns/row", "ns/passed"
    );
    for (name, filter, output) in cases {
        let fragment = Fragment {
            object: ObjectId(0),
            snapshot: Timestamp(1),
            order: None,
            columns: (0..6).map(ColumnId).collect(),
            filter,
            probes: vec![],
            lookups: vec![],
            output,
            options: ScanOptions::default(),
        };
        let program = Program::compile(&fragment, &schema, &dictionaries).expect("compiled");
        let mut partial = program.start();
        let mut times: Vec<f64> = Vec::new();
        let mut passed = 0;
        for _ in 0..60 {
            let mut work = Work::default();
            let start = Instant::now();
            std::hint::black_box(program.run(&view, &mut partial, &mut work).expect("run"));
            times.push(start.elapsed().as_nanos() as f64);
            passed = work.rows_passed;
        }
        times.sort_by(f64::total_cmp);
        let best = times[5];
        println!(
            "{name:>34}  {:>9.2}  {passed:>7}  {:>9.3}  {:>9.3}",
            best / 1e3,
            best / ROWS as f64,
            best / passed.max(1) as f64
        );
    }
}
