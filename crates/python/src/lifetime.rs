//! What becomes of a database when its process forks or ends.
//!
//! ```text
//! fork   the child has none of the threads: what it inherited is neither used nor dropped (both would wait)
//! exit   databases are closed while Python still runs, so that nothing that was committed waits for its flush
//! close  whoever holds something of it is told, and gives it back (held)
//! ```

use crate::calls::end_frames;
use crate::error::interface_error;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How often a process was forked on the way to this one. Only the one thread of a new process writes it.
static GENERATION: AtomicU64 = AtomicU64::new(0);

fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Told by Python in a child of `os.fork`.
#[pyfunction]
pub fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // A thread that held the lock is not here. What was open is the other process's to close.
    if let Ok(mut open) = OPEN.try_lock() {
        leave(std::mem::take(&mut *open));
    }
}

/// Leaves a value as it is for ever: dropping it would wait for threads that are another process's.
pub fn leave<T>(value: T) {
    let _left = ManuallyDrop::new(value);
}

/// A value with threads behind it, which only the process that made it may use or drop.
#[derive(Debug)]
pub struct OfProcess<T> {
    generation: u64,
    /// Taken only by drop.
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> Self {
        OfProcess {
            generation: generation(),
            value: Some(value),
        }
    }

    /// The value.
    ///
    /// # Errors
    /// Another process has made it.
    pub fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.is_ours() => Ok(value),
            _ => Err(interface_error(
                py,
                "this was opened by the process that forked this one, and works only there: connect anew",
            )),
        }
    }

    /// Whether another process has made it.
    pub fn is_foreign(&self) -> bool {
        !self.is_ours()
    }

    fn is_ours(&self) -> bool {
        self.generation == generation()
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            leave(self.value.take());
        }
    }
}

/// What is closed when Python ends.
pub trait Closes: Send + Sync {
    fn close(&self);
}

static OPEN: Mutex<Vec<Weak<dyn Closes>>> = Mutex::new(Vec::new());

/// Closes it when Python ends, if it is still there.
pub fn close_at_exit(opened: Weak<dyn Closes>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|known| known.strong_count() > 0);
    open.push(opened);
}

/// Closes all databases of this process.
#[pyfunction]
pub fn close_all(py: Python<'_>) {
    py.detach(|| {
        end_frames();
        let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
        for opened in open.iter().filter_map(Weak::upgrade) {
            opened.close();
        }
    });
}

/// What gives something back when it is told that what it belongs to is closed.
pub trait GivesBack: Send + Sync {
    fn give_back(&self);
}

/// Whether something was closed, or what it belongs to: a cursor to its connection, and that to its database. Clones
/// are the same.
#[derive(Clone, Default)]
pub struct Closed(Arc<ClosedState>);

#[derive(Default)]
struct ClosedState {
    is_closed: AtomicBool,
    /// `None`: a database.
    parent: Option<Closed>,
    told: Mutex<Told>,
}

/// Those who are told.
#[derive(Default)]
struct Told {
    all: Vec<Weak<dyn GivesBack>>,
    /// When there are as many, those that are gone are taken out.
    most: usize,
}

impl Closed {
    /// Of something that belongs to another.
    pub fn below(parent: &Closed) -> Self {
        Closed(Arc::new(ClosedState {
            parent: Some(parent.clone()),
            ..ClosedState::default()
        }))
    }

    /// Has this one told when it is closed, or what it belongs to.
    pub fn tell(&self, told: Weak<dyn GivesBack>) {
        let mut known = self.told();
        if known.all.len() >= known.most {
            known.all.retain(|known| known.strong_count() > 0);
            known.most = 2 * known.all.len() + 16;
        }
        known.all.push(Weak::clone(&told));
        drop(known);
        if let Some(parent) = &self.0.parent {
            parent.tell(told);
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it; whether it was open. What belongs to it is given back, or by whoever uses it.
    pub fn close(&self) -> bool {
        let was_open = !self.0.is_closed.swap(true, Ordering::SeqCst);
        let told = std::mem::take(&mut *self.told());
        for gives_back in told.all.iter().filter_map(Weak::upgrade) {
            gives_back.give_back();
        }
        was_open
    }

    pub fn is_closed(&self) -> bool {
        let of_parent = || self.0.parent.as_ref().is_some_and(Closed::is_closed);
        self.0.is_closed.load(Ordering::SeqCst) || of_parent()
    }

    /// What whoever uses it nevertheless is told.
    pub fn error(&self, py: Python<'_>) -> PyErr {
        match &self.0.parent {
            Some(parent) if parent.is_closed() => parent.error(py),
            Some(_) => interface_error(py, "the connection is closed"),
            None => interface_error(py, "the database is closed"),
        }
    }
}
