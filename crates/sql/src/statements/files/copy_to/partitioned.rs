//! COPY … TO 'directory' (PARTITION_BY (year, city)): a directory for each value of a column.
//!
//! ```text
//! rows, sorted by year and city ── runs of equal ones ── directory/year=2024/city=Oslo/data_0.parquet
//!                                                        directory/year=2025/city=Rome/data_0.parquet
//! ```
//!
//! The columns that the directories name are not in the files. The whole is there when all of it is written.

use crate::cancel::begin_commit;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning::{Plan, plan_logical};
use crate::progress;
use crate::text::statement::Statement;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, SortExpr};
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use eris_exact::text::{VALUE_FORMAT, formatter};
use eris_files::{DirectoryUnderWay, WriteOptions, partition_directory};
use futures::{TryStreamExt, stream};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Writes all rows of a plan below a directory, by these columns. Returns how many there were.
pub(super) async fn write(
    context: &StatementContext,
    plan: &Plan,
    target: PathBuf,
    options: WriteOptions,
    keys: &[String],
    statement: &Statement,
) -> Result<u64, SqlError> {
    let places = places(plan, keys)?;
    let columns = plan.logical.schema().columns();
    let sorted_by = places
        .iter()
        .map(|place| SortExpr::new(Expr::Column(columns[*place].clone()), true, false));
    let sorted = LogicalPlanBuilder::from(plan.logical.clone())
        .sort(sorted_by)
        .and_then(LogicalPlanBuilder::build)
        .map_err(SqlError::from_datafusion)?;
    let sorted = plan_logical(context, sorted, context.state(), statement).await?;
    let workers = sorted.context.session_config().target_partitions();
    let progress = progress::current();
    let directory = DirectoryUnderWay::create(target).await?;
    let runs = Runs::new(sorted.run()?, places).map_err(SqlError::from_datafusion)?;
    let name = format!("data_0.{}", options.ending());
    let mut rows = 0;
    while let Some(values) = runs.next().await.map_err(SqlError::from_datafusion)? {
        let parts = keys.iter().zip(&values);
        let parts = parts.map(|(key, value)| partition_directory(key, value.as_deref()));
        let below = parts.collect::<Vec<_>>().join("/");
        let path = directory.file_below(&below, &name).await?;
        let wrote = |rows| progress.wrote(rows);
        let written = eris_files::write(runs.stream(), path, options.clone(), workers, wrote);
        let (written, file) = written.await?;
        file.finish().await?;
        rows += written;
    }
    begin_commit()?;
    directory.finish(Vec::new()).await?;
    Ok(rows)
}

/// Where the columns are.
fn places(plan: &Plan, keys: &[String]) -> Result<Vec<usize>, SqlError> {
    let schema = plan.physical.schema();
    let mut places = Vec::with_capacity(keys.len());
    for key in keys {
        let mut fields = schema.fields().iter();
        let place = fields.position(|field| field.name().eq_ignore_ascii_case(key));
        let unknown = || {
            let message = format!("PARTITION_BY: there is no column \"{key}\"");
            SqlError::invalid(Mistake::UndefinedColumn, message)
        };
        places.push(place.ok_or_else(unknown)?);
    }
    if schema
        .fields()
        .iter()
        .enumerate()
        .all(|(place, _)| places.contains(&place))
    {
        let message = "PARTITION_BY names all columns, so none is left for the files".to_owned();
        return Err(SqlError::invalid(Mistake::InvalidParameterValue, message));
    }
    Ok(places)
}

/// Rows in runs that have the same keys.
struct Runs {
    state: Arc<Mutex<RunState>>,
    /// The columns of the files.
    schema: SchemaRef,
}

struct RunState {
    rows: SendableRecordBatchStream,
    places: Vec<usize>,
    others: Vec<usize>,
    converter: RowConverter,
    /// With what the next run begins, or the run that is under way goes on.
    left: Option<RecordBatch>,
    /// The keys of the run under way.
    current: Option<OwnedRow>,
}

impl Runs {
    fn new(rows: SendableRecordBatchStream, places: Vec<usize>) -> PlanResult<Self> {
        let schema = rows.schema();
        let types = places.iter().map(|place| schema.field(*place).data_type());
        let fields = types.map(|data_type| SortField::new(data_type.clone()));
        let converter = RowConverter::new(fields.collect())?;
        let others = (0..schema.fields().len()).filter(|place| !places.contains(place));
        let others: Vec<usize> = others.collect();
        let schema = Arc::new(schema.project(&others)?);
        let state = RunState {
            rows,
            places,
            others,
            converter,
            left: None,
            current: None,
        };
        Ok(Runs {
            state: Arc::new(Mutex::new(state)),
            schema,
        })
    }

    /// Begins the next run: its keys as texts; none at the end.
    async fn next(&self) -> PlanResult<Option<Vec<Option<String>>>> {
        let mut state = self.state.lock().await;
        let Some(batch) = state.batch().await? else {
            return Ok(None);
        };
        let keys = state.keys(&batch);
        state.current = Some(state.converter.convert_columns(&keys)?.row(0).owned());
        let mut values = Vec::with_capacity(keys.len());
        for key in &keys {
            let shown = formatter(key, &VALUE_FORMAT)?;
            let is_null = key.logical_nulls().is_some_and(|nulls| nulls.is_null(0));
            values.push((!is_null).then(|| shown.value(0).to_string()));
        }
        state.left = Some(batch);
        Ok(Some(values))
    }

    /// The rows of the run.
    fn stream(&self) -> SendableRecordBatchStream {
        let batches = stream::try_unfold(Arc::clone(&self.state), |shared| async move {
            let batch = shared.lock().await.of_run().await?;
            Ok::<_, DataFusionError>(batch.map(|batch| (batch, Arc::clone(&shared))))
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            batches,
        ))
    }
}

impl RunState {
    /// The next rows of all runs.
    async fn batch(&mut self) -> PlanResult<Option<RecordBatch>> {
        if self.left.is_some() {
            return Ok(self.left.take());
        }
        while let Some(batch) = self.rows.try_next().await? {
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn keys(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let keys = self.places.iter().map(|place| batch.column(*place));
        keys.map(Arc::clone).collect()
    }

    /// The next rows of the run under way, without their keys.
    async fn of_run(&mut self) -> PlanResult<Option<RecordBatch>> {
        let Some(current) = self.current.take() else {
            return Ok(None);
        };
        let Some(batch) = self.batch().await? else {
            return Ok(None);
        };
        let rows = self.converter.convert_columns(&self.keys(&batch))?;
        let same = rows.iter().take_while(|row| *row == current.row()).count();
        if same < batch.num_rows() {
            self.left = Some(batch.slice(same, batch.num_rows() - same));
        }
        if same == 0 {
            return Ok(None);
        }
        if same == batch.num_rows() {
            self.current = Some(current);
        }
        let columns = self
            .others
            .iter()
            .map(|place| Arc::clone(batch.column(*place)));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(batch.schema().project(&self.others)?);
        let run = RecordBatch::try_new_with_options(schema, columns.collect(), &options)?;
        Ok(Some(run.slice(0, same)))
    }
}
