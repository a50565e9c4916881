//! A file that is there as a whole or not at all: written under another name beside it, renamed at the end.

use crate::error::{Cause, FileError, FileFaultKind};
use crate::part::Part;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Links to links are followed so far, as the system does it.
const LINKS: usize = 40;

/// Runs work that writes a file; what it fails with is told of the file.
pub(crate) fn writing<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, Cause>,
) -> Result<T, FileError> {
    work().map_err(|cause| FileError::new(path, FileFaultKind::unwritable(cause)))
}

/// The file. Dropped before [`Sink::finish`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct Sink {
    file: File,
    target: PathBuf,
    /// `None`: written in place, for the target is a terminal, a pipe or a device; or it has its name already.
    part: Option<Part>,
}

impl Sink {
    pub fn create(target: &Path) -> Result<Sink, FileError> {
        Sink::open(target).map_err(|error| {
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

    fn open(target: &Path) -> io::Result<Sink> {
        let in_place = |file: File| Sink {
            file,
            target: target.to_owned(),
            part: None,
        };
        // The process' own outputs are shared with whoever prints besides.
        match target.to_str() {
            Some("/dev/stdout") => {
                return Ok(in_place(io::stdout().as_fd().try_clone_to_owned()?.into()));
            }
            Some("/dev/stderr") => {
                return Ok(in_place(io::stderr().as_fd().try_clone_to_owned()?.into()));
            }
            _ => {}
        }
        let found = fs::metadata(target).ok();
        if found.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::other("it is a directory"));
        }
        let is_device = ["/dev/", "/proc/"]
            .iter()
            .any(|special| target.starts_with(special));
        if is_device || found.as_ref().is_some_and(|found| !found.is_file()) {
            return Ok(in_place(OpenOptions::new().write(true).open(target)?));
        }
        let target = behind_links(target)?;
        if found.is_some() {
            // A file that may not be written may not be replaced.
            OpenOptions::new().write(true).open(&target)?;
        }
        let (part, file) = Part::file(&target)?;
        if let Some(found) = &found {
            keep_owner_and_mode(&file, found)?;
        }
        Ok(Sink {
            file,
            target,
            part: Some(part),
        })
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        match self.part.take() {
            Some(part) => part.rename(&self.target),
            None => Ok(()),
        }
    }
}

/// The file to which links lead, whether it is there or not: links stay, and what they lead to is replaced.
fn behind_links(target: &Path) -> io::Result<PathBuf> {
    let mut target = target.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&target) {
            Ok(to) => target = target.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("links that lead to each other"))
}

/// Makes a new file one of the owner and with the mode of the old one.
fn keep_owner_and_mode(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let group_stays = (new.uid(), new.gid()) == (old.uid(), old.gid())
        || fchown(file, Some(old.uid()), Some(old.gid())).is_ok();
    // A process that may not give a file to another user gives no rights to its own group instead.
    let mode = match group_stays {
        true => old.mode(),
        false => old.mode() & !0o070,
    };
    file.set_permissions(Permissions::from_mode(mode & 0o7777))
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(target: &Path, text: &str) {
        let mut sink = Sink::create(target).unwrap();
        sink.write_all(text.as_bytes()).unwrap();
        sink.finish().unwrap();
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_link_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        write(&file, "new");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let link = directory.path().join("link");
        symlink("file", &link).unwrap();
        write(&link, "by link");
        assert_eq!(fs::read_to_string(&file).unwrap(), "by link");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let dangling = directory.path().join("dangling");
        symlink("to", &dangling).unwrap();
        write(&dangling, "made");
        assert_eq!(
            fs::read_to_string(directory.path().join("to")).unwrap(),
            "made"
        );
        let circle = directory.path().join("circle");
        symlink("circle", &circle).unwrap();
        let error = Sink::create(&circle).unwrap_err().to_string();
        assert!(error.contains("links that lead to each other"), "{error}");
    }

    #[test]
    fn what_is_not_finished_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        write(&file, "old");
        let mut sink = Sink::create(&file).unwrap();
        sink.write_all(b"new").unwrap();
        drop(sink);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
