//! A statement that a task of asyncio waits for, in a thread: it is cancelled by itself, whatever else its connection
//! runs.

use crate::error::operational_error;
use crate::wait::{Signals, Watch};
use eris_sql::Canceller;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How a statement is cancelled that may not have begun.
#[pyclass(module = "eris_db", frozen)]
#[derive(Default)]
pub struct Job(Mutex<JobState>);

#[derive(Default)]
struct JobState {
    is_cancelled: bool,
    /// The statement, once it has begun.
    running: Option<Canceller>,
}

#[pymethods]
impl Job {
    #[new]
    fn new() -> Self {
        Job::default()
    }

    /// Sees to it that the statement does not begin, or stops it. Whether it has not begun; else it has to be waited
    /// for, and may take effect.
    fn cancel(&self) -> bool {
        let mut state = self.state();
        state.is_cancelled = true;
        match &state.running {
            None => true,
            Some(canceller) => {
                canceller.stop();
                false
            }
        }
    }
}

impl Job {
    fn state(&self) -> MutexGuard<'_, JobState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statement begins.
    ///
    /// # Errors
    /// It was cancelled before.
    pub fn begin(&self, py: Python<'_>, canceller: &Canceller) -> PyResult<()> {
        let mut state = self.state();
        if !state.is_cancelled {
            state.running = Some(canceller.clone());
            return Ok(());
        }
        // An error runs Python.
        drop(state);
        Err(cancelled(py))
    }
}

/// Nobody sees it: who awaits gets the CancelledError.
fn cancelled(py: Python<'_>) -> PyErr {
    operational_error(py, "the task was cancelled before its statement began")
}

/// While the statement waits for its turn on the connection.
pub struct Turn<'a>(pub Option<&'a Job>);

impl Watch for Turn<'_> {
    fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        match self.0 {
            Some(job) if job.state().is_cancelled => Err(cancelled(py)),
            _ => Signals.tick(py),
        }
    }
}
