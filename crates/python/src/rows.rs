//! Rows of a table by their keys, without SQL: batches in, batches out.

use crate::error::{not_pickled, programming_error, sql_error};
use crate::executor::stored_name;
use crate::held::Held;
use crate::import;
use crate::lifetime::Closed;
use crate::numpy_api;
use crate::result::Result as Found;
use crate::wait::{Call, wait};
use arrow_array::{Array, ArrayRef};
use eris_sql::{Canceller, Session, SqlError, TableRows};
use numpy::IntoPyArray;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::collections::HashMap;
use std::ops::Bound as KeyBound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A way to the rows of one table with a PRIMARY KEY.
///
/// Keys are an array or a list; several columns are a tuple of them. What is read is of one snapshot; what is written
/// is all visible at once or not at all.
///
/// >>> connection = eris_db.connect()
/// >>> connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
/// CREATE TABLE
/// >>> rows = connection.rows("t")
/// >>> rows.put({"k": [1, 2], "v": ["one", "two"]})
/// 0
/// >>> found, of = rows.get([2, 3])
/// >>> found.fetchall(), of.tolist()
/// ([(2, 'two')], [0])
#[pyclass(module = "eris_db", frozen)]
pub struct Rows {
    table: String,
    /// Of the connection.
    has_written: Arc<AtomicBool>,
    calls: Arc<Calls>,
    rows: Held<TableRows>,
}

/// Calls by key that are under way on a connection, for whoever interrupts it.
#[derive(Default)]
pub struct Calls {
    newest: AtomicU64,
    all: Mutex<HashMap<u64, Canceller>>,
}

impl Calls {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Canceller>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops every one of them; whether that came in time for at least one.
    pub fn stop(&self) -> bool {
        let all = self.all();
        let stopped = all.values().filter(|canceller| canceller.stop()).count();
        stopped > 0
    }

    fn begin(&self, canceller: Canceller) -> UnderWay<'_> {
        let number = self.newest.fetch_add(1, Ordering::Relaxed);
        self.all().insert(number, canceller);
        UnderWay(self, number)
    }
}

/// A call, until it has ended.
struct UnderWay<'a>(&'a Calls, u64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.all().remove(&self.1);
    }
}

impl Rows {
    pub fn of(
        py: Python<'_>,
        session: &Session,
        table: &str,
        closed: &Closed,
        has_written: &Arc<AtomicBool>,
        calls: &Arc<Calls>,
    ) -> PyResult<Self> {
        let table = stored_name(session, table);
        let rows = session
            .rows(&table)
            .map_err(|error| sql_error(py, &error))?;
        Ok(Rows {
            table: table.into_owned(),
            has_written: Arc::clone(has_written),
            calls: Arc::clone(calls),
            rows: Held::new(rows, closed),
        })
    }

    /// Waits for a call that reads.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        canceller: Canceller,
        call: impl Future<Output = Result<T, SqlError>> + Send,
    ) -> PyResult<T> {
        let _under_way = self.calls.begin(canceller.clone());
        let read = wait(py, call, &mut Call::new(canceller))?;
        read.map_err(|error| sql_error(py, &error))
    }

    /// Waits for a call that writes: an exception that comes too late says so.
    fn written(
        &self,
        py: Python<'_>,
        canceller: Canceller,
        call: impl Future<Output = Result<u64, SqlError>> + Send,
    ) -> PyResult<u64> {
        let _under_way = self.calls.begin(canceller.clone());
        let mut watch = Call::new(canceller);
        let written = wait(py, call, &mut watch)?;
        let written = written.map_err(|error| watch.failed(sql_error(py, &error)))?;
        self.has_written.store(true, Ordering::Relaxed);
        watch.took_effect(py)?;
        Ok(written)
    }
}

/// The columns of keys.
fn keys(given: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    match given.cast::<PyTuple>() {
        Ok(columns) => columns
            .iter()
            .map(|column| import::array(&column))
            .collect(),
        Err(_) => Ok(vec![import::array(given)?]),
    }
}

