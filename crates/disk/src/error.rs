//! What can go wrong with a file, in words that say what to do next.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What was asked of a disk or of a file. [`Counts`](crate::Counts) and [`Fault`](crate::Fault) go by it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// [`Disk::create`](crate::Disk::create)
    Create,
    /// [`Disk::open`](crate::Disk::open)
    Open,
    /// [`File::read_at`](crate::File::read_at)
    Read,
    /// [`File::write_at`](crate::File::write_at)
    Write,
    /// [`File::allocate`](crate::File::allocate)
    Allocate,
    /// [`File::set_len`](crate::File::set_len)
    SetLen,
    /// [`File::len`](crate::File::len)
    Len,
    /// [`File::flush`](crate::File::flush)
    Flush,
    /// [`Disk::flush_directory`](crate::Disk::flush_directory)
    FlushDirectory,
    /// [`Disk::rename`](crate::Disk::rename)
    Rename,
    /// [`Disk::remove`](crate::Disk::remove)
    Remove,
    /// [`Disk::list`](crate::Disk::list)
    List,
    /// [`Disk::create_directory`](crate::Disk::create_directory)
    CreateDirectory,
    /// [`Disk::remove_directory`](crate::Disk::remove_directory)
    RemoveDirectory,
    /// [`Disk::free`](crate::Disk::free)
    Free,
    /// [`Disk::lock`](crate::Disk::lock)
    Lock,
}

impl Operation {
    /// All operations, in the order of their numbers.
    pub const ALL: [Operation; 16] = [
        Operation::Create,
        Operation::Open,
        Operation::Read,
        Operation::Write,
        Operation::Allocate,
        Operation::SetLen,
        Operation::Len,
        Operation::Flush,
        Operation::FlushDirectory,
        Operation::Rename,
        Operation::Remove,
        Operation::List,
        Operation::CreateDirectory,
        Operation::RemoveDirectory,
        Operation::Free,
        Operation::Lock,
    ];
}

/// The bytes of a file that an operation was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many.
    pub bytes: u64,
    /// From where on; `None` if the operation is about the length.
    pub offset: Option<u64>,
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct DiskError {
    /// What was asked.
    pub operation: Operation,
    /// The whole path.
    pub path: PathBuf,
    /// The path that it was to have after a rename.
    pub to: Option<PathBuf>,
    /// Which bytes, where it makes sense.
    pub extent: Option<Extent>,
    /// Why not.
    #[source]
    pub reason: Reason,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// There is nothing of this name.
    #[error("there is no such file or directory")]
    NotFound,
    /// The name is taken.
    #[error("there is a file or directory of this name already")]
    AlreadyExists,
    /// This process may not.
    #[error("permission denied; give the user who runs Eris the right to read and write it")]
    PermissionDenied,
    /// The file, or its file system, can only be read.
    #[error("it can only be read: it was opened so, or its file system is so")]
    ReadOnly,
    /// A part of the path, or what should be listed, is a file.
    #[error("it is not a directory, or a part of its path is none")]
    NotADirectory,
    /// A directory stands where a file is wanted.
    #[error("it is a directory")]
    IsADirectory,
    /// It is neither a file nor a directory.
    #[error("it is neither a file nor a directory")]
    NotAFile,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The file ends before the bytes that should be read.
    #[error("the file ends at {len}; it may have been cut off")]
    EndOfFile {
        /// The file's length.
        len: u64,
    },
    /// There is no room left.
    #[error("the disk is full: {asked} bytes were asked for{}; make room on its file system", of_free(*.free))]
    Full {
        /// The bytes that were to be stored.
        asked: u64,
        /// The bytes that are free, if known.
        free: Option<u64>,
    },
    /// Somebody else has the database open.
    #[error("{0}")]
    Locked(Holder),
    /// A flush of this file or directory failed once, and is never tried again.
    #[error(
        "a flush of it failed before, and what was written until then may be lost; \
         close the database and open it again, which finds what is on the disk"
    )]
    FlushFailed,
    /// The path leads out of the database's directory, or names no file in it.
    #[error("it is not a path within the database's directory")]
    Outside,
    /// The names of a rename are in two directories.
    #[error("a file keeps its directory when it is renamed")]
    OtherDirectory,
    /// The simulated machine has stopped, and this handle belongs to its past.
    #[error("the simulated machine has stopped")]
    Stopped,
    /// What else the operating system says, as its error number.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    System(i32),
}

/// Who holds the lock of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The one that writes, and its process if it has left its number.
    Writer(Option<u32>),
    /// Processes that read; one of them, if the system tells.
    Readers(Option<u32>),
}

impl Reason {
    /// What an error number means. `asked` and `free` are bytes, for a disk that is full.
    pub(crate) fn of(errno: Errno, asked: u64, free: impl FnOnce() -> Option<u64>) -> Reason {
        match errno {
            Errno::NOENT => Reason::NotFound,
            Errno::EXIST => Reason::AlreadyExists,
            Errno::ACCESS | Errno::PERM => Reason::PermissionDenied,
            Errno::ROFS | Errno::BADF => Reason::ReadOnly,
            Errno::NOTDIR => Reason::NotADirectory,
            Errno::ISDIR => Reason::IsADirectory,
            Errno::NOTEMPTY => Reason::NotEmpty,
            Errno::NOSPC | Errno::DQUOT => Reason::Full {
                asked,
                free: free(),
            },
            errno => Reason::System(errno.raw_os_error()),
        }
    }

