//! The lock of a database, by `flock` on a file that stays.
//!
//! ```text
//!              a writer       readers
//! flock        exclusive      shared
//! the file     its process    as the last writer left it
//! ```
//!
//! The system gives the lock back when the process ends, so nobody ever has to remove the file. Whoever is denied tells
//! a writer from readers by trying the other lock: the number in the file may be of a writer that was killed.

use super::{MODE, reason, repeated};
use crate::error::{Holder, Reason};
use crate::interface::{Held, Lock, NOBODY, read_pid, written_pid};
use rustix::fs::{self, FlockOperation, OFlags};
use rustix::io::{self, Errno};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A lock file that is locked.
#[derive(Debug)]
pub(super) struct RealLock {
    fd: OwnedFd,
    lock: Lock,
}

/// Locks a file, which an exclusive lock makes if it is not there.
pub(super) fn take(whole: &Path, lock: Lock) -> Result<RealLock, Reason> {
    let flags = match lock {
        Lock::Shared => OFlags::RDONLY,
        Lock::Exclusive => OFlags::RDWR | OFlags::CREATE,
    };
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = repeated(|| fs::open(whole, flags, MODE))?;
    let free = match lock {
        Lock::Shared => try_lock(&fd, FlockOperation::NonBlockingLockShared)?,
        Lock::Exclusive => try_lock(&fd, FlockOperation::NonBlockingLockExclusive)?,
    };
    if !free {
        let readers =
            lock == Lock::Exclusive && try_lock(&fd, FlockOperation::NonBlockingLockShared)?;
        // Between the two calls the writer may have ended, and then the lock is ours.
        if !readers {
            return Err(Reason::Locked(Holder::Writer(holder(&fd))));
        }
        if !try_lock(&fd, FlockOperation::NonBlockingLockExclusive)? {
            // Ours is none of those that are told.
            let _ = fs::flock(&fd, FlockOperation::Unlock);
            return Err(Reason::Locked(Holder::Readers(reader(&fd))));
        }
    }
    let taken = RealLock { fd, lock };
    if lock == Lock::Exclusive {
        taken.leave(&written_pid(std::process::id()))?;
    }
    Ok(taken)
}

fn try_lock(fd: &OwnedFd, operation: FlockOperation) -> Result<bool, Reason> {
    match io::retry_on_intr(|| fs::flock(fd, operation)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(reason(errno)),
    }
}

fn holder(fd: &OwnedFd) -> Option<u32> {
    let mut text = [0; 16];
    let bytes = io::pread(fd, &mut text, 0).ok()?;
    read_pid(&text[..bytes])
}

/// A process that reads. It has left nothing in the file, but the system may tell.
fn reader(fd: &OwnedFd) -> Option<u32> {
    let file = fs::fstat(fd).ok()?;
    let (major, minor) = (fs::major(file.st_dev), fs::minor(file.st_dev));
    let place = format!("{major:02x}:{minor:02x}:{}", file.st_ino);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let mut readers = locks.lines().filter_map(|line| {
        // 1: FLOCK  ADVISORY  READ 4711 fe:00:9978242 0 EOF
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, "READ", pid, at, ..] if at == place => pid.parse().ok(),
            _ => None,
        }
    });
    // The system gives those of other containers no number.
    readers.find(|pid| *pid > 0)
}

impl RealLock {
    /// Writes the file's text. It is as long as the one before, so a disk that is full has room for it.
    fn leave(&self, text: &str) -> Result<(), Reason> {
        repeated(|| io::pwrite(&self.fd, text.as_bytes(), 0)).map(drop)
    }
}

impl Held for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        if self.lock == Lock::Exclusive {
            // Only who looks at the file would miss it: the lock itself goes with the file's last handle.
            let _ = self.leave(NOBODY);
        }
    }
}
