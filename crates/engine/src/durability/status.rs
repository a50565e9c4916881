//! What the log and checkpoints have done, for whoever looks.
//!
//! ```text
//! log thread ── groups, bytes, how long each took ──▶ counters, a ring of the last ones ──┐
//! checkpoint ── made: what, when │ failed: why ─────▶ the last ones ──────────────────────┼─▶ status
//! directory ─── files ────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Commits do nothing for it.

use super::state::{Durability, Open, OpenLog};
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use eris_atomics::Lock;
use eris_home::{
    Checkpoint, DurabilityStatus, DurableFile, DurableFileKind, FailedCheckpoint, LogStatus,
    MadeCheckpoint, SnapshotStatus,
};
use eris_log::{ChunkFileUse, Directory, ListedFile, ListedKind, LogError};
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
            not_rewritten: None,
        };
        *self.0.lock() = Last {
            made: Some((number, made)),
            failed: None,
        };
    }

    /// Files of which little is in use stay as they are. The next checkpoint tries again.
    pub fn not_rewritten(&self, error: &LogError) {
        if let Some((_, made)) = &mut self.0.lock().made {
            let what = "chunk files of which little is in use were not written anew";
            made.not_rewritten = Some(format!("{what}: {error}; the next checkpoint tries again"));
        }
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
        let (manifest, files, durable, last, log) = match &self.open {
            Open::ToWrite(open) => {
                let directory = open.directory.lock().clone();
                let files = directory.as_ref().map(|directory| {
                    let listed = directory.files()?;
                    Ok(with_use(listed, &open.log.chunks().files.usage()))
                });
                let manifest = directory.map(|directory| directory.manifest());
                // Before what is applied: no commit is durable that was not.
                let durable = open.requests.flushes.durable();
                let last = open.checkpoints.0.lock().clone();
                (manifest, files, durable, last, Some(open.status(sequencer)))
            }
            Open::ToRead(open) => {
                let directory = open.directory.lock();
                let files = directory.as_ref().map(|directory| {
                    let listed = directory.files()?;
                    Ok(with_use(listed, &[]))
                });
                let manifest = directory.as_ref().and_then(Directory::manifest);
                (manifest, files, open.through, Last::default(), None)
            }
            Open::Salvaged(through) => (None, None, *through, Last::default(), None),
        };
        let start = manifest.and_then(|manifest| manifest.snapshot);
        let snapshot = start.map(|start| {
            let made = last.made.filter(|(number, _)| *number == start.number);
            SnapshotStatus {
                number: start.number,
                at: start.at,
                made: made.map(|(_, made)| made),
            }
        });
        let files: Result<_, LogError> = files.unwrap_or(Ok(Vec::new()));
        DurabilityStatus {
            directory: PathBuf::from(&*self.place),
            applied: sequencer.applied(),
            durable,
            log,
            snapshot,
            failed_checkpoint: last.failed,
            files: files.map_err(|error| EngineError::Files {
                reason: error.to_string(),
            }),
        }
    }
}

impl OpenLog {
    fn status(&self, sequencer: &Sequencer) -> LogStatus {
        let (requests, flushes) = (&self.requests, &self.requests.flushes);
        let written = flushes.written();
        LogStatus {
            synchronous: requests.synchronous(),
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
fn with_use(files: Vec<ListedFile>, usage: &[ChunkFileUse]) -> Vec<DurableFile> {
    let of = |file: ListedFile| {
        let kind = match file.kind {
            ListedKind::Manifest => DurableFileKind::Manifest,
            ListedKind::Ballast => DurableFileKind::Ballast,
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
