//! The files of a real directory.

mod failed;
mod file;
mod lock;

use crate::error::{DiskError, Operation, Reason};
use crate::interface::{Access, Disk, Entry, EntryKind, File, HeldLock, Lock};
use crate::path;
use failed::{Failed, Identity};
use file::RealFile;
use rustix::fs::{self, Mode, OFlags, StatVfs};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// New files are for their owner, and for others as the process's mask says.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// A directory of the machine's own file systems.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    failed: Arc<Failed>,
}

impl RealDisk {
    /// The disk of a database in `root`, which need not be there yet. Nothing is touched.
    ///
    /// A relative `root` is one of the current directory's, also if the process changes to another directory later.
    pub fn new(root: &Path) -> Self {
        RealDisk {
            root: std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf()),
            failed: Arc::default(),
        }
    }

    /// The whole path, without a slash at its end. Errors name it, too, for paths that lead outside.
    fn whole(&self, path: &Path) -> PathBuf {
        match path::names(path) {
            Ok(names) => names
                .into_iter()
                .fold(self.root.clone(), |whole, name| whole.join(name)),
            Err(_) => self.root.join(path),
        }
    }

    /// Does `act` with the whole path, if it is one of ours, and says what failed.
    fn run<T>(
        &self,
        operation: Operation,
        path: &Path,
        act: impl FnOnce(&Path) -> Result<T, Reason>,
    ) -> Result<T, DiskError> {
        let whole = self.whole(path);
        path::names(path)
            .and_then(|_| act(&whole))
            .map_err(|reason| reason.at(operation, &whole))
    }

    fn file(&self, fd: OwnedFd, path: &Path, access: Access) -> Result<Box<dyn File>, Reason> {
        let stat = fs::fstat(&fd).map_err(reason)?;
        match fs::FileType::from_raw_mode(stat.st_mode) {
            fs::FileType::RegularFile => {}
            fs::FileType::Directory => return Err(Reason::IsADirectory),
            _ => return Err(Reason::NotAFile),
        }
        let failed = self.failed.clone();
        let identity = Identity::of(&stat);
        Ok(Box::new(RealFile::new(
            fd,
            path,
            access,
            (failed, identity),
        )))
    }
}

impl Disk for RealDisk {
    fn root(&self) -> &Path {
        &self.root
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>, DiskError> {
        self.run(Operation::Create, path, |whole| {
            path::split(path)?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let fd = repeated(|| fs::open(whole, flags, MODE))?;
            // A new file may have the number of one that failed and is gone.
            self.failed
                .forget(Identity::of(&fs::fstat(&fd).map_err(reason)?));
            self.file(fd, whole, Access::ReadWrite)
        })
    }

    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn File>, DiskError> {
        self.run(Operation::Open, path, |whole| {
            let flags = match access {
                Access::Read => OFlags::RDONLY,
                Access::ReadWrite => OFlags::RDWR,
            };
            // Without waiting: a pipe of this name would keep us until somebody writes into it.
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let fd = repeated(|| fs::open(whole, flags, Mode::empty()))?;
            self.file(fd, whole, access)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let renamed = self.run(Operation::Rename, from, |whole| {
            path::common(from, to)?;
            repeated(|| fs::rename(whole, self.whole(to)))
        });
        renamed.map_err(|error| error.renaming(&self.whole(to)))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::Remove, path, |whole| {
            repeated(|| fs::unlink(whole))
        })
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>, DiskError> {
        self.run(Operation::List, directory, |whole| {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(whole).map_err(of_io)? {
                let entry = entry.map_err(of_io)?;
                let kind = match entry.metadata() {
                    Ok(found) if found.is_file() => EntryKind::File(found.len()),
                    Ok(found) if found.is_dir() => EntryKind::Directory,
                    Ok(_) => EntryKind::Other,
                    // Removed since the directory was read.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(of_io(error)),
                };
                let name = entry.file_name();
                entries.push(Entry { name, kind });
            }
            entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::CreateDirectory, path, |_| {
            create_root(&self.root)?;
            let mut whole = self.root.clone();
            for name in path::names(path)? {
                whole.push(name);
                create_one(&whole)?;
            }
            Ok(())
        })
    }

    fn remove_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::RemoveDirectory, path, |whole| {
            path::split(path)?;
            repeated(|| fs::rmdir(whole))
        })
    }

    fn flush_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.run(Operation::FlushDirectory, path, |whole| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = repeated(|| fs::open(whole, flags, Mode::empty()))?;
            let identity = Identity::of(&fs::fstat(&fd).map_err(reason)?);
            self.failed.flush(identity, || fs::fsync(&fd))
        })
    }

    fn free(&self) -> Result<u64, DiskError> {
        self.run(Operation::Free, Path::new(""), |whole| {
            let found = repeated(|| fs::statvfs(whole))?;
            Ok(free(&found).unwrap_or(u64::MAX))
        })
    }

    fn lock(&self, path: &Path, lock: Lock) -> Result<HeldLock, DiskError> {
        self.run(Operation::Lock, path, |whole| {
            path::split(path)?;
            lock::take(whole, lock).map(HeldLock::new)
        })
    }
}

/// Makes a directory, unless it is there.
fn create_one(whole: &Path) -> Result<(), Reason> {
    let mode = Mode::from_raw_mode(0o777);
    match repeated(|| fs::mkdir(whole, mode)) {
        Err(Reason::AlreadyExists) if whole.is_dir() => Ok(()),
        Err(Reason::AlreadyExists) => Err(Reason::NotADirectory),
        other => other,
    }
}

/// Makes the database's directory and those above it, and flushes the name of each that is new.
fn create_root(root: &Path) -> Result<(), Reason> {
    if root.is_dir() {
        return Ok(());
    }
    if let Some(above) = root.parent() {
        create_root(above)?;
        create_one(root)?;
        let above = std::fs::File::open(above).map_err(of_io)?;
        return fs::fsync(&above).map_err(reason);
    }
    create_one(root)
}

/// The bytes that are free for this process. Some file systems have no blocks to count.
fn free(found: &StatVfs) -> Option<u64> {
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

/// What an error number means where no bytes are asked for.
fn reason(errno: Errno) -> Reason {
    Reason::of(errno, 0, || None)
}

fn of_io(error: io::Error) -> Reason {
    Errno::from_io_error(&error).map_or(Reason::System(0), reason)
}

/// The result of a call that is repeated while it is interrupted.
fn repeated<T>(call: impl FnMut() -> rustix::io::Result<T>) -> Result<T, Reason> {
    rustix::io::retry_on_intr(call).map_err(reason)
}
