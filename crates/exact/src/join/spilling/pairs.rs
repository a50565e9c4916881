//! The buckets with the same hash of both inputs, joined.

use super::buckets::Buckets;
use super::{DEEPEST, SpillingJoinExec};
use crate::once::OnceExec;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::IsNotNullExpr;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    HashJoinExec, HashJoinExecBuilder, PartitionMode, SortMergeJoinExec,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::spill::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Both inputs, as buckets.
pub(super) struct Pairs {
    pub join: Arc<HashJoinExec>,
    pub build: Arc<Buckets>,
    pub probe: Arc<Buckets>,
    /// How often the rows were repartitioned before.
    pub depth: usize,
    pub context: Arc<TaskContext>,
}

impl Pairs {
    /// The results of the pairs that `next` gives out, one after the other.
    pub fn stream(
        self,
        next: Arc<AtomicUsize>,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
        // NOT IN a list with a NULL is never true.
        let pairs = match self.join.null_aware && self.probe.has_null {
            true => 0,
            false => self.build.files.len(),
        };
        let claims = stream::unfold(next, move |next| async move {
            let pair = next.fetch_add(1, Ordering::Relaxed);
            (pair < pairs).then_some((pair, next))
        });
        claims.map(move |pair| self.pair(pair)).try_flatten()
    }

    fn pair(&self, pair: usize) -> Result<SendableRecordBatchStream> {
        let join = &self.join;
        let schema = join.left().schema();
        let mut build = self.source(&self.build.files[pair], &schema)?;
        if join.null_aware && self.probe.all_rows() > 0 {
            // Nor is NULL NOT IN a list that is not empty.
            let key = Arc::clone(&join.on()[0].0);
            let known: Arc<dyn PhysicalExpr> = Arc::new(IsNotNullExpr::new(key));
            build = Arc::new(FilterExec::try_new(known, build)?);
        }
        let probe = self.source(&self.probe.files[pair], &join.right().schema())?;
        let plan = HashJoinExecBuilder::new(build, probe, join.on().to_vec(), *join.join_type())
            .with_filter(join.filter().cloned())
            .with_projection_ref(join.projection.clone())
            .with_partition_mode(PartitionMode::CollectLeft)
            .with_null_equality(join.null_equality())
            .build()?;
        // Rows that another hash would not spread better either are sorted at once.
        let most_in_one = self.build.rows[pair] > self.build.all_rows() / 2;
        let depth = if most_in_one { DEEPEST } else { self.depth + 1 };
        SpillingJoinExec::new(Arc::new(plan), depth)?.execute(0, Arc::clone(&self.context))
    }

    /// The rows of some files, as a leaf of a plan.
    fn source(
        &self,
        files: &[Arc<dyn SpillFile>],
        schema: &SchemaRef,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let manager = SpillManager::new(self.context.runtime_env(), metrics, Arc::clone(schema));
        // Opened one after the other, as they are read.
        let files = stream::iter(files.to_vec());
        let batches = files
            .map(move |file| manager.read_spill_as_stream_unbuffered(file, None))
            .try_flatten();
        let stream = RecordBatchStreamAdapter::new(Arc::clone(schema), batches);
        Ok(Arc::new(OnceExec::new(Box::pin(stream))))
    }
}

/// The same join by sorting and merging, of one partition each.
pub(super) fn merge_join(
    join: &HashJoinExec,
    build: Arc<dyn ExecutionPlan>,
    probe: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if join.null_aware {
        return Err(DataFusionError::Internal(
            "a NULL-aware join cannot be merged".into(),
        ));
    }
    let options = SortOptions::default();
    let sorted = |input, keys: Vec<&Arc<dyn PhysicalExpr>>| -> Result<Arc<dyn ExecutionPlan>> {
        let keys = keys
            .into_iter()
            .map(|key| PhysicalSortExpr::new(Arc::clone(key), options));
        let order = LexOrdering::new(keys)
            .ok_or_else(|| DataFusionError::Internal("a join without keys".into()))?;
        Ok(Arc::new(
            SortExec::new(order, input).with_preserve_partitioning(true),
        ))
    };
    let build = sorted(build, join.on().iter().map(|(build, _)| build).collect())?;
    let probe = sorted(probe, join.on().iter().map(|(_, probe)| probe).collect())?;
    let merge = SortMergeJoinExec::try_new(
        build,
        probe,
        join.on().to_vec(),
        join.filter().cloned(),
        *join.join_type(),
        vec![options; join.on().len()],
        join.null_equality(),
    )?;
    let Some(projection) = &join.projection else {
        return Ok(Arc::new(merge));
    };
    let schema = merge.schema();
    let columns = projection.iter().map(|&column| {
        let name = schema.field(column).name();
        let expr = datafusion::physical_expr::expressions::Column::new(name, column);
        ProjectionExpr::new(Arc::new(expr), name.clone())
    });
    let columns: Vec<ProjectionExpr> = columns.collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, Arc::new(merge))?))
}

/// What a batch takes.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    get_record_batch_memory_size(batch)
}
