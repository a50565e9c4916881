//! Snapshot files: all that a database had at one timestamp, so that the log before can go.
//!
//! ```text
//! snapshots/000000000003.snapshot
//!
//! header │ group 1: records │ group 2: records │ … │ group n: closed │ the file ends here
//!        └─ 1 MiB each, through = at ─────────────┘
//! ```
//!
//! Groups are those of [the log](crate::group). A reader takes one after the other, so it needs little memory. Nothing
//! may be torn here: a manifest refers to a file when all of it is on the medium. So what is not whole, and not closed
//! with the last byte of the file, is damage.
//!
//! Nobody knows how long a snapshot will be. So no room is allocated in advance, and the disk may be full. Then the
//! file is removed, and the database is what it was.

use crate::error::LogError;
use crate::group::{Group, GroupBytes, GroupKind};
use crate::groups::Groups;
use crate::header::{FileKind, HEADER_BYTES, NO_HEADER};
use crate::place::DatabaseId;
use eris_disk::{Access, Disk, File};
use eris_types::Timestamp;
use std::io::IoSlice;
use std::sync::Arc;

/// Bytes of records of a group, unless one record has more.
const GROUP: usize = 1 << 20;
/// The most bytes that are written between two flushes: the log's flushes wait for these.
const DIRTY: usize = 8 << 20;

/// What is wrong with a file that ends too early, and with one that goes on.
pub(crate) const UNCLOSED: &str = "it ends here, and was not closed";
pub(crate) const FOLLOWED: &str = "something follows its end";

/// The files of snapshots.
pub(crate) const SNAPSHOTS: FileKind = FileKind {
    magic: *b"ERISSNP\n",
    directory: "snapshots",
    suffix: "snapshot",
    kind: 2,
    own: &[[0; 16]],
};

/// Which snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotStart {
    /// The number of its file.
    pub number: u64,
    /// All commits up to here are in it, and no others.
    pub at: Timestamp,
}

/// Writes a snapshot file. If it is dropped before it is finished, its file is removed.
#[derive(Debug)]
pub struct SnapshotWriter {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    start: SnapshotStart,
    file: Box<dyn File>,
    /// Where the next group goes.
    end: u64,
    /// Bytes that were written since the last flush.
    dirty: usize,
    /// The number of the next group, and what is in it so far.
    number: u64,
    group: GroupBytes,
    /// What has failed: nothing is written any more, for something would be missing.
    failed: Option<LogError>,
    is_finished: bool,
}

impl SnapshotWriter {
    /// Begins the file of a snapshot, whose number none has had.
    ///
    /// # Errors
    /// The disk does not have it. No file is left.
    pub fn create(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        start: SnapshotStart,
    ) -> Result<Self, LogError> {
        SNAPSHOTS.make_directory(&*disk)?;
        let own = [0; 16];
        let file = SNAPSHOTS.create(&*disk, database, start.number, HEADER_BYTES, own)?;
        Ok(SnapshotWriter {
            disk,
            database,
            start,
            file,
            end: HEADER_BYTES,
            dirty: 0,
            number: 1,
            group: GroupBytes::new(Vec::new(), start.at),
            failed: None,
            is_finished: false,
        })
    }

    /// Adds a record, whose timestamp is that of the snapshot.
    ///
    /// # Errors
    /// The disk is full, or has failed, now or before.
    pub fn push(&mut self, body: &[u8]) -> Result<(), LogError> {
        self.or_fail(|writer| {
            let before = writer.group.len();
            if before > 0 && before + body.len() > GROUP {
                writer.write_group(GroupKind::Records)?;
            }
            writer.group.push(writer.start.at, body);
            Ok(())
        })
    }

    /// What is added from now on is in other groups.
    ///
    /// # Errors
    /// As [`SnapshotWriter::push`].
    pub fn end_group(&mut self) -> Result<(), LogError> {
        self.or_fail(|writer| match writer.group.len() {
            0 => Ok(()),
            _ => writer.write_group(GroupKind::Records),
        })
    }

    /// Has all of it on the medium, with its name. Returns the bytes of the file.
    ///
    /// # Errors
    /// As [`SnapshotWriter::push`]. The file is removed.
    pub fn finish(mut self) -> Result<u64, LogError> {
        self.end_group()?;
        self.or_fail(|writer| {
            writer.write_group(GroupKind::Closed)?;
            // Its name is there since the file was made.
            Ok(writer.file.flush()?)
        })?;
        self.is_finished = true;
        Ok(self.end)
    }

    /// Does something, unless it has failed. An error ends it.
    fn or_fail(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        act(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn write_group(&mut self, kind: GroupKind) -> Result<(), LogError> {
        let next = GroupBytes::new(Vec::new(), self.start.at);
        let group = std::mem::replace(&mut self.group, next);
        let place = SNAPSHOTS.place(self.database, self.start.number, self.end);
        let bytes = group.finish(self.number, kind, place);
        self.number += 1;
        self.write(&bytes)?;
        self.group = GroupBytes::new(bytes, self.start.at);
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), LogError> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(DIRTY - self.dirty));
            self.file.write_at(&[IoSlice::new(now)], self.end)?;
            self.end += now.len() as u64;
            self.dirty += now.len();
            if self.dirty == DIRTY {
                self.file.flush()?;
                self.dirty = 0;
            }
            bytes = later;
        }
        Ok(())
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // If that fails, the next start or checkpoint removes it.
            let _ = self.disk.remove(&SNAPSHOTS.path_of(self.start.number));
        }
    }
}

/// Reads a snapshot, and gives each group of records to `take`. It changes nothing.
///
/// # Errors
/// It is not there, or damaged, or another one; or `take` says no.
pub fn read_snapshot<E: From<LogError>>(
    disk: &dyn Disk,
    database: DatabaseId,
    start: SnapshotStart,
    mut take: impl FnMut(Group) -> Result<(), E>,
) -> Result<(), E> {
    let open = SNAPSHOTS.open(disk, database, start.number, Access::Read)?;
    let damaged = |offset, what: &str| LogError::damaged(open.file.path(), offset, what);
    if open.own.is_none() {
        return Err(damaged(0, NO_HEADER).into());
    }
    let mut groups = Groups::of(&SNAPSHOTS, &open, database, start.number);
    let (mut at, mut number) = (HEADER_BYTES, 1);
    loop {
        let Some((group, length)) = groups.at(at)? else {
            let is_end = at >= open.length;
            let what = if is_end { UNCLOSED } else { "it is no group" };
            return Err(damaged(at.min(open.length), what).into());
        };
        if let Some(what) = what_is_wrong(&group, number, start) {
            return Err(damaged(at, &what).into());
        }
        number += 1;
        at += length;
        match group.kind {
            GroupKind::Closed if at == open.length => return Ok(()),
            GroupKind::Closed => return Err(damaged(at, FOLLOWED).into()),
            _ => take(group)?,
        }
    }
}

/// What is wrong with a group that should have this number in a snapshot.
pub(crate) fn what_is_wrong(group: &Group, number: u64, start: SnapshotStart) -> Option<String> {
    let (found, at) = (group.through.0, start.at.0);
    if group.number != number {
        return Some(format!(
            "group {} where group {number} should be",
            group.number
        ));
    }
    if found != at {
        return Some(format!(
            "it is a snapshot at {found}, and not the one at {at}"
        ));
    }
    let is_ours = group.kind != GroupKind::Continued;
    (!is_ours).then(|| "a snapshot does not go on elsewhere".to_owned())
}
