//! Keys of a whole statement for an index that is empty: sorted, looked through for equal neighbours, and made into a tree at
//! once, some at a time.
//!
//! ```text
//! gathering ─▶ (key, row) … ─▶ sorting, a byte of the key per pass ─▶ ties ─▶ looking for equal neighbours ─▶ building ─▶ tree
//!                │ a number: the key itself                             only of keys that are bytes,
//!                └ bytes: the eight behind those all have in common      whose first eight are equal
//! ```
//!
//! Sorting goes from the least significant byte up, over those bytes only in which keys differ, so that numbers from one to a
//! million take three passes; keys that come in order take none. Nothing is in the index until the tree is: a statement that
//! fails, or is given up, leaves nothing to undo.

use crate::keys::{Keys, PrimaryIndex};
use crate::unique::Added;
use eris_column::Home;
use eris_index::{Build, Entries, IndexError, MAX_KEY};
use eris_numa::{Budget, Reservation};

/// Entries that are looked at in one slice.
const SLICE: usize = 32_768;
/// Nodes that are made in one slice.
const SLICE_NODES: usize = 4_096;

/// What is sorted: a number that orders, and a row's id or place.
type Entry = (u64, u64);

/// The work on the keys of one statement.
#[derive(Debug)]
pub(crate) struct Bulk {
    entries: Vec<Entry>,
    /// As many, while they are being sorted.
    spare: Vec<Entry>,
    /// What the first eight bytes of all keys have in common, if keys are bytes.
    common: usize,
    /// In which bits numbers differ.
    differing: u64,
    is_sorted: bool,
    phase: Phase,
    _reserved: Reservation,
}

enum Phase {
    /// Parts whose first and last keys are still to be compared with the first one of all.
    Comparing(usize),
    /// The part that is to be gathered next, and the row in it.
    Gathering(usize, usize),
    /// The byte by which is sorted; where its values go next, once these are counted; how many entries are there already.
    Sorting(u32, Option<Box<[usize; 256]>>, usize),
    /// The first entry that is not looked at.
    Ties(usize),
    /// The same.
    Checking(usize),
    Words(Build<u64>),
    Bytes(Build<[u8]>),
}

/// What a step has come to.
pub(crate) enum Step {
    Again,
    /// Two rows have the same key: a part, and a row in it.
    Duplicate(usize, usize),
    Done(Box<PrimaryIndex>),
}

impl Bulk {
    /// For so many keys, if there is memory to sort them.
    pub fn new(keys: usize, budget: &Budget) -> Option<Bulk> {
        let bytes = 2 * keys * size_of::<Entry>();
        Some(Bulk {
            _reserved: budget.try_reserve(bytes as u64).ok()?,
            entries: Vec::with_capacity(keys),
            spare: Vec::new(),
            common: usize::MAX,
            differing: 0,
            is_sorted: true,
            phase: Phase::Comparing(0),
        })
    }

    /// Does some more work.
    ///
    /// # Errors
    /// No memory, or a key that is too long.
    pub fn step(&mut self, added: &[Added], home: Home<'_>) -> Result<Step, IndexError> {
        let is_words = added
            .first()
            .is_none_or(|part| matches!(part.keys, Keys::Words(_)));
        match &mut self.phase {
            Phase::Comparing(part) => {
                let next = (!is_words).then(|| added.get(*part)).flatten();
                match next {
                    Some(rows) => {
                        self.common = self.common.min(rows.keys.common(&added[0].keys)?);
                        *part += 1;
                    }
                    None => self.phase = Phase::Gathering(0, 0),
                }
            }
            Phase::Gathering(part, row) => {
                let (part, row) = (*part, *row);
                self.phase = match added.get(part) {
                    Some(rows) if row == rows.keys.len() => Phase::Gathering(part + 1, 0),
                    Some(rows) => {
                        let end = rows.keys.len().min(row + SLICE);
                        self.gather(rows, part, row, end);
                        Phase::Gathering(part, end)
                    }
                    None if self.is_sorted && is_words => Phase::Checking(1),
                    None if self.is_sorted => Phase::Ties(0),
                    None => {
                        self.spare = vec![(0, 0); self.entries.len()];
                        Phase::Sorting(0, None, 0)
                    }
                };
            }
            Phase::Sorting(8, ..) => {
                self.spare = Vec::new();
                self.phase = match is_words {
                    true => Phase::Checking(1),
                    false => Phase::Ties(0),
                };
            }
            Phase::Sorting(byte, ..) if self.differing >> (8 * *byte) & 0xff == 0 => {
                self.phase = Phase::Sorting(*byte + 1, None, 0);
            }
            Phase::Sorting(..) => self.sort(),
            Phase::Ties(first) => {
                let first = *first;
                self.phase = match break_ties(&mut self.entries, first, added) {
                    Some(next) => Phase::Ties(next),
                    None => Phase::Checking(1),
                };
            }
            Phase::Checking(next) => {
                let next = *next;
                let end = self.entries.len().min(next + SLICE);
                for number in next..end {
                    let (before, entry) = (self.entries[number - 1], self.entries[number]);
                    if before.0 == entry.0
                        && (is_words || key(entry.1, added) == key(before.1, added))
                    {
                        let place = match is_words {
                            true => place_of(entry.1, added),
                            false => place(entry.1),
                        };
                        return Ok(Step::Duplicate(place.0, place.1));
                    }
                }
                let (memory, object) = (home.memory.clone(), home.object);
                self.phase = match (end < self.entries.len(), is_words) {
                    (true, _) => Phase::Checking(end),
                    (false, true) => Phase::Words(Build::new(memory, object)),
                    (false, false) => Phase::Bytes(Build::new(memory, object)),
                };
            }
            Phase::Words(build) => {
                if build.step(&self.entries[..], SLICE_NODES)? {
                    let Phase::Words(build) =
                        std::mem::replace(&mut self.phase, Phase::Checking(0))
                    else {
                        unreachable!("looked above");
                    };
                    return Ok(Step::Done(Box::new(PrimaryIndex::Words(
                        build.finish().into(),
                    ))));
                }
            }
            Phase::Bytes(build) => {
                let sorted = Sorted {
                    entries: &self.entries,
                    added,
                };
                if build.step(&sorted, SLICE_NODES)? {
                    let Phase::Bytes(build) =
                        std::mem::replace(&mut self.phase, Phase::Checking(0))
                    else {
                        unreachable!("looked above");
                    };
                    return Ok(Step::Done(Box::new(PrimaryIndex::Bytes(
                        build.finish().into(),
                    ))));
                }
            }
        }
        Ok(Step::Again)
    }

