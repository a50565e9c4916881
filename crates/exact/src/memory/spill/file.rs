//! One file: written once, from its beginning to its end, then read, perhaps more than once.

use super::{Directory, Spill, SpillError, failure};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::spill_file::{SpillFile, SpillWriter};
use futures::Stream;
use futures::stream;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempPath;

/// What is read at once.
const PIECE: usize = 256 << 10;
/// What is written at once, at least; a join has dozens of files open.
const BUFFER: usize = 64 << 10;

/// Open only while it is written or read, so that their number is not limited by that of open files.
pub(super) struct File(Arc<OnDisk>);

struct OnDisk {
    /// Removes the file when it is dropped, before its directory.
    path: TempPath,
    bytes: AtomicU64,
    spill: Spill,
    directory: Arc<Directory>,
}

impl File {
    pub fn create(spill: Spill, directory: Arc<Directory>, what: &str) -> Result<Self, SpillError> {
        let word = what.split(|c: char| !c.is_ascii_alphanumeric()).next();
        let made = tempfile::Builder::new()
            .prefix(&format!("{}-", word.unwrap_or("rows").to_lowercase()))
            .tempfile_in(directory.path());
        let made = made.map_err(|error| failure(directory.path(), &reason(&error)))?;
        spill.0.files.fetch_add(1, Ordering::Relaxed);
        Ok(File(Arc::new(OnDisk {
            path: made.into_temp_path(),
            bytes: AtomicU64::new(0),
            spill,
            directory,
        })))
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.spill.give(*self.bytes.get_mut());
        self.spill.0.files.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SpillFile for File {
    fn path(&self) -> Option<&Path> {
        Some(&self.0.path)
    }

    fn size(&self) -> Option<u64> {
        Some(self.0.bytes.load(Ordering::Relaxed))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<bytes::Bytes>> + Send>>> {
        let reading = Reading::Closed(Arc::clone(&self.0));
        Ok(Box::pin(stream::try_unfold(reading, |reading| async {
            // The disk may be slow; other tasks of this thread go on.
            tokio::task::spawn_blocking(move || reading.next())
                .await
                .map_err(|error| DataFusionError::External(Box::new(error)))?
                .map_err(|error| DataFusionError::External(Box::new(error)))
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let file = fs::OpenOptions::new()
            .append(true)
            .open(&self.0.path)
            .map_err(|error| {
                let error = failure(self.0.directory.path(), &reason(&error));
                DataFusionError::External(Box::new(error))
            })?;
        Ok(Box::new(Writer {
            file: BufWriter::with_capacity(BUFFER, file),
            inner: Arc::clone(&self.0),
        }))
    }
}

/// How far the file was read. Keeps it on the disk.
enum Reading {
    Closed(Arc<OnDisk>),
    Open(fs::File, Arc<OnDisk>),
}

impl Reading {
    fn next(self) -> Result<Option<(bytes::Bytes, Self)>, SpillError> {
        let failed = |inner: &OnDisk, error: &io::Error| {
            let path: PathBuf = inner.path.to_path_buf();
            failure(&path, &reason(error))
        };
        let (mut file, inner) = match self {
            Reading::Open(file, inner) => (file, inner),
            Reading::Closed(inner) => match fs::File::open(&inner.path) {
                Ok(file) => (file, inner),
                Err(error) => return Err(failed(&inner, &error)),
            },
        };
        let mut piece = Vec::with_capacity(PIECE);
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece);
        match read {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some((piece.into(), Reading::Open(file, inner)))),
            Err(error) => Err(failed(&inner, &error)),
        }
    }
}

struct Writer {
    /// The format writes many small pieces.
    file: BufWriter<fs::File>,
    inner: Arc<OnDisk>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let OnDisk {
            spill, directory, ..
        } = &*self.inner;
        // Typed, so that it is found again behind the layers that it passes.
        let length = bytes.len() as u64;
        spill
            .take(length, directory.path())
            .map_err(io::Error::other)?;
        self.inner.bytes.fetch_add(length, Ordering::Relaxed);
        let written = self.file.write_all(bytes);
        written.map_err(|error| failed(directory, &error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|error| failed(&self.inner.directory, &error))
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(self.flush()?)
    }
}

fn failed(directory: &Directory, error: &io::Error) -> io::Error {
    io::Error::other(failure(directory.path(), &reason(error)))
}

/// What the system says, without its number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "the quota of the disk is used up".into(),
        _ => error.to_string(),
    }
}
