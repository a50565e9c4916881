//! `Database`: an open database as Python has it.

use crate::connection::Connection;
use crate::error::not_pickled;
use crate::opened::{OpenDatabase, open};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An Eris database, in this process: in memory, or in a directory that outlives it.
///
/// >>> database = eris_db.Database(memory="512MB", aeus=1)
/// >>> connection = database.connect()
/// >>> connection.execute("SELECT 6 * 7").fetchone()
/// (42,)
#[pyclass(module = "eris_db", frozen, weakref)]
pub struct Database {
    inner: Arc<OpenDatabase>,
}

impl Database {
    pub fn inner(&self) -> &Arc<OpenDatabase> {
        &self.inner
    }
}

#[pymethods]
impl Database {
    /// Opens a database.
    ///
    /// directory: where it is kept; without one it ends with the process. memory: the most that tables and queries use
    /// together, such as "4GB" or a number of bytes; 80 % of the machine's by default. aeus: workers; one per core by
    /// default. topology: nodes and workers per node of an imitated machine, such as "4x2". read_only and synchronous
    /// are as in the manual's chapter on durability.
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
        let inner = open(
            py,
            directory,
            memory,
            aeus,
            topology,
            read_only,
            synchronous,
            huge_pages,
        )?;
        Ok(Database { inner })
    }

    /// A new connection, with settings of its own.
    fn connect(&self, py: Python<'_>) -> PyResult<Connection> {
        Connection::of(py, &self.inner)
    }

    /// Bytes of memory that tables and queries use, and the limit.
    #[getter]
    fn memory(&self) -> (u64, u64) {
        let budget = self.inner.budget();
        (budget.used(), budget.limit())
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Closes it, with all connections and results. What was committed is on the disk when this returns.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.close_now(py)
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

    fn __repr__(&self) -> String {
        let (used, limit) = self.memory();
        match self.inner.is_closed() {
            true => "<eris_db.Database, closed>".to_owned(),
            false => format!("<eris_db.Database, {} of {} bytes of memory>", used, limit),
        }
    }
}