    fn gather(&mut self, rows: &Added, part: usize, start: usize, end: usize) {
        let from = self.entries.len();
        match &rows.keys {
            Keys::Words(words) => {
                let words = words[start..end].iter().enumerate();
                let id = |row: usize| rows.first.plus(start + row).0;
                self.entries
                    .extend(words.map(|(row, &word)| (word, id(row))));
            }
            Keys::Bytes(..) => {
                let common = self.common;
                let entry = |row: usize| {
                    let word = word(&rows.keys.bytes(row)[common..]);
                    (word, (part as u64) << 32 | row as u64)
                };
                self.entries.extend((start..end).map(entry));
            }
        }
        let all = &self.entries;
        let first = all[0].0;
        let new = all[from..].iter();
        self.differing |= new.fold(0, |differing, entry| differing | entry.0 ^ first);
        self.is_sorted &= all[from.saturating_sub(1)..].is_sorted_by_key(|entry| entry.0);
    }

    /// Counts a byte's values, or moves some entries to where they belong by it.
    fn sort(&mut self) {
        let Phase::Sorting(byte, next, done) = &mut self.phase else {
            unreachable!("called while sorting");
        };
        let shift = 8 * *byte;
        let value = |entry: &Entry| (entry.0 >> shift & 0xff) as usize;
        let end = self.entries.len().min(*done + SLICE);
        let Some(next) = next else {
            let mut places = Box::new([0; 256]);
            self.entries
                .iter()
                .for_each(|entry| places[value(entry)] += 1);
            let mut sum = 0;
            for place in places.iter_mut() {
                sum += std::mem::replace(place, sum);
            }
            *next = Some(places);
            return;
        };
        for entry in &self.entries[*done..end] {
            let place = &mut next[value(entry)];
            self.spare[*place] = *entry;
            *place += 1;
        }
        *done = end;
        if end == self.entries.len() {
            std::mem::swap(&mut self.entries, &mut self.spare);
            self.phase = Phase::Sorting(*byte + 1, None, 0);
        }
    }
}

/// Sorts entries with the same number by their whole keys; the first that was not looked at, unless all were.
fn break_ties(entries: &mut [Entry], first: usize, added: &[Added]) -> Option<usize> {
    let mut start = first;
    while start < entries.len() {
        if start - first >= SLICE {
            return Some(start);
        }
        let word = entries[start].0;
        let same = entries[start..].iter().take_while(|entry| entry.0 == word);
        let end = start + same.count();
        if end - start > 1 {
            entries[start..end].sort_by(|a, b| key(a.1, added).cmp(key(b.1, added)));
        }
        start = end;
    }
    None
}

/// Keys that are bytes, in order.
struct Sorted<'a> {
    entries: &'a [Entry],
    added: &'a [Added],
}

impl<'a> Entries<'a, [u8]> for Sorted<'a> {
    fn count(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, number: usize) -> &'a [u8] {
        key(self.entries[number].1, self.added)
    }

    fn value(&self, number: usize) -> u64 {
        let (part, row) = place(self.entries[number].1);
        self.added[part].first.plus(row).0
    }
}

/// The part and the row in it that an entry of bytes stands for.
fn place(at: u64) -> (usize, usize) {
    ((at >> 32) as usize, at as u32 as usize)
}

/// The part and the row in it that have an id.
fn place_of(id: u64, added: &[Added]) -> (usize, usize) {
    let part = added
        .iter()
        .position(|part| (part.first.0..part.first.plus(part.keys.len()).0).contains(&id));
    let part = part.expect("the id is one of these rows'");
    (part, (id - added[part].first.0) as usize)
}

fn key(at: u64, added: &[Added]) -> &[u8] {
    let (part, row) = place(at);
    added[part].keys.bytes(row)
}

/// The number whose order is that of the first eight bytes.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(first)
        }
    }
}

/// Refuses keys that no index takes.
pub(crate) fn check_length(bytes: usize) -> Result<(), IndexError> {
    match bytes > MAX_KEY {
        true => Err(IndexError::KeyTooLong(bytes)),
        false => Ok(()),
    }
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Comparing(_) => "comparing",
            Phase::Gathering(..) => "gathering",
            Phase::Sorting(..) => "sorting",
            Phase::Ties(_) => "ties",
            Phase::Checking(_) => "checking",
            Phase::Words(_) | Phase::Bytes(_) => "building",
        })
    }
}
