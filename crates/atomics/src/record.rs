//! Some words that are read together: one writes them, all others see them as they were at one time.
//!
//! ```text
//! version   6 ──▶ 7 ── words are written ──▶ 8        odd: being written
//! reader    reads 6 · words · 7                        not 6 again: reads once more
//! ```
//!
//! The words are atomic, so that a torn read is only one that is not used. Two fences keep them between the two reads,
//! and the two writes, of the version.

use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

/// Words with one writer at a time.
#[derive(Debug)]
pub struct Record {
    version: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Record {
    /// So many words, all 0.
    pub fn new(words: usize) -> Self {
        Record {
            version: AtomicU64::new(0),
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Writes the first words. Only one thread may do so at a time.
    pub fn write(&self, words: impl IntoIterator<Item = u64>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.version.store(version + 2, Ordering::Release);
    }

    /// All words as they were at one time.
    pub fn read(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.words.len());
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                words.extend(self.words.iter().map(|word| word.load(Ordering::Relaxed)));
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == version {
                    return words;
                }
                words.clear();
            }
            spin_loop();
            #[cfg(loom)]
            crate::sync::yield_now();
        }
    }

    /// One word, whatever the others are.
    pub fn word(&self, number: usize) -> u64 {
        self.words[number].load(Ordering::Relaxed)
    }
}
