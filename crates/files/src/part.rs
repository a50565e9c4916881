//! A file or directory under way, under a name of its own beside the one that it will get.
//!
//! ```text
//! .flights.csv.4711-0.part     its process holds a lock on it: nobody removes it
//! .flights.csv.4242-0.part     nobody holds a lock: a process left it that was killed, and the next one removes it
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const ENDING: &str = ".part";

/// What is under way. Dropped before [`Part::rename`], it is removed.
#[derive(Debug)]
pub(crate) struct Part {
    /// `None` once it has its name.
    path: Option<PathBuf>,
    /// It is held as long as this is open.
    _lock: File,
}

impl Part {
    /// A new file for `target`.
    pub fn file(target: &Path) -> io::Result<(Part, File)> {
        remove_left(target);
        loop {
            let path = name_beside(target);
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            if let Some(part) = Part::locked(path, file.try_clone()?) {
                return Ok((part, file));
            }
        }
    }

    /// A new directory for `target`.
    pub fn directory(target: &Path) -> io::Result<Part> {
        remove_left(target);
        loop {
            let path = name_beside(target);
            fs::create_dir(&path)?;
            let opened = match File::open(&path) {
                // Somebody has taken it for a left one before it was opened.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            if let Some(part) = Part::locked(path, opened) {
                return Ok(part);
            }
        }
    }

    /// What was just made; nothing if another process has taken it for a left one before it had its lock.
    fn locked(path: PathBuf, file: File) -> Option<Part> {
        // Where there are no locks, nobody removes anything.
        let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let part = Part {
            path: Some(path.clone()),
            _lock: file,
        };
        (!is_taken && path.exists()).then_some(part)
    }

    pub fn path(&self) -> &Path {
        self.path.as_deref().expect("it is renamed last")
    }

    /// Gives it its name. A file or an empty directory of this name is replaced.
    pub fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(self.path(), target)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing can be done if even that fails.
            let _ = remove(path);
        }
    }
}

/// A name beside `target` that nothing has yet.
fn name_beside(target: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}-{number}{ENDING}", std::process::id()))
}

/// Whether a name is one that [`name_beside`] gives.
fn is_part(name: &str) -> bool {
    let numbers = (name.strip_prefix('.')).and_then(|name| {
        name.strip_suffix(ENDING)?
            .rsplit_once('.')?
            .1
            .split_once('-')
    });
    numbers.is_some_and(|(process, number)| {
        process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok()
    })
}

/// Removes what killed processes have left beside `target`. What cannot be looked at is left alone.
fn remove_left(target: &Path) {
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(is_part)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = remove(&entry.path());
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_removes_what_a_killed_process_left() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at(".a.csv.4194305-0.part"), "left").unwrap();
        fs::create_dir(at(".b.4194305-12.part")).unwrap();
        fs::write(at(".b.4194305-12.part").join("x"), "left").unwrap();
        fs::write(at(".my.part"), "a user's").unwrap();
        let (under_way, _file) = Part::file(&at("b.csv")).unwrap();
        let (other, _file) = Part::file(&at("c.csv")).unwrap();
        assert!(under_way.path().exists() && other.path().exists());
        assert!(!at(".a.csv.4194305-0.part").exists() && !at(".b.4194305-12.part").exists());
        assert!(at(".my.part").exists());
        drop((under_way, other));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn those_who_begin_at_a_time_do_not_remove_each_other() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let target = directory.path().join(format!("target {thread}"));
                scope.spawn(move || {
                    for _ in 0..300 {
                        let part = Part::directory(&target).unwrap();
                        assert!(part.path().is_dir());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
