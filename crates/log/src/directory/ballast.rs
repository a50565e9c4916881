//! Room on the disk that is kept for a checkpoint, by a file that has nothing else.
//!
//! ```text
//! disk   │ database ░░░░░░░░░░░░░░░░░░░ │ ballast ▒▒▒▒ │          full: whoever adds rows is told
//!        │ database ░░░░░░░░░░░░░░░░░░░ │ log · snapshot · manifest    in the place of the ballast
//!        │ database ░░░░░░ │ ballast ▒▒▒▒ │                        what was older is removed
//! ```
//!
//! On a disk that is full to its last block, rows can be deleted, for files of the log have room of their own. But room
//! comes back by a checkpoint only, which needs some first: for a file of the log, for the snapshot, for large chunks
//! that are in no file yet.
//!
//! While the ballast is in use, others get nothing of it: see [`Room::keep`].

use crate::error::LogError;
use crate::next_file::LEAST_FILE;
use crate::room::Room;
use crate::snapshot::SNAPSHOTS;
use eris_disk::{Access, Disk, DiskError, Reason};
use std::path::Path;
use std::sync::Arc;

/// The file.
pub(super) const BALLAST: &str = "ballast";
/// It is this part of a file of the log, and as long as the newest snapshot beside: the next one is about as long.
const PART: u64 = 8;

/// The ballast of a directory. It is there if the disk had room when it was last made.
#[derive(Debug)]
pub(super) struct Ballast {
    disk: Arc<dyn Disk>,
    /// Bytes of a usual file of the log.
    file_bytes: u64,
    /// Where others take room: in the log, and in chunk files.
    rooms: [Room; 2],
}

/// The ballast was given back to the disk, for one checkpoint. It is made again when this is dropped.
#[derive(Debug)]
#[must_use = "the ballast is made again when this is dropped"]
pub struct BallastInUse(Arc<Ballast>);

/// Bytes of a short file of the log, and of a manifest.
fn least(file_bytes: u64) -> u64 {
    2 * LEAST_FILE.min(file_bytes)
}

/// Gives some of the ballast back, so that a database can be opened on a disk that is full.
pub(super) fn shorten(disk: &dyn Disk, file_bytes: u64) {
    if let Ok(file) = disk.open(Path::new(BALLAST), Access::ReadWrite)
        && let Ok(length) = file.len()
    {
        // If that fails, there may be room elsewhere.
        let _ = file.set_len(length.saturating_sub(least(file_bytes)));
    }
}

impl Ballast {
    /// That of a directory, which may have none yet.
    pub fn new(disk: Arc<dyn Disk>, file_bytes: u64, rooms: [Room; 2]) -> Self {
        Ballast {
            disk,
            file_bytes,
            rooms,
        }
    }

    /// Makes the ballast as long as it should be, or as long as there is room. A failure is no harm: there is less
    /// ballast, or none. It need not be flushed: what a crash takes, the next start makes.
    pub fn make(&self) {
        let _ = self.try_make();
    }

    fn try_make(&self) -> Result<(), LogError> {
        let snapshots = SNAPSHOTS.lengths(&*self.disk)?;
        let snapshot = snapshots.last().map_or(0, |(_, length)| *length);
        let least = least(self.file_bytes);
        let mut length = (self.file_bytes / PART).max(least) + snapshot;
        let path = Path::new(BALLAST);
        let file = match self.disk.open(path, Access::ReadWrite) {
            Err(error) if error.reason == Reason::NotFound => self.disk.create(path)?,
            found => found?,
        };
        if file.len()? > length {
            file.set_len(length)?;
        }
        // A copy of the file may have no blocks, so its length says nothing.
        loop {
            match file.allocate(length) {
                Err(DiskError {
                    reason: Reason::Full { .. },
                    ..
                }) if length > least => length = (length / 2).max(least),
                allocated => return Ok(allocated?),
            }
        }
    }

    /// Gives the ballast back to the disk, for a checkpoint. `None`: there is none.
    pub fn give_back(self: &Arc<Self>) -> Option<BallastInUse> {
        let keep = |kept| self.rooms.iter().for_each(|room| room.keep(kept));
        keep(true);
        match self.disk.remove(Path::new(BALLAST)) {
            Ok(()) => Some(BallastInUse(Arc::clone(self))),
            Err(_) => {
                keep(false);
                None
            }
        }
    }
}

impl Drop for BallastInUse {
    fn drop(&mut self) {
        let Ballast { rooms, .. } = &*self.0;
        // Before others may take what has become free.
        self.0.make();
        rooms.iter().for_each(|room| room.keep(false));
    }
}
