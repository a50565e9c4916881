//! The names against DataFusion's operators: what they register when they run.

use super::*;
use crate::rules::physical_rules;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext, col};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Grants everything, and notes who registers.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<(usize, String, OperatorKind)>>);

impl fmt::Display for Noting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut noted = self.0.lock().unwrap();
        let others = noted.iter().map(|(id, name, _)| (*id, name.as_str()));
        let kind = OperatorKind::of(consumer, others);
        noted.push((consumer.id(), consumer.name().to_owned(), kind));
    }

    fn grow(&self, _: &MemoryReservation, _: usize) {}

    fn shrink(&self, _: &MemoryReservation, _: usize) {}

    fn try_grow(&self, _: &MemoryReservation, _: usize) -> Result<()> {
        Ok(())
    }

    fn reserved(&self) -> usize {
        0
    }
}

/// The operators of a query over two partitions of `t`, which are sorted by `a` as `s` says.
fn operators(sql: &str) -> Vec<(String, OperatorKind)> {
    let noting = Arc::new(Noting::default());
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&noting) as Arc<dyn MemoryPool>)
        .build_arc()
        .unwrap();
    let mut config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(16);
    let options = config.options_mut();
    options.optimizer.prefer_hash_join = !sql.contains("merge join");
    options.optimizer.prefer_existing_sort = true;
    options.optimizer.hash_join_single_partition_threshold = 0;
    options.optimizer.hash_join_single_partition_threshold_rows = 0;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_physical_optimizer_rules(physical_rules())
        .build();
    let context = SessionContext::new_with_state(state);
    let batch = |from: i64| {
        let a: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 100));
        let b: ArrayRef = Arc::new(Int64Array::from_iter_values((0..100).map(|b| b % 7)));
        RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap()
    };
    let table = || {
        let partitions = vec![vec![batch(0)], vec![batch(100)]];
        MemTable::try_new(batch(0).schema(), partitions).unwrap()
    };
    let sorted = table().with_sort_order(vec![vec![col("a").sort(true, false)]]);
    context.register_table("t", Arc::new(table())).unwrap();
    context.register_table("s", Arc::new(sorted)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        context.sql(sql).await.unwrap().collect().await.unwrap();
    });
    let noted = noting.0.lock().unwrap();
    (noted.iter())
        .map(|(_, name, kind)| (name.clone(), *kind))
        .collect()
}

#[test]
fn operators_are_known_by_their_names() {
    let mut met = HashSet::new();
    for (sql, expected) in [
        (
            "SELECT a FROM t ORDER BY CAST(b AS VARCHAR)",
            "ExternalSorter: Sort, ExternalSorterMerge: Merge of it, SortPreservingMergeExec: Merge",
        ),
        ("SELECT a FROM t ORDER BY b", "PackedSort: Sort"),
        (
            "SELECT a FROM t ORDER BY b LIMIT 3",
            "SortPreservingMergeExec: Merge, TopK: CannotSpill",
        ),
        ("SELECT sum(a) FROM t", "AggregateStream: Aggregate"),
        (
            "SELECT b, sum(a) FROM t GROUP BY b",
            "FinalHashAggregateStream: Aggregate, PartialHashAggregateStream: Aggregate, \
             RepartitionExec: Exchange",
        ),
        (
            "SELECT a, sum(b) FROM s GROUP BY a",
            "OrderedFinalAggregateStream: OrderedAggregate, OrderedPartialAggregateStream: OrderedAggregate, \
             RepartitionExec: Exchange, RepartitionExec: Merge",
        ),
        (
            "SELECT t.a FROM t JOIN t AS u ON t.a = u.b",
            "HashJoinCopy: Join, HashJoinInput: Join, RepartitionExec: Exchange",
        ),
        (
            "SELECT t.a /* merge join */ FROM t JOIN t AS u ON t.a = u.b",
            "PackedSort: Sort, RepartitionExec: Exchange, SMJStream: CannotSpill",
        ),
        (
            "SELECT t.a FROM t JOIN t AS u ON t.a < u.b",
            "NestedLoopJoinLoad: CannotSpill",
        ),
        (
            "SELECT t.a, u.b FROM t CROSS JOIN t AS u",
            "CrossJoinExec: CannotSpill",
        ),
        (
            "SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY b ORDER BY a) AS r FROM t) WHERE r <= 2",
            "FirstRanks: CannotSpill, PackedSort: Sort, RepartitionExec: Exchange",
        ),
        (
            "SELECT sum(a) OVER (PARTITION BY b) FROM t",
            "PackedSort: Sort, RepartitionExec: Exchange, Window: CannotSpill",
        ),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
            "RecursiveQuery: CannotSpill, RecursiveQueryHashTable: CannotSpill, RepartitionExec: Exchange",
        ),
    ] {
        let mut found = BTreeSet::new();
        for (name, kind) in operators(sql) {
            assert_ne!(in_words(&name), name, "it has no words");
            met.insert(in_words(&name).to_owned());
            let plain = name.split('[').next().unwrap_or_default();
            found.insert(match kind {
                OperatorKind::Merge { sort: Some(_) } => format!("{plain}: Merge of it"),
                OperatorKind::Merge { sort: None } => format!("{plain}: Merge"),
                other => format!("{plain}: {other:?}"),
            });
        }
        let found = found.into_iter().collect::<Vec<_>>().join(", ");
        assert_eq!(found, expected, "{sql}");
    }
    for (start, words) in WORDS {
        assert!(
            met.contains(words),
            "no operator's name begins with {start}"
        );
    }
}
