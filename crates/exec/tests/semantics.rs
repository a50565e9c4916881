//! What a program must do, case by case: which conditions reach the encoded columns, what is skipped, how failures
//! read.

mod common;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use common::random::binary;
use common::table::{SNAPSHOT, Table, TableChunk, chunk};
use common::{finish, rows_of, run, run_counting};
use eris_column::Dictionary;
use eris_exec::{Program, Work};
use eris_fragment::{
    Aggregate, AggregateFunction, BinaryOp, Expr, Fragment, FragmentError, KeySet, Output, Probe,
    Scalar, ScanOptions, Type, Value,
};
use eris_types::{ColumnId, ObjectId};
use std::collections::HashMap;
use std::sync::Arc;

/// A table of one chunk per entry; text gets a dictionary.
fn table(chunks: Vec<Vec<(&str, ArrayRef)>>) -> Table {
    let fields = chunks[0]
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let dictionaries: Vec<Option<Dictionary>> = chunks[0]
        .iter()
        .enumerate()
        .map(|(column, (_, array))| {
            (array.data_type() == &DataType::Utf8View).then(|| {
                chunks.iter().fold(Dictionary::new(), |dictionary, chunk| {
                    let texts = cast::AsArray::as_string_view(&chunk[column].1);
                    dictionary.extend(texts.iter().flatten())
                })
            })
        })
        .collect();
    Table {
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        types: chunks[0]
            .iter()
            .map(|(_, array)| array.data_type().try_into().unwrap())
            .collect(),
        chunks: chunks
            .iter()
            .map(|columns| {
                let arrays: Vec<ArrayRef> =
                    columns.iter().map(|(_, array)| array.clone()).collect();
                TableChunk {
                    view: chunk(&arrays, &dictionaries),
                    rows: vec![],
                    visible: vec![],
                }
            })
            .collect(),
        dictionaries,
    }
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn literal(data_type: Type, value: Value) -> Expr {
    Expr::Literal(Scalar { data_type, value })
}

fn int(value: i64) -> Expr {
    literal(Type::Int64, Value::Integer(value as i128))
}

fn cast(operand: Expr, to: Type) -> Expr {
    let operand = Box::new(operand);
    Expr::Cast { operand, to }
}

fn fragment(table: &Table, filter: Vec<Expr>, output: Output) -> Fragment {
    Fragment {
        object: ObjectId(1),
        snapshot: SNAPSHOT,
        order: None,
        columns: (0..table.types.len() as u32).map(ColumnId).collect(),
        filter,
        probes: vec![],
        lookups: vec![],
        output,
        options: ScanOptions::default(),
    }
}

fn aggregate(function: AggregateFunction, input: Option<Expr>, state: Type) -> Aggregate {
    Aggregate {
        function,
        input,
        filter: None,
        state,
    }
}

fn count() -> Output {
    Output::Groups {
        keys: vec![],
        aggregates: vec![aggregate(AggregateFunction::Count, None, Type::Int64)],
    }
}

fn rows(columns: Vec<Expr>) -> Output {
    Output::Rows {
        columns,
        limit: None,
    }
}

/// `COUNT(*)` under a filter, and what it cost.
fn counted(table: &Table, filter: Vec<Expr>) -> (i128, Work) {
    let mut work = Work::default();
    let fragment = fragment(table, filter, count());
    let batches = run_counting(&fragment, table, &mut work).expect("it runs");
    let [Value::Integer(count)] = rows_of(&batches)[0][..] else {
        panic!("one count");
    };
    (count, work)
}

/// Two chunks: 0 to 99, and 1,000 to 1,099.
fn two_ranges() -> Table {
    let values = |start: i64| vec![("n", numbers(start..start + 100))];
    table(vec![values(0), values(1_000)])
}

#[test]
fn zone_maps_answer_what_they_can() {
    let table = two_ranges();
    let n = || Expr::Column(0);
    let (count, work) = counted(&table, vec![binary(BinaryOp::Lt, n(), int(50))]);
    assert_eq!((count, work.chunks, work.chunks_skipped), (50, 1, 1));
    assert_eq!((work.rows_scanned, work.rows_passed), (100, 50));
    // Covered: counted without a value read.
    let (count, work) = counted(&table, vec![binary(BinaryOp::GtEq, n(), int(-3))]);
    assert_eq!((count, work.chunks, work.bytes), (200, 2, 0));
    // Two bounds are one range, whichever way they are written.
    let between = vec![binary(
        BinaryOp::And,
        binary(BinaryOp::Lt, int(99), n()),
        binary(BinaryOp::LtEq, n(), int(999)),
    )];
    let (count, work) = counted(&table, between);
    assert_eq!((count, work.chunks_skipped), (0, 2));
}

#[test]
fn contradictions_are_found_before_any_chunk() {
    let table = two_ranges();
    let n = || Expr::Column(0);
    let filter = vec![
        binary(BinaryOp::Gt, n(), int(7)),
        binary(BinaryOp::Lt, n(), int(8)),
    ];
    let fragment = fragment(&table, filter, rows(vec![n()]));
    let program = Program::compile(&fragment, &table.schema, &table.dictionaries).unwrap();
    assert!(program.is_done(&program.start()));
}

#[test]
fn lossless_casts_reach_the_encoded_column() {
    let price = Decimal128Array::from_iter_values(0..100)
        .with_precision_and_scale(9, 2)
        .unwrap();
    let table = table(vec![vec![
        (
            "i",
            Arc::new(Int32Array::from_iter_values(0..100)) as ArrayRef,
        ),
        ("price", Arc::new(price)),
    ]]);
    let decimal = |precision, scale| Type::Decimal { precision, scale };
    let wide = |value| literal(decimal(15, 4), Value::Integer(value));
    let i = || cast(Expr::Column(0), Type::Int64);
    let price = || cast(Expr::Column(1), decimal(15, 4));
    // Only a test on the encoded column lets a zone map exclude the chunk.
    for (filter, expected) in [
        (binary(BinaryOp::Eq, i(), int(5)), 1),
        (binary(BinaryOp::Gt, i(), int(1 << 40)), 0),
        (binary(BinaryOp::Eq, price(), wide(700)), 1),
        // 0.0701 is no price.
        (binary(BinaryOp::Eq, price(), wide(701)), 0),
        (binary(BinaryOp::LtEq, price(), wide(701)), 8),
        (binary(BinaryOp::Lt, price(), wide(-1)), 0),
    ] {
        let (count, work) = counted(&table, vec![filter.clone()]);
        assert_eq!(count, expected, "{filter}");
        assert_eq!(work.chunks_skipped, (expected == 0) as u64, "{filter}");
    }
    // A narrowing cast fails instead.
    let narrow = cast(cast(Expr::Column(0), Type::Int64), Type::Int8);
    let table = table_of_one("i", Arc::new(Int32Array::from(vec![1_000])));
    let narrow = binary(BinaryOp::Eq, narrow, literal(Type::Int8, Value::Integer(1)));
    let error = run(&fragment(&table, vec![narrow], count()), &table).unwrap_err();
    assert!(error.to_string().contains("1000"), "{error}");
}

fn table_of_one(name: &'static str, array: ArrayRef) -> Table {
    table(vec![vec![(name, array)]])
}

#[test]
fn conditions_on_text_become_codes() {
    let cities: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("Rom"),
        Some("Paris"),
        None,
        Some("Riga"),
    ]));
    let table = table_of_one("city", cities);
    let like = |pattern: &str| Expr::Like {
        operand: Box::new(Expr::Column(0)),
        pattern: pattern.to_owned(),
        negated: false,
        case_insensitive: false,
    };
    assert_eq!(counted(&table, vec![like("R%")]).0, 2);
    let (count, work) = counted(&table, vec![like("X%")]);
    assert_eq!(
        (count, work.chunks_skipped),
        (0, 1),
        "no string of the dictionary passes"
    );
    // NULL is handled apart from the strings.
    let or_null = binary(
        BinaryOp::Or,
        like("P%"),
        Expr::IsNull(Box::new(Expr::Column(0))),
    );
    assert_eq!(counted(&table, vec![or_null.clone()]).0, 2);
    assert_eq!(counted(&table, vec![Expr::Not(Box::new(or_null))]).0, 2);
    let probe = Probe {
        column: 0,
        keys: KeySet::Strings(vec!["Paris".to_owned(), "Vaduz".to_owned()]),
    };
    let probing = Fragment {
        probes: vec![probe],
        lookups: vec![],
        ..fragment(&table, vec![], rows(vec![Expr::Column(0)]))
    };
    let found = rows_of(&run(&probing, &table).unwrap());
    assert_eq!(found, [[Value::String("Paris".to_owned())]]);
}

