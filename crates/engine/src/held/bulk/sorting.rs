//! Keys of any kind, sorted from the least significant byte up.
//!
//! ```text
//! gathering ─▶ (key, row) … ─▶ sorting, a byte of the key per pass ─▶ ties ─▶ equal neighbours? ─▶ building ─▶ tree
//!                │ a number: the key itself                             only of keys that are bytes,
//!                └ bytes: the eight behind those all have in common      whose first eight are equal
//! ```
//!
//! Only bytes in which keys differ are sorted by, so that a few million numbers take three passes; keys that come in
//! order take none.

use super::{AddedRow, BulkStep, SLICE};
use crate::held::primary::PrimaryIndex;
use crate::held::unique::Added;
use crate::object::keys::Keys;
use crate::object::keys::word;
use eris_column::ObjectMemory;
use eris_index::{Build, IndexError};
use eris_numa::{Budget, Reservation};

/// What is sorted: a number that orders, and the place of the row.
type NumberedRow = (u64, u64);

/// The work.
pub(super) struct Sorting {
    entries: Vec<NumberedRow>,
    /// As many, while they are being sorted.
    spare: Vec<NumberedRow>,
    is_words: bool,
    /// What the first eight bytes of all keys have in common, if keys are bytes.
    common: usize,
    /// In which bits numbers differ.
    differing: u64,
    is_sorted: bool,
    phase: SortingPhase,
    _reserved: Reservation,
}

enum SortingPhase {
    /// Parts whose first and last keys are still to be compared with the first one of all.
    Comparing(usize),
    /// The part that is to be gathered next, and the row in it.
    Gathering(usize, usize),
    /// The byte by which is sorted; how many have which value of it, or where its values go next; up to which entry.
    Counting(u32, Box<[usize; 256]>, usize),
    Moving(u32, Box<[usize; 256]>, usize),
    /// The first entry that is not looked at.
    Ties(usize),
    /// The same.
    Checking(usize),
    /// The first entry that is not in the tree.
    Words(Box<Build<u64>>, usize),
    Bytes(Box<Build<[u8]>>, usize),
    Done,
}

impl Sorting {
    /// For so many keys, if there is memory to sort them.
    pub fn new(keys: usize, is_words: bool, budget: &Budget) -> Option<Self> {
        let bytes = 2 * keys * size_of::<NumberedRow>();
        Some(Sorting {
            _reserved: budget.try_reserve(bytes as u64).ok()?,
            entries: Vec::with_capacity(keys),
            spare: Vec::new(),
            is_words,
            common: usize::MAX,
            differing: 0,
            is_sorted: true,
            phase: SortingPhase::Comparing(0),
        })
    }

    /// Does some more work.
    pub fn step(
        &mut self,
        added: &[Added],
        home: ObjectMemory<'_>,
    ) -> Result<BulkStep, IndexError> {
        self.phase = match std::mem::replace(&mut self.phase, SortingPhase::Done) {
            SortingPhase::Comparing(part) => {
                match (!self.is_words).then(|| added.get(part)).flatten() {
                    Some(rows) => {
                        self.common = self.common.min(rows.keys.common(&added[0].keys)?);
                        SortingPhase::Comparing(part + 1)
                    }
                    None => SortingPhase::Gathering(0, 0),
                }
            }
            SortingPhase::Gathering(part, row) => match added.get(part) {
                Some(rows) if row == rows.keys.len() => SortingPhase::Gathering(part + 1, 0),
                Some(rows) => {
                    let end = rows.keys.len().min(row + SLICE);
                    self.gather(rows, part, row, end);
                    SortingPhase::Gathering(part, end)
                }
                None if self.is_sorted => self.sorted(),
                None => {
                    self.spare = vec![(0, 0); self.entries.len()];
                    SortingPhase::Counting(0, Box::new([0; 256]), 0)
                }
            },
            SortingPhase::Counting(8, ..) => {
                self.spare = Vec::new();
                self.sorted()
            }
            SortingPhase::Counting(byte, counts, _) if self.differing >> (8 * byte) & 0xff == 0 => {
                SortingPhase::Counting(byte + 1, counts, 0)
            }
            SortingPhase::Counting(byte, counts, from) => self.count(byte, counts, from),
            SortingPhase::Moving(byte, next, from) => self.distribute(byte, next, from),
            SortingPhase::Ties(first) => match break_ties(&mut self.entries, first, added) {
                Some(next) => SortingPhase::Ties(next),
                None => SortingPhase::Checking(1),
            },
            SortingPhase::Checking(from) => {
                let end = self.entries.len().min(from + SLICE);
                if let Some(place) = self.duplicate(from, end, added) {
                    return Ok(BulkStep::Duplicate(place));
                }
                let (memory, object) = (home.memory.clone(), home.object);
                match (end < self.entries.len(), self.is_words) {
                    (true, _) => SortingPhase::Checking(end),
                    (false, true) => SortingPhase::Words(Box::new(Build::new(memory, object)), 0),
                    (false, false) => SortingPhase::Bytes(Box::new(Build::new(memory, object)), 0),
                }
            }
            SortingPhase::Words(build, from) if from == self.entries.len() => {
                let index = PrimaryIndex::of_words(build.finish()?);
                return Ok(BulkStep::Done(Box::new(index)));
            }
            SortingPhase::Words(mut build, from) => {
                let end = self.entries.len().min(from + SLICE);
                let entries = self.entries[from..end].iter();
                build.extend(entries.map(|entry| (entry.0, AddedRow(entry.1).id(added).0)))?;
                SortingPhase::Words(build, end)
            }
            SortingPhase::Bytes(build, from) if from == self.entries.len() => {
                let index = PrimaryIndex::of_bytes(build.finish()?);
                return Ok(BulkStep::Done(Box::new(index)));
            }
            SortingPhase::Bytes(mut build, from) => {
                let end = self.entries.len().min(from + SLICE);
                let entries = self.entries[from..end].iter();
                let places = entries.map(|entry| AddedRow(entry.1));
                build.extend(places.map(|place| (place.key(added), place.id(added).0)))?;
                SortingPhase::Bytes(build, end)
            }
            SortingPhase::Done => unreachable!("a step after the last one"),
        };
        Ok(BulkStep::Again)
    }

