//! What can be wrong with a log, or with chunk files.

use crate::bytes::BadBytes;
use eris_disk::DiskError;
use std::path::{Path, PathBuf};

/// A log or chunk files cannot be written or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The disk says so.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file is not what was written.
    #[error(
        "{} is damaged at byte {offset}: {what}. Nothing was changed; restore the file, or a backup",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How that shows.
        what: String,
    },
    /// A file that should be there is not.
    #[error("{} is missing, and a part of the database is in it. Nothing was changed; restore it, or a backup", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A directory has a log, and not what says where it begins.
    #[error(
        "{} is missing, though the directory has the log of a database. Nothing was changed; restore it, or a backup",
        path.display()
    )]
    NoManifest {
        /// The manifest.
        path: PathBuf,
    },
    /// A directory that should have a database has none.
    #[error("{} has no Eris database", directory.display())]
    NoDatabase {
        /// The directory.
        directory: PathBuf,
    },
    /// A chunk that something refers to is in no file.
    #[error(
        "chunk {number} is in no file of {}. Nothing was changed; restore what is missing there, or a backup",
        directory.display()
    )]
    NoChunk {
        /// Its number.
        number: u64,
        /// Where chunk files are.
        directory: PathBuf,
    },
    /// Another program has written it.
    #[error("{} is no file of an Eris database", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A directory has files that are no database's.
    #[error(
        "{} has {}, which no Eris database has: choose an empty directory, or a new one",
        directory.display(),
        path.display()
    )]
    OtherFiles {
        /// The directory.
        directory: PathBuf,
        /// One of them.
        path: PathBuf,
    },
    /// It belongs to another database.
    #[error("{} belongs to another database", path.display())]
    OfAnother {
        /// The file.
        path: PathBuf,
    },
    /// A later version of Eris has written it.
    #[error(
        "{} has format {format}, and this version of Eris reads formats up to {newest}: open it with the version \
         that wrote it",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest that is known here.
        newest: u32,
    },
    /// The records of a group mean nothing.
    #[error("group {group} of the log: {reason}")]
    Record {
        /// The number of the group.
        group: u64,
        /// Why.
        reason: BadBytes,
    },
}

impl LogError {
    /// A file is not what was written.
    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        LogError::Damaged {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }
}
