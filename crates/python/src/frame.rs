//! Frames: what a statement finds among the caller's variables, or under a registered name.
//!
//! ```text
//! FROM name ── catalogue has none ── registered? ── the caller's variables? ── _frames.relation(object): a Frame
//!
//! Frame   batches that are there already: read by any number of workers, nothing of Python is called
//!         read(columns, conditions): called with the GIL, by a thread that may wait, whenever a statement reads it
//! ```

use crate::calls::{in_frame, is_ending};
use crate::error::Raised;
use crate::import::{self, arrow_error, guarded};
use crate::values;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use eris_sql::{Comparison, Condition, ConditionTest, FrameBatches, FrameError, Frames};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use pyo3_arrow::PyArray;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An object of Python as a relation.
#[pyclass(module = "eris_db", frozen)]
pub struct Frame(Arc<FrameState>);

pub struct FrameState {
    kind: String,
    schema: SchemaRef,
    rows: Option<u64>,
    takes_conditions: bool,
    source: Source,
    /// Makes it anew for each statement: its object may have changed.
    renew: Option<Py<PyAny>>,
}

enum Source {
    Batches(Vec<RecordBatch>),
    /// A stream, which can be read once.
    Stream(Mutex<Option<Box<dyn RecordBatchReader + Send>>>),
    /// `read(columns, conditions)`: an object with Arrow's stream, or an iterator of batches.
    Read(Py<PyAny>),
}

#[pymethods]
impl Frame {
    /// The rows themselves, or a stream of them, or their columns and a function that gives them.
    #[new]
    #[pyo3(signature = (kind, *, batches=None, stream=None, schema=None, rows=None, read=None, takes_conditions=false, renew=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        kind: String,
        batches: Option<&Bound<'_, PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
        rows: Option<u64>,
        read: Option<Py<PyAny>>,
        takes_conditions: bool,
        renew: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (schema, rows, source) = match (batches, stream, schema, read) {
            (Some(batches), None, None, None) => {
                let (schema, batches) = import::batches(batches)?;
                let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                (schema, Some(rows), Source::Batches(batches))
            }
            (None, Some(stream), None, None) => {
                let reader = import::reader(stream)?;
                (
                    reader.schema(),
                    None,
                    Source::Stream(Mutex::new(Some(reader))),
                )
            }
            (None, None, Some(schema), Some(read)) => {
                (import::schema(schema)?, rows, Source::Read(read))
            }
            _ => {
                let text =
                    "a frame has batches, or a stream, or a schema and a function that reads";
                return Err(crate::error::programming_error(py, text));
            }
        };
        Ok(Frame(Arc::new(FrameState {
            kind,
            schema,
            rows,
            takes_conditions,
            source,
            renew,
        })))
    }

    #[getter]
    fn kind(&self) -> &str {
        &self.0.kind
    }
}

/// An array of numpy, or a list, as an Arrow array.
#[pyfunction]
#[pyo3(signature = (values, *, nan_is_null=false, utc=false))]
pub fn numpy_column(values: &Bound<'_, PyAny>, nan_is_null: bool, utc: bool) -> PyResult<PyArray> {
    let py = values.py();
    let mut column = import::column(values)?;
    if nan_is_null {
        column = column.without_nan();
    }
    if utc {
        column = column.in_utc().map_err(|error| arrow_error(py, error))?;
    }
    let field = Arc::new(column.field(""));
    Ok(PyArray::new(column.values, field))
}

impl fmt::Debug for FrameState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({})", self.kind)
    }
}

impl eris_sql::Frame for FrameState {
    fn kind(&self) -> &str {
        &self.kind
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn takes_conditions(&self) -> bool {
        self.takes_conditions
    }

    fn read(
        &self,
        columns: &[usize],
        conditions: &[Condition],
    ) -> Result<FrameBatches, FrameError> {
        match &self.source {
            Source::Batches(batches) => {
                let columns = columns.to_vec();
                let batches = batches.clone().into_iter();
                Ok(Box::new(batches.map(move |batch| {
                    batch.project(&columns).map_err(FrameError::new)
                })))
            }
            Source::Stream(stream) => {
                let reader = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(reader) = reader else {
                    return attached(|py| {
                        let text = format!(
                            "a {} can be read only once, and was read already",
                            self.kind
                        );
                        Err(crate::error::programming_error(py, text))
                    });
                };
                let columns = columns.to_vec();
                let batches = ForeignBatches(reader);
                Ok(Box::new(batches.map(move |batch| {
                    batch?.project(&columns).map_err(FrameError::new)
                })))
            }
            Source::Read(read) => attached(|py| {
                let conditions = conditions
                    .iter()
                    .map(|condition| condition_of(py, condition));
                let conditions = PyList::new(py, conditions.collect::<PyResult<Vec<_>>>()?)?;
                let found = read.bind(py).call1((columns.to_vec(), conditions))?;
                if let Ok(iterator) = found.cast::<PyIterator>()
                    && !found.hasattr(intern!(py, "__arrow_c_stream__"))?
                {
                    return Ok(Box::new(PythonBatches(iterator.clone().unbind())) as FrameBatches);
                }
                Ok(Box::new(ForeignBatches(import::reader(&found)?)))
            }),
        }
    }
}

/// Calls Python from a thread of the database.
fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, FrameError> {
    let done = in_frame(|| match is_ending() {
        true => None,
        false => Python::try_attach(work),
    });
    let done = done.unwrap_or_else(|| Err(PyRuntimeError::new_err("Python has ended")));
    done.map_err(|error| FrameError::new(Raised(error)))
}

/// Batches of Arrow's C stream.
struct ForeignBatches(Box<dyn RecordBatchReader + Send>);

impl Iterator for ForeignBatches {
    type Item = Result<RecordBatch, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = in_frame(|| match is_ending() {
            true => Err(ArrowError::ExternalError("Python has ended".into())),
            false => guarded(|| self.0.next().transpose()),
        });
        let wrong = |error: ArrowError| match Python::try_attach(|py| arrow_error(py, error)) {
            Some(error) => FrameError::new(Raised(error)),
            None => FrameError::new(Raised(PyRuntimeError::new_err("Python has ended"))),
        };
        next.map_err(wrong).transpose()
    }
}

