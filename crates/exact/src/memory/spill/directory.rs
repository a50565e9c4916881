//! The directory of one process's files.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "eris-";
const LOCK: &str = "lock";

/// A directory that goes with its last holder.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Its lock says that this process lives.
    _lock: File,
}

impl Directory {
    pub fn create(parent: &Path) -> io::Result<Self> {
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(parent)?;
        let lock = File::create_new(made.path().join(LOCK))?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Directory {
            path: made.keep(),
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all files, although somebody may still hold it.
    pub fn remove(&self) {
        // What cannot be removed now is left to the next process.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the directories below `parent` whose processes have ended. What cannot be looked at is left alone.
pub(super) fn clean(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let Some(Ok(process)) = owner.map(|(process, _)| process.parse::<u32>()) else {
            continue;
        };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_left(&entry.path(), process) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether nobody uses the directory. Right after it was made it has no lock yet: then the process decides.
fn is_left(directory: &Path, process: u32) -> bool {
    if process == std::process::id() {
        return false;
    }
    match File::open(directory.join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => !Path::new("/proc").join(process.to_string()).exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_everything_else_stays() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, locked: bool| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("sort-1"), "rows").unwrap();
            let lock = locked.then(|| File::create_new(path.join(LOCK)).unwrap());
            (path, lock)
        };
        // The greatest process number there can be is 2^22.
        let (left, lock) = make("eris-4194305-a", true);
        drop(lock);
        let (unlocked, _) = make("eris-4194305-b", false);
        let (other, lock) = make("eris-4194305-c", true);
        let _living = lock.inspect(|lock| lock.try_lock().unwrap());
        let (foreign, _) = make("eris-data", false);
        let own = Directory::create(parent.path()).unwrap();
        clean(parent.path());
        assert!(!left.exists() && !unlocked.exists());
        assert!(other.exists() && foreign.exists() && own.path().exists());
        let path = own.path().to_owned();
        drop(own);
        assert!(!path.exists());
    }
}