    /// The error of an operation on a path.
    pub(crate) fn at(self, operation: Operation, path: &Path) -> DiskError {
        self.within(operation, path, None)
    }

    /// The error of an operation on some bytes of a path.
    pub(crate) fn within(
        self,
        operation: Operation,
        path: &Path,
        extent: Option<Extent>,
    ) -> DiskError {
        DiskError {
            operation,
            path: path.to_path_buf(),
            to: None,
            extent,
            reason: self,
        }
    }
}

impl DiskError {
    /// The same of a rename to `to`.
    pub(crate) fn renaming(self, to: &Path) -> DiskError {
        let to = Some(to.to_path_buf());
        DiskError { to, ..self }
    }
}

fn of_free(free: Option<u64>) -> String {
    free.map_or(String::new(), |free| format!(", {free} are free"))
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Writer(Some(pid)) => write!(
                f,
                "process {pid} has the database open for writing; wait until it has ended, or end it"
            ),
            Holder::Writer(None) => f.write_str(
                "another process has the database open for writing; wait until it has ended, or end it",
            ),
            Holder::Readers(Some(pid)) => write!(
                f,
                "process {pid} has the database open for reading, and perhaps others do; wait until they have ended"
            ),
            Holder::Readers(None) => f.write_str(
                "other processes have the database open for reading; wait until they have ended",
            ),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Create => "create",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Allocate => "reserve room for",
            Operation::SetLen => "set the length of",
            Operation::Len => "find the length of",
            Operation::Flush => "flush",
            Operation::FlushDirectory => "flush the directory",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::List => "list the directory",
            Operation::CreateDirectory => "create the directory",
            Operation::RemoveDirectory => "remove the directory",
            Operation::Free => "find out how much is free at",
            Operation::Lock => "lock",
        })
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiskError {
            operation,
            path,
            to,
            extent,
            reason,
        } = self;
        let path = path.display();
        match (operation, extent) {
            (Operation::SetLen, Some(Extent { bytes, .. })) => {
                write!(f, "cannot set the length of {path} to {bytes} bytes")?;
            }
            (
                _,
                Some(Extent {
                    bytes,
                    offset: Some(offset),
                }),
            ) => {
                write!(f, "cannot {operation} {bytes} bytes at {offset} of {path}")?;
            }
            (
                _,
                Some(Extent {
                    bytes,
                    offset: None,
                }),
            ) => write!(f, "cannot {operation} {bytes} bytes of {path}")?,
            (_, None) => write!(f, "cannot {operation} {path}")?,
        }
        if let Some(to) = to {
            write!(f, " to {}", to.display())?;
        }
        write!(f, ": {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_was_asked_where_and_why_not() {
        let path = Path::new("/data/log/7");
        let extent = |bytes, offset| Some(Extent { bytes, offset });
        let full = Reason::of(Errno::NOSPC, 4096, || Some(512));
        assert_eq!(
            full.within(Operation::Write, path, extent(4096, Some(8192)))
                .to_string(),
            "cannot write 4096 bytes at 8192 of /data/log/7: the disk is full: 4096 bytes were asked for, \
             512 are free; make room on its file system"
        );
        let failed = Reason::of(Errno::IO, 0, || None);
        assert_eq!(
            failed.at(Operation::Flush, path).to_string(),
            "cannot flush /data/log/7: Input/output error (os error 5)"
        );
        assert_eq!(
            Reason::EndOfFile { len: 100 }
                .within(Operation::Read, path, extent(64, Some(90)))
                .to_string(),
            "cannot read 64 bytes at 90 of /data/log/7: the file ends at 100; it may have been cut off"
        );
        assert_eq!(
            Reason::PermissionDenied
                .within(Operation::SetLen, path, extent(7, None))
                .to_string(),
            "cannot set the length of /data/log/7 to 7 bytes: permission denied; give the user who runs Eris the \
             right to read and write it"
        );
        assert_eq!(
            Reason::Locked(Holder::Writer(Some(4711)))
                .at(Operation::Lock, Path::new("/data/lock"))
                .to_string(),
            "cannot lock /data/lock: process 4711 has the database open for writing; wait until it has ended, or \
             end it"
        );
    }

    #[test]
    fn a_rename_names_both_paths() {
        let error = Reason::IsADirectory.at(Operation::Rename, Path::new("/data/a"));
        assert_eq!(
            error.renaming(Path::new("/data/b")).to_string(),
            "cannot rename /data/a to /data/b: it is a directory"
        );
    }

    #[test]
    fn error_numbers_have_the_kinds_that_callers_act_on() {
        for (errno, kind) in [
            (Errno::NOENT, Reason::NotFound),
            (Errno::EXIST, Reason::AlreadyExists),
            (Errno::ACCESS, Reason::PermissionDenied),
            (Errno::PERM, Reason::PermissionDenied),
            (Errno::ROFS, Reason::ReadOnly),
            (
                Errno::DQUOT,
                Reason::Full {
                    asked: 7,
                    free: None,
                },
            ),
            (Errno::IO, Reason::System(5)),
        ] {
            assert_eq!(Reason::of(errno, 7, || None), kind);
        }
    }

    #[test]
    fn operations_are_listed_by_their_numbers() {
        for (number, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, number);
        }
    }
}
