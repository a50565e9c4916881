//! Stored forms on their way out.
//!
//! ```text
//! small    ▕ head, small sections, zeros ▏▕ zeros ▏▕ head … ▏     written here
//! large             of the chunk ▲      of the chunk ▲            lent: [0; place in `small`]
//! ```

use super::{ALIGN, LARGE};
use std::borrow::Cow;
use std::fmt;

/// Stored forms, and whatever their container writes between them, as pieces. Large sections are lent by the column
/// chunks, so that a writer can hand them to the system without copying them.
pub struct FormWriter<'a> {
    /// Where the first byte lies.
    start: usize,
    small: Vec<u8>,
    /// The sections that lie between the bytes of `small`, each with the place before which it lies.
    large: Vec<(usize, Cow<'a, [u8]>)>,
    large_bytes: usize,
}

impl<'a> FormWriter<'a> {
    /// A writer whose first byte lies so many bytes behind a multiple of 64 of what a reader reads at once.
    pub fn at(start: usize) -> Self {
        FormWriter {
            start,
            small: Vec::new(),
            large: Vec::new(),
            large_bytes: 0,
        }
    }

    /// Bytes written.
    pub fn len(&self) -> usize {
        self.small.len() + self.large_bytes
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the next byte will lie.
    pub fn position(&self) -> usize {
        self.start + self.len()
    }

    /// Writes bytes of the container.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.small.extend_from_slice(bytes);
    }

    /// All that was written, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0]
            .into_iter()
            .chain(self.large.iter().map(|large| large.0));
        let ends = self.large.iter().map(|large| large.0);
        let ends = ends.chain([self.small.len()]);
        let large = self.large.iter().map(|large| &large.1[..]).chain([&[][..]]);
        let pieces = starts
            .zip(ends)
            .zip(large)
            .flat_map(|((start, end), large)| [&self.small[start..end], large]);
        pieces.filter(|piece| !piece.is_empty())
    }

    /// The same in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| all.extend_from_slice(piece));
        all
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.small.push(byte);
    }

    /// A number in as many bytes as it needs, seven bits each, the lowest first; the top bit says that more follow.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 1 << 7 {
            self.small.push(number as u8 | 1 << 7);
            number >>= 7;
        }
        self.small.push(number as u8);
    }

    /// A number that may be negative: those near 0 are short.
    pub(super) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    /// A section: here if it is small, else by reference, at a multiple of 64.
    pub(super) fn section(&mut self, bytes: &'a [u8]) {
        if bytes.len() < LARGE {
            return self.bytes(bytes);
        }
        let place = self.position();
        let padding = place.next_multiple_of(ALIGN) - place;
        self.small.resize(self.small.len() + padding, 0);
        self.large_bytes += bytes.len();
        self.large.push((self.small.len(), Cow::Borrowed(bytes)));
    }

    /// What another writer wrote, which began where this one is.
    pub(super) fn append(&mut self, other: FormWriter<'_>) {
        debug_assert_eq!(other.start, self.position());
        let place = self.small.len();
        self.small.extend_from_slice(&other.small);
        self.large_bytes += other.large_bytes;
        for (at, bytes) in other.large {
            self.large
                .push((place + at, Cow::Owned(bytes.into_owned())));
        }
    }
}

impl fmt::Debug for FormWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FormWriter({} bytes, {} of them lent)",
            self.len(),
            self.large_bytes
        )
    }
}
