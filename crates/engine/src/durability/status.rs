//! What the log and checkpoints have done, for whoever looks.
//!
//! ```text
//! log thread ── groups, bytes, how long each took ──▶ counters, a ring of the last ones ──┐
//! checkpoint ── made: what, when │ failed: why ─────▶ the last ones ──────────────────────┼─▶ status
//! directory ─── files ────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Commits do nothing for it.

use super::state::Durability;
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use eris_atomics::Lock;
use eris_home::{
    Checkpoint, DurabilityStatus, DurableFile, DurableFileKind, FailedCheckpoint, LogStatus,
    MadeCheckpoint, SnapshotStatus,
};
use eris_log::{ChunkFiles, ListedFile, ListedKind, LogError, OpenDirectory};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The last checkpoints of this process.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints(Lock<Last>);

#[derive(Clone, Debug, Default)]
struct Last {
    /// The number of its snapshot, and what is known of it.
    made: Option<(u64, MadeCheckpoint)>,
    failed: Option<FailedCheckpoint>,
}

impl Checkpoints {
    /// The snapshot of this number is in place.
    pub fn made(&self, number: u64, written: Checkpoint, took: Duration) {
        let when = SystemTime::now();
        let made = MadeCheckpoint {
            written,
            when,
            took,
        };
        *self.0.lock() = Last {
            made: Some((number, made)),
            failed: None,
        };
    }

    /// One has failed.
    pub fn failed(&self, error: &EngineError, took: Duration) {
        self.0.lock().failed = Some(FailedCheckpoint {
            when: SystemTime::now(),
            took,
            reason: error.to_string(),
        });
    }
}

impl Durability {
    /// What there is on the disk, and what was written there.
    pub fn status(&self, sequencer: &Sequencer) -> DurabilityStatus {
        let last = self.checkpoints.0.lock().clone();
        let directory = self.directory.lock().clone();
        let snapshot = |directory: &OpenDirectory| {
            let start = directory.manifest().snapshot?;
            let made = last.made.filter(|(number, _)| *number == start.number);
            Some(SnapshotStatus {
                number: start.number,
                at: start.at,
                made: made.map(|(_, made)| made),
            })
        };
        let files = directory.as_ref().map_or(Ok(Vec::new()), |directory| {
            let listed = directory.files()?;
            Ok(with_use(listed, &self.log.chunks().files))
        });
        DurabilityStatus {
            directory: PathBuf::from(self.log.directory()),
            log: self.log_status(sequencer),
            snapshot: directory.as_ref().and_then(snapshot),
            failed_checkpoint: last.failed,
            files: files.map_err(|error: LogError| EngineError::Files {
                reason: error.to_string(),
            }),
        }
    }

    fn log_status(&self, sequencer: &Sequencer) -> LogStatus {
        let (requests, flushes) = (&self.requests, &self.requests.flushes);
        // Before what is applied: no commit is durable that was not.
        let (durable, written) = (flushes.durable(), flushes.written());
        LogStatus {
            synchronous: self.synchronous,
            applied: sequencer.applied(),
            durable,
            groups: written.groups,
            bytes: written.bytes,
            bytes_since_checkpoint: requests.written(),
            checkpoint_bytes: requests.enough,
            flushes: flushes.times(),
            failure: sequencer.failure().map(|reason| reason.to_string()),
        }
    }
}

/// Files, and how much of each chunk file is in use.
fn with_use(files: Vec<ListedFile>, chunks: &ChunkFiles) -> Vec<DurableFile> {
    let usage = chunks.usage();
    let of = |file: ListedFile| {
        let kind = match file.kind {
            ListedKind::Manifest => DurableFileKind::Manifest,
            ListedKind::Log => DurableFileKind::Log,
            ListedKind::Snapshot => DurableFileKind::Snapshot,
            ListedKind::Chunks => DurableFileKind::Chunks,
        };
        let used = usage.iter().find(|used| Some(used.number) == file.number);
        DurableFile {
            kind,
            number: file.number,
            path: file.path,
            bytes: file.bytes,
            live_bytes: used
                .filter(|_| kind == DurableFileKind::Chunks)
                .map(|used| used.live_bytes),
        }
    };
    files.into_iter().map(of).collect()
}
