//! An open database, which connections and results share, and how it is opened and closed.

use crate::error::{operational_error, programming_error, sql_error};
use crate::lifetime::{Closed, Closes, OfProcess, close_at_exit, leave};
use crate::wait::{Signals, wait};
use eris_engine::{DatabaseSettings, Engine, Settings, Synchronous};
use eris_numa::{Budget, Bytes, HugePages, ParseBytesError, Topology};
use eris_sql::{Database as SqlDatabase, SqlError};
use futures::channel::oneshot;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

/// A database until it is closed. Connections and results share it.
pub struct OpenDatabase {
    /// `None` once it is closed.
    database: Mutex<Option<Opened>>,
    /// Held while it is closed, so that whoever closes it, too, returns when that is done.
    closing: Mutex<()>,
    budget: Budget,
    closed: Closed,
    of_process: OfProcess<()>,
}

/// The two doors of an engine that Python has.
struct Opened {
    database: SqlDatabase,
    engine: Engine,
}

impl OpenDatabase {
    /// The database.
    ///
    /// # Errors
    /// It is closed, or another process's.
    pub fn get(&self, py: Python<'_>) -> PyResult<SqlDatabase> {
        self.check(py)?;
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = database.as_ref().ok_or_else(|| self.closed.error(py))?;
        Ok(opened.database.clone())
    }

    /// The engine below it, for bare indexes.
    ///
    /// # Errors
    /// It is closed, or another process's.
    pub fn engine(&self, py: Python<'_>) -> PyResult<Engine> {
        self.check(py)?;
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = database.as_ref().ok_or_else(|| self.closed.error(py))?;
        Ok(opened.engine.clone())
    }

    /// Rejects a database of another process.
    pub fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.of_process.get(py).copied()
    }

    /// Rejects a database that is closed, or another process's.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.of_process.get(py)?;
        match self.closed.is_closed() {
            true => Err(self.closed.error(py)),
            false => Ok(()),
        }
    }

    /// Told to connections and results.
    pub fn closed(&self) -> &Closed {
        &self.closed
    }

    pub fn is_closed(&self) -> bool {
        self.closed.is_closed()
    }

    /// The memory of tables and queries.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Closes it, with the GIL released.
    pub fn close_now(&self, py: Python<'_>) -> PyResult<()> {
        self.of_process.get(py)?;
        py.detach(|| self.close_database())
            .map_err(|error| sql_error(py, &error))
    }

    /// The GIL is not held: threads may want it before they end.
    fn close_database(&self) -> Result<(), SqlError> {
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.close();
        let database = self
            .database
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        database.map_or(Ok(()), |opened| opened.database.close())
    }
}

impl Closes for OpenDatabase {
    fn close(&self) {
        // Nobody is left who could be told. Another process's threads are not here.
        if !self.of_process.is_foreign() {
            let _ = self.close_database();
        }
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        let database = self
            .database
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // Its end waits for threads, which a forked process does not have.
        if self.of_process.is_foreign() {
            return leave(database);
        }
        // These threads may want the GIL, to give back what Python has lent.
        let mut database = Some(database);
        Python::try_attach(|py| py.detach(|| drop(database.take())));
    }
}

