//! The disk itself, by plain files: what it is, and what it can do at most.

use super::CommitBenchError;
use super::sessions::Ran;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that a flush writes.
pub const FLUSHED: usize = 4 << 10;
/// Flushes before the file is written from its beginning again.
const FLUSHES: usize = 4 << 10;
const MEBIBYTE: usize = 1 << 20;

/// A directory on a disk. Files in it are made and removed.
#[derive(Clone, Copy)]
pub struct Directory<'a>(pub &'a Path);

impl Directory<'_> {
    /// Its file system and device, such as `ext4 on /dev/sda1`.
    pub fn disk(self) -> String {
        let place = self.0.canonicalize().unwrap_or_else(|_| self.0.to_owned());
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        disk_of(&mounts, &place)
    }

    /// Flushes of [`FLUSHED`] bytes, written over a file that has had all its bytes for long.
    pub fn flushes(self, time: Duration) -> Result<Ran, CommitBenchError> {
        let failed = |error| CommitBenchError::disk(self.0, error);
        let file = tempfile::tempfile_in(self.0).map_err(failed)?;
        write_mebibytes(&file, (FLUSHED * FLUSHES) as u64).map_err(failed)?;
        let (bytes, mut flush) = ([7; FLUSHED], 0);
        Ran::of(time, || {
            let offset = (flush % FLUSHES * FLUSHED) as u64;
            flush += 1;
            let written = file.write_all_at(&bytes, offset);
            written.and_then(|()| file.sync_data()).map_err(failed)
        })
    }

    /// Seconds to write so many bytes into a new file, and to flush it.
    pub fn write(self, bytes: u64) -> Result<f64, CommitBenchError> {
        let failed = |error| CommitBenchError::disk(self.0, error);
        let begun = Instant::now();
        let file = tempfile::tempfile_in(self.0).map_err(failed)?;
        write_mebibytes(&file, bytes).map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// The bytes of all files below it.
    pub fn bytes(self) -> Result<u64, CommitBenchError> {
        let failed = |error| CommitBenchError::disk(self.0, error);
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.0).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let about = entry.metadata().map_err(failed)?;
            bytes += match about.is_dir() {
                true => Directory(&entry.path()).bytes()?,
                false => about.len(),
            };
        }
        Ok(bytes)
    }
}

fn write_mebibytes(file: &File, bytes: u64) -> std::io::Result<()> {
    let piece = vec![7; MEBIBYTE];
    for offset in (0..bytes).step_by(MEBIBYTE) {
        let length = (bytes - offset).min(MEBIBYTE as u64) as usize;
        file.write_all_at(&piece[..length], offset)?;
    }
    file.sync_data()
}

/// What the longest mount point above a place says, of lines such as `/dev/sda1 /home ext4 rw,noatime 0 0`.
fn disk_of(mounts: &str, place: &Path) -> String {
    let mount = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?, words.next()?))
    };
    let above = mounts.lines().filter_map(mount);
    let above = above.filter(|(_, point, _)| place.starts_with(point));
    // Of several on the same point the last one is seen.
    above.max_by_key(|(_, point, _)| point.len()).map_or_else(
        || "unknown".to_owned(),
        |(device, _, kind)| format!("{kind} on {device}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_told_by_its_mount_point() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/sdb /tmp/data xfs rw 0 0\n\
                      /dev/sdc /tmp/data btrfs rw 0 0\n";
        let disk = |place: &str| disk_of(mounts, Path::new(place));
        assert_eq!(disk("/home/me"), "ext4 on /dev/sda1");
        assert_eq!(disk("/tmp/x"), "tmpfs on tmpfs");
        assert_eq!(disk("/tmp/data/x"), "btrfs on /dev/sdc");
        assert_eq!(disk("/tmp/database"), "tmpfs on tmpfs");
        assert_eq!(disk_of("", Path::new("/")), "unknown");
    }

    #[test]
    fn all_files_below_a_directory_count() {
        let directory = tempfile::tempdir().expect("a place for files");
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(&below).expect("made");
        std::fs::write(below.join("file"), [0; 300]).expect("written");
        std::fs::write(directory.path().join("file"), [0; 7]).expect("written");
        assert_eq!(Directory(directory.path()).bytes().expect("readable"), 307);
        assert!(Directory(&below.join("none")).bytes().is_err());
    }
}
