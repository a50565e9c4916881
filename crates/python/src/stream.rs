//! The batches of a running query, for whoever pulls them: Python's rows, or a consumer of Arrow's C stream.

use crate::error::{interface_error, sql_error};
use crate::held::Held;
use crate::import::{arrow_error, with_uuids};
use crate::lifetime::Closed;
use crate::wait::{Bar, Statement, wait};
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use eris_sql::{Canceller, QueryStream};
use futures::StreamExt;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The rest of a query's batches.
pub struct Batches {
    schema: SchemaRef,
    /// Where it came from.
    closed: Closed,
    canceller: Canceller,
    stream: Held<Option<(QueryStream, Bar)>>,
    has_ended: AtomicBool,
}

impl Batches {
    pub fn new(stream: QueryStream, canceller: Canceller, closed: &Closed, bar: Bar) -> Self {
        Batches {
            schema: with_views(stream.schema()),
            closed: closed.clone(),
            canceller,
            stream: Held::new(Some((stream, bar)), closed),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Where it came from.
    pub fn closed(&self) -> &Closed {
        &self.closed
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch with rows; `None` behind the last one. Whoever gets an error gets nothing more.
    pub fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.closed.is_closed() {
            return Err(interface_error(
                py,
                "the connection was closed before all rows were read",
            ));
        }
        let mut held = self.stream.lock(py)?;
        loop {
            let Some((mut stream, mut bar)) = held.take() else {
                return Ok(None);
            };
            let progress = stream.progress().clone();
            bar.resume();
            let mut watch =
                Statement::new(self.canceller.clone(), progress, &self.closed, &mut bar);
            let next =
                wait(py, stream.next(), &mut watch).and_then(|next| watch.look(py).map(|()| next));
            // It is too late to take back what a statement with RETURNING has done, but its rows are not wanted.
            let pending = watch.pending();
            bar.hide(py);
            if let Some(raised) = pending {
                return Err(raised);
            }
            match next? {
                // What has ended cannot be interrupted any more.
                None => {
                    self.has_ended.store(true, Ordering::Relaxed);
                    self.canceller.cancel();
                    return Ok(None);
                }
                Some(Err(error)) => {
                    self.canceller.cancel();
                    return Err(sql_error(py, &error));
                }
                Some(Ok(batch)) => {
                    *held = Some((stream, bar));
                    if batch.num_rows() > 0 {
                        return self
                            .viewed(batch)
                            .map(Some)
                            .map_err(|error| arrow_error(py, error));
                    }
                }
            }
        }
    }

    /// The batch with its texts as views.
    fn viewed(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        if batch.schema_ref() == &self.schema {
            return Ok(batch);
        }
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }

    /// Nobody wants the rest.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.has_ended.store(true, Ordering::Relaxed);
        if self.closed.is_closed() {
            return Ok(());
        }
        let stream = self.stream.lock(py)?.take();
        // Its end may wait for a lock of the engine.
        py.detach(|| drop(stream));
        Ok(())
    }
}

/// The columns with all texts and blobs as views: constants have another form inside of the engine. UUIDs say so.
fn with_views(schema: &SchemaRef) -> SchemaRef {
    let view = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => Some(DataType::Utf8View),
        DataType::Binary | DataType::LargeBinary => Some(DataType::BinaryView),
        uuid @ DataType::FixedSizeBinary(16) => Some(uuid.clone()),
        _ => None,
    };
    if !schema.fields().iter().any(|field| view(field).is_some()) {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().map(|field| match view(field) {
        Some(data_type) => {
            let field = field.as_ref().clone().with_data_type(data_type);
            Arc::new(with_uuids(field))
        }
        None => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Batches that a consumer of Arrow's C stream pulls, with the GIL or without.
pub struct Exported {
    /// What was read already.
    first: std::vec::IntoIter<RecordBatch>,
    rest: Option<Batches>,
    schema: SchemaRef,
}

impl Exported {
    pub fn new(schema: SchemaRef, first: Vec<RecordBatch>, rest: Option<Batches>) -> Self {
        Exported {
            first: first.into_iter(),
            rest,
            schema,
        }
    }
}

impl Iterator for Exported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.first.next() {
            return Some(Ok(batch));
        }
        let rest = self.rest.as_ref()?;
        let next = Python::try_attach(|py| {
            rest.next(py).map_err(|error| {
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    return ArrowError::ExternalError(Box::new(error));
                }
                // The consumer gives the message on, but not the exception: that is raised when the consumer has
                // returned. Making a text runs Python, so it comes first.
                let text = error.to_string();
                let thread = py.import("_thread");
                let _ = thread.and_then(|thread| thread.call_method0("interrupt_main"));
                ArrowError::ExternalError(text.into())
            })
        });
        match next {
            Some(Ok(batch)) => batch.map(Ok),
            Some(Err(error)) => {
                self.rest = None;
                Some(Err(error))
            }
            None => {
                self.rest = None;
                Some(Err(ArrowError::ExternalError("Python has ended".into())))
            }
        }
    }
}

impl RecordBatchReader for Exported {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
