//! Files and frames as a leaf of a plan: each partition is a worker that parses blocks until there are none left.

use crate::blocks::{Block, Blocks, Cutting, TextSource};
use crate::column::{FileColumn, schema};
use crate::compression::Compression;
use crate::error::FileError;
use crate::frame::Condition;
use crate::progress::ReadProgress;
use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use eris_exact::one_nan_in_rows;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of text for which a further worker is worth its thread.
const BYTES_PER_WORKER: u64 = 2 << 20;
/// What a pipe is taken to hold.
const BYTES_OF_PIPE: u64 = 64 << 20;
/// Batches that may wait for their reader, per worker.
const WAITING: usize = 2;

/// What can be read by several workers.
pub(crate) trait FileSource: Send + Sync + fmt::Debug {
    fn schema(&self) -> SchemaRef;

    /// How much there is to be read.
    fn bytes(&self) -> FileBytes;

    /// The number of rows, if it is known.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// What EXPLAIN calls the leaf.
    fn operator(&self) -> &'static str {
        "FileExec"
    }

    /// What EXPLAIN says of it beside that.
    fn shown(&self) -> Option<String> {
        None
    }

    /// Whether conditions may leave rows out.
    fn takes_conditions(&self) -> bool {
        false
    }

    /// Begins to read these columns. Only a source that takes conditions gets some.
    fn begin(
        &self,
        projection: &[usize],
        conditions: &[Condition],
        progress: &ReadProgress,
    ) -> Arc<dyn FileReading>;
}

/// Sizes of files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileBytes {
    pub of_files: u64,
    /// What is in them, roughly.
    pub of_rows: u64,
}

/// A file's length; that of one that is gone is 0.
pub(crate) fn length(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len())
}

/// A reading that is under way.
pub(crate) trait FileReading: Send + Sync {
    /// A worker's next rows; `current` is what it works on.
    fn next(&self, current: &mut Option<usize>) -> Result<Option<RecordBatch>, FileError>;
}

/// What makes rows of text.
pub(crate) trait RecordParser: Send + Sync + fmt::Debug {
    fn columns(&self) -> &[FileColumn];

    /// The rows of whole records.
    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, FileError>;
}

/// Text files.
#[derive(Debug)]
pub(crate) struct TextFiles<P> {
    pub parser: Arc<P>,
    pub files: Vec<TextSource>,
    pub cutting: Cutting,
}

impl<P: RecordParser + 'static> FileSource for TextFiles<P> {
    fn schema(&self) -> SchemaRef {
        schema(self.parser.columns())
    }

    fn bytes(&self) -> FileBytes {
        let mut bytes = FileBytes {
            of_files: 0,
            of_rows: 0,
        };
        for file in &self.files {
            let length = length(file.path());
            let of_name = || Compression::of_name(&file.path().to_string_lossy());
            let compression = self.cutting.coding.compression.unwrap_or_else(of_name);
            bytes.of_files += length;
            bytes.of_rows += match file {
                // Nobody knows.
                TextSource::Pipe(_) => BYTES_OF_PIPE,
                _ => length * compression.factor(),
            };
        }
        bytes
    }

    fn begin(
        &self,
        projection: &[usize],
        _: &[Condition],
        progress: &ReadProgress,
    ) -> Arc<dyn FileReading> {
        Arc::new(TextReading {
            parser: Arc::clone(&self.parser),
            blocks: Blocks::new(&self.files, self.cutting.clone(), progress.clone()),
            projection: projection.to_vec(),
        })
    }
}

struct TextReading<P> {
    parser: Arc<P>,
    blocks: Blocks,
    projection: Vec<usize>,
}

impl<P: RecordParser> FileReading for TextReading<P> {
    fn next(&self, current: &mut Option<usize>) -> Result<Option<RecordBatch>, FileError> {
        let block = self.blocks.next(current)?;
        block
            .map(|block| self.parser.parse(&block, &self.projection))
            .transpose()
    }
}

/// Files as a table.
#[derive(Debug)]
pub(crate) struct FileTable {
    source: Arc<dyn FileSource>,
    progress: ReadProgress,
}

