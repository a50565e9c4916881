//! An order of keys in which those that are asked for together lie together, and columns stored by it.
//!
//! ```text
//! dimension      key   region   nation          order: by region, nation, key
//!                 1    ASIA     CHINA             ordinal   0   1   2   3
//!                 2    EUROPE   FRANCE            key       3   1   4   2
//!                 3    ASIA     INDIA  …
//! fact           foreign key  2   1   1   4    ─▶  ordinals  3   1   1   2        region = 'ASIA'  ⇔  ordinal in 0..=1
//! ```
//!
//! A column of foreign keys may be stored as *ordinals*, the places of its keys in such an order. It answers a
//! condition on an attribute of the dimension by comparing with a range, whatever the keys are. This is the
//! between-predicate rewriting of the invisible join (Abadi, Madden, Hachem: *Column-stores vs. row-stores*, SIGMOD
//! 2008). The keys themselves are a look into the order away.
//!
//! A column chunk names the order that it is stored by, so chunks of several orders, and of none, may lie side by side.
//!
//! ```text
//! keys       3   1   4   2 | 6   5         an order that is extended: late keys get ordinals behind all others,
//! ordinal    0   1   2   3 | 4   5         so what is stored by the shorter order is stored by the longer one, too
//! ```

use crate::predicate::{ColumnPredicate, Reduced, between};
use eris_numa::{Budget, OutOfMemory, Reservation};
use hashbrown::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A table from keys to ordinals has at most so many entries per key.
const ENTRIES_PER_KEY: u64 = 16;

/// Distinct keys, each of which has its place, the *ordinal*.
pub struct KeyOrder {
    /// By ordinal, as stored: see [`to_integer`](crate::to_integer).
    keys: Vec<i64>,
    places: OrdinalTable,
    /// The orders that this one begins with, and itself, each with how many keys it has.
    line: Vec<(Arc<()>, usize)>,
    /// Of the budget.
    _reserved: Option<Reservation>,
}

/// From keys to ordinals.
enum OrdinalTable {
    /// By distance from the least key; [`NONE`] where there is no key.
    Dense {
        first: i64,
        ordinals: Vec<u32>,
    },
    Hashed(HashMap<i64, u32>),
}

/// From so many keys of a set on its runs are looked for …
const MANY: usize = 1 << 12;
/// … from so many of them.
const SAMPLES: usize = 64;

/// No ordinal.
const NONE: u32 = u32::MAX;

impl KeyOrder {
    /// The order of these keys, as stored; `None` if one occurs twice, or if they are more than ordinals have bits.
    pub fn new(keys: Vec<i64>) -> Option<Self> {
        u32::try_from(keys.len()).ok().filter(|&len| len < NONE)?;
        let first = keys.iter().copied().min().unwrap_or(0);
        let last = keys.iter().copied().max().unwrap_or(0);
        let width = last.abs_diff(first);
        let ordered = || keys.iter().zip(0u32..);
        let places = if width / ENTRIES_PER_KEY <= keys.len() as u64 {
            let mut ordinals = vec![NONE; width as usize + 1];
            for (key, ordinal) in ordered() {
                let place = &mut ordinals[key.abs_diff(first) as usize];
                if *place != NONE {
                    return None;
                }
                *place = ordinal;
            }
            OrdinalTable::Dense { first, ordinals }
        } else {
            let places: HashMap<i64, u32> = ordered().map(|(key, at)| (*key, at)).collect();
            if places.len() < keys.len() {
                return None;
            }
            OrdinalTable::Hashed(places)
        };
        Some(KeyOrder {
            line: vec![(Arc::new(()), keys.len())],
            keys,
            places,
            _reserved: None,
        })
    }

    /// The same order with late keys behind all others; `None` as for [`KeyOrder::new`]. Chunks that are stored by this
    /// order are [stored](crate::ColumnChunk::stored_by) by that one without a look at their values.
    pub fn extended(&self, late: &[i64]) -> Option<Self> {
        let keys: Vec<i64> = self.keys.iter().chain(late).copied().collect();
        let longer = KeyOrder::new(keys)?;
        Some(KeyOrder {
            line: [&self.line[..], &longer.line].concat(),
            ..longer
        })
    }

    /// Whether it begins with another order: that one's ordinals are its own, too.
    pub(crate) fn extends(&self, other: &KeyOrder) -> bool {
        let (this, _) = other.line.last().expect("itself is in it");
        self.line.iter().any(|(order, _)| Arc::ptr_eq(order, this))
    }