    /// What follows when numbers are in order.
    fn sorted(&self) -> SortingPhase {
        match self.is_words {
            true => SortingPhase::Checking(1),
            false => SortingPhase::Ties(0),
        }
    }

    fn gather(&mut self, rows: &Added, part: usize, start: usize, end: usize) {
        let from = self.entries.len();
        let place = |row: usize| AddedRow::new(part, start + row).0;
        match &rows.keys {
            Keys::Words(words) => {
                let words = words[start..end].iter().enumerate();
                (self.entries).extend(words.map(|(row, &word)| (word, place(row))));
            }
            Keys::Bytes(..) => {
                let common = self.common;
                let word = |row: usize| word(&rows.keys.bytes(start + row)[common..]);
                (self.entries).extend((0..end - start).map(|row| (word(row), place(row))));
            }
        }
        let all = &self.entries;
        let first = all[0].0;
        let new = all[from..].iter();
        self.differing |= new.fold(0, |differing, entry| differing | entry.0 ^ first);
        let from = from.saturating_sub(1);
        self.is_sorted = self.is_sorted && all[from..].is_sorted_by_key(|entry| entry.0);
    }

    fn count(&self, byte: u32, mut counts: Box<[usize; 256]>, from: usize) -> SortingPhase {
        let end = self.entries.len().min(from + SLICE);
        for entry in &self.entries[from..end] {
            counts[value(entry, byte)] += 1;
        }
        if end < self.entries.len() {
            return SortingPhase::Counting(byte, counts, end);
        }
        let mut sum = 0;
        for place in counts.iter_mut() {
            sum += std::mem::replace(place, sum);
        }
        SortingPhase::Moving(byte, counts, 0)
    }

    fn distribute(&mut self, byte: u32, mut next: Box<[usize; 256]>, from: usize) -> SortingPhase {
        let end = self.entries.len().min(from + SLICE);
        for entry in &self.entries[from..end] {
            let place = &mut next[value(entry, byte)];
            self.spare[*place] = *entry;
            *place += 1;
        }
        if end < self.entries.len() {
            return SortingPhase::Moving(byte, next, end);
        }
        std::mem::swap(&mut self.entries, &mut self.spare);
        next.fill(0);
        SortingPhase::Counting(byte + 1, next, 0)
    }

    /// One of the entries that has the same key as the one before it.
    fn duplicate(&self, from: usize, end: usize, added: &[Added]) -> Option<AddedRow> {
        let mut pairs = self.entries[from - 1..end].windows(2);
        let same = pairs.find(|pair| {
            let key = |entry: NumberedRow| AddedRow(entry.1).key(added);
            pair[0].0 == pair[1].0 && (self.is_words || key(pair[0]) == key(pair[1]))
        });
        same.map(|pair| AddedRow(pair[1].1))
    }
}

fn value(entry: &NumberedRow, byte: u32) -> usize {
    (entry.0 >> (8 * byte) & 0xff) as usize
}

/// Sorts entries with the same number by their whole keys; the first that was not looked at, unless all were.
fn break_ties(entries: &mut [NumberedRow], first: usize, added: &[Added]) -> Option<usize> {
    let mut start = first;
    while start < entries.len() {
        if start - first >= SLICE {
            return Some(start);
        }
        let word = entries[start].0;
        let same = entries[start..].iter().take_while(|entry| entry.0 == word);
        let end = start + same.count();
        if end - start > 1 {
            let key = |entry: &NumberedRow| AddedRow(entry.1).key(added);
            entries[start..end].sort_by(|a, b| key(a).cmp(key(b)));
        }
        start = end;
    }
    None
}