#[test]
fn floats_compare_as_in_sql() {
    let values = vec![f64::NAN, -f64::NAN, f64::INFINITY, 1.0, 0.0, -0.0, -1.0];
    let table = table_of_one("x", Arc::new(Float64Array::from(values)));
    let zero = |op| {
        binary(
            op,
            Expr::Column(0),
            literal(Type::Float64, Value::Float(-0.0)),
        )
    };
    // Total order, except that both zeros are one: -NaN < -1 < 0 = -0 < 1 < infinity < NaN.
    assert_eq!(counted(&table, vec![zero(BinaryOp::Eq)]).0, 2);
    assert_eq!(counted(&table, vec![zero(BinaryOp::NotEq)]).0, 5);
    assert_eq!(counted(&table, vec![zero(BinaryOp::Gt)]).0, 3);
    assert_eq!(counted(&table, vec![zero(BinaryOp::GtEq)]).0, 5);
    assert_eq!(counted(&table, vec![zero(BinaryOp::Lt)]).0, 2);
    assert_eq!(counted(&table, vec![zero(BinaryOp::LtEq)]).0, 4);
}

#[test]
fn guarded_divisions_do_not_fail() {
    let table = table_of_one("n", numbers([0, 5, 0, 2]));
    let n = || Expr::Column(0);
    let quotient = || binary(BinaryOp::Divide, int(10), n());
    let nonzero = || binary(BinaryOp::NotEq, n(), int(0));
    let case = Expr::Case {
        branches: vec![(nonzero(), quotient())],
        otherwise: Some(Box::new(int(-1))),
    };
    let results = rows_of(&run(&fragment(&table, vec![], rows(vec![case])), &table).unwrap());
    let results: Vec<Value> = results.into_iter().flatten().collect();
    assert_eq!(results, [-1, 2, -1, 5].map(Value::Integer));
    let guarded = binary(
        BinaryOp::Or,
        Expr::Not(Box::new(nonzero())),
        binary(BinaryOp::Gt, quotient(), int(4)),
    );
    assert_eq!(counted(&table, vec![guarded]).0, 3);
    let filtered = Aggregate {
        filter: Some(nonzero()),
        ..aggregate(AggregateFunction::Sum, Some(quotient()), Type::Int64)
    };
    let output = Output::Groups {
        keys: vec![],
        aggregates: vec![filtered],
    };
    let sum = rows_of(&run(&fragment(&table, vec![], output), &table).unwrap());
    assert_eq!(sum, [[Value::Integer(7)]]);
}

