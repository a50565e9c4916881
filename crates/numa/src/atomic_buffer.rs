//! Bytes with a home that several threads read and write at a time.

use crate::buffer::Buffer;
use crate::placement::Extent;
use std::sync::atomic::AtomicU64;

/// A buffer as words that are read and written by any number of threads. Nobody has its bytes in another way.
#[derive(Debug)]
pub struct AtomicBuffer(Buffer);

impl AtomicBuffer {
    /// Its words, zero at first; bytes at the end that make no whole word are left out.
    pub fn words(&self) -> &[AtomicU64] {
        let words = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the buffer begins at a multiple of 64 and has so many initialised words, which live as long as self.
        // It was given up to this one, which lends it as atomic words alone.
        unsafe { std::slice::from_raw_parts(self.0.start().as_ptr().cast(), words) }
    }

    /// Its memory, as numbers.
    pub fn extent(&self) -> Extent {
        self.0.extent()
    }
}

impl From<Buffer> for AtomicBuffer {
    fn from(buffer: Buffer) -> Self {
        AtomicBuffer(buffer)
    }
}
