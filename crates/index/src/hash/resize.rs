//! Tables that become too full or too empty.

use super::HashIndex;
use super::table::{LARGEST, SlotTable};
use crate::IndexError;
use crate::art::Key;

/// Bits of the hash that the directory may use.
const DEEPEST: u32 = 32;

impl<K: Key + ?Sized> HashIndex<K> {
    /// Makes room in a full table: doubles the only one, splits one of several.
    pub(super) fn grow(&mut self, number: u32, hash: u64) -> Result<(), IndexError> {
        let hasher = &self.hasher;
        let spread = |word| K::spread(word, hasher);
        let old = self.tables[number as usize].as_ref().expect("a live table");
        if old.capacity() < LARGEST {
            let mut table = SlotTable::new(self.space.home(), old.capacity() * 2, old.depth)?;
            table.fill(old.entries(), spread);
            self.tables[number as usize] = Some(table);
            return Ok(());
        }
        let depth = old.depth + 1;
        if depth > DEEPEST {
            return Err(IndexError::Full);
        }
        let mut halves = [0; 2].map(|_| SlotTable::new(self.space.home(), LARGEST, depth));
        if let [Err(error), _] | [_, Err(error)] = &halves {
            return Err(error.clone());
        }
        for (bit, half) in (0..).zip(&mut halves) {
            let half = half.as_mut().expect("looked at above");
            half.fill(
                old.entries()
                    .filter(|(word, _)| spread(*word) >> (u64::BITS - depth) & 1 == bit),
                spread,
            );
        }
        if depth > self.depth {
            self.directory = self
                .directory
                .iter()
                .flat_map(|&number| [number; 2])
                .collect();
            self.depth = depth;
        }
        let [Ok(low), Ok(high)] = halves else {
            unreachable!("looked at above");
        };
        let second = self
            .tables
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.tables.len());
        if second == self.tables.len() {
            self.tables.push(None);
        }
        self.tables[number as usize] = Some(low);
        self.tables[second] = Some(high);
        let range = self.range(hash, depth - 1);
        let half = range.start + range.len() / 2;
        self.directory[half..range.end].fill(second as u32);
        Ok(())
    }

    /// The part of the directory whose hashes have the first `depth` bits in common with this one.
    fn range(&self, hash: u64, depth: u32) -> std::ops::Range<usize> {
        let width = 1 << (self.depth - depth);
        let start = self.index(hash) / width * width;
        start..start + width
    }

    /// After a removal from a table: halves the only one if it has become too empty, merges one of several with the one
    /// beside it if both have.
    pub(super) fn shrink(&mut self, number: u32, hash: u64) {
        let hasher = &self.hasher;
        let spread = |word| K::spread(word, hasher);
        let table = self.tables[number as usize].as_ref().expect("a live table");
        if table.used() * 8 > table.capacity() {
            return;
        }
        if table.depth == 0 {
            // Without memory for a smaller one it stays.
            if table.capacity() > SlotTable::SMALLEST
                && let Ok(mut smaller) = SlotTable::new(self.space.home(), table.capacity() / 2, 0)
            {
                smaller.fill(table.entries(), spread);
                self.tables[number as usize] = Some(smaller);
            }
            return;
        }
        let depth = table.depth;
        let both = self.range(hash, depth - 1);
        let (low, high) = (self.directory[both.start], self.directory[both.end - 1]);
        let other = if low == number { high } else { low };
        let beside = self.tables[other as usize].as_ref().expect("a live table");
        if beside.depth != depth || (table.used() + beside.used()) * 8 > 3 * table.capacity() {
            return;
        }
        let gone = self.tables[number as usize].take().expect("a live table");
        let kept = self.tables[other as usize].as_mut().expect("a live table");
        kept.fill(gone.entries(), spread);
        kept.depth -= 1;
        self.directory[both].fill(other);
        while let Some(None) = self.tables.last() {
            self.tables.pop();
        }
        let deepest = self.tables.iter().flatten().map(|table| table.depth).max();
        while deepest.is_some_and(|deepest| deepest < self.depth) {
            self.directory = self.directory.iter().copied().step_by(2).collect();
            self.depth -= 1;
        }
    }
}
