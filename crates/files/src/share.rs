//! Many files, many workers: who reads what.
//!
//! Files that nobody has begun are begun first, so that many files are read side by side. Then workers help with those
//! that are under way.

use crate::error::FileError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many files, of which each worker takes pieces.
pub(crate) struct SharedFiles {
    files: usize,
    /// The first file that nobody has begun. Each worker that finds none left has seen all files, so no order is
    /// needed.
    unbegun: AtomicUsize,
}

impl SharedFiles {
    pub fn new(files: usize) -> Self {
        SharedFiles {
            files,
            unbegun: AtomicUsize::new(0),
        }
    }

    /// A worker's next piece; `current` is the file that it works on, and `of_file` gives a file's next piece.
    pub fn next<T>(
        &self,
        current: &mut Option<usize>,
        of_file: impl Fn(usize) -> Result<Option<T>, FileError>,
    ) -> Result<Option<T>, FileError> {
        if let Some(file) = *current
            && let Some(piece) = of_file(file)?
        {
            return Ok(Some(piece));
        }
        loop {
            let file = self.unbegun.fetch_add(1, Ordering::Relaxed);
            if file >= self.files {
                break;
            }
            *current = Some(file);
            if let Some(piece) = of_file(file)? {
                return Ok(Some(piece));
            }
        }
        for file in 0..self.files {
            if let Some(piece) = of_file(file)? {
                *current = Some(file);
                return Ok(Some(piece));
            }
        }
        *current = None;
        Ok(None)
    }
}
