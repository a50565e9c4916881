//! A disk that leaves flushes out, or tries them again.

use eris_disk::{Access, Disk, DiskError, Entry, File, HeldLock, Lock, SimulatedDisk};
use std::fmt::Debug;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// What is done with flushes that should be done once.
pub trait Mistake: Copy + Debug + Send + Sync + 'static {
    /// With the flush of a file or a directory.
    fn flushing(self, what: Flushed<'_>, disk: &SimulatedDisk) -> Flushing;
}

/// What is flushed, by its path.
#[derive(Clone, Copy)]
pub enum Flushed<'a> {
    File(&'a Path),
    Directory(&'a Path),
}

/// How often it is.
pub enum Flushing {
    Never,
    Once,
    /// Once more, if it has failed.
    Again,
}

#[derive(Clone, Debug)]
pub struct Careless<M>(pub SimulatedDisk, pub M);

#[derive(Debug)]
struct CarelessFile<M> {
    file: Box<dyn File>,
    path: PathBuf,
    of: Careless<M>,
}

type Result<T> = std::result::Result<T, DiskError>;

impl<M: Mistake> Careless<M> {
    fn file(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(CarelessFile {
            file,
            path: path.to_owned(),
            of: self.clone(),
        })
    }

    fn flush(&self, what: Flushed<'_>, flush: impl Fn() -> Result<()>) -> Result<()> {
        match self.1.flushing(what, &self.0) {
            Flushing::Never => Ok(()),
            Flushing::Once => flush(),
            Flushing::Again => flush().or_else(|_| flush()),
        }
    }
}

impl<M: Mistake> Disk for Careless<M> {
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
        self.flush(Flushed::Directory(path), || self.0.flush_directory(path))
    }

    fn free(&self) -> Result<u64> {
        self.0.free()
    }

    fn lock(&self, path: &Path, lock: Lock) -> Result<HeldLock> {
        self.0.lock(path, lock)
    }
}

impl<M: Mistake> File for CarelessFile<M> {
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
        let flush = || self.file.flush();
        self.of.flush(Flushed::File(&self.path), flush)
    }
}
