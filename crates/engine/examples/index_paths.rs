//! What an index is worth: the same fragments over the same rows, led by an index and scanned, in one run.
//!
//! `cargo run --release --workspace --example index_paths [-- million rows]`

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_engine::{Engine, IndexKind, Partitioning, Settings};
use eris_fragment::*;
use eris_numa::{HugePages, Topology};
use eris_types::{ColumnId, ObjectId};
use futures::StreamExt;
use std::sync::Arc;
use std::time::Instant;

const BATCH: i64 = 65_536;
const REPEATS: usize = 30;

fn number(value: i64) -> Scalar {
    Scalar {
        data_type: Type::Int64,
        value: Value::Integer(value.into()),
    }
}

fn compare(column: usize, op: BinaryOp, value: i64) -> Expr {
    Expr::Binary {
        op,
        left: Box::new(Expr::Column(column)),
        right: Box::new(Expr::Literal(number(value))),
    }
}

/// A permutation of the numbers below a power of two.
fn scattered(value: i64, bits: u32) -> i64 {
    (value.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) as u64 >> 3 & ((1 << bits) - 1)) as i64
}

async fn fill(engine: &Engine, object: ObjectId, rows: i64, bits: u32) {
    let schema = schema();
    let mut writer = engine.writer(object).expect("a writer");
    for first in (0..rows).step_by(BATCH as usize) {
        let keys: Vec<i64> = (first..rows.min(first + BATCH)).collect();
        let values = keys.iter().map(|key| scattered(*key, bits));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(keys.clone())),
            Arc::new(values.collect::<Int64Array>()),
            Arc::new(keys.iter().map(|key| key % 1000).collect::<Int64Array>()),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).expect("rows");
        writer.append(batch).await.expect("appended");
    }
    writer.commit().await.expect("committed");
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("value", DataType::Int64, true),
        Field::new("payload", DataType::Int64, true),
    ]))
}

/// Median microseconds, and rows.
async fn run(
    engine: &Engine,
    object: ObjectId,
    filter: &[Expr],
    order: Option<Order>,
) -> (f64, usize) {
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..REPEATS {
        let began = Instant::now();
        let fragment = Fragment {
            object,
            snapshot: engine.snapshot(),
            order: order.clone(),
            columns: (0..3).map(ColumnId).collect(),
            filter: filter.to_vec(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: vec![Expr::Column(0), Expr::Column(2)],
                limit: None,
            },
        };
        let execution = engine.execute(Arc::new(fragment), 1).expect("it runs");
        let mut batches = futures::stream::select_all(execution.lanes);
        rows = 0;
        while let Some(batch) = batches.next().await {
            rows += batch.expect("rows").num_rows();
        }
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (times[REPEATS / 2], rows)
}

fn main() {
    let millions: i64 = std::env::args()
        .nth(1)
        .map_or(10, |text| text.parse().expect("a number"));
    let rows = millions * 1_000_000;
    let bits = 64 - (rows as u64).leading_zeros() + 3;
    let topology = Topology::detect().expect("a topology");
    let engine = Engine::start(Settings {
        topology,
        huge_pages: HugePages::Auto,
        memory_limit: None,
    })
    .expect("an engine");
    futures::executor::block_on(async {
        let plain = engine
            .create("plain", schema(), Partitioning::Size)
            .expect("made");
        let indexed = engine
            .create_with_key("indexed", schema(), Partitioning::Size, &[ColumnId(0)])
            .expect("made");
        fill(&engine, plain, rows, bits).await;
        fill(&engine, indexed, rows, bits).await;
        let began = Instant::now();
        engine
            .create_index(indexed, &[ColumnId(1)], IndexKind::Ordered, Arc::default())
            .await
            .expect("built");
        println!(
            "built in {:.2} s: {:?}",
            began.elapsed().as_secs_f64(),
            engine.indexes(indexed)
        );
        println!(
            "{:<34}{:>10}{:>14}{:>14}",
            "", "rows", "index, µs", "scan, µs"
        );
        let show = async |name: &str, filter: Vec<Expr>, order: Option<Order>| {
            let (by_index, found) = run(&engine, indexed, &filter, order.clone()).await;
            let (by_scan, _) = run(&engine, plain, &filter, order).await;
            println!("{name:<34}{found:>10}{by_index:>14.1}{by_scan:>14.1}");
        };
        let value = scattered(rows / 3, bits);
        show("key = 1", vec![compare(0, BinaryOp::Eq, rows / 3)], None).await;
        show("value = 1", vec![compare(1, BinaryOp::Eq, value)], None).await;
        for count in [10, 100, 1000, 10_000] {
            let list = |of: &dyn Fn(i64) -> i64| Expr::InList {
                operand: Box::new(Expr::Column(0)),
                list: (0..count)
                    .map(|at| number(of(at * (rows / count))))
                    .collect(),
                negated: false,
            };
            show(&format!("key IN ({count})"), vec![list(&|at| at)], None).await;
        }
        for part in [1_000_000, 100_000, 20_000, 10_000, 5_000, 2_000, 1_000, 200] {
            let span = (1i64 << bits) / part;
            let range = vec![
                compare(1, BinaryOp::GtEq, value),
                compare(1, BinaryOp::Lt, value + span),
            ];
            show(&format!("value BETWEEN, 1 in {part}"), range, None).await;
        }
        for count in [10, 1000] {
            let order = |column| Order {
                keys: vec![OrderKey {
                    column,
                    descending: true,
                    nulls_first: true,
                }],
                rows: count,
            };
            show(
                &format!("ORDER BY key LIMIT {count}"),
                Vec::new(),
                Some(order(0)),
            )
            .await;
            show(
                &format!("ORDER BY value LIMIT {count}"),
                Vec::new(),
                Some(order(1)),
            )
            .await;
        }
    });
}
