//! Numbers that come in order: pieces that ascend, and lie one above the other, are put together as they are.
//!
//! ```text
//! parts   [ 10 11 12 … 40 │ 90 91 … 99 ][ 41 … 89 ]        runs   10–40, 90–99, 41–89   ─▶   10–40, 41–89, 90–99
//! ```
//! A file in the order of its keys comes like this even if several threads read it.

use super::{AddedRow, SLICE, words};
use crate::held::unique::Added;
use eris_index::{Build, IndexError};
use eris_kernels::{Isa, VECTOR};

/// So many keys should be in a run on average, or they are rather sorted.
const RUN: usize = 64;
const SIGN: u64 = 1 << 63;
/// No more runs than are put in order within a slice's time.
const MOST_RUNS: usize = 1 << 16;

/// Keys of a part that ascend.
#[derive(Clone, Copy)]
struct AscendingRun {
    from: AddedRow,
    keys: usize,
    least: u64,
    greatest: u64,
}

/// How the numbers of a statement come.
#[derive(Default)]
pub(super) struct Survey {
    /// Unless there are too many.
    runs: Vec<AscendingRun>,
    is_mixed: bool,
    keys: usize,
    parts: usize,
    /// The least and the greatest number so far.
    range: Option<(u64, u64)>,
}

/// Runs that lie one above the other, in order.
pub(super) struct AscendingRuns {
    runs: Vec<AscendingRun>,
    /// The run that is to be read next, and the key in it.
    next: (usize, usize),
}

impl Survey {
    /// Looks at the next part; says whether there was one.
    pub fn step(&mut self, added: &[Added]) -> bool {
        let Some(words) = added.get(self.parts).map(|part| words(&part.keys)) else {
            return false;
        };
        let part = self.parts;
        self.parts += 1;
        self.keys += words.len();
        let known = self.runs.len();
        if !self.is_mixed {
            self.find_runs(part, words);
        }
        let ranges = match self.is_mixed {
            false => self.runs[known..]
                .iter()
                .map(|run| (run.least, run.greatest))
                .reduce(around),
            true => words.chunks(VECTOR).filter_map(range_of).reduce(around),
        };
        self.range = self.range.into_iter().chain(ranges).reduce(around);
        true
    }

    fn find_runs(&mut self, part: usize, words: &[u64]) {
        let most = (self.keys / RUN + 16).min(MOST_RUNS);
        let mut from = 0;
        while from < words.len() {
            if self.runs.len() == most {
                self.runs = Vec::new();
                self.is_mixed = true;
                return;
            }
            let pairs = words[from..].windows(2);
            let keys = 1 + pairs.take_while(|pair| pair[0] < pair[1]).count();
            self.runs.push(AscendingRun {
                from: AddedRow::new(part, from),
                keys,
                least: words[from],
                greatest: words[from + keys - 1],
            });
            from += keys;
        }
    }

    /// The least and the greatest number.
    pub fn range(&self) -> (u64, u64) {
        self.range.unwrap_or_default()
    }

    /// The runs, if no two of them have keys between each other's.
    pub fn into_runs(mut self) -> Option<AscendingRuns> {
        if self.is_mixed {
            return None;
        }
        self.runs.sort_unstable_by_key(|run| run.least);
        let mut pairs = self.runs.windows(2);
        let is_in_order = pairs.all(|pair| pair[0].greatest < pair[1].least);
        is_in_order.then_some(AscendingRuns {
            runs: self.runs,
            next: (0, 0),
        })
    }
}

/// The least and the greatest of some numbers, a vector at most.
fn range_of(words: &[u64]) -> Option<(u64, u64)> {
    // In the order of signed numbers, for which there is a kernel.
    let mut signed = [0; VECTOR];
    let signed = &mut signed[..words.len()];
    let pairs = signed.iter_mut().zip(words);
    pairs.for_each(|(signed, word)| *signed = (word ^ SIGN) as i64);
    let (least, greatest) = Isa::best().min_max_i64(signed)?;
    Some((least as u64 ^ SIGN, greatest as u64 ^ SIGN))
}

fn around(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

impl AscendingRuns {
    /// Puts some more keys into the tree; says whether there were any left.
    pub fn step(&mut self, added: &[Added], build: &mut Build<u64>) -> Result<bool, IndexError> {
        let (mut number, mut from) = self.next;
        let mut room = SLICE;
        while let Some(run) = self.runs.get(number)
            && room > 0
        {
            let keys = (run.keys - from).min(room);
            let place = run.from.plus(from);
            let words = words(&added[place.part()].keys)[place.row()..].iter();
            let ids = place.id(added).0..;
            build.extend(words.take(keys).copied().zip(ids))?;
            room -= keys;
            from += keys;
            if from == run.keys {
                (number, from) = (number + 1, 0);
            }
        }
        self.next = (number, from);
        Ok(number < self.runs.len())
    }
}
