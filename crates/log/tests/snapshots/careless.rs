//! A disk that leaves flushes out, or tries them again.

use eris_disk::{Access, Disk, DiskError, Entry, File, HeldLock, Lock, SimulatedDisk};
use std::io::IoSlice;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    SnapshotNotFlushed,
    SnapshotNameNotFlushed,
    ManifestNotFlushed,
    ManifestNameNotFlushed,
    ManifestNameFlushTriedAgain,
    /// What is older is removed before the manifest is written. That is no mistake of the disk.
    RemovedFirst,
}

#[derive(Debug)]
pub struct Careless(pub SimulatedDisk, pub Mistake);

#[derive(Debug)]
struct CarelessFile {
    file: Box<dyn File>,
    is_flushed: bool,
}

type Result<T> = std::result::Result<T, DiskError>;

impl Careless {
    fn file(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        let is_left_out = match self.1 {
            Mistake::SnapshotNotFlushed => path.starts_with("snapshots"),
            Mistake::ManifestNotFlushed => path == "eris.db.new",
            _ => false,
        };
        let is_flushed = !is_left_out;
        Box::new(CarelessFile { file, is_flushed })
    }

    fn has_snapshots(&self) -> bool {
        let entries = self.0.list(Path::new("snapshots"));
        entries.is_ok_and(|entries| !entries.is_empty())
    }
}

impl Disk for Careless {
    fn root(&self) -> &Path {
        self.0.root()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(self.file(path, self.0.create(path)?))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn File>> {
        Ok(self.file(path, self.0.open(path, access)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        self.0.list(directory)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.0.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.0.remove_directory(path)
    }

    fn flush_directory(&self, path: &Path) -> Result<()> {
        let is_root = path == "";
        match self.1 {
            Mistake::SnapshotNameNotFlushed if path == "snapshots" => Ok(()),
            // Not of the first one: then there is nothing to be removed.
            Mistake::ManifestNameNotFlushed if is_root && self.has_snapshots() => Ok(()),
            Mistake::ManifestNameFlushTriedAgain if is_root => {
                let again = |_| self.0.flush_directory(path);
                self.0.flush_directory(path).or_else(again)
            }
            _ => self.0.flush_directory(path),
        }
    }

    fn free(&self) -> Result<u64> {
        self.0.free()
    }

    fn lock(&self, path: &Path, lock: Lock) -> Result<HeldLock> {
        self.0.lock(path, lock)
    }
}

impl File for CarelessFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.file.write_at(slices, offset)
    }

    fn allocate(&self, len: u64) -> Result<()> {
        self.file.allocate(len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn flush(&self) -> Result<()> {
        match self.is_flushed {
            true => self.file.flush(),
            false => Ok(()),
        }
    }
}
