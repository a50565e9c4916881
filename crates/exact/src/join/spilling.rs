//! Hash joins whose build side need not fit into memory.
//!
//! ```text
//!                 HashJoinExec ── as planned, with its dynamic filter; all there is as long as memory suffices
//!                  │        │
//!       build ─ feed        probe                    the feed keeps what passes until the hash table is finished
//!                 └ its keys ─▶ filter of the probe side; see keys.rs
//!
//!  memory denied before that: what was kept and what is left of the build side are repartitioned by a hash of
//!       the keys into 32 buckets of files, then the probe side likewise, then pair by pair:
//!
//!       build 0 ⋈ probe 0,  build 1 ⋈ probe 1,  …    each again such a join, with another hash
//!       build rows of one key alone that are too many: merge join over sorts, which spill
//! ```
//!
//! This is the Grace hash join. Rows with equal keys meet in one pair, so every kind of join may be done pair by
//! pair. Both inputs are read once, whatever happens. Where the plan relies on the order of the probe side, the
//! result is sorted again. A partition of the output has the rows of the same partition of the probe side, as without
//! spilling; only joins that yield unmatched build rows promise nothing about partitions.
//!
//! **Stands for** DataFusion's `HashJoinExec`, which fails when its build side does not fit into memory.
//!
//! `docs/decisions/0007-joins-that-spill.md` has the reasons.

mod buckets;
mod feed;
mod keys;
mod pairs;
mod spilled;

use super::hash::HashJoin;
use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use feed::{BuildExec, Feed, ProbeExec};
use futures::{StreamExt, TryStreamExt, stream};
pub(crate) use keys::BuildKeys;
pub use keys::KeySetExpr;
use spilled::Spilled;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How often what does not fit is repartitioned before it is sorted. Beyond a thousand buckets of one join, rows that
/// are still too many have the same key.
const DEEPEST: usize = 2;

/// The rule that makes all hash joins such joins; after all rules that look for hash joins.
#[derive(Debug)]
pub(crate) struct SpillJoins;

impl PhysicalOptimizerRule for SpillJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<HashJoinExec>() {
            Some(join) => {
                let join = SpillingJoinExec::new(Arc::new(join.builder().build()?), 0)?;
                Ok(Transformed::yes(Arc::new(join) as _))
            }
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "spill_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A hash join that spills. To the rest of the plan it is the hash join as planned.
#[derive(Debug)]
pub(crate) struct SpillingJoinExec {
    planned: Arc<HashJoinExec>,
    /// The same over feeds.
    running: Running,
    feed: Arc<Feed>,
    /// How often the rows were repartitioned before.
    depth: usize,
    /// Per partition of the build side what replaces its hash join; made when the first of its partitions is opened.
    spilled: Mutex<Vec<Option<Arc<Spilled>>>>,
    metrics: ExecutionPlanMetricsSet,
}

impl SpillingJoinExec {
    pub fn new(planned: Arc<HashJoinExec>, depth: usize) -> Result<Self> {
        let builds = planned.left().output_partitioning().partition_count();
        let keys = BuildKeys::of(&planned, builds)?.map(Arc::new);
        let is_own = HashJoin::is_for(&planned);
        let feed = Arc::new(Feed::new(builds, keys.clone(), is_own));
        let build = BuildExec::new(Arc::clone(planned.left()), Arc::clone(&feed));
        let probe = ProbeExec::new(Arc::clone(planned.right()), Arc::clone(&feed));
        let (build, probe) = (Arc::new(build), Arc::new(probe));
        let running = match is_own {
            true => Running::Own(HashJoin::new(&planned, build, probe, keys)),
            false => {
                let builder = planned.builder().with_new_children(vec![build, probe])?;
                Running::DataFusions(builder.build()?)
            }
        };
        Ok(SpillingJoinExec {
            planned,
            running,
            feed,
            depth,
            spilled: Mutex::new(vec![None; builds]),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The partition of the build side that a partition of the probe side is joined with.
    fn build_of(&self, partition: usize) -> usize {
        match self.planned.partition_mode() {
            PartitionMode::Partitioned => partition,
            PartitionMode::CollectLeft | PartitionMode::Auto => 0,
        }
    }

    fn spilled(&self, partition: usize, context: &Arc<TaskContext>) -> Arc<Spilled> {
        let build = self.build_of(partition);
        // Each entry is written as a whole.
        let mut spilled = self.spilled.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = spilled[build].get_or_insert_with(|| {
            let probes = self.planned.right().output_partitioning();
            let probes = match self.planned.partition_mode() {
                PartitionMode::Partitioned => build..build + 1,
                PartitionMode::CollectLeft | PartitionMode::Auto => 0..probes.partition_count(),
            };
            Arc::new(Spilled::new(
                Arc::clone(&self.planned),
                Arc::clone(&self.feed),
                build,
                probes,
                self.depth,
                &self.metrics,
                Arc::clone(context),
            ))
        });
        Arc::clone(entry)
    }
}

impl DisplayAs for SpillingJoinExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.planned.fmt_as(t, f)
    }
}

impl ExecutionPlan for SpillingJoinExec {
    fn name(&self) -> &str {
        "SpillingJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.planned.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.planned.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        ExecutionPlan::maintains_input_order(&*self.planned)
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.planned.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.planned.apply_expressions(visit)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.planned.dynamic_expressions_produced()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut builder = self.planned.builder();
        if matches!(
            options.children_properties,
            ChildrenPropertiesMode::Recompute
        ) {
            builder = builder.recompute_properties();
        }
        let planned = builder.with_new_children(children)?.build()?;
        Ok(Arc::new(Self::new(Arc::new(planned), self.depth)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = self.planned.builder().reset_state().build()?;
        Ok(Arc::new(Self::new(Arc::new(planned), self.depth)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut joined = self.running.execute(partition, Arc::clone(&context))?;
        let spilled = self.spilled(partition, &context);
        let feed = Arc::clone(&self.feed);
        let build = self.build_of(partition);
        // Else the partitions of the probe side share it, and the plan owns it, as it owns their hash table.
        let own = *self.planned.partition_mode() == PartitionMode::Partitioned;
        let abandon = own.then(|| Abandon(Arc::clone(&feed), build));
        let output = async move {
            let _abandon = abandon;
            match joined.next().await {
                Some(Err(error)) if is_out_of_memory(&error) && feed.give_up(build) => {
                    // It gives back its memory, and tells the join's other partitions not to wait for its keys.
                    drop(joined);
                    // Takes what is left of the build side before it is abandoned.
                    spilled.begin();
                    spilled.output(partition)
                }
                first => Ok(stream::iter(first).chain(joined).boxed()),
            }
        };
        let output = stream::once(output).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            output,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = self.running.metrics()?;
        let own = self.metrics.clone_inner();
        own.iter().for_each(|metric| all.push(Arc::clone(metric)));
        Some(all)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.planned.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.planned.statistics_from_inputs(inputs, args)
    }

    fn fetch(&self) -> Option<usize> {
        self.planned.fetch()
    }
}

/// Whoever joins as long as memory suffices.
#[derive(Debug)]
enum Running {
    Own(HashJoin),
    DataFusions(HashJoinExec),
}

impl Running {
    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match self {
            Running::Own(join) => join.execute(partition, context),
            Running::DataFusions(join) => join.execute(partition, context),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        match self {
            Running::Own(join) => Some(join.metrics()),
            Running::DataFusions(join) => join.metrics(),
        }
    }
}

/// Gives a build side up with the only stream that needs it.
struct Abandon(Arc<Feed>, usize);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon(self.1);
    }
}

/// Whether memory was denied.
fn is_out_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