#[test]
fn failures_name_the_expression() {
    let table = table_of_one("n", numbers([i64::MAX, 0]));
    let n = || Expr::Column(0);
    let fail = |output| {
        run(&fragment(&table, vec![], output), &table)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        fail(rows(vec![binary(BinaryOp::Add, n(), int(1))])),
        "overflow in (n + 1): the result does not fit its type; CAST the argument to a wider one"
    );
    assert_eq!(
        fail(rows(vec![binary(BinaryOp::Modulo, int(1), n())])),
        "division by zero in (1 % n)"
    );
    let double = binary(BinaryOp::Multiply, n(), int(2));
    let sum = |input| Output::Groups {
        keys: vec![],
        aggregates: vec![aggregate(AggregateFunction::Sum, Some(input), Type::Int64)],
    };
    assert!(fail(sum(double)).starts_with("overflow in (n * 2)"));
    let twice = two_maxima();
    let error = run(&fragment(&twice, vec![], sum(n())), &twice).unwrap_err();
    assert!(matches!(error, FragmentError::Overflow { what } if what == "SUM(n)"));
}

fn two_maxima() -> Table {
    table_of_one("n", numbers([i64::MAX, i64::MAX]))
}

#[test]
fn a_sum_may_leave_its_type_on_the_way() {
    let table = table_of_one("n", numbers([i64::MAX, i64::MAX, -i64::MAX]));
    let sum = aggregate(AggregateFunction::Sum, Some(Expr::Column(0)), Type::Int64);
    let output = Output::Groups {
        keys: vec![],
        aggregates: vec![sum],
    };
    let sum = rows_of(&run(&fragment(&table, vec![], output), &table).unwrap());
    assert_eq!(sum, [[Value::Integer(i64::MAX as i128)]]);
}

