//! The threads that write: one makes durable what is applied, whenever the sequencer's bell rings; another writes large
//! chunks meanwhile, so that a flush finds few of them left.

use super::chunks::Chunks;
use super::requests::{Request, Requests};
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use eris_log::{LogError, LogWriter};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Why nothing is written to a log that was closed.
pub(super) const CLOSED: &str = "the database was closed";
/// So many bytes of chunks are as good a reason for a checkpoint as one of the log.
const CHUNK_SHARE: u64 = 8;

/// Who writes the log, and what they share. Tests step it by hand.
#[derive(Debug)]
pub(crate) struct Flusher {
    writer: LogWriter,
    chunks: Arc<Chunks>,
    sequencer: Arc<Sequencer>,
    requests: Arc<Requests>,
}

impl Flusher {
    pub fn new(
        writer: LogWriter,
        chunks: &Arc<Chunks>,
        sequencer: &Arc<Sequencer>,
        requests: &Arc<Requests>,
    ) -> Self {
        (requests.flushes).add(writer.written(), writer.through(), None);
        Flusher {
            writer,
            chunks: Arc::clone(chunks),
            sequencer: Arc::clone(sequencer),
            requests: Arc::clone(requests),
        }
    }

    /// Makes durable what is applied, and answers who has asked for something. Says whether it goes on: if the disk
    /// fails, or has failed whoever writes chunks, all others are told, and nothing is written any more.
    pub fn turn(&mut self) -> bool {
        if self.sequencer.failure().is_none() {
            match self.try_turn() {
                Ok(()) => return true,
                Err(error) => self.sequencer.fail(&error.to_string()),
            }
        }
        // Whoever has asked hears that it is not done.
        self.requests.close();
        false
    }

    fn try_turn(&mut self) -> Result<(), LogError> {
        // What was said before somebody asked is gathered behind this.
        let asked = self.requests.take();
        let (before, groups) = (self.written(), self.writer.written().groups);
        let begun = Instant::now();
        let through = self.writer.step(self.sequencer.applied())?;
        let took = (self.writer.written().groups > groups).then(|| begun.elapsed());
        (self.requests.flushes).add(self.writer.written(), through, took);
        self.requests.add_written(self.written() - before);
        // Last: whoever hears that a commit is durable finds its group counted.
        self.sequencer.set_durable(through);
        for request in asked {
            // Whoever has given up does not listen.
            match request {
                Request::NewFile(made, answer) => match self.writer.begin_file(made) {
                    Err(error) if self.writer.has_failed() => return Err(error),
                    begun => drop(answer.send(begun)),
                },
                Request::Flush(answer) => drop(answer.send(())),
            }
        }
        // Whoever finds no room is told, and asks again.
        let _ = self.writer.prepare();
        Ok(())
    }

    /// What counts as the log's length: large chunks count for little, for they are not read record by record. But what
    /// is of no use in their files is removed by checkpoints alone.
    fn written(&self) -> u64 {
        self.writer.written().bytes + self.chunks.writer.written().bytes / CHUNK_SHARE
    }

    /// Does what the chunk thread does.
    #[cfg(test)]
    pub fn chunk_turn(&self) {
        write_chunks(&self.chunks, &self.sequencer);
    }

    /// Closes the log behind all that was said. Nobody says anything any more.
    pub fn close(self) -> Result<(), LogError> {
        self.requests.close();
        self.writer.close(self.sequencer.applied())?;
        self.chunks.writer.close()
    }
}

/// The threads. When this is dropped, all that was said is made durable, and the log is closed.
#[derive(Debug)]
pub(crate) struct LogThread {
    sequencer: Arc<Sequencer>,
    chunks: Arc<Chunks>,
    stop: Arc<AtomicBool>,
    log: Option<JoinHandle<()>>,
    chunk: Option<JoinHandle<()>>,
}

impl LogThread {
    /// Starts them.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(flusher: Flusher) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sequencer, chunks) = (Arc::clone(&flusher.sequencer), Arc::clone(&flusher.chunks));
        let chunk = {
            let (sequencer, chunks) = (Arc::clone(&sequencer), Arc::clone(&chunks));
            let stop = Arc::clone(&stop);
            let work = move || or_fail(&sequencer, || write(&chunks, &sequencer, &stop));
            Builder::new().name("eris-chunks".to_owned()).spawn(work)?
        };
        let mut threads = LogThread {
            sequencer: Arc::clone(&sequencer),
            chunks,
            stop: Arc::clone(&stop),
            log: None,
            chunk: Some(chunk),
        };
        let requests = Arc::clone(&flusher.requests);
        let work = move || {
            or_fail(&sequencer, || flush(flusher, &stop));
            requests.close();
        };
        threads.log = Some(Builder::new().name("eris-log".to_owned()).spawn(work)?);
        Ok(threads)
    }
}

/// Works for the sequencer. If that panics, whoever waits for a flush is told.
fn or_fail(sequencer: &Sequencer, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        sequencer.fail("a thread that writes the log has panicked; this is a bug in Eris");
    }
}

fn flush(mut flusher: Flusher, stop: &AtomicBool) {
    let (sequencer, requests) = (
        Arc::clone(&flusher.sequencer),
        Arc::clone(&flusher.requests),
    );
    loop {
        sequencer.flusher().wait(requests.pause());
        // Before the last look: who has stopped it says nothing any more.
        let is_last = stop.load(Ordering::SeqCst);
        if !flusher.turn() {
            return;
        }
        if is_last {
            let closed = flusher.close();
            return sequencer
                .fail(&closed.map_or_else(|error| error.to_string(), |()| CLOSED.to_owned()));
        }
    }
}

fn write(chunks: &Chunks, sequencer: &Sequencer, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) && write_chunks(chunks, sequencer) {
        chunks.bell.wait(None);
    }
}

/// Writes chunks, as long as there are some. Says whether it goes on.
fn write_chunks(chunks: &Chunks, sequencer: &Sequencer) -> bool {
    loop {
        // Whoever finds no room is told.
        let _ = chunks.writer.prepare();
        match chunks.writer.step() {
            Ok(true) => {}
            Ok(false) => return true,
            Err(error) => {
                sequencer.fail(&error.to_string());
                // Who writes the log ends, too.
                sequencer.flusher().ring();
                return false;
            }
        }
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
        self.chunks.bell.ring();
        self.sequencer.flusher().ring();
        for thread in [self.chunk.take(), self.log.take()].into_iter().flatten() {
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