/// Opens a database on a thread of its own, so that Ctrl-C is heard.
#[allow(clippy::too_many_arguments)]
pub fn open(
    py: Python<'_>,
    directory: Option<PathBuf>,
    memory: Option<&Bound<'_, PyAny>>,
    aeus: Option<usize>,
    topology: Option<&str>,
    read_only: bool,
    synchronous: Option<&str>,
    huge_pages: &str,
) -> PyResult<Arc<OpenDatabase>> {
    let wrong = |text: String| programming_error(py, text);
    // As users of SQLite and DuckDB say it.
    let directory = match directory.as_ref().and_then(|name| name.to_str()) {
        Some(":memory:") => None,
        Some(name) if name.starts_with(":memory:") => {
            let text = format!(
                "{name:?}: databases in memory have no names; share a Database, or cursors of a connection"
            );
            return Err(wrong(text));
        }
        _ => directory,
    };
    let memory_limit = memory.map(|memory| bytes_of(memory)).transpose()?;
    if let Some(name) = directory
        .as_ref()
        .map(|name| name.as_os_str().as_encoded_bytes())
        && name.contains(&0)
    {
        return Err(wrong("the name of a directory has no NUL".to_owned()));
    }
    let machine = match topology {
        None => Topology::detect().map_err(|error| wrong(error.to_string()))?,
        Some(text) => Topology::described(text)
            .map_err(|error| wrong(format!("topology={text:?}: {error}")))?,
    };
    let topology = match aeus {
        None => machine,
        Some(aeus) => machine
            .with_aeus(aeus)
            .map_err(|error| wrong(error.to_string()))?,
    };
    let huge_pages = match huge_pages {
        "auto" => HugePages::Auto,
        "always" => HugePages::Always,
        "never" => HugePages::Never,
        other => {
            return Err(wrong(format!(
                "huge_pages={other:?}: it is auto, always or never"
            )));
        }
    };
    let synchronous = synchronous.map(|text| text.parse::<Synchronous>());
    let synchronous = synchronous
        .transpose()
        .map_err(|error| wrong(format!("synchronous: {error}")))?;
    if directory.is_none() && (read_only || synchronous.is_some()) {
        return Err(wrong(
            "read_only and synchronous are of a database in a directory".to_owned(),
        ));
    }
    let settings = Settings {
        topology,
        huge_pages,
        memory_limit,
        database: directory.map(|directory| DatabaseSettings {
            directory,
            synchronous,
            read_only,
        }),
    };
    give_memory_back(py, memory_limit)?;
    let (sender, opened) = oneshot::channel();
    let opening = move || {
        let opened = Engine::of_machine(settings)
            .map_err(SqlError::from)
            .and_then(|engine| {
                let database = SqlDatabase::open(Arc::new(engine.clone()))?;
                Ok(Opened { database, engine })
            });
        // Whoever wanted it may have gone: then it is closed again.
        let _ = sender.send(opened);
    };
    let thread = thread::Builder::new()
        .name("eris-open".to_owned())
        .spawn(opening);
    thread.map_err(|error| operational_error(py, format!("cannot start a thread: {error}")))?;
    let opened = wait(py, opened, &mut Signals)?
        .map_err(|_| {
            operational_error(
                py,
                "the database could not be opened: its thread has panicked",
            )
        })?
        .map_err(|error| sql_error(py, &error))?;
    if let Some(note) = opened.database.home().paced_note() {
        let note = CString::new(note).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 1)?;
    }
    let inner = Arc::new(OpenDatabase {
        budget: opened.database.home().budget().clone(),
        database: Mutex::new(Some(opened)),
        closing: Mutex::new(()),
        closed: Closed::default(),
        of_process: OfProcess::new(()),
    });
    let closes: Weak<dyn Closes> = Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Closes>));
    close_at_exit(closes);
    Ok(inner)
}

/// A number of bytes, or a text such as "4GB".
fn bytes_of(memory: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = memory.py();
    if let Ok(bytes) = memory.extract::<u64>() {
        return Ok(bytes);
    }
    let wrong = |why: String| {
        programming_error(
            py,
            format!(
                "memory={}: {why}",
                memory
                    .repr()
                    .map_or_else(|_| String::new(), |shown| shown.to_string())
            ),
        )
    };
    let Ok(text) = memory.extract::<String>() else {
        return Err(wrong(
            "it is a number of bytes, or a text such as \"2GB\"".to_owned(),
        ));
    };
    let bytes: Bytes = text
        .parse()
        .map_err(|error: ParseBytesError| wrong(error.to_string()))?;
    Ok(bytes.0)
}

/// Freed memory goes back to the system soon. One thread of the process sees to it, from the first database on.
fn give_memory_back(py: Python<'_>, limit: Option<u64>) -> PyResult<()> {
    static IS_STARTED: AtomicBool = AtomicBool::new(false);
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    eris_allocator::give_back_soon(limit)
        .map_err(|error| operational_error(py, format!("cannot start a thread: {error}")))
}
