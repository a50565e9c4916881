//! Waiting: the calling thread releases the GIL, looks for signals every 50 ms, and draws the progress itself.
//!
//! ```text
//! detached: poll ── ready ─────────────────────────────────▶ value
//!             └── parked until woken, or for 50 ms ── attached: signals? progress ── detached again
//! ```
//!
//! No thread of the engine ever calls Python for this.

use crate::calls::is_in_frame;
use crate::error::interface_error;
use crate::lifetime::Closed;
use eris_numa::Budget;
use eris_sql::{Canceller, Progress};
use pyo3::intern;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Between two looks for signals.
const TICK: Duration = Duration::from_millis(50);

/// Wakes the thread that polls.
struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Releases what the waker has done; the thread acquires it before it polls.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Polls until the future is ready, or a tick is over.
fn poll_for<F: Future>(future: &mut Pin<&mut F>, parked: &Arc<Parked>) -> Option<F::Output> {
    let waker = Waker::from(Arc::clone(parked));
    let mut context = Context::from_waker(&waker);
    let deadline = Instant::now() + TICK;
    loop {
        parked.is_woken.store(false, Ordering::Relaxed);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        while !parked.is_woken.load(Ordering::Acquire) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            thread::park_timeout(left);
        }
    }
}

/// What is done at every tick, with the GIL.
pub trait Watch {
    /// # Errors
    /// The exception that ends the waiting.
    fn tick(&mut self, py: Python<'_>) -> PyResult<()>;
}

/// Only looks for signals.
pub struct Signals;

impl Watch for Signals {
    fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()
    }
}

/// Waits for a future without the GIL.
///
/// # Errors
/// What the watch raises; the future is dropped then.
pub fn wait<F>(py: Python<'_>, future: F, watch: &mut dyn Watch) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let mut future = pin!(future);
    let parked = Arc::new(Parked {
        thread: thread::current(),
        is_woken: AtomicBool::new(false),
    });
    loop {
        if let Some(value) = py.detach(|| poll_for(&mut future, &parked)) {
            return Ok(value);
        }
        watch.tick(py)?;
    }
}

/// The bar of a statement that takes long, drawn by `_progress.py`.
pub struct Bar {
    /// How long the statement was waited for before.
    waited: Duration,
    /// Since when it is waited for.
    since: Instant,
    /// When signals were looked for.
    looked: Instant,
    /// Whose memory is shown; `None`: there is no bar.
    memory: Option<Budget>,
    /// Made when it is drawn first.
    drawn: Option<Py<PyAny>>,
}

/// Statements that are done before this are not worth a bar.
const DELAY: Duration = Duration::from_secs(2);

impl Bar {
    pub fn new(memory: Option<&Budget>) -> Self {
        Bar {
            waited: Duration::ZERO,
            since: Instant::now(),
            looked: Instant::now(),
            memory: memory.cloned(),
            drawn: None,
        }
    }

    fn draw(&mut self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        let elapsed = self.waited + self.since.elapsed();
        let Some(memory) = self.memory.as_ref().filter(|_| elapsed >= DELAY) else {
            return Ok(());
        };
        if self.drawn.is_none() {
            let bar = py
                .import(intern!(py, "eris_db._progress"))?
                .call_method0(intern!(py, "bar"))?;
            if bar.is_none() {
                self.memory = None;
                return Ok(());
            }
            self.drawn = Some(bar.unbind());
        }
        let (rows, bytes) = (progress.rows(), progress.bytes());
        let numbers = (
            elapsed.as_secs_f64(),
            (rows.done, rows.total),
            (bytes.done, bytes.total),
            progress.written(),
            (memory.used(), memory.limit()),
        );
        match &self.drawn {
            Some(bar) => bar.call_method1(py, intern!(py, "draw"), numbers).map(drop),
            None => Ok(()),
        }
    }

    /// The statement is waited for again. What its reader does between is not its time.
    pub fn resume(&mut self) {
        self.since = Instant::now();
    }

    /// Makes room on the screen: others write now.
    pub fn hide(&mut self, py: Python<'_>) {
        self.waited += self.since.elapsed();
        if let Some(bar) = self.drawn.take() {
            // What cannot be taken away stays.
            let _ = bar.call_method0(py, intern!(py, "close"));
        }
    }
}

