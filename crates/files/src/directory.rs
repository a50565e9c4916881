//! A directory that is there as a whole or not at all: filled under another name beside it, renamed at the end.

use crate::blocking::blocking;
use crate::error::{FileError, FileFaultKind};
use crate::part::Part;
use crate::sink::writing;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that gets its name at the end. Dropped before, it is removed.
#[derive(Debug)]
pub struct DirectoryUnderWay {
    part: Part,
    target: PathBuf,
}

/// Whether a path is a directory or lies in it. The end of the path need not be there yet.
pub fn is_within(path: &Path, directory: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = whole.ancestors().find_map(|part| part.canonicalize().ok());
    match (there, directory.canonicalize()) {
        (Some(there), Ok(directory)) => there.starts_with(directory),
        _ => false,
    }
}

impl DirectoryUnderWay {
    /// Makes it, under another name.
    ///
    /// # Errors
    /// Something with files has its name, or it cannot be made.
    pub async fn create(target: PathBuf) -> Result<DirectoryUnderWay, FileError> {
        blocking(move || DirectoryUnderWay::make(target)).await
    }

    fn make(target: PathBuf) -> Result<DirectoryUnderWay, FileError> {
        let unwritable =
            |error: io::Error| FileError::new(&target, FileFaultKind::unwritable(error));
        match fs::read_dir(&target) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(FileError::new(&target, FileFaultKind::NotEmpty));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(error)),
        }
        let part = Part::directory(&target).map_err(|error| {
            let parent = target
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let missing = parent.filter(|parent| !parent.exists());
            let kind = FileFaultKind::Unwritable {
                cause: error.into(),
                missing: missing.map(Path::to_owned),
            };
            FileError::new(&target, kind)
        })?;
        Ok(DirectoryUnderWay { part, target })
    }

    /// Where it is until it is finished.
    pub fn path(&self) -> &Path {
        self.part.path()
    }

    /// Where a file of this name is until the directory is finished.
    pub fn file(&self, name: &str) -> PathBuf {
        self.part.path().join(name)
    }

    /// The same for a file in a directory below, which is made.
    ///
    /// # Errors
    /// It cannot be made.
    pub async fn file_below(&self, directory: &str, name: &str) -> Result<PathBuf, FileError> {
        let directory = self.part.path().join(directory);
        let file = directory.join(name);
        blocking(move || {
            let made = fs::create_dir_all(&directory);
            made.map_err(|error| FileError::new(&directory, FileFaultKind::unwritable(error)))
        })
        .await?;
        Ok(file)
    }

    /// Adds these texts as files, and gives the directory its name.
    ///
    /// # Errors
    /// That cannot be done; then it is as if it had never been made.
    pub async fn finish(self, texts: Vec<(&'static str, String)>) -> Result<(), FileError> {
        blocking(move || self.publish(&texts)).await
    }

    fn publish(self, texts: &[(&'static str, String)]) -> Result<(), FileError> {
        let DirectoryUnderWay { part, target } = self;
        writing(&target, || {
            for (name, text) in texts {
                fs::write(part.path().join(name), text)?;
            }
            // Replaces an empty directory.
            part.rename(&target)?;
            let parent = target
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            // Its name outlives the machine's end.
            fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
            Ok(())
        })
    }
}

/// The text of a file in UTF-8.
///
/// # Errors
/// It cannot be read, or is no UTF-8.
pub async fn read_text(path: PathBuf) -> Result<String, FileError> {
    blocking(move || {
        let text = fs::read_to_string(&path);
        text.map_err(|error| FileError::new(&path, FileFaultKind::unreadable(error)))
    })
    .await
}
