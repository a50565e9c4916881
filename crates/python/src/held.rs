//! What a closed connection or database gives back, though variables of Python still lead to it.
//!
//! ```text
//! variable ─▶ Connection ─▶ Held ─▶ a session ─▶ the database: its memory, its threads
//!                             └──▶ None, once the connection or the database is closed
//! ```
//!
//! If somebody uses it at that moment, they give it back afterwards.

use crate::lifetime::{Closed, GivesBack, OfProcess};
use crate::wait::{Signals, Watch, lock_watched};
use pyo3::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A value until what it belongs to is closed.
pub struct Held<T> {
    value: OfProcess<Arc<Mutex<Option<T>>>>,
    closed: Closed,
}

impl<T: Send + 'static> Held<T> {
    /// A value that belongs to this.
    pub fn new(value: T, closed: &Closed) -> Self {
        let value = Arc::new(Mutex::new(Some(value)));
        let gives_back: Weak<Mutex<Option<T>>> = Arc::downgrade(&value);
        closed.tell(gives_back);
        Held {
            value: OfProcess::new(value),
            closed: closed.clone(),
        }
    }

    /// Waits until nobody else uses it.
    ///
    /// # Errors
    /// What it belongs to is closed, or another process's. Ctrl-C.
    pub fn lock<'a, 'py>(&'a self, py: Python<'py>) -> PyResult<InUse<'a, 'py, T>> {
        self.lock_watched(py, &mut Signals)
    }

    /// The same with another watch than the one for signals.
    ///
    /// # Errors
    /// As [`lock`](Self::lock); what the watch raises.
    pub fn lock_watched<'a, 'py>(
        &'a self,
        py: Python<'py>,
        watch: &mut dyn Watch,
    ) -> PyResult<InUse<'a, 'py, T>> {
        self.check(py)?;
        let value: &Mutex<Option<T>> = self.value.get(py)?;
        let in_use = InUse {
            guard: Some(lock_watched(py, value, watch)?),
            value,
            closed: &self.closed,
            py,
        };
        match in_use.guard.as_deref().is_some_and(Option::is_some) {
            true => Ok(in_use),
            false => {
                // An error runs Python, which may want the lock.
                drop(in_use);
                Err(self.closed.error(py))
            }
        }
    }

    /// A clone of a value that nobody uses otherwise.
    ///
    /// # Errors
    /// What it belongs to is closed, or another process's.
    pub fn cloned(&self, py: Python<'_>) -> PyResult<T>
    where
        T: Clone,
    {
        let value = self.value.get(py)?;
        // As long as it is locked nothing of Python runs: the thread keeps the GIL.
        let found = value.lock().unwrap_or_else(PoisonError::into_inner).clone();
        look_again(py, value, &self.closed);
        self.check(py)?;
        found.ok_or_else(|| self.closed.error(py))
    }

    /// Whether it is still there.
    ///
    /// # Errors
    /// As [`cloned`](Self::cloned).
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.value.get(py)?;
        match self.closed.is_closed() {
            true => Err(self.closed.error(py)),
            false => Ok(()),
        }
    }
}

/// Gives a value back that was in use when what it belongs to was closed.
fn look_again<T: Send>(py: Python<'_>, value: &Mutex<Option<T>>, closed: &Closed) {
    // Whoever closes does this in the other order: one of both sees the other.
    fence(Ordering::SeqCst);
    if closed.is_closed() {
        py.detach(|| value.give_back());
    }
}

impl<T: Send> GivesBack for Mutex<Option<T>> {
    fn give_back(&self) {
        fence(Ordering::SeqCst);
        // Whoever uses it looks again.
        let value = self.try_lock().ok().and_then(|mut value| value.take());
        // Its end may take a while, and nobody waits for the lock.
        drop(value);
    }
}

/// A value that is in use.
pub struct InUse<'a, 'py, T: Send> {
    /// Taken only by drop.
    guard: Option<MutexGuard<'a, Option<T>>>,
    value: &'a Mutex<Option<T>>,
    closed: &'a Closed,
    py: Python<'py>,
}

const THERE: &str = "it is taken behind its use";

impl<T: Send> Deref for InUse<'_, '_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let value = self.guard.as_deref().and_then(Option::as_ref);
        value.expect(THERE)
    }
}

impl<T: Send> DerefMut for InUse<'_, '_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.guard.as_deref_mut().and_then(Option::as_mut);
        value.expect(THERE)
    }
}

impl<T: Send> Drop for InUse<'_, '_, T> {
    fn drop(&mut self) {
        self.guard = None;
        look_again(self.py, self.value, self.closed);
    }
}
