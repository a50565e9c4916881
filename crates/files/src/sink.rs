//! A file that is there as a whole or not at all: written under another name beside it, renamed at the end.

use crate::error::{Cause, FileError, FileFaultKind};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs work that writes a file; what it fails with is told of the file.
pub(crate) fn writing<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, Cause>,
) -> Result<T, FileError> {
    work().map_err(|cause| FileError::new(path, FileFaultKind::unwritable(cause)))
}

/// A name beside `target` that nothing has yet.
pub(crate) fn name_beside(target: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()))
}

/// The file. Dropped before [`Sink::finish`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct Sink {
    file: File,
    target: PathBuf,
    /// `None`: written in place, for the target is a terminal, a pipe or a device; or it has its name already.
    temporary: Option<PathBuf>,
}

impl Sink {
    pub fn create(target: &Path) -> Result<Sink, FileError> {
        let opened = || -> io::Result<Sink> {
            // The process' own outputs are shared with whoever prints besides.
            let own = match target.to_str() {
                Some("/dev/stdout") => Some(io::stdout().as_fd().try_clone_to_owned()?),
                Some("/dev/stderr") => Some(io::stderr().as_fd().try_clone_to_owned()?),
                _ => None,
            };
            if let Some(own) = own {
                return Ok(Sink {
                    file: own.into(),
                    target: target.to_owned(),
                    temporary: None,
                });
            }
            let special = ["/dev/", "/proc/"]
                .iter()
                .any(|special| target.starts_with(special));
            if special
                || fs::metadata(target).is_ok_and(|found| !found.is_file() && !found.is_dir())
            {
                let file = OpenOptions::new().write(true).open(target)?;
                return Ok(Sink {
                    file,
                    target: target.to_owned(),
                    temporary: None,
                });
            }
            if target.is_dir() {
                return Err(io::Error::other("it is a directory"));
            }
            // A link stays a link to the file that is replaced.
            let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
            let temporary = name_beside(&target);
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&temporary)?;
            Ok(Sink {
                file,
                target,
                temporary: Some(temporary),
            })
        };
        opened().map_err(|error| {
            let parent = target
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let missing = parent.filter(|parent| !parent.is_dir());
            let kind = FileFaultKind::Unwritable {
                cause: error.into(),
                missing: missing.map(Path::to_owned),
            };
            FileError::new(target, kind)
        })
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.target)?;
            self.temporary = None;
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done if even that fails.
            let _ = fs::remove_file(temporary);
        }
    }
}
