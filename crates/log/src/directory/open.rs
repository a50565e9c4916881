//! A directory that is open for writing: which manifest is in place, and how another one takes it.
//!
//! ```text
//! snapshot 1 │ log 4 │ log 5                    the manifest says: snapshot 1, and the log from file 4 on
//!              snapshot 2 ─────────┐
//! snapshot 1 │ log 4 │ log 5 │ log 6            the log has gone on in a new file, and a snapshot was written
//!                                  ▼
//!              snapshot 2 │ log 6 │ log 7       the manifest says: snapshot 2, and the log from file 6 on; then
//!                                               what is older was removed
//! ```
//!
//! Nothing is removed before the new manifest is on the medium. If that fails, it may be there or not: then nothing is
//! removed, no other manifest is tried, and the next start finds either.

use super::ballast::{Ballast, BallastInUse};
use super::listed::{ListedFile, list_files};
use super::manifest::{Manifest, NEXT_MANIFEST, put_into_place};
use crate::ends::LogStart;
use crate::error::LogError;
use crate::file::LOG;
use crate::header::FileKind;
use crate::snapshot::{SNAPSHOTS, SnapshotStart};
use eris_disk::{Disk, HeldLock};
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};

/// A directory that is open for writing. Clones are the same one. Nobody else opens it until the last one is dropped.
#[derive(Clone, Debug)]
pub struct OpenDirectory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
    next_snapshot: AtomicU64,
    ballast: Arc<Ballast>,
    _lock: Option<HeldLock>,
    /// Behind the lock, so that it is dropped afterwards: then whoever listens hears that nobody has the directory.
    _ends: Sender<Infallible>,
    /// Until somebody closes it.
    ended: Mutex<Option<Receiver<Infallible>>>,
}

#[derive(Debug)]
struct State {
    manifest: Manifest,
    /// Why nobody knows which manifest is on the medium.
    failed: Option<LogError>,
}

impl OpenDirectory {
    /// The directory in which this manifest is, on the medium.
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        lock: Option<HeldLock>,
        ballast: Ballast,
        manifest: Manifest,
        next_snapshot: u64,
    ) -> Self {
        let state = State {
            manifest,
            failed: None,
        };
        let (ends, ended) = mpsc::channel();
        OpenDirectory(Arc::new(Shared {
            disk,
            state: Mutex::new(state),
            next_snapshot: AtomicU64::new(next_snapshot),
            ballast: Arc::new(ballast),
            _lock: lock,
            _ends: ends,
            ended: Mutex::new(Some(ended)),
        }))
    }

    /// Waits until all other clones are dropped. Then others may open it.
    pub fn close(self) {
        let mut ended = self.0.ended.lock().expect("nothing panics while it has it");
        let listens = ended.take();
        drop(ended);
        drop(self);
        // Nothing is sent: it hears that the last one is gone.
        let _ = listens.map(|ended| ended.recv());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing panics while it has it")
    }

    /// The newest manifest of which it is known that it is on the medium.
    pub fn manifest(&self) -> Manifest {
        self.state().manifest
    }

    /// Whether a manifest could not be put into place: nobody knows which one is on the medium, and no other is tried.
    pub fn has_failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// Where its files are.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.0.disk
    }

    /// The files that are there, by kind and number. Some may come or go meanwhile.
    ///
    /// # Errors
    /// The disk cannot list them.
    pub fn files(&self) -> Result<Vec<ListedFile>, LogError> {
        list_files(&*self.0.disk)
    }

    /// A number for a snapshot file, which no call has given before and no file has that is there.
    pub fn next_snapshot(&self) -> u64 {
        self.0.next_snapshot.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives room on the disk that is kept for a checkpoint to one that has found none. Whoever adds something is told
    /// meanwhile that there is none. `None`: nothing is kept.
    pub fn use_ballast(&self) -> Option<BallastInUse> {
        self.0.ballast.give_back()
    }

    /// Keeps as much room for the next checkpoint as that may need, if the disk has it.
    pub fn keep_ballast(&self) {
        self.0.ballast.make();
    }

    /// From now on the database is this snapshot, which is finished, and the log from `start` on. Chunks had numbers
    /// below `next_chunk`. All that was read for the snapshot must be durable in the log.
    ///
    /// Older snapshots, and older files of the log, are removed. They do no harm. So if that fails, it is no error: the
    /// next checkpoint or start removes them.
    ///
    /// # Errors
    /// The disk has no room for the manifest: the former one is in place, and the snapshot is removed. Or the disk has
    /// failed, now or before. Then it is open whether the next start finds the former manifest or this one. What each
    /// of them refers to is there: nothing is removed from now on.
    ///
    /// # Panics
    /// If the snapshot has less than the log before `start`, or one of them is older than those of the former manifest.
    pub fn begin_from(
        &self,
        snapshot: SnapshotStart,
        start: LogStart,
        next_chunk: u64,
    ) -> Result<(), LogError> {
        let former = self.manifest();
        assert!(start.through <= snapshot.at, "the snapshot has less");
        assert!(former.start.file <= start.file, "an older log");
        let is_newer =
            |former: SnapshotStart| former.number < snapshot.number && former.at <= snapshot.at;
        assert!(former.snapshot.is_none_or(is_newer), "an older snapshot");
        let mut state = self.state();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let manifest = Manifest {
            start,
            snapshot: Some(snapshot),
            next_chunk: next_chunk.max(state.manifest.next_chunk),
            ..state.manifest
        };
        let disk = &*self.0.disk;
        manifest.prepare(disk).inspect_err(|_| {
            // They do no harm: the next checkpoint or start removes what is left.
            let _ = disk.remove(Path::new(NEXT_MANIFEST));
            let _ = disk.remove(&SNAPSHOTS.path_of(snapshot.number));
        })?;
        let written = put_into_place(disk);
        written.inspect_err(|error| state.failed = Some(error.clone()))?;
        state.manifest = manifest;
        self.remove_older(&LOG, start.file);
        self.remove_older(&SNAPSHOTS, snapshot.number);
        Ok(())
    }

    /// Removes files, and does not wait until that is on the medium. A flush that fails could take the name of a file
    /// with it that another thread is making, which would not hear of it.
    fn remove_older(&self, kind: &FileKind, first: u64) {
        let numbers = kind.numbers(&*self.0.disk).unwrap_or_default();
        for number in numbers.into_iter().filter(|number| *number < first) {
            let _ = self.0.disk.remove(&kind.path_of(number));
        }
    }
}
