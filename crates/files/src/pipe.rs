//! What can be read only once: pipes, terminals, sockets.
//!
//! A text file is read twice: a sample of it for its columns, then all of it for its rows. What the sample takes from a
//! pipe is kept, and read again in front of the rest:
//!
//! ```text
//! sample    ┌─ kept ─┐◄── pipe        from the beginning, as often as it is asked for
//! rows      └─ kept ─┘ ── pipe ──►    once
//! ```

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A pipe that was opened, with what has been read of it.
#[derive(Debug)]
pub(crate) struct Pipe {
    path: PathBuf,
    state: Mutex<PipeState>,
    _open: OpenPipe,
}

/// The pipes that are open, by device and number: a second reader of one would take rows away from the first, and wait
/// for those that the first has taken.
static OPEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// An entry of [`OPEN`], until it is dropped.
#[derive(Debug)]
struct OpenPipe((u64, u64));

impl OpenPipe {
    /// # Errors
    /// It is open already.
    fn new(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        let number = (found.dev(), found.ino());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains(&number) {
            return Err(is_taken());
        }
        open.push(number);
        Ok(OpenPipe(number))
    }
}

impl Drop for OpenPipe {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|number| *number != self.0);
    }
}

#[derive(Debug)]
struct PipeState {
    kept: Vec<u8>,
    /// `None` when the rows are being read.
    rest: Option<File>,
}

/// Whether there is something of this name that can be read only once.
pub(crate) fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether statements may read standard input as a file. It is one for the whole process.
static IS_INPUT: AtomicBool = AtomicBool::new(false);

/// Lets statements read the process' standard input as a file, which nobody else reads.
pub fn allow_standard_input() {
    IS_INPUT.store(true, Ordering::Relaxed);
}

/// Whether the name is that of a standard input which statements may not read.
pub(crate) fn is_foreign(path: &Path) -> bool {
    let names = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    !IS_INPUT.load(Ordering::Relaxed) && names.iter().any(|name| path == Path::new(name))
}

impl Pipe {
    /// Waits for whoever writes to it.
    ///
    /// # Errors
    /// It cannot be opened, or is being read.
    pub fn open(path: &Path) -> io::Result<Arc<Pipe>> {
        let open = OpenPipe::new(path)?;
        let state = PipeState {
            kept: Vec::new(),
            rest: Some(File::open(path)?),
        };
        Ok(Arc::new(Pipe {
            path: path.to_owned(),
            state: Mutex::new(state),
            _open: open,
        }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it from its beginning, for a sample.
    pub fn sample(self: &Arc<Self>) -> impl Read + Send + 'static {
        Sample {
            pipe: Arc::clone(self),
            at: 0,
        }
    }

    /// Reads it from its beginning to its end.
    ///
    /// # Errors
    /// That has begun already.
    pub fn rows(&self) -> io::Result<impl Read + Send + 'static> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = state.rest.take().ok_or_else(is_taken)?;
        let kept = std::mem::take(&mut state.kept);
        Ok(Cursor::new(kept).chain(rest))
    }
}

fn is_taken() -> io::Error {
    io::Error::other("a pipe can be read only once; CREATE TABLE … AS keeps its rows")
}

struct Sample {
    pipe: Arc<Pipe>,
    at: usize,
}

impl Read for Sample {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let state = self.pipe.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let PipeState { kept, rest } = &mut *state;
        if self.at == kept.len() {
            let rest = rest.as_mut().ok_or_else(is_taken)?;
            let read = rest.read(bytes)?;
            kept.extend_from_slice(&bytes[..read]);
            self.at += read;
            return Ok(read);
        }
        let read = (&kept[self.at..]).read(bytes)?;
        self.at += read;
        Ok(read)
    }
}
