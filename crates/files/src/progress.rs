//! How many bytes of files a statement has read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far the reading of files is. Clones count the same; they may be kept beyond its end.
///
/// Who reads a file counts, and whoever wants to know looks: nobody waits for the other.
#[derive(Clone, Debug, Default)]
pub struct ReadProgress(Arc<ByteCounts>);

/// Statistics: each is added to by workers and read by a client, and says nothing about other memory. So all accesses
/// are relaxed.
#[derive(Debug, Default)]
struct ByteCounts {
    expected: AtomicU64,
    read: AtomicU64,
}

impl ReadProgress {
    /// Bytes of the files that are known to be read. There may be more while the statement runs.
    pub fn expected(&self) -> u64 {
        self.0.expected.load(Ordering::Relaxed)
    }

    /// Bytes that were read so far, at most those that are expected.
    pub fn read(&self) -> u64 {
        let read = self.0.read.load(Ordering::Relaxed);
        read.min(self.expected())
    }

    /// So many more bytes will be read.
    pub(crate) fn expect(&self, bytes: u64) {
        self.0.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many more bytes were read.
    pub(crate) fn count(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_up_to_those_that_are_expected() {
        let progress = ReadProgress::default();
        progress.expect(100);
        progress.count(40);
        assert_eq!((progress.clone().read(), progress.expected()), (40, 100));
        progress.count(70);
        assert_eq!((progress.read(), progress.expected()), (100, 100));
    }
}
