//! What others ask of the log thread, and what it tells them.
//!
//! ```text
//! checkpoint ── a new file, please ──▶ log thread: flushes what is applied, goes on in a new file ── its start ──▶
//!            ── a flush, please ─────▶             flushes what is applied ────────────────────────── the same ──▶
//! ```
//!
//! All that was said and applied before somebody asked is durable when the answer comes.

use super::checkpoint_error;
use super::flushes::Flushes;
use super::log_thread::CLOSED;
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use crate::settings::Synchronous;
use eris_atomics::Lock;
use eris_log::{LogError, LogFiles, LogStart, NextFile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// How long commits wait for a flush where nobody waits for them.
const OFF: Duration = Duration::from_millis(200);

/// Asked by anybody, answered by the log thread.
#[derive(Debug)]
pub(crate) struct Requests {
    /// `None`: nobody answers any more.
    open: Lock<Option<Vec<Request>>>,
    sequencer: Arc<Sequencer>,
    files: LogFiles,
    /// Bytes of groups since the last checkpoint, how many of these are worth one, and who is told when they are.
    written: AtomicU64,
    pub enough: u64,
    due: Notify,
    /// When commits are durable.
    synchronous: Lock<Synchronous>,
    /// What the log thread has done.
    pub flushes: Flushes,
}

/// What is asked for, and who hears that it is done.
#[derive(Debug)]
pub(super) enum Request {
    /// In the one that was made, if there is one.
    NewFile(
        Option<NextFile>,
        oneshot::Sender<Result<LogStart, LogError>>,
    ),
    Flush(oneshot::Sender<()>),
}

impl Requests {
    /// Of a log of which so many bytes are worth a checkpoint; it has some already.
    pub fn new(
        sequencer: &Arc<Sequencer>,
        files: &LogFiles,
        written: u64,
        enough: u64,
        synchronous: Synchronous,
    ) -> Self {
        if synchronous == Synchronous::On {
            sequencer.wait_for_flushes();
        }
        Requests {
            open: Lock::new(Some(Vec::new())),
            sequencer: Arc::clone(sequencer),
            files: files.clone(),
            written: AtomicU64::new(written),
            enough,
            due: Notify::new(),
            synchronous: Lock::new(synchronous),
            flushes: Flushes::default(),
        }
    }

    /// Has the log go on in a new file, and returns where that begins. It blocks while that is made: commits wait for
    /// nothing but its use.
    ///
    /// # Errors
    /// The disk has no room for one, or has failed.
    pub async fn new_file(&self) -> Result<LogStart, EngineError> {
        // If there is no room, the log thread makes a smaller one.
        let made = self.files.make().ok();
        let begun = self.ask(|answer| Request::NewFile(made, answer)).await?;
        begun.map_err(|error| checkpoint_error(&error))
    }

    /// Has all flushed that was said.
    ///
    /// # Errors
    /// The disk has failed.
    pub async fn flush(&self) -> Result<(), EngineError> {
        self.ask(Request::Flush).await
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        match &mut *self.open.lock() {
            Some(open) => open.push(request(answer)),
            None => drop(answer),
        }
        self.sequencer.flusher().ring();
        answered.await.map_err(|_| EngineError::LogFailed {
            reason: match self.sequencer.failure() {
                Some(reason) => reason.to_string(),
                // Nobody answers first, and then it is said why.
                None => CLOSED.to_owned(),
            },
        })
    }

    pub(super) fn take(&self) -> Vec<Request> {
        let mut open = self.open.lock();
        open.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// When commits are durable.
    pub fn synchronous(&self) -> Synchronous {
        *self.synchronous.lock()
    }

    /// Changes that. Commits that are acknowledged from now on are durable as it says.
    pub fn set_synchronous(&self, synchronous: Synchronous) {
        let mut set = self.synchronous.lock();
        match (*set == Synchronous::On, synchronous == Synchronous::On) {
            (false, true) => self.sequencer.wait_for_flushes(),
            (true, false) => self.sequencer.wait_for_no_flushes(),
            _ => {}
        }
        *set = synchronous;
        drop(set);
        // The log thread may be waiting for longer, or for ever.
        self.sequencer.flusher().ring();
    }

    /// How long the log thread waits if nobody rings.
    pub(super) fn pause(&self) -> Option<Duration> {
        match self.synchronous() {
            Synchronous::On => None,
            Synchronous::Interval(interval) => Some(interval),
            Synchronous::Off => Some(OFF),
        }
    }

    /// Nobody answers any more. Whoever has asked is told.
    pub(super) fn close(&self) {
        *self.open.lock() = None;
    }

    /// So many bytes are in the log. Said by the log thread.
    pub(super) fn add_written(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        if before < self.enough && before + bytes >= self.enough {
            self.due.notify_one();
        }
    }

    /// A checkpoint has what was written before it.
    pub fn forget(&self, bytes: u64) {
        self.written.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of groups since the last checkpoint.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint is worth it.
    pub fn is_due(&self) -> bool {
        self.written() >= self.enough
    }

    /// Waits until it is.
    pub async fn due(&self) {
        while !self.is_due() {
            self.due.notified().await;
        }
    }
}
