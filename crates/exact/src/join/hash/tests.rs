//! Joins beside those of DataFusion, whose `HashJoinExec` is the oracle: random tables, keys, kinds and conditions.

use super::HashJoin;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringViewArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{JoinSide, JoinType};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use std::sync::Arc;

const KINDS: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

/// A generator that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.below(9) > 0).then_some(value)
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("b", DataType::Int64, true),
        Field::new("f", DataType::Float64, true),
        Field::new("t", DataType::Utf8View, true),
        Field::new("v", DataType::Int64, true),
    ]))
}

/// Batches of a table whose keys are below some number; far apart ones if they are wide.
fn table(random: &mut Random, rows: u64, keys: u64, is_wide: bool) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    let mut left = rows;
    while left > 0 {
        let len = left.min(1 + random.below(200));
        left -= len;
        let mut keys = || -> Vec<Option<u64>> {
            let keys = (0..len).map(|_| random.below(keys));
            let keys: Vec<u64> = keys.collect();
            keys.into_iter().map(|key| random.maybe(key)).collect()
        };
        let spread = |key: u64| match is_wide {
            true => key as i64 * 0x3_1415_9265_3589,
            false => key as i64 - 3,
        };
        let (i, b, f, t) = (keys(), keys(), keys(), keys());
        let v: Vec<i64> = (0..len).map(|_| random.below(100) as i64).collect();
        let text = |key: u64| {
            format!(
                "{}{key}",
                if key.is_multiple_of(2) {
                    "a longer text than twelve "
                } else {
                    ""
                }
            )
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(
                i.into_iter()
                    .map(|key| key.map(|key| key as i32 - 3))
                    .collect::<Int32Array>(),
            ),
            Arc::new(
                b.into_iter()
                    .map(|key| key.map(spread))
                    .collect::<Int64Array>(),
            ),
            Arc::new(
                f.into_iter()
                    .map(|key| key.map(|key| key as f64 / 4.0))
                    .collect::<Float64Array>(),
            ),
            Arc::new(
                t.into_iter()
                    .map(|key| key.map(text))
                    .collect::<StringViewArray>(),
            ),
            Arc::new(Int64Array::from(v)),
        ];
        batches.push(RecordBatch::try_new(schema(), columns).unwrap());
    }
    batches
}

fn column(at: usize) -> PhysicalExprRef {
    Arc::new(Column::new(schema().field(at).name(), at))
}

/// `left.v < right.v`.
fn less() -> JoinFilter {
    let field = |name| Field::new(name, DataType::Int64, true);
    let schema = Schema::new(vec![field("l"), field("r")]);
    let [l, r] = [("l", 0), ("r", 1)].map(|(name, at)| Arc::new(Column::new(name, at)) as _);
    JoinFilter::new(
        Arc::new(BinaryExpr::new(l, Operator::Lt, r)),
        vec![
            ColumnIndex {
                index: 4,
                side: JoinSide::Left,
            },
            ColumnIndex {
                index: 4,
                side: JoinSide::Right,
            },
        ],
        Arc::new(schema),
    )
}

/// A table in so many partitions.
fn source(batches: &[RecordBatch], partitions: usize) -> Arc<dyn ExecutionPlan> {
    let mut parts = vec![Vec::new(); partitions];
    for (number, batch) in batches.iter().enumerate() {
        parts[number % partitions].push(batch.clone());
    }
    MemorySourceConfig::try_new_exec(&parts, schema(), None).unwrap()
}

/// All rows of all partitions, in one order.
fn rows(batches: Vec<RecordBatch>, schema: &SchemaRef) -> Vec<Vec<u8>> {
    let all = concat_batches(schema, &batches).unwrap();
    if all.num_columns() == 0 {
        return vec![Vec::new(); all.num_rows()];
    }
    let fields = schema
        .fields()
        .iter()
        .map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).unwrap();
    let rows = converter.convert_columns(all.columns()).unwrap();
    let mut rows: Vec<Vec<u8>> = rows.iter().map(|row| row.as_ref().to_vec()).collect();
    rows.sort_unstable();
    rows
}

async fn all(
    partitions: usize,
    execute: impl Fn(
        usize,
    ) -> datafusion::error::Result<datafusion::execution::SendableRecordBatchStream>,
) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for partition in 0..partitions {
        batches.extend(
            execute(partition)
                .unwrap()
                .try_collect::<Vec<_>>()
                .await
                .unwrap(),
        );
    }
    batches
}

