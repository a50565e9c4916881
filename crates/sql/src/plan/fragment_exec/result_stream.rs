//! One partition of a fragment while it runs: DataFusion polls, the engine answers.

use super::FragmentExec;
use crate::plan::run::{FragmentRun, Starting};
use datafusion::arrow::array::UInt64Array;
use datafusion::arrow::compute::kernels::cmp::eq;
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use eris_fragment::{FragmentError, FragmentStream};
use futures::{FutureExt, Stream, StreamExt};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// One partition.
pub(super) struct ResultStream {
    run: Arc<FragmentRun>,
    partition: usize,
    /// What it waits for before it has its stream.
    starting: Option<Starting>,
    stream: Option<FragmentStream>,
    /// Rows that may still pass, of a limit. The engine only promises to stop soon after it.
    rest: Option<u64>,
    metrics: BaselineMetrics,
    plan: FragmentExec,
    context: Arc<TaskContext>,
}

impl FragmentExec {
    /// One stream of a run.
    pub(super) fn result_stream(
        &self,
        run: Arc<FragmentRun>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> ResultStream {
        ResultStream {
            run,
            partition,
            starting: None,
            stream: None,
            rest: self.limit(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            plan: self.clone(),
            context,
        }
    }
}

impl Stream for ResultStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let timer = this.metrics.elapsed_compute().clone();
        let _timer = timer.timer();
        let stream = match &mut this.stream {
            Some(stream) => stream,
            None => {
                let (run, plan, context) = (&this.run, &this.plan, &this.context);
                let starting = this
                    .starting
                    .get_or_insert_with(|| run.start(|| plan.start(Arc::clone(context))));
                ready!(starting.poll_unpin(cx));
                this.starting = None;
                match this.run.take(this.partition) {
                    Ok(stream) => this.stream.insert(stream),
                    Err(error) => {
                        this.stream = Some(Box::pin(futures::stream::empty()));
                        return Poll::Ready(Some(Err(external(error))));
                    }
                }
            }
        };
        let polled = match ready!(stream.poll_next_unpin(cx)) {
            Some(Ok(batch)) => Some(restore(&this.plan.schema, cut(batch, &mut this.rest))),
            Some(Err(error)) => Some(Err(external(error))),
            None => None,
        };
        if this.rest == Some(0) {
            this.stream = Some(Box::pin(futures::stream::empty()));
        }
        Poll::Ready(polled.map(|batch| batch.record_output(&this.metrics)))
    }
}

impl RecordBatchStream for ResultStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

impl Drop for ResultStream {
    fn drop(&mut self) {
        if self.stream.is_none() {
            self.run.abandon(self.partition);
        }
    }
}

/// A fragment's error, whole, on its way through DataFusion.
fn external(error: FragmentError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The batch, or the part of it that a limit still lets pass.
fn cut(batch: RecordBatch, rest: &mut Option<u64>) -> RecordBatch {
    let Some(rest) = rest else { return batch };
    let rows = (batch.num_rows() as u64).min(*rest);
    *rest -= rows;
    batch.slice(0, rows as usize)
}

/// The batch with the names and nullability that the plan has promised.
fn restore(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let (_, mut columns, _) = batch.into_parts();
    for (column, field) in columns.iter_mut().zip(schema.fields()) {
        match (column.data_type(), field.data_type()) {
            (own, promised) if own == promised => {}
            // The counts of averages: see `aggregate_rule`. DataFusion takes a group whose count is 0 for one
            // that has an average, NaN; of a group without values it expects NULL.
            (_, DataType::UInt64) => {
                let counts = cast(column, field.data_type())?;
                let none = eq(&counts, &UInt64Array::new_scalar(0))?;
                *column = nullif(&counts, &none)?;
            }
            // Texts of a side that are no views, such as literals.
            (_, promised) => *column = cast(column, promised)?,
        }
    }
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}