#[test]
fn no_keys_are_one_group_even_without_rows() {
    let table = two_ranges();
    let never = vec![literal(Type::Boolean, Value::Boolean(false))];
    let output = Output::Groups {
        keys: vec![],
        aggregates: vec![
            aggregate(AggregateFunction::Count, None, Type::Int64),
            aggregate(AggregateFunction::Sum, Some(Expr::Column(0)), Type::Int64),
        ],
    };
    let result = rows_of(&run(&fragment(&table, never.clone(), output), &table).unwrap());
    assert_eq!(result, [[Value::Integer(0), Value::Null]]);
    let grouped = Output::Groups {
        keys: vec![Expr::Column(0)],
        aggregates: vec![],
    };
    assert!(
        run(&fragment(&table, never, grouped), &table)
            .unwrap()
            .is_empty()
    );
}

/// Keys that outgrow the dense table in the middle of the run keep their groups.
#[test]
fn groups_survive_the_change_of_the_index() {
    let keys = |chunk: i64| -> Vec<i64> {
        (0..20_000)
            .map(|row| match chunk {
                0 => row % 100,
                1 => row % 3_000 - 1_500,
                _ => (row * 7_919 % 50_000) * 1_000_003,
            })
            .collect()
    };
    let chunks: Vec<_> = (0..4)
        .map(|chunk| vec![("k", numbers(keys(chunk)))])
        .collect();
    let table = table(chunks);
    let mut expected: HashMap<i64, i128> = HashMap::new();
    for key in (0..4).flat_map(keys) {
        *expected.entry(key).or_default() += 1;
    }
    let output = Output::Groups {
        keys: vec![Expr::Column(0)],
        aggregates: vec![aggregate(AggregateFunction::Count, None, Type::Int64)],
    };
    let fragment = fragment(&table, vec![], output);
    let program = Program::compile(&fragment, &table.schema, &table.dictionaries).unwrap();
    let mut partial = program.start();
    let mut bytes = partial.bytes();
    for chunk in &table.chunks {
        assert_eq!(
            program
                .run(&chunk.view, &mut partial, &mut Work::default())
                .unwrap(),
            []
        );
        assert!(partial.bytes() >= partial.groups() * 16 && partial.bytes() >= bytes / 2);
        bytes = partial.bytes();
    }
    assert_eq!(partial.groups(), expected.len());
    let rows = rows_of(&finish(&program, partial).unwrap());
    assert_eq!(rows.len(), expected.len());
    for row in rows {
        let [Value::Integer(key), Value::Integer(count)] = row[..] else {
            panic!("{row:?}");
        };
        assert_eq!(expected[&(key as i64)], count, "{key}");
    }
}

#[test]
fn batches_have_a_good_size_and_a_limit_stops() {
    let chunks = (0..10).map(|chunk| vec![("n", numbers(chunk * 1_000..(chunk + 1) * 1_000))]);
    let table = table(chunks.collect());
    let all = run(
        &fragment(&table, vec![], rows(vec![Expr::Column(0)])),
        &table,
    )
    .unwrap();
    let sizes: Vec<usize> = all.iter().map(|batch| batch.num_rows()).collect();
    assert_eq!(sizes, [9_000, 1_000]);
    let limited = Output::Rows {
        columns: vec![Expr::Column(0)],
        limit: Some(1_500),
    };
    let mut work = Work::default();
    let some = run_counting(&fragment(&table, vec![], limited), &table, &mut work).unwrap();
    let values: Vec<Value> = rows_of(&some).into_iter().flatten().collect();
    assert_eq!(values, (0..1_500).map(Value::Integer).collect::<Vec<_>>());
    assert_eq!((work.chunks, work.chunks_skipped), (2, 8));
}

#[test]
fn malformed_fragments_are_rejected() {
    let table = two_ranges();
    let text = || literal(Type::String, Value::String("x".to_owned()));
    let n = || Expr::Column(0);
    let sum = |input, state| Output::Groups {
        keys: vec![],
        aggregates: vec![aggregate(AggregateFunction::Sum, input, state)],
    };
    for (filter, output) in [
        (vec![n()], count()),
        (vec![binary(BinaryOp::Eq, n(), text())], count()),
        (vec![binary(BinaryOp::And, n(), n())], count()),
        (vec![], rows(vec![Expr::Column(1)])),
        (vec![], rows(vec![Expr::Negate(Box::new(text()))])),
        (vec![], rows(vec![literal(Type::Int8, Value::Integer(128))])),
        (vec![], sum(Some(text()), Type::String)),
        (vec![], sum(None, Type::Int64)),
    ] {
        let result = run(&fragment(&table, filter.clone(), output.clone()), &table);
        assert!(
            matches!(result, Err(FragmentError::Malformed { .. })),
            "{filter:?} {output:?}"
        );
    }
}
