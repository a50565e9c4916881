//! What was flushed in vain.
//!
//! After a failed flush Linux takes the pages for clean, and tells the error once. A second flush succeeds, though the
//! bytes are nowhere. So the first failure of a file is kept for as long as the disk is used, whatever name or handle
//! it is used by.

use crate::error::Reason;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// A file or directory, whatever its names are: the numbers of its device and of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Identity(stat.st_dev, stat.st_ino)
    }
}

/// The files and directories of which a flush has failed.
#[derive(Debug, Default)]
pub(super) struct Failed(Mutex<HashSet<Identity>>);

impl Failed {
    /// An error if a flush of it has failed.
    pub(super) fn check(&self, identity: Identity) -> Result<(), Reason> {
        match self.lock().contains(&identity) {
            true => Err(Reason::FlushFailed),
            false => Ok(()),
        }
    }

    /// Flushes it, unless that has failed before. Every error counts, also that a signal came between: nobody knows
    /// then what is on the medium.
    pub(super) fn flush(
        &self,
        identity: Identity,
        flush: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Reason> {
        self.check(identity)?;
        flush().map_err(|errno| {
            self.lock().insert(identity);
            Reason::of(errno, 0, || None)
        })
    }

    /// The numbers belong to a new file.
    pub(super) fn forget(&self, identity: Identity) {
        self.lock().remove(&identity);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Identity>> {
        self.0.lock().expect("nothing panics while it is locked")
    }
}
