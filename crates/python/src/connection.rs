//! `Connection`: what Python sees of a session. A cursor is a connection with a session of its own.

use crate::error::{not_pickled, not_supported_error, programming_error};
use crate::executor::{Executor, relation};
use crate::job::Job;
use crate::opened::{OpenDatabase, open};
use crate::result::Result as Answer;
use crate::rows::Rows;
use crate::wait::lock;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A connection to a database, and a cursor: it executes statements, one after the other, and has the rows of the last
/// one. It may be used by any thread.
///
/// >>> connection = eris_db.connect()
/// >>> connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
/// CREATE TABLE
/// >>> connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "one"), (2, "two")])
/// INSERT 2
/// >>> connection.execute("SELECT v FROM t WHERE k = ?", [2]).fetchone()
/// ('two',)
#[pyclass(module = "eris_db", frozen, weakref)]
pub struct Connection {
    executor: Executor,
    /// Whether the database was opened with it, and is closed with it.
    owns_database: bool,
    /// The connection whose cursor it is.
    parent: Option<Py<Connection>>,
    timeout: Mutex<Option<f64>>,
    array_size: AtomicU64,
}

impl Connection {
    /// A connection to an open database.
    pub fn of(py: Python<'_>, database: &Arc<OpenDatabase>) -> PyResult<Self> {
        Ok(Self::new_executor(
            Executor::new(py, database, database.closed())?,
            None,
            false,
        ))
    }

    fn new_executor(
        executor: Executor,
        parent: Option<Py<Connection>>,
        owns_database: bool,
    ) -> Self {
        Connection {
            executor,
            owns_database,
            parent,
            timeout: Mutex::default(),
            array_size: AtomicU64::new(1),
        }
    }
}

