//! A disk in memory that does to a database what real ones do: it forgets, tears and reorders what was not flushed.
//!
//! Each file and each directory has two states. What readers see is one of them; what is on the medium is the other.
//!
//! ```text
//!                 what readers see          the medium
//!  write, rename ───▶ changes        ──┬──▶ is as before
//!  flush                               └──▶ has it all
//!  kill               stays                 stays
//!  crash              ◀───────────────────  of each change since the flush: there, or not
//!  failed flush       stays or goes         of each change since the flush: there, or never
//! ```
//!
//! What a crash may leave:
//!
//! | of | what is found |
//! |---|---|
//! | a sector of 512 bytes | as it was flushed, or any version since, each sector by itself |
//! | a length | the one flushed, the newest, or one between; bytes that were not stored are zero |
//! | a name | as its directory was flushed, or as it was changed since, each by itself |
//! | a rename | the old name or the new one; what had the new name is replaced at the same time |
//! | a removed file | gone, or back |
//!
//! A flush of a file says nothing of its name, and one of a directory says nothing of its files. Some file systems
//! promise more. A database must not rely on it.
//!
//! The same seed and the same operations give the same. Several threads may use the disk, and then their order counts,
//! too. Only the number of the process in a lock file differs from run to run.
//!
//! A test first runs a history and reads [`SimulatedDisk::counts`]. Then it runs the history again for each operation,
//! which fails ([`Fault`]) or at which the machine stops, and looks at what [`SimulatedDisk::crash`] finds.
//!
//! The module is always compiled. With a feature, the tests of other crates would compile this crate anew.

mod content;
mod fault;
mod file;
mod names;
mod random;
mod state;

pub use fault::{Counts, Fault};
#[cfg(test)]
pub(crate) use random::Random;

use crate::error::{DiskError, Extent, Operation, Reason};
use crate::interface::{Access, Disk, Entry, File, Held, HeldLock, Lock, NOBODY, written_pid};
use fault::Effect;
use file::SimulatedFile;
use names::Inode;
use state::State;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory. Clones are the same disk, so a test can keep one to stop the machine.
#[derive(Clone)]
pub struct SimulatedDisk {
    seed: u64,
    state: Arc<Mutex<State>>,
}

/// What an operation is and is about.
struct Call<'a> {
    operation: Operation,
    path: &'a Path,
    extent: Option<Extent>,
}

impl SimulatedDisk {
    /// An empty disk without an end, whose accidents are those of `seed`.
    pub fn new(seed: u64) -> Self {
        SimulatedDisk {
            seed,
            state: Arc::new(Mutex::new(State::new(seed))),
        }
    }

    /// From now on the disk has room for `bytes`, in blocks of 4 KiB. `None`: it has no end. Names take no room.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.locked().capacity = bytes;
    }

    /// From now on the system writes a part of what it is given, or is interrupted, by chance. Nobody may notice.
    pub fn set_short_writes(&self, short: bool) {
        self.locked().short_writes = short;
    }

    /// From now on the sector of a file that has this byte cannot be read: the disk has given it up.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn wear_out(&self, path: &Path, offset: u64) {
        let mut state = self.locked();
        let file = state.open(path).expect("there is such a file");
        state.content(file).wear_out(offset);
    }

    /// Lets an operation fail later.
    pub fn plan(&self, fault: Fault) {
        self.locked().plan.add(fault);
    }

    /// How many operations there were, those that failed included.
    pub fn counts(&self) -> Counts {
        self.locked().counts
    }

    /// The most bytes that were read at once.
    pub fn longest_read(&self) -> u64 {
        self.locked().longest_read
    }

    /// Whether a fault, a crash or a kill has stopped the machine.
    pub fn is_stopped(&self) -> bool {
        self.locked().stopped
    }

    /// The power is lost. Returns the disk as it is found afterwards, with the same capacity and without faults.
    ///
    /// All handles and locks of this disk are dead. Another call gives another one of the disks that may be found.
    pub fn crash(&self) -> SimulatedDisk {
        self.stop(State::after_crash)
    }

    /// Only the process ends. Returns the disk as it is found afterwards: all that was written is there, and what was
    /// not flushed is still not.
    pub fn kill(&self) -> SimulatedDisk {
        self.stop(State::after_kill)
    }

    fn stop(&self, afterwards: impl FnOnce(&mut State) -> State) -> SimulatedDisk {
        let mut state = self.locked();
        state.stopped = true;
        let found = afterwards(&mut state);
        SimulatedDisk {
            seed: self.seed,
            state: Arc::new(Mutex::new(found)),
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no operation panics")
    }

    /// Does one operation, or what the plan says instead. `act` is told whether it goes well: an operation that fails
    /// may leave something behind.
    fn run_or_fail<T>(
        &self,
        call: Call<'_>,
        act: impl FnOnce(&mut State, bool) -> Result<T, Reason>,
    ) -> Result<T, DiskError> {
        let Call {
            operation,
            path,
            extent,
        } = call;
        let mut state = self.locked();
        let result = if state.stopped {
            Err(Reason::Stopped)
        } else {
            state.counts.add(operation);
            match state.plan.next(operation, path) {
                None => act(&mut state, true),
                Some(Effect::Error(errno)) => act(&mut state, false).and_then(|_| {
                    let asked = extent.map_or(0, |extent| extent.bytes);
                    Err(Reason::of(errno, asked, || state.free()))
                }),
                Some(Effect::Stop) => {
                    // Half of all operations were too late.
                    if state.random.below(2) == 0 {
                        let _ = act(&mut state, true);
                    }
                    state.stopped = true;
                    Err(Reason::Stopped)
                }
            }
        };
        result.map_err(|reason| reason.within(operation, &whole(path), extent))
    }

    /// The same for an operation that leaves nothing behind when it fails.
    fn run<T: Default>(
        &self,
        operation: Operation,
        path: &Path,
        act: impl FnOnce(&mut State) -> Result<T, Reason>,
    ) -> Result<T, DiskError> {
        let call = Call {
            operation,
            path,
            extent: None,
        };
        self.run_or_fail(call, |state, goes_well| {
            if goes_well {
                act(state)
            } else {
                Ok(T::default())
            }
        })
    }

    /// A handle of what `find` finds.
    fn handle(
        &self,
        operation: Operation,
        path: &Path,
        access: Access,
        find: impl FnOnce(&mut State) -> Result<Inode, Reason>,
    ) -> Result<Box<dyn File>, DiskError> {
        let inode = self.run(operation, path, |state| {
            let inode = find(state)?;
            state.opened(inode);
            Ok(inode)
        })?;
        let disk = self.clone();
        Ok(Box::new(SimulatedFile::new(disk, inode, path, access)))
    }
}

