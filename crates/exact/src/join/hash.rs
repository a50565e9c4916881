//! The hash join: its build side is read, and made into a table by all threads; then probed in batches.
//!
//! ```text
//! build side ─▶ batches ─┬─ their keys ─▶ codes ─▶ scattered ─▶ table      each step by all threads
//!                        └─ the columns that are needed, one array each
//!                                                            │
//! probe side ─▶ batch ─▶ codes ─▶ located ─▶ pairs of rows ──┴─▶ equal? condition? ─▶ columns, taken by both rows
//! ```
//!
//! Rows of the probe side keep their order. All kinds of joins are the same pairs: what is different is which rows are
//! left without one, and when that is known. Of the probe side it is known with the last pair of a row, of the build
//! side with the last batch.
//!
//! Codes and the table are those of the crate `join`. Why: docs/decisions/0045.
//!
//! **Stands for** DataFusion's `HashJoinExec`, which makes its table on one thread. It stays for joins in which NULL
//! equals NULL, for NOT IN, and for joins of partitions.

mod build;
mod keys;
mod order;
mod output;
mod probe;
#[cfg(test)]
mod tests;

use super::spilling::BuildKeys;
use build::BuildSide;
pub use build::on_threads;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
pub use order::in_key_order;
use probe::Prober;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A build side that is being read; whoever waits for it drives it.
type Building = Shared<BoxFuture<'static, Result<Arc<BuildSide>, Arc<DataFusionError>>>>;

/// A hash join, as planned, over these inputs.
pub(super) struct HashJoin {
    spec: Arc<JoinSpec>,
    build: Arc<dyn ExecutionPlan>,
    probe: Arc<dyn ExecutionPlan>,
    /// The build side, which all partitions of the probe side share.
    shared: Mutex<Option<Building>>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is joined, and how.
struct JoinSpec {
    planned: Arc<HashJoinExec>,
    build_keys: Vec<PhysicalExprRef>,
    probe_keys: Vec<PhysicalExprRef>,
    filter: Option<JoinFilter>,
    join_type: JoinType,
    /// Who wants to know the keys of the build side.
    told: Option<Arc<BuildKeys>>,
    /// Where the columns of the result come from.
    columns: Vec<ColumnIndex>,
    /// The result's.
    schema: SchemaRef,
}

impl JoinSpec {
    /// Whether rows of the build side are kept or left out by whether they have a match.
    fn asks_for_matches_of_build(&self) -> bool {
        matches!(
            self.join_type,
            JoinType::Left
                | JoinType::Full
                | JoinType::LeftSemi
                | JoinType::LeftAnti
                | JoinType::LeftMark
        )
    }

    /// Whether no row of the probe side can change that there is no result.
    fn has_no_result(&self, side: &BuildSide) -> bool {
        use JoinType::*;
        match self.join_type {
            Inner | LeftSemi | RightSemi => side.has_no_key,
            Left | LeftAnti | LeftMark => side.rows == 0,
            Right | Full | RightAnti | RightMark => false,
        }
    }
}

impl HashJoin {
    /// Whether it can take the place of a join.
    pub fn is_for(planned: &HashJoinExec) -> bool {
        let is_plain = planned.null_equality() == NullEquality::NullEqualsNothing;
        // Of many partitions, the probe side waits for the keys of all, and each is made by a thread anyway.
        let is_shared = *planned.partition_mode() == PartitionMode::CollectLeft;
        is_plain && is_shared && !planned.null_aware && !planned.on().is_empty()
    }

    /// The join over other inputs with the same rows. `told` is told the keys of the build side.
    pub fn new(
        planned: &Arc<HashJoinExec>,
        build: Arc<dyn ExecutionPlan>,
        probe: Arc<dyn ExecutionPlan>,
        told: Option<Arc<BuildKeys>>,
    ) -> Self {
        let join_type = *planned.join_type();
        let (left, right) = (planned.left().schema(), planned.right().schema());
        let (_, all) = build_join_schema(&left, &right, &join_type);
        let columns = match &planned.projection {
            Some(projection) => projection.iter().map(|&at| all[at].clone()).collect(),
            None => all,
        };
        let (build_keys, probe_keys) = planned.on().iter().cloned().unzip();
        HashJoin {
            spec: Arc::new(JoinSpec {
                build_keys,
                probe_keys,
                filter: planned.filter().cloned(),
                join_type,
                told,
                columns,
                schema: ExecutionPlan::schema(&**planned),
                planned: Arc::clone(planned),
            }),
            build,
            probe,
            shared: Mutex::new(None),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// One partition of the result.
    pub fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let building = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            match &*shared {
                Some(building) => building.clone(),
                None => shared.insert(self.building(&metrics, &context)?).clone(),
            }
        };
        let batch_rows = context.session_config().batch_size();
        let probe = self.probe.execute(partition, context)?;
        let prober = Prober::new(Arc::clone(&self.spec), probe, batch_rows, metrics);
        Ok(prober.stream(building))
    }

    /// Begins to read the build side.
    fn building(&self, metrics: &BaselineMetrics, context: &Arc<TaskContext>) -> Result<Building> {
        let input = self.build.execute(0, Arc::clone(context))?;
        let consumer = MemoryConsumer::new("HashJoinInput");
        let reservation = consumer.register(context.memory_pool());
        let probes = self.probe.output_partitioning().partition_count();
        let threads = context.session_config().target_partitions();
        let spec = Arc::clone(&self.spec);
        let time = metrics.elapsed_compute().clone();
        let read = async move {
            let side = BuildSide::read(spec, input, reservation, (probes, threads), time).await;
            side.map(Arc::new).map_err(Arc::new)
        };
        Ok(read.boxed().shared())
    }

    /// What has been measured.
    pub fn metrics(&self) -> MetricsSet {
        self.metrics.clone_inner()
    }
}

impl fmt::Debug for HashJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashJoin({:?})", self.spec.planned)
    }
}