impl FileTable {
    /// A table whose reading is counted there.
    pub fn new(source: Arc<dyn FileSource>, progress: ReadProgress) -> Self {
        FileTable { source, progress }
    }
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.source.schema().fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let conditions: Vec<_> = filters.iter().filter_map(Condition::of).collect();
        Ok(Arc::new(FileExec::new(
            self,
            projection,
            // Rows that are tested again may be fewer.
            limit.filter(|_| conditions.is_empty()),
            conditions,
            session.config().target_partitions(),
        )?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = |filter: &&Expr| match Condition::of(filter) {
            Some(_) if self.source.takes_conditions() => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(supported).collect())
    }
}

/// The leaf.
#[derive(Clone, Debug)]
pub(crate) struct FileExec {
    source: Arc<dyn FileSource>,
    projection: Vec<usize>,
    conditions: Vec<Condition>,
    limit: Option<usize>,
    bytes: FileBytes,
    progress: ReadProgress,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Arc<Mutex<ScanRuns>>,
}

/// The executions of one plan node: the n-th opening of a partition belongs to the n-th run.
#[derive(Default)]
struct ScanRuns {
    opened: Vec<usize>,
    runs: Vec<ScanRun>,
}

/// A reading, and how many rows are still wanted of it.
#[derive(Clone)]
struct ScanRun {
    reading: Arc<dyn FileReading>,
    wanted: Arc<AtomicUsize>,
}

impl fmt::Debug for ScanRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScanRuns({})", self.runs.len())
    }
}

impl FileExec {
    pub fn new(
        table: &FileTable,
        projection: Vec<usize>,
        limit: Option<usize>,
        conditions: Vec<Condition>,
        most_workers: usize,
    ) -> Result<Self> {
        let source = Arc::clone(&table.source);
        let schema = Arc::new(source.schema().project(&projection)?);
        let bytes = source.bytes();
        let workers =
            (bytes.of_rows / BYTES_PER_WORKER).clamp(1, most_workers.max(1) as u64) as usize;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(workers),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(FileExec {
            source,
            projection,
            conditions,
            limit,
            bytes,
            progress: table.progress.clone(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
        })
    }

    /// Whether it knows how many rows there are.
    pub fn knows_rows(&self) -> bool {
        self.source.rows().is_some()
    }

    fn open(&self, partition: usize) -> ScanRun {
        let mut runs = self.runs.lock().expect("nothing panics under this lock");
        let runs = &mut *runs;
        runs.opened
            .resize(self.properties.partitioning.partition_count(), 0);
        let number = runs.opened[partition];
        runs.opened[partition] += 1;
        if number == runs.runs.len() {
            self.progress.expect(self.bytes.of_files);
            runs.runs.push(ScanRun {
                reading: (self.source).begin(&self.projection, &self.conditions, &self.progress),
                wanted: Arc::new(AtomicUsize::new(self.limit.unwrap_or(usize::MAX))),
            });
        }
        runs.runs[number].clone()
    }
}

impl ScanRun {
    /// As many of the rows as are still wanted.
    fn take(&self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        let claim = |wanted: usize| {
            Some(match wanted {
                usize::MAX => wanted,
                _ => wanted.saturating_sub(rows),
            })
        };
        let claimed = self
            .wanted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        let wanted = claimed.unwrap_or_else(|wanted| wanted);
        if wanted < rows {
            batch.slice(0, wanted)
        } else {
            batch
        }
    }

    fn is_satisfied(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) == 0
    }
}

impl ExecutionPlan for FileExec {
    fn name(&self) -> &str {
        self.source.operator()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut fresh = FileExec::clone(&self);
        fresh.runs = Arc::default();
        Ok(Arc::new(fresh))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    /// Reading blocks and parsing takes a thread that may wait; it ends with the first rows that nobody takes.
    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let run = self.open(partition);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let mut current = None;
            while !run.is_satisfied() && !sender.is_closed() {
                let timer = metrics.elapsed_compute().timer();
                let Some(batch) = run.reading.next(&mut current)? else {
                    break;
                };
                let batch = one_nan_in_rows(run.take(batch));
                timer.done();
                metrics.output_rows().add(batch.num_rows());
                if sender.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        statistics.total_byte_size = Precision::Inexact(self.bytes.of_rows as usize);
        // Ten bytes of text a value is not far off, and tells large files from small ones.
        let columns = self.source.schema().fields().len().max(1);
        statistics.num_rows = match self.source.rows() {
            Some(rows) => Precision::Inexact(rows as usize),
            None => Precision::Inexact(self.bytes.of_rows as usize / (10 * columns)),
        };
        Ok(Arc::new(statistics))
    }
}

impl DisplayAs for FileExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let workers = self.properties.partitioning.partition_count();
        write!(f, "{}: ", self.source.operator())?;
        if let Some(shown) = self.source.shown() {
            write!(f, "{shown}, ")?;
        }
        write!(f, "columns=[{}], workers={workers}", names.join(", "))?;
        if !self.conditions.is_empty() {
            write!(f, ", conditions={}", self.conditions.len())?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}