/// The path that messages name. There is no such directory.
fn whole(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        PathBuf::from(ROOT)
    } else {
        Path::new(ROOT).join(path)
    }
}

const ROOT: &str = "/simulated";

impl Disk for SimulatedDisk {
    fn root(&self) -> &Path {
        Path::new(ROOT)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>, DiskError> {
        self.handle(Operation::Create, path, Access::ReadWrite, |state| {
            state.create(path)
        })
    }

    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn File>, DiskError> {
        self.handle(Operation::Open, path, access, |state| state.open(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.run(Operation::Rename, from, |state| state.rename(from, to))
            .map_err(|error| error.renaming(&whole(to)))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::Remove, path, |state| state.remove(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>, DiskError> {
        self.run(Operation::List, directory, |state| state.list(directory))
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::CreateDirectory, path, |state| {
            state.create_directory(path)
        })
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::RemoveDirectory, path, |state| {
            state.remove_directory(path)
        })
    }

    fn flush_directory(&self, path: &Path) -> Result<(), DiskError> {
        let call = Call {
            operation: Operation::FlushDirectory,
            path,
            extent: None,
        };
        self.run_or_fail(call, |state, goes_well| {
            state.flush_directory(path, goes_well)
        })
    }

    fn free(&self) -> Result<u64, DiskError> {
        self.run(Operation::Free, Path::new(""), |state| {
            Ok(state.free().unwrap_or(u64::MAX))
        })
    }

    fn lock(&self, path: &Path, lock: Lock) -> Result<HeldLock, DiskError> {
        let inode = self.run(Operation::Lock, path, |state| {
            let inode = match (state.open(path), lock) {
                (Err(Reason::NotFound), Lock::Exclusive) => state.create(path)?,
                (found, _) => found?,
            };
            let pid = std::process::id();
            state.lock(inode, lock, pid)?;
            state.opened(inode);
            if lock == Lock::Exclusive {
                state.content(inode).write(written_pid(pid).as_bytes(), 0);
            }
            Ok(inode)
        })?;
        Ok(HeldLock::new(SimulatedLock {
            disk: self.clone(),
            inode,
            lock,
        }))
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimulatedDisk(seed {})", self.seed)
    }
}

/// A lock of a simulated disk.
#[derive(Debug)]
struct SimulatedLock {
    disk: SimulatedDisk,
    inode: Inode,
    lock: Lock,
}

impl Held for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.disk.locked();
        if !state.stopped {
            if self.lock == Lock::Exclusive {
                state.content(self.inode).write(NOBODY.as_bytes(), 0);
            }
            state.unlock(self.inode, self.lock);
            state.closed(self.inode);
        }
    }
}