fn context(batch_rows: usize) -> Arc<TaskContext> {
    let config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_target_partitions(3);
    Arc::new(TaskContext::default().with_session_config(config))
}

async fn compare(seed: u64) {
    let mut random = Random(seed);
    let is_wide = random.below(2) == 0;
    let most_keys = 1 + random.below(300);
    let sizes = [0, 1, 30, 700, 40_000];
    let build_rows = sizes[random.below(5) as usize].min(30 * most_keys);
    let probe_rows = sizes[random.below(4) as usize];
    let build = table(&mut random, build_rows, most_keys, is_wide);
    let probe = table(&mut random, probe_rows, most_keys, is_wide);
    let choices: [&[usize]; 7] = [&[0], &[1], &[2], &[3], &[0, 1], &[1, 3], &[2, 0, 3]];
    let keys = choices[random.below(7) as usize];
    let filter = (random.below(2) == 0).then(less);
    let kind = KINDS[random.below(10) as usize];
    let partitions = 1 + random.below(3) as usize;
    let batch_rows = 1 + random.below(100) as usize;
    let on = keys.iter().map(|&at| (column(at), column(at))).collect();
    let planned = HashJoinExecBuilder::new(source(&build, 1), source(&probe, partitions), on, kind)
        .with_filter(filter)
        .with_partition_mode(PartitionMode::CollectLeft);
    let mut planned: HashJoinExec = planned.build().unwrap();
    let width = ExecutionPlan::schema(&planned).fields().len() as u64;
    if random.below(3) == 0 {
        let chosen = (0..width).filter(|_| random.below(2) == 0);
        planned = planned
            .with_projection(Some(chosen.map(|at| at as usize).collect()))
            .unwrap();
    }
    let planned = Arc::new(planned);
    let own = HashJoin::new(
        &planned,
        Arc::clone(planned.left()),
        Arc::clone(planned.right()),
        None,
    );
    let schema = ExecutionPlan::schema(&*planned);
    let what = format!("seed {seed}: {kind} by {keys:?}, {build_rows} and {probe_rows} rows");
    let context = context(batch_rows);
    let found = all(partitions, |partition| {
        own.execute(partition, Arc::clone(&context))
    })
    .await;
    assert!(
        found
            .iter()
            .all(|batch| batch.num_rows() <= 2 * batch_rows + 1),
        "{what}"
    );
    let expected = all(partitions, |partition| {
        planned.execute(partition, Arc::clone(&context))
    })
    .await;
    assert_eq!(rows(found, &schema), rows(expected, &schema), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn joins_have_the_rows_that_datafusions_have() {
    for seed in 0..400 {
        compare(seed).await;
    }
}

/// Rows of the probe side keep their order, those without a match among them.
#[tokio::test]
async fn the_order_of_the_probe_side_is_kept() {
    let mut random = Random(7);
    let build = table(&mut random, 500, 40, false);
    let mut probe = table(&mut random, 2_000, 60, false);
    for (number, batch) in probe.iter_mut().enumerate() {
        let numbers = (0..batch.num_rows()).map(|row| (number * 1_000 + row) as i64);
        let mut columns = batch.columns().to_vec();
        columns[4] = Arc::new(Int64Array::from_iter_values(numbers));
        *batch = RecordBatch::try_new(schema(), columns).unwrap();
    }
    for kind in KINDS {
        let on = vec![(column(0), column(0))];
        let planned = HashJoinExecBuilder::new(source(&build, 1), source(&probe, 1), on, kind)
            .with_partition_mode(PartitionMode::CollectLeft);
        let planned = Arc::new(planned.build().unwrap());
        if !ExecutionPlan::maintains_input_order(&*planned)[1] {
            continue;
        }
        let own = HashJoin::new(
            &planned,
            Arc::clone(planned.left()),
            Arc::clone(planned.right()),
            None,
        );
        let context = context(17);
        let found = all(1, |partition| own.execute(partition, Arc::clone(&context))).await;
        let found = concat_batches(&ExecutionPlan::schema(&*planned), &found).unwrap();
        let of_probe = match kind {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => 4,
            _ => 9,
        };
        let numbers = found.column(of_probe);
        let numbers = numbers.as_any().downcast_ref::<Int64Array>().unwrap();
        assert!(numbers.values().is_sorted(), "{kind}");
        assert!(numbers.len() > 100, "{kind}");
    }
}