#[pymethods]
impl Rows {
    /// The rows that have these keys, in the order of the keys: (rows, of). of[i] is the position of the key of row i:
    /// an array of numpy, or a list where there is no numpy. columns: those that are wanted; all by default.
    #[pyo3(name = "get", signature = (keys, columns=None))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        columns: Option<Vec<String>>,
    ) -> PyResult<(Found, Bound<'py, PyAny>)> {
        let keys = self::keys(keys)?;
        let mut rows = self.rows.lock(py)?;
        let names = columns.unwrap_or_else(|| names(&rows));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let canceller = rows.canceller();
        let found = self.read(py, canceller, rows.get(&keys, &names))?;
        let of = match numpy_api::load(py) {
            Ok(()) => found.of.into_pyarray(py).into_any(),
            Err(error) if error.is_instance_of::<PyImportError>(py) => {
                PyList::new(py, found.of)?.into_any()
            }
            Err(error) => return Err(error),
        };
        Ok((Found::of_batch(found.rows), of))
    }

    /// Puts rows in: anything with Arrow's interface, a DataFrame, or a dict of arrays. Columns go by their names; one
    /// that is missing gets its default. Each row replaces the one that has its key. Returns how many were replaced.
    fn put(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<u64> {
        let batch = import::checked_batch(batch)?;
        let mut rows = self.rows.lock(py)?;
        let canceller = rows.canceller();
        self.written(py, canceller, rows.put(&batch))
    }

    /// Removes the rows that have these keys. Returns how many there were.
    fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let keys = self::keys(keys)?;
        let mut rows = self.rows.lock(py)?;
        let canceller = rows.canceller();
        self.written(py, canceller, rows.remove(&keys))
    }

    /// For each pair (low, high) the rows whose keys are from low on and below high, in the order of their keys, at
    /// most so many of each. None is no bound. A key of several columns is a tuple.
    #[pyo3(signature = (bounds, limit, columns=None))]
    fn ranges<'py>(
        &self,
        py: Python<'py>,
        bounds: &Bound<'py, PyAny>,
        limit: usize,
        columns: Option<Vec<String>>,
    ) -> PyResult<Vec<Found>> {
        let pairs = bounds.try_iter()?.map(|pair| {
            let (low, high): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair?.extract()?;
            Ok((bound(&low)?, bound(&high)?))
        });
        let pairs = pairs.collect::<PyResult<Vec<_>>>()?;
        let ranges: Vec<_> = (pairs.iter())
            .map(|(low, high)| {
                let low = low
                    .as_deref()
                    .map_or(KeyBound::Unbounded, KeyBound::Included);
                (
                    low,
                    high.as_deref()
                        .map_or(KeyBound::Unbounded, KeyBound::Excluded),
                )
            })
            .collect();
        let mut rows = self.rows.lock(py)?;
        let names = columns.unwrap_or_else(|| names(&rows));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let canceller = rows.canceller();
        let found = self.read(py, canceller, rows.ranges(&ranges, limit, &names))?;
        Ok(found.into_iter().map(Found::of_batch).collect())
    }

    /// The names of the key's columns.
    #[getter]
    fn key(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.rows.lock(py)?.key().to_vec())
    }

    fn __repr__(&self) -> String {
        format!("<eris_db.Rows of {}>", self.table)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(not_pickled(slf.py(), &slf.get_type()))
    }
}

fn names(rows: &TableRows) -> Vec<String> {
    rows.schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

/// A whole key, in arrays of one value.
fn bound(key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    if key.is_none() {
        return Ok(None);
    }
    let py = key.py();
    let columns: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(columns) => columns.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    let columns = columns.into_iter().map(|value| {
        let array = import::array(PyList::new(py, [value])?.as_any())?;
        match array.len() {
            1 => Ok(array),
            _ => Err(programming_error(py, "a bound is one key")),
        }
    });
    columns.collect::<PyResult<Vec<_>>>().map(Some)
}
