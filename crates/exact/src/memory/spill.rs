//! Files for what does not fit into the memory budget.
//!
//! ```text
//! <temp_directory>/eris-<pid>-<random>/     made when the first operator spills, removed with the database
//!     lock                                  locked as long as the process lives
//!     sort-x3fK9a …                         one per run of a sort, per state of an aggregate, per part of a join
//! ```
//!
//! A file is removed with its last reader, also when its statement failed or was cancelled. What a killed process
//! left is removed by the next one that opens a database with the same temporary directory. It knows such a directory
//! by its free lock, so processes of other containers are safe although their numbers mean nothing here.
//!
//! **Stands for** the files of DataFusion's `DiskManager`, which a killed process leaves behind for good.

mod directory;
mod file;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::spill_file::{SpillFile, TempFileFactory};
use directory::Directory;
use eris_numa::Bytes;
use file::File;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where operators put what does not fit into memory, how much of it there may be, and how much there is. Clones
/// share it.
#[derive(Clone)]
pub struct Spill(Arc<SpillState>);

struct SpillState {
    location: Mutex<SpillLocation>,
    /// Most bytes of all files together. Relaxed, as all numbers here: they guard nothing else.
    limit: AtomicU64,
    bytes: AtomicU64,
    files: AtomicUsize,
    /// All bytes ever written.
    written: AtomicU64,
}

struct SpillLocation {
    /// Where the directory is made.
    parent: PathBuf,
    directory: Option<Arc<Directory>>,
    closed: bool,
}

impl Spill {
    /// Files will be below the system's temporary directory (`TMPDIR`), as many as there is room for. Removes what
    /// killed processes left there.
    pub fn in_system_directory() -> Self {
        let parent = std::env::temp_dir();
        directory::clean(&parent);
        Spill(Arc::new(SpillState {
            location: Mutex::new(SpillLocation {
                parent,
                directory: None,
                closed: false,
            }),
            limit: AtomicU64::new(u64::MAX),
            bytes: AtomicU64::new(0),
            files: AtomicUsize::new(0),
            written: AtomicU64::new(0),
        }))
    }

    /// The directory below which files are made.
    pub fn directory(&self) -> PathBuf {
        self.location().parent.clone()
    }

    /// Makes new files below another directory. Those that exist stay where they are until nobody needs them.
    ///
    /// # Errors
    /// It does not exist, or nothing can be written there.
    pub fn set_directory(&self, parent: impl Into<PathBuf>) -> Result<(), SpillError> {
        let parent = parent.into();
        let failed = |error: io::Error| failure(&parent, &error.to_string());
        if !std::fs::metadata(&parent).map_err(failed)?.is_dir() {
            return Err(failure(&parent, "not a directory"));
        }
        tempfile::tempfile_in(&parent).map_err(failed)?;
        directory::clean(&parent);
        let mut location = self.location();
        if location.parent != parent {
            location.parent = parent;
            location.directory = None;
        }
        Ok(())
    }

    /// How many bytes all files together may have; `None`: as many as fit on the disk.
    pub fn limit(&self) -> Option<u64> {
        Some(self.0.limit.load(Ordering::Relaxed)).filter(|&limit| limit < u64::MAX)
    }

    /// Changes the limit for what is written from now on.
    pub fn set_limit(&self, limit: Option<u64>) {
        let limit = limit.unwrap_or(u64::MAX);
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes of all files now.
    pub fn used(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Files now.
    pub fn files(&self) -> usize {
        self.0.files.load(Ordering::Relaxed)
    }

    /// All bytes that were written since the start.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// Removes everything; who still runs and wants to write fails.
    pub fn close(&self) {
        let mut location = self.location();
        location.closed = true;
        let directory = location.directory.take();
        drop(location);
        if let Some(directory) = directory {
            directory.remove();
        }
    }

    /// The state, also behind a panic: it is replaced as a whole.
    fn location(&self) -> MutexGuard<'_, SpillLocation> {
        self.0
            .location
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn open_directory(&self) -> Result<Arc<Directory>, SpillError> {
        let mut location = self.location();
        if location.closed {
            return Err(failure(&location.parent, "the database was closed"));
        }
        if let Some(directory) = &location.directory {
            return Ok(Arc::clone(directory));
        }
        let made = Directory::create(&location.parent)
            .map_err(|error| failure(&location.parent, &error.to_string()))?;
        Ok(Arc::clone(location.directory.insert(Arc::new(made))))
    }

    /// Takes room for bytes that will be written.
    fn take(&self, bytes: u64, directory: &Path) -> Result<(), SpillError> {
        let limit = self.0.limit.load(Ordering::Relaxed);
        let taken = self
            .0
            .bytes
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|&sum| sum <= limit)
            });
        match taken {
            Ok(_) => {
                self.0.written.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => {
                let reason = format!("{} of {} are in use", Bytes(used), Bytes(limit));
                Err(SpillError {
                    at_limit: true,
                    ..failure(directory, &reason)
                })
            }
        }
    }

    fn give(&self, bytes: u64) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl TempFileFactory for Spill {
    fn create_temp_file(&self, what: &str) -> Result<Arc<dyn SpillFile>> {
        let directory = self
            .open_directory()
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let file = File::create(self.clone(), directory, what)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Arc::new(file))
    }
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory();
        write!(
            f,
            "Spill({} files, {} in {})",
            self.files(),
            Bytes(self.used()),
            directory.display()
        )
    }
}

/// What does not fit into memory could not be put on the disk either.
#[derive(Clone, Debug, thiserror::Error)]
#[error("temporary directory '{directory}': {reason}")]
pub struct SpillError {
    /// Where.
    pub directory: String,
    /// Why.
    pub reason: String,
    /// Whether the limit of all files is why, and not the disk.
    pub at_limit: bool,
}

fn failure(directory: &Path, reason: &str) -> SpillError {
    SpillError {
        directory: directory.display().to_string(),
        reason: reason.to_owned(),
        at_limit: false,
    }
}
