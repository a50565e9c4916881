//! A disk that leaves out, or repeats, what must not be.

use eris_disk::{Access, Disk, DiskError, Entry, File, HeldLock, Lock, SimulatedDisk};
use std::io::IoSlice;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    FileNotFlushed,
    DirectoryNotFlushed,
    FileFlushTriedAgain,
    DirectoryFlushTriedAgain,
}

#[derive(Debug)]
pub struct Careless(pub SimulatedDisk, pub Mistake);

#[derive(Debug)]
struct CarelessFile(Box<dyn File>, Mistake);

type Result<T> = std::result::Result<T, DiskError>;

fn flush(is_left_out: bool, is_tried_again: bool, flush: impl Fn() -> Result<()>) -> Result<()> {
    match is_left_out {
        true => Ok(()),
        false => flush().or_else(|error| if is_tried_again { flush() } else { Err(error) }),
    }
}

impl Disk for Careless {
    fn root(&self) -> &Path {
        self.0.root()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(Box::new(CarelessFile(self.0.create(path)?, self.1)))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn File>> {
        Ok(Box::new(CarelessFile(self.0.open(path, access)?, self.1)))
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
        let is_left_out = self.1 == Mistake::DirectoryNotFlushed;
        let is_tried_again = self.1 == Mistake::DirectoryFlushTriedAgain;
        flush(is_left_out, is_tried_again, || self.0.flush_directory(path))
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
        self.0.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.0.write_at(slices, offset)
    }

    fn allocate(&self, len: u64) -> Result<()> {
        self.0.allocate(len)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn flush(&self) -> Result<()> {
        let is_left_out = self.1 == Mistake::FileNotFlushed;
        let is_tried_again = self.1 == Mistake::FileFlushTriedAgain;
        flush(is_left_out, is_tried_again, || self.0.flush())
    }
}