/// Batches that an iterator of Python gives.
struct PythonBatches(Py<PyIterator>);

impl Iterator for PythonBatches {
    type Item = Result<RecordBatch, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = attached(|py| {
            let Some(batch) = self.0.bind(py).clone().next().transpose()? else {
                return Ok(None);
            };
            import::batch(&batch).map(Some)
        });
        next.transpose()
    }
}

/// (column, operator, value).
fn condition_of<'py>(py: Python<'py>, condition: &Condition) -> PyResult<Bound<'py, PyAny>> {
    let (operator, value) = match &condition.test {
        ConditionTest::Compare(comparison, value) => {
            let operator = match comparison {
                Comparison::Eq => "==",
                Comparison::NotEq => "!=",
                Comparison::Lt => "<",
                Comparison::LtEq => "<=",
                Comparison::Gt => ">",
                Comparison::GtEq => ">=",
            };
            (operator, values::value(py, value, 0)?)
        }
        ConditionTest::OneOf(constants) => {
            let mut list = Vec::with_capacity(constants.len());
            values::extend(py, constants, 0..constants.len(), &mut list)?;
            ("in", PyList::new(py, list)?.into_any())
        }
        ConditionTest::IsNull => ("is null", py.None().into_bound(py)),
        ConditionTest::IsNotNull => ("is not null", py.None().into_bound(py)),
    };
    Ok((condition.column.as_str(), operator, value)
        .into_pyobject(py)?
        .into_any())
}

/// What one statement may find, until it is planned.
pub struct Visible {
    /// `None`: nothing is looked for any more.
    names: Mutex<Option<Names>>,
    /// What was found, for the statement may ask again.
    found: Mutex<HashMap<String, Option<Arc<FrameState>>>>,
}

struct Names {
    registered: HashMap<String, Arc<FrameState>>,
    /// The caller's frame of execution, if its variables are looked at.
    caller: Option<Py<PyAny>>,
}

impl Visible {
    pub fn new(registered: HashMap<String, Arc<FrameState>>, caller: Option<Py<PyAny>>) -> Self {
        Visible {
            names: Mutex::new(Some(Names { registered, caller })),
            found: Mutex::default(),
        }
    }

    /// Whether the statement has asked for a name that the catalogue does not have.
    pub fn was_asked(&self) -> bool {
        !locked(&self.found).is_empty()
    }

    /// The statement is planned, or has failed: what the program has must not live as long as its rows.
    pub fn forget(&self) {
        let names = locked(&self.names).take();
        let found = std::mem::take(&mut *locked(&self.found));
        // Not under the locks: dropping may run Python's code.
        drop((names, found));
    }

    fn look(&self, name: &str) -> Result<Option<Arc<FrameState>>, FrameError> {
        // The lock is not held while Python's code runs.
        let registered = match &*locked(&self.names) {
            Some(names) => names.registered.get(&name.to_lowercase()).cloned(),
            None => None,
        };
        if let Some(frame) = registered {
            return match &frame.renew {
                Some(renew) => attached(|py| {
                    let frame = renew.bind(py).call0()?.cast_into::<Frame>()?;
                    Ok(Some(frame.get().state()))
                }),
                None => Ok(Some(frame)),
            };
        }
        attached(|py| {
            let caller = match &*locked(&self.names) {
                Some(names) => names.caller.as_ref().map(|caller| caller.clone_ref(py)),
                None => None,
            };
            let Some(caller) = caller else {
                return Ok(None);
            };
            let frames = py.import(intern!(py, "eris_db._frames"))?;
            let found = frames.call_method1(intern!(py, "find"), (name, caller))?;
            if found.is_none() {
                return Ok(None);
            }
            let frame = found.cast_into::<Frame>()?;
            Ok(Some(Arc::clone(&frame.get().0)))
        })
    }
}

/// The value, also behind a panic: it is changed at once or not at all.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Frame {
    pub fn state(&self) -> Arc<FrameState> {
        Arc::clone(&self.0)
    }
}

/// A frame as connections keep it.
pub type Registered = Arc<FrameState>;

impl Frames for Visible {
    fn frame(&self, name: &str) -> Result<Option<Arc<dyn eris_sql::Frame>>, FrameError> {
        let known = locked(&self.found).get(name).cloned();
        let found = match known {
            Some(found) => found,
            None => {
                let found = self.look(name)?;
                locked(&self.found)
                    .entry(name.to_owned())
                    .or_insert(found)
                    .clone()
            }
        };
        Ok(found.map(|frame| frame as Arc<dyn eris_sql::Frame>))
    }
}

impl fmt::Debug for Visible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Visible({} found)", locked(&self.found).len())
    }
}