    /// How many keys have come since it was made.
    pub fn late(&self) -> usize {
        self.keys.len() - self.line[0].1
    }

    /// The same, whose memory is accounted for as long as it is there.
    ///
    /// # Errors
    /// The budget has no room for it.
    pub fn accounted(mut self, budget: &Budget) -> Result<Self, OutOfMemory> {
        self._reserved = Some(budget.try_reserve(self.bytes() as u64)?);
        Ok(self)
    }

    /// The keys by their ordinals.
    pub fn keys(&self) -> &[i64] {
        &self.keys
    }

    /// The ordinal of a key.
    pub fn ordinal(&self, key: i64) -> Option<u32> {
        match &self.places {
            OrdinalTable::Dense { first, ordinals } => {
                let distance = key.checked_sub(*first)?;
                let ordinal = ordinals.get(usize::try_from(distance).ok()?)?;
                (*ordinal != NONE).then_some(*ordinal)
            }
            OrdinalTable::Hashed(places) => places.get(&key).copied(),
        }
    }

    /// The ordinals of a set of many keys, if these are runs of the order, a few: that is what the order is made for.
    /// Runs are followed from some keys of the set to both sides, key by key, which takes a fraction of finding the
    /// place of each.
    fn runs_of(&self, first: i64, bits: &[u64]) -> Option<Vec<Range<usize>>> {
        let has = |key: i64| {
            let bit = key.wrapping_sub(first) as u64;
            let word = bits.get(usize::try_from(bit / 64).ok()?);
            (key >= first && *word? >> (bit % 64) & 1 == 1).then_some(())
        };
        let has = |ordinal: usize| has(self.keys[ordinal]).is_some();
        let count: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        if count < MANY {
            return None;
        }
        let mut left = count;
        let mut runs: Vec<Range<usize>> = Vec::new();
        for sample in 0..SAMPLES {
            let from = sample * bits.len() / SAMPLES;
            let word = from + bits[from..].iter().position(|word| *word != 0)?;
            let key =
                first.checked_add((word * 64) as i64 + i64::from(bits[word].trailing_zeros()))?;
            let at = self.ordinal(key)? as usize;
            if runs.iter().any(|run| run.contains(&at)) {
                continue;
            }
            let start = (0..at).rev().find(|&ordinal| !has(ordinal));
            let end = (at + 1..self.keys.len()).find(|&ordinal| !has(ordinal));
            let run = start.map_or(0, |start| start + 1)..end.unwrap_or(self.keys.len());
            left = left.checked_sub(run.len())?;
            runs.push(run);
            if left == 0 {
                return Some(runs);
            }
        }
        None
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let places = match &self.places {
            OrdinalTable::Dense { ordinals, .. } => ordinals.capacity() * size_of::<u32>(),
            // Key, ordinal, a control byte, and what is free.
            OrdinalTable::Hashed(places) => places.capacity() * 20,
        };
        places + self.keys.capacity() * size_of::<i64>()
    }
}

/// Ordinals of an order: those of set bits.
#[derive(Debug)]
pub struct OrdinalSet {
    words: Box<[u64]>,
    /// The same as ranges, ascending and apart from each other, if they are few.
    ranges: Option<Box<[(i64, i64)]>>,
}

/// Ranges of a set, at most, for which each chunk asks whether they meet it; a bitmap is looked at in the end.
const RANGES: usize = 64;

/// Ranges that values are compared with one after the other, at most: a load from a bitmap takes as long as that.
const COMPARED: usize = 6;