#[pymethods]
impl Connection {
    /// Opens a database with a connection of its own; the database is closed with it. The arguments are those of
    /// Database.
    #[new]
    #[pyo3(signature = (directory=None, *, memory=None, aeus=None, topology=None, read_only=false, synchronous=None, huge_pages="auto"))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        directory: Option<PathBuf>,
        memory: Option<&Bound<'_, PyAny>>,
        aeus: Option<usize>,
        topology: Option<&str>,
        read_only: bool,
        synchronous: Option<&str>,
        huge_pages: &str,
    ) -> PyResult<Self> {
        let database = open(
            py,
            directory,
            memory,
            aeus,
            topology,
            read_only,
            synchronous,
            huge_pages,
        )?;
        Ok(Self::new_executor(
            Executor::new(py, &database, database.closed())?,
            None,
            true,
        ))
    }

    /// Executes a statement, or several with ; between them: the result is that of the last one. Values for ?, $1 or
    /// $name are a list, a tuple or a dict.
    #[pyo3(signature = (statement, parameters=None))]
    fn execute(
        &self,
        py: Python<'_>,
        statement: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Answer>> {
        let caller = self.executor.caller(py)?;
        self.executor.run(py, statement, parameters, caller, None)
    }

    /// The same as execute.
    #[pyo3(signature = (statement, parameters=None))]
    fn sql(
        &self,
        py: Python<'_>,
        statement: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Answer>> {
        let caller = self.executor.caller(py)?;
        self.executor.run(py, statement, parameters, caller, None)
    }

    /// execute for a caller that is not the one that calls: its variables are found. job: how it is cancelled.
    #[pyo3(signature = (caller, statement, parameters=None, job=None))]
    fn _execute_for(
        &self,
        py: Python<'_>,
        caller: Py<PyAny>,
        statement: &str,
        parameters: Option<&Bound<'_, PyAny>>,
        job: Option<&Bound<'_, Job>>,
    ) -> PyResult<Py<Answer>> {
        let caller = self
            .executor
            .looks_at_variables
            .load(Ordering::Relaxed)
            .then_some(caller);
        let job = job.map(Bound::get);
        self.executor.run(py, statement, parameters, caller, job)
    }

    /// Executes without blocking the event loop: await it. A task that is cancelled cancels its statement.
    #[pyo3(signature = (statement, parameters=None))]
    fn aexecute<'py>(
        slf: &Bound<'py, Self>,
        statement: &str,
        parameters: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let caller = slf.get().executor.caller(py)?;
        let module = py.import(intern!(py, "eris_db._async"))?;
        module.call_method1(
            intern!(py, "aexecute"),
            (slf, caller, statement, parameters),
        )
    }

    /// Executes a statement once for each of many values. An INSERT of VALUES is one statement: all rows or none.
    /// Others are executed one after the other.
    fn executemany(
        &self,
        py: Python<'_>,
        statement: &str,
        parameters: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Answer>> {
        self.executor.run_many(py, statement, parameters)
    }

    /// Appends all rows of an object to a table: of a DataFrame, an Arrow table or reader, or a dict of arrays. Columns
    /// go by their names, or with by_name=False by their order. All rows are written, or none.
    #[pyo3(signature = (table, object, *, by_name=true))]
    fn append(
        &self,
        py: Python<'_>,
        table: &str,
        object: &Bound<'_, PyAny>,
        by_name: bool,
    ) -> PyResult<Py<Answer>> {
        self.executor.append(py, table, object, by_name)
    }

    /// Gives an object a name in FROM, for this connection. A table of this name goes first.
    fn register(slf: Py<Self>, name: &str, object: &Bound<'_, PyAny>) -> PyResult<Py<Self>> {
        let frame = relation(object)?;
        let executor = &slf.get().executor;
        executor.check(object.py())?;
        executor.registered().insert(name.to_lowercase(), frame);
        Ok(slf)
    }

    /// Takes the name back.
    fn unregister(slf: Py<Self>, name: &str) -> Py<Self> {
        slf.get().executor.registered().remove(&name.to_lowercase());
        slf
    }

    /// A way to the rows of a table by its PRIMARY KEY, without SQL.
    fn rows(&self, py: Python<'_>, table: &str) -> PyResult<Rows> {
        let executor = &self.executor;
        let session = executor.session(py)?;
        Rows::of(
            py,
            &session,
            table,
            executor.closed(),
            &executor.has_written,
            &executor.calls,
        )
    }

    /// A session of its own on the same database. It finds what is registered here at this moment.
    fn cursor(slf: &Bound<'_, Self>) -> PyResult<Connection> {
        let py = slf.py();
        let parent = Self::of_cursor(slf);
        let executor = slf
            .get()
            .executor
            .cursor(py, parent.get().executor.closed())?;
        Ok(Self::new_executor(executor, Some(parent), false))
    }

    /// The connection whose cursor this is; itself if it is none.
    #[getter(connection)]
    fn of_cursor(slf: &Bound<'_, Self>) -> Py<Self> {
        let parent = slf.get().parent.as_ref();
        parent.map_or_else(|| slf.clone().unbind(), |parent| parent.clone_ref(slf.py()))
    }

    // ---- the last statement ----

    /// Cancels the statement that runs, from another thread. False: it takes effect, or has, or there is none.
    fn interrupt(&self, py: Python<'_>) -> PyResult<bool> {
        self.executor.check(py)?;
        let by_key = self.executor.calls.stop();
        let running = self.executor.last_running();
        Ok(running.is_some_and(|(canceller, _)| canceller.stop()) || by_key)
    }

    /// How far the last statement is: a dict of rows and bytes, each (done, total), and rows written.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some((_, progress)) = self.executor.last_running() else {
            return Ok(None);
        };
        let shown = PyDict::new(py);
        let (rows, bytes) = (progress.rows(), progress.bytes());
        shown.set_item("rows", (rows.done, rows.total))?;
        shown.set_item("bytes", (bytes.done, bytes.total))?;
        shown.set_item("written", progress.written())?;
        Ok(Some(shown))
    }

    /// The columns of the last result, as PEP 249 has them.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let answer = self.executor.last_answer(py);
        answer.map_or(Ok(None), |answer| answer.get().description(py))
    }

    /// How many rows the last statement has written; -1 if it has rows.
    #[getter]
    fn rowcount(&self, py: Python<'_>) -> i64 {
        let answer = self.executor.last_answer(py);
        answer.map_or(-1, |answer| answer.get().rowcount())
    }

    /// Of the last result: the next row as a tuple; None behind the last one.
    fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.executor.answered(py)?.get().fetchone(py)
    }

    /// Of the last result: at most so many of the next rows; arraysize by default.
    #[pyo3(signature = (size=None))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let size = size.unwrap_or_else(|| self.array_size.load(Ordering::Relaxed) as usize);
        self.executor.answered(py)?.get().fetchmany(py, size)
    }

    /// Of the last result: all rows that are left.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.executor.answered(py)?.get().fetchall(py)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.executor.answered(py)?.get().fetchone(py)
    }

    /// Of the last result: all rows that are left, as a pyarrow.Table.
    #[pyo3(signature = (*, strings="view"))]
    fn arrow<'py>(&self, py: Python<'py>, strings: &str) -> PyResult<Bound<'py, PyAny>> {
        self.executor.answered(py)?.get().arrow(py, strings)
    }

    /// Of the last result: a pyarrow.RecordBatchReader.
    #[pyo3(signature = (*, strings="view"))]
    fn reader<'py>(&self, py: Python<'py>, strings: &str) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.executor.answered(py)?;
        Answer::reader(answer.bind(py), strings)
    }

    /// Of the last result: all rows that are left, as a polars.DataFrame.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.executor.answered(py)?.get().pl(py)
    }

    /// Of the last result: all rows that are left, as a pandas.DataFrame.
    fn df<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.executor.answered(py)?.get().df(py)
    }

    /// Of the last result: all rows that are left, as a dict of numpy arrays.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.executor.answered(py)?.get().numpy(py)
    }

    /// How many rows fetchmany gives by default.
    #[getter]
    fn get_arraysize(&self) -> u64 {
        self.array_size.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_arraysize(&self, size: u64) {
        self.array_size.store(size, Ordering::Relaxed);
    }

    /// PEP 249; it does nothing.
    fn setinputsizes(&self, _sizes: &Bound<'_, PyAny>) {}

    /// PEP 249; it does nothing.
    #[pyo3(signature = (_size, _column=None))]
    fn setoutputsize(&self, _size: &Bound<'_, PyAny>, _column: Option<&Bound<'_, PyAny>>) {}

    // ---- settings ----

    /// Seconds after which a statement fails; None for no limit.
    #[getter]
    fn get_timeout(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(*lock(py, &self.timeout)?)
    }

    #[setter]
    fn set_timeout(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        if seconds.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0) {
            return Err(programming_error(
                py,
                "timeout is a positive number of seconds, or None",
            ));
        }
        let ms = seconds.map_or(0, |seconds| ((seconds * 1000.0).ceil() as u64).max(1));
        let set = format!("SET statement_timeout = '{ms}ms'");
        self.executor.set(py, &set)?;
        *lock(py, &self.timeout)? = seconds;
        Ok(())
    }

    /// Whether a name that the catalogue lacks is looked for among the caller's variables.
    #[getter]
    fn get_scan_variables(&self) -> bool {
        self.executor.looks_at_variables.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_scan_variables(&self, on: bool) {
        self.executor
            .looks_at_variables
            .store(on, Ordering::Relaxed);
    }

    /// Whether long statements show a bar.
    #[getter]
    fn get_show_progress(&self) -> bool {
        self.executor.shows_progress.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_show_progress(&self, on: bool) {
        self.executor.shows_progress.store(on, Ordering::Relaxed);
    }

    // ---- its end ----

    /// Every statement commits by itself: this does nothing.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.executor.check(py)?;
        self.executor.has_written.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Every statement commits by itself: what was written since the last commit() cannot be undone, which raises
    /// NotSupportedError.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.executor.check(py)?;
        match self.executor.has_written.load(Ordering::Relaxed) {
            true => Err(not_supported_error(
                py,
                "every statement commits by itself: what was written cannot be undone",
            )),
            false => Ok(()),
        }
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.executor.closed().is_closed()
    }

    /// Closes it, and the database if it was opened with it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.executor.close(py)? {
            return Ok(());
        }
        match self.owns_database {
            true => self.executor.database().close_now(py),
            false => Ok(()),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(not_pickled(slf.py(), &slf.get_type()))
    }

    fn __repr__(&self) -> &'static str {
        match self.closed() {
            true => "<eris_db.Connection, closed>",
            false => "<eris_db.Connection>",
        }
    }
}