/// Looks for signals while a statement runs: Ctrl-C cancels it, and if it is too late for that it is waited for.
pub struct Statement<'a> {
    canceller: Canceller,
    progress: Progress,
    /// Whether its connection is closed: by another thread.
    closed: &'a Closed,
    bar: &'a mut Bar,
    /// The exception that is raised when the statement has ended.
    pending: Option<PyErr>,
}

impl<'a> Statement<'a> {
    pub fn new(
        canceller: Canceller,
        progress: Progress,
        closed: &'a Closed,
        bar: &'a mut Bar,
    ) -> Self {
        Statement {
            canceller,
            progress,
            closed,
            bar,
            pending: None,
        }
    }

    /// Looks for signals if that was some time ago: what is always ready never waits.
    ///
    /// # Errors
    /// The exception that ends the statement.
    pub fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        match self.bar.looked.elapsed() >= TICK {
            true => self.tick(py),
            false => Ok(()),
        }
    }

    /// The exception that came when it was too late for it.
    pub fn pending(&mut self) -> Option<PyErr> {
        self.pending.take()
    }
}

impl Watch for Statement<'_> {
    fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        self.bar.looked = Instant::now();
        if self.pending.is_some() {
            return Ok(());
        }
        let is_open = match self.closed.is_closed() {
            true => Err(interface_error(
                py,
                "the connection was closed while its statement ran",
            )),
            false => py.check_signals(),
        };
        match is_open.and_then(|()| self.bar.draw(py, &self.progress)) {
            Ok(()) => Ok(()),
            Err(raised) if self.canceller.cancel() => Err(raised),
            Err(raised) => {
                self.pending = Some(raised);
                Ok(())
            }
        }
    }
}

/// An exception that came when a statement took effect already, with a note that says so.
///
/// # Errors
/// Another exception, of Python's code for notes.
pub fn too_late(py: Python<'_>, raised: PyErr) -> PyResult<PyErr> {
    let note = "it was too late: the statement took effect";
    raised
        .value(py)
        .call_method1(intern!(py, "add_note"), (note,))?;
    Ok(raised)
}

/// Looks for signals while rows are read or written by key, as [`Statement`] does.
pub struct Call {
    canceller: Canceller,
    pending: Option<PyErr>,
}

impl Call {
    pub fn new(canceller: Canceller) -> Self {
        Call {
            canceller,
            pending: None,
        }
    }

    /// What a call that has failed raises.
    pub fn failed(&mut self, error: PyErr) -> PyErr {
        self.pending.take().unwrap_or(error)
    }

    /// The end of a call that has written.
    ///
    /// # Errors
    /// The exception that came when it was too late for it.
    pub fn took_effect(self, py: Python<'_>) -> PyResult<()> {
        match self.pending.map_or_else(|| py.check_signals(), Err) {
            Ok(()) => Ok(()),
            Err(raised) => Err(too_late(py, raised)?),
        }
    }
}

impl Watch for Call {
    fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.pending.is_some() {
            return Ok(());
        }
        match py.check_signals() {
            Err(raised) if self.canceller.cancel() => Err(raised),
            Err(raised) => {
                self.pending = Some(raised);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Locks while the GIL is released, so that whoever holds the lock can use Python.
///
/// # Errors
/// A signal.
pub fn lock<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> PyResult<MutexGuard<'a, T>> {
    lock_watched(py, mutex, &mut Signals)
}

/// The same with another watch.
///
/// # Errors
/// What the watch raises.
pub fn lock_watched<'a, T>(
    py: Python<'_>,
    mutex: &'a Mutex<T>,
    watch: &mut dyn Watch,
) -> PyResult<MutexGuard<'a, T>> {
    let mut pause = Duration::from_micros(20);
    let mut until_tick = Instant::now() + TICK;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                reject_frames(py)?;
                py.detach(|| thread::sleep(pause));
                pause = (pause * 2).min(Duration::from_millis(2));
                if Instant::now() >= until_tick {
                    watch.tick(py)?;
                    until_tick = Instant::now() + TICK;
                }
            }
        }
    }
}

/// Python code of a frame must not wait for a connection: its statement may be the one that waits for the frame.
fn reject_frames(py: Python<'_>) -> PyResult<()> {
    match is_in_frame() {
        true => Err(interface_error(
            py,
            "this connection runs the statement that reads this frame: use another one, of cursor()",
        )),
        false => Ok(()),
    }
}
