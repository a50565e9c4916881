//! The thread that flushes: it waits for the sequencer's bell, and makes durable what is applied.

use crate::error::EngineError;
use crate::sequencer::Sequencer;
use crate::settings::Synchronous;
use eris_disk::HeldLock;
use eris_log::LogWriter;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Why nothing is written to a log that was closed.
const CLOSED: &str = "the database was closed";
/// How long commits wait for a flush where nobody waits for them.
const OFF: Duration = Duration::from_millis(200);

/// The log thread. When this is dropped, all that was said is made durable, and the log is closed.
#[derive(Debug)]
pub(crate) struct LogThread {
    sequencer: Arc<Sequencer>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LogThread {
    /// Starts it. Nobody else opens the database as long as it runs.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        writer: LogWriter,
        lock: HeldLock,
        sequencer: &Arc<Sequencer>,
        synchronous: Synchronous,
    ) -> io::Result<Self> {
        if synchronous == Synchronous::On {
            sequencer.wait_for_flushes();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (sequencer, stop) = (Arc::clone(sequencer), Arc::clone(&stop));
            let flusher = move || {
                // Given back when the log is closed.
                let _lock = lock;
                run(writer, &sequencer, &stop, synchronous);
            };
            Builder::new().name("eris-log".to_owned()).spawn(flusher)?
        };
        Ok(LogThread {
            sequencer: Arc::clone(sequencer),
            stop,
            thread: Some(thread),
        })
    }
}

fn run(mut writer: LogWriter, sequencer: &Sequencer, stop: &AtomicBool, synchronous: Synchronous) {
    let pause = match synchronous {
        Synchronous::On => None,
        Synchronous::Interval(interval) => Some(interval),
        Synchronous::Off => Some(OFF),
    };
    loop {
        sequencer.flusher().wait(pause);
        // Before the last look: who has stopped it says nothing any more.
        let is_last = stop.load(Ordering::SeqCst);
        let applied = sequencer.applied();
        match writer.step(applied) {
            Ok(through) if synchronous == Synchronous::On => sequencer.set_durable(through),
            Ok(_) => {}
            Err(error) => return sequencer.fail(&error.to_string()),
        }
        if is_last {
            let closed = writer.close(applied);
            return sequencer
                .fail(&closed.map_or_else(|error| error.to_string(), |()| CLOSED.to_owned()));
        }
        // Whoever finds no room is told, and asks again.
        let _ = writer.prepare();
    }
}

impl LogThread {
    /// Closes the log.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn close(mut self) -> Result<(), EngineError> {
        self.end();
        match self.sequencer.failure() {
            Some(reason) if **reason != *CLOSED => Err(EngineError::LogFailed {
                reason: reason.to_string(),
            }),
            _ => Ok(()),
        }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.sequencer.flusher().ring();
        if let Some(thread) = self.thread.take() {
            // A panic there was told to the user already.
            let _ = thread.join();
        }
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.end();
    }
}
