//! The thread that flushes: it waits for the sequencer's bell, and makes durable what is applied.

use crate::error::EngineError;
use crate::sequencer::Sequencer;
use crate::settings::Synchronous;
use eris_log::{LogWriter, OpenDirectory};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
        lock: OpenDirectory,
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
                or_fail(&sequencer, || {
                    run(writer, &sequencer, &stop, synchronous);
                });
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

/// Works for the sequencer. If that panics, whoever waits for a flush is told.
fn or_fail(sequencer: &Sequencer, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        sequencer.fail("the log thread has panicked; this is a bug in Eris");
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
            // It tells of a panic by the sequencer.
            let _ = thread.join();
        }
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_atomics::Way;
    use eris_types::NodeId;
    use std::sync::atomic::AtomicBool;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn whoever_waits_for_a_flush_is_told_of_a_panic() {
        let sequencer = Sequencer::new(1, Way::Cpu);
        sequencer.wait_for_flushes();
        let at = sequencer.draw(NodeId(0)).unwrap();
        sequencer.finish(at);
        let woken = Arc::new(Woken::default());
        assert!(!sequencer.poll_visible(at, &Waker::from(Arc::clone(&woken))));
        or_fail(&sequencer, || panic!("on purpose"));
        assert!(woken.0.load(Ordering::SeqCst));
        assert!(
            sequencer
                .failure()
                .is_some_and(|reason| reason.contains("panicked"))
        );
    }
}