impl OrdinalSet {
    fn new(words: Vec<u64>) -> Self {
        // A range begins where a bit is set and the one before is not.
        let begins = |at: usize| words[at] & !(words[at] << 1 | last_of(&words, at));
        let count: u32 = (0..words.len()).map(|at| begins(at).count_ones()).sum();
        let ranges = (count as usize <= RANGES).then(|| {
            let mut ranges: Vec<(i64, i64)> = Vec::new();
            for (at, &word) in words.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let bit = at as i64 * 64 + left.trailing_zeros() as i64;
                    let run = (left >> left.trailing_zeros()).trailing_ones() as i64;
                    match ranges.last_mut() {
                        Some((_, last)) if *last + 1 == bit => *last += run,
                        _ => ranges.push((bit, bit + run - 1)),
                    }
                    let end = left.trailing_zeros() + run as u32;
                    left = if end < 64 { left >> end << end } else { 0 };
                }
            }
            ranges.into()
        });
        OrdinalSet {
            words: words.into(),
            ranges,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The set as a condition on ordinals that all lie within `min..=max`.
    pub(crate) fn reduce(&self, min: i64, max: i64) -> Reduced<'_> {
        let bitmap = Reduced::Bitmap {
            first: 0,
            words: &self.words,
        };
        if min == max {
            // Whoever has a single value relies on that it passes or does not.
            let word = self.words.get(min as usize / 64).copied().unwrap_or(0);
            return match word >> (min % 64) & 1 {
                1 => Reduced::All,
                _ => Reduced::None,
            };
        }
        let Some(ranges) = &self.ranges else {
            return bitmap;
        };
        let from = ranges.partition_point(|&(_, high)| high < min);
        let to = ranges.partition_point(|&(low, _)| low <= max);
        match ranges.get(from..to) {
            None | Some([]) => Reduced::None,
            Some(&[(low, high)]) => between(low, high, min, max),
            Some(&[(first, low), (high, last)]) if first <= min && max <= last => {
                Reduced::NotBetween(low + 1, high - 1)
            }
            Some(ranges) if ranges.len() <= COMPARED => Reduced::Ranges(ranges),
            Some(_) => bitmap,
        }
    }
}

/// The last bit of the word before, as the first one.
fn last_of(words: &[u64], at: usize) -> u64 {
    at.checked_sub(1).map_or(0, |before| words[before] >> 63)
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({} keys)", self.keys.len())
    }
}

impl ColumnPredicate {
    /// The same condition on ordinals: for chunks that are stored by this order, and faster there.
    ///
    /// # Panics
    /// If it is no condition on integers.
    pub fn by_order(&self, order: &Arc<KeyOrder>) -> ColumnPredicate {
        let mut words = vec![0u64; order.keys.len().div_ceil(64)];
        if let ColumnPredicate::IntegerBitmap { first, words: bits } = self
            && let Some(runs) = order.runs_of(*first, bits)
        {
            for run in runs {
                (run.start / 64..run.end.div_ceil(64)).for_each(|word| {
                    let low = run.start.saturating_sub(word * 64);
                    let high = (run.end - word * 64).min(64);
                    words[word] |= u64::MAX << low & u64::MAX >> (64 - high);
                });
            }
            return ColumnPredicate::Ordinals {
                order: order.clone(),
                set: Arc::new(OrdinalSet::new(words)),
            };
        }
        let mut insert = |ordinal: u32| words[ordinal as usize / 64] |= 1 << (ordinal % 64);
        let mut insert_key = |key: i64| {
            if let Some(ordinal) = order.ordinal(key) {
                insert(ordinal);
            }
        };
        match self {
            ColumnPredicate::Never | ColumnPredicate::Null | ColumnPredicate::NotNull => {
                return self.clone();
            }
            ColumnPredicate::IntegerSet(keys) => keys.iter().copied().for_each(insert_key),
            ColumnPredicate::IntegerBitmap { first, words } => {
                for (word, bits) in words.iter().enumerate() {
                    let mut left = *bits;
                    while left != 0 {
                        let bit = word as i64 * 64 + left.trailing_zeros() as i64;
                        if let Some(key) = first.checked_add(bit) {
                            insert_key(key);
                        }
                        left &= left - 1;
                    }
                }
            }
            ColumnPredicate::Integers { low, high }
                if low <= high && high.abs_diff(*low) < order.keys.len() as u64 =>
            {
                (*low..=*high).for_each(insert_key);
            }
            ColumnPredicate::Integers { low, high } => {
                for (&key, ordinal) in order.keys.iter().zip(0..) {
                    if (*low..=*high).contains(&key) {
                        insert(ordinal);
                    }
                }
            }
            ColumnPredicate::NotIntegers { low, high } => {
                for (&key, ordinal) in order.keys.iter().zip(0..) {
                    if !(*low..=*high).contains(&key) {
                        insert(ordinal);
                    }
                }
            }
            other => panic!("{other:?} asked of integers"),
        }
        ColumnPredicate::Ordinals {
            order: order.clone(),
            set: Arc::new(OrdinalSet::new(words)),
        }
    }
}
