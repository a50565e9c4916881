//! What a database asks of a disk.

use crate::error::DiskError;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io::IoSlice;
use std::path::Path;

/// The files of one database. Paths are relative to the database's directory, which is the empty path.
///
/// A name is on the medium once the directory that has it is flushed, and not before.
pub trait Disk: Send + Sync + Debug {
    /// The database's directory, for messages.
    fn root(&self) -> &Path;

    /// Makes a new, empty file and opens it for reading and writing. The name must be free.
    fn create(&self, path: &Path) -> Result<Box<dyn File>, DiskError>;

    /// Opens a file that is there.
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn File>, DiskError>;

    /// Gives a file or directory another name in the same directory, and replaces what had that name.
    ///
    /// It is one change: after a crash there is the old name or the new one. That takes both to be in one directory,
    /// so that one flush makes it durable.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file. Its room is free when the last handle of it is dropped.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// What a directory has, by name.
    fn list(&self, directory: &Path) -> Result<Vec<Entry>, DiskError>;

    /// Makes a directory, and those that lead to it. It may be there already.
    ///
    /// Each of them is durable once the directory above it is flushed. What lies above the database's directory is
    /// not the database's: it is flushed at once.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Removes a directory, which must be empty.
    fn remove_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Returns when the names of a directory are on the medium: those created, renamed and removed.
    ///
    /// What a failed flush was to store may be lost for good, so nobody may try it again.
    fn flush_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// The bytes that are free on the file system for this process; `u64::MAX` where it does not say.
    fn free(&self) -> Result<u64, DiskError>;

    /// Takes the lock of the database, whose file is `path`, or says at once who has it.
    ///
    /// The one that writes leaves the number of its process in the file, and makes the file if there is none. Those
    /// that read change nothing, and need the file to be there.
    fn lock(&self, path: &Path, lock: Lock) -> Result<HeldLock, DiskError>;
}

/// An open file. Threads may use it at the same time.
///
/// What was written is seen by all readers at once. It is on the medium once the file is flushed.
pub trait File: Send + Sync + Debug {
    /// The whole path under which it was opened, for messages.
    fn path(&self) -> &Path;

    /// Fills the buffer from `offset` on. It is an error if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), DiskError>;

    /// Writes all slices, one behind the other, from `offset` on. A file that is too short grows, with zeros up to
    /// `offset`. If it fails, any part may have been written.
    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<(), DiskError>;

    /// Reserves room up to `len`, so that writes below it cannot fail for want of room. A shorter file grows to `len`,
    /// with zeros. If it fails, the length is what it was.
    ///
    /// A file system that cannot reserve has zeros written behind the file's end. Holes before stay holes there. A
    /// file system that copies on write may still run out of room.
    fn allocate(&self, len: u64) -> Result<(), DiskError>;

    /// Cuts the file off at `len`, or makes it grow with zeros that take no room yet.
    fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// The file's length.
    fn len(&self) -> Result<u64, DiskError>;

    /// Whether the file has no byte.
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// Returns when the file's bytes and its length are on the medium. Its name is its directory's business.
    ///
    /// After a failed flush the kernel may have thrown away what was to be stored, and a second flush would succeed.
    /// So nobody may try it again. The real disk remembers the failure and denies every further write.
    fn flush(&self) -> Result<(), DiskError>;
}

/// For what a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// What a directory has under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in its directory.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file of this many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// Neither, so it is none of ours.
    Other,
}

/// Which lock of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Shared by all that read.
    Shared,
    /// For the one process that writes.
    Exclusive,
}

/// A lock that is held until this is dropped, or the process ends in whatever way.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub struct HeldLock {
    _held: Box<dyn Held>,
}

/// What gives a lock back when it is dropped.
pub(crate) trait Held: Send + Sync + Debug {}

impl HeldLock {
    /// A lock that dropping `held` gives back.
    pub(crate) fn new(held: impl Held + 'static) -> Self {
        HeldLock {
            _held: Box::new(held),
        }
    }
}

/// The bytes that reserving room up to `len` asks for: what is behind the file's end, or all if there are only holes.
pub(crate) fn asked_room(len: u64, end: u64) -> u64 {
    if len > end { len - end } else { len }
}

/// What is written into the lock file: a process's number, always as long, so that it never takes more room.
pub(crate) fn written_pid(pid: u32) -> String {
    format!("{pid:<10}\n")
}

/// What is written into it when there is no process any more.
pub(crate) const NOBODY: &str = "          \n";

/// The process whose number a lock file has.
pub(crate) fn read_pid(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}
