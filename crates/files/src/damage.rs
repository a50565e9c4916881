//! Damage of Parquet files that shows while their rows are read.
//!
//! ```text
//! DataSourceExec ── Contained ── DataFusion's source: opens a file, decodes pages
//!                       │
//!                       └ an error or a panic there: "t.parquet is damaged"
//! ```
//!
//! The reader tells no file, and panics where a length is absurd. Streams of one scan share its files. So which one it
//! was is found by reading them again, each by itself.

use crate::calendar;
use crate::contained::contained;
use crate::error::{FileError, FileFaultKind};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::datasource::source::{DataSource, DataSourceExec, OpenArgs};
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning};
use eris_exact::one_nan_in_rows;
use futures::{Stream, StreamExt};
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The rule that contains the readers of a plan. It runs last, for its sources cannot be changed any more.
#[derive(Debug)]
pub struct ContainDamage;

impl PhysicalOptimizerRule for ContainDamage {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(parquet_scan(node).is_some()))? {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let Some(scan) = parquet_scan(&node) else {
                return Ok(Transformed::no(node));
            };
            let groups = scan.file_groups.iter();
            let files = groups.flat_map(|group| group.files());
            let files = files.map(|file| PathBuf::from(format!("/{}", file.path())));
            let source = node.downcast_ref::<DataSourceExec>();
            let source = source.expect("it has a scan").data_source();
            let contained = Contained {
                files: files.collect(),
                source: Arc::clone(source),
            };
            let node = DataSourceExec::new(Arc::new(contained));
            Ok(Transformed::yes(Arc::new(node) as _))
        })
        .data()
    }

    fn name(&self) -> &str {
        "contain_damage"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The scan of Parquet files that a node is, contained or not.
pub(crate) fn parquet_scan(node: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    let source: &dyn Any = node
        .downcast_ref::<DataSourceExec>()?
        .data_source()
        .as_ref();
    let source = match source.downcast_ref::<Contained>() {
        Some(contained) => contained.source.as_ref() as &dyn Any,
        None => source,
    };
    let scan = source.downcast_ref::<FileScanConfig>()?;
    let format: &dyn Any = scan.file_source().as_ref();
    format.is::<ParquetSource>().then_some(scan)
}

/// A source whose panics are errors, and whose errors name a file.
#[derive(Debug)]
struct Contained {
    files: Arc<[PathBuf]>,
    source: Arc<dyn DataSource>,
}

impl Contained {
    fn opened(
        &self,
        open: impl FnOnce() -> Result<SendableRecordBatchStream>,
    ) -> Result<SendableRecordBatchStream> {
        let stream = contained(open).unwrap_or_else(|| Err(damaged(&self.files)))?;
        Ok(Box::pin(ContainedStream {
            files: Arc::clone(&self.files),
            stream: Some(stream),
            schema: self.source.eq_properties().schema().clone(),
        }))
    }
}

impl DataSource for Contained {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.opened(|| self.source.open(partition, context))
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        self.opened(|| self.source.open_with_args(args))
    }

    fn create_sibling_state(&self, config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        self.source.create_sibling_state(config)
    }

    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt_as(kind, f)
    }

    fn output_partitioning(&self) -> Partitioning {
        self.source.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.source.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.source.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.source.partition_statistics(partition)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        self.source.with_fetch(limit)
    }

    fn fetch(&self) -> Option<usize> {
        self.source.fetch()
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.source.metrics()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        self.source.try_swapping_with_projection(projection)
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.source.apply_expressions(visit)
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn DataSource>> {
        let source = self.source.with_new_state(state)?;
        Some(Arc::new(Contained {
            files: Arc::clone(&self.files),
            source,
        }))
    }
}

/// Rows of a source. It ends with its first error.
struct ContainedStream {
    files: Arc<[PathBuf]>,
    stream: Option<SendableRecordBatchStream>,
    schema: SchemaRef,
}

impl Stream for ContainedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let polled = contained(|| stream.poll_next_unpin(cx));
        let error = match polled {
            Some(Poll::Ready(Some(Err(error)))) => match error.find_root() {
                DataFusionError::ParquetError(_) => damaged(&self.files),
                DataFusionError::ArrowError(arrow, _)
                    if matches!(**arrow, ArrowError::ParquetError(_)) =>
                {
                    damaged(&self.files)
                }
                _ => error,
            },
            Some(Poll::Ready(Some(Ok(rows)))) => match calendar::fault(&rows) {
                Some(fault) => without_date(&self.files, fault),
                None => return Poll::Ready(Some(Ok(one_nan_in_rows(rows)))),
            },
            Some(polled) => return polled,
            None => damaged(&self.files),
        };
        self.stream = None;
        Poll::Ready(Some(Err(error)))
    }
}

impl RecordBatchStream for ContainedStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The error of the first file that cannot be read whole.
fn damaged(files: &[PathBuf]) -> DataFusionError {
    let is_damaged = |file: &&PathBuf| !contained(|| can_be_read(file)).unwrap_or(false);
    let found = match files {
        [one] => Some(one),
        several => several.iter().find(is_damaged),
    };
    match found {
        Some(file) => {
            let kind = FileFaultKind::Damaged("Parquet file");
            DataFusionError::External(Box::new(FileError::new(file, kind)))
        }
        None => DataFusionError::Execution("a Parquet file is damaged".to_owned()),
    }
}

/// The error of the first file that has such a column.
fn without_date(files: &[PathBuf], fault: FileFaultKind) -> DataFusionError {
    let has_fault = |file: &&PathBuf| {
        let mut rows = contained(|| rows_of(file)).flatten();
        let mut next = || contained(|| rows.as_mut()?.next()?.ok()).flatten();
        std::iter::from_fn(&mut next).any(|rows| calendar::fault(&rows).is_some())
    };
    let found = match files {
        [one] => Some(one),
        several => several.iter().find(has_fault),
    };
    match found {
        Some(file) => DataFusionError::External(Box::new(FileError::new(file, fault))),
        None => DataFusionError::Execution(fault.to_string()),
    }
}

fn can_be_read(file: &PathBuf) -> bool {
    rows_of(file).is_some_and(|mut rows| rows.all(|batch| batch.is_ok()))
}

fn rows_of(file: &PathBuf) -> Option<ParquetRecordBatchReader> {
    let file = std::fs::File::open(file).ok()?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).ok()?;
    builder.build().ok()
}
