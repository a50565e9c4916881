//! Groups on their way from the worker that met them to the one that merges them.
//!
//! ```text
//! worker's table                          Groups for worker 0         Groups for worker 1
//!   keys │ state │ state      sorted      ┌ bucket 0 ┬ 1 ┬ 2 ┐        ┌ bucket 0 ┬ 1 ┬ 2 ┐
//!   keys │ state │ state  ──by part──▶    │ keys · states    │        │ keys · states    │
//!   …                                     └──────────┴───┴───┘        └──────────┴───┴───┘
//! ```
//!
//! They travel as they lie in a table: packed keys and columns of states, so that a sum keeps its 128 bits. Codes of a
//! dictionary mean the same to all workers of a program; strings that have none there travel along.

use super::division::{Division, Sorted, parts};
use super::index::Index;
use super::interner::Interner;
use super::keys::{Keys, dictionary};
use super::state::State;
use super::texts::Texts;
use crate::columns::Columns;
use std::ops::Range;

/// Groups with partial states, sorted by the buckets of the worker that merges them. Belong to the program that made them.
#[derive(Debug)]
pub struct Groups {
    pub(super) packed: Vec<u64>,
    pub(super) states: Vec<State>,
    /// Per key, strings without a code in the dictionary: their codes are those behind the dictionary's.
    pub(super) texts: Vec<Texts>,
    /// Where each bucket ends.
    pub(super) ends: Vec<u32>,
}

impl Groups {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory taken.
    pub fn bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(Texts::bytes).sum();
        let states: usize = self.states.iter().map(State::bytes).sum();
        self.packed.capacity() * size_of::<u64>() + self.ends.capacity() * 4 + states + texts
    }

    /// The groups of a bucket.
    pub(super) fn of_bucket(&self, bucket: usize) -> Range<usize> {
        let start = bucket.checked_sub(1).map_or(0, |last| self.ends[last]);
        start as usize..self.ends[bucket] as usize
    }
}

/// A table's groups, by the worker that merges them: of each that gets any, its number and its groups.
pub(super) fn deal(
    division: Division,
    index: &Index,
    states: &[State],
    interners: &[Interner],
    keys: &Keys,
    columns: &Columns,
) -> Vec<(u32, Groups)> {
    let numbers = parts(division, index.packed(), keys, interners, columns);
    let parts = (division.workers * division.buckets) as usize;
    let sorted = Sorted::by(&numbers, parts);
    let of_worker = |worker: u32| {
        let parts = division.of_worker(worker);
        let range = sorted.range(parts.clone());
        let start = range.start as u32;
        let order = &sorted.order[range];
        if order.is_empty() {
            return None;
        }
        let mut packed = gather_packed(index, order, keys.words);
        let own = keys.keys.iter().zip(interners).enumerate();
        let texts = own.map(|(key, (compiled, interner))| {
            let known = dictionary(compiled, columns).map_or(0, |dictionary| dictionary.len());
            take_along(key, known as i64, interner, keys, &mut packed)
        });
        let texts = texts.collect();
        let groups = Groups {
            states: states.iter().map(|state| state.gather(order)).collect(),
            ends: sorted.ends[parts].iter().map(|end| end - start).collect(),
            packed,
            texts,
        };
        Some((worker, groups))
    };
    (0..division.workers).filter_map(of_worker).collect()
}

/// The packed keys of some groups.
pub(super) fn gather_packed(index: &Index, order: &[u32], words: usize) -> Vec<u64> {
    let packed = index.packed();
    if words == 1 {
        return order.iter().map(|&group| packed[group as usize]).collect();
    }
    let mut gathered = Vec::with_capacity(order.len() * words);
    for &group in order {
        gathered.extend_from_slice(&packed[group as usize * words..][..words]);
    }
    gathered
}

/// The strings that these groups have of an interner, numbered anew.
fn take_along(
    key: usize,
    known: i64,
    interner: &Interner,
    keys: &Keys,
    packed: &mut [u64],
) -> Texts {
    let mut texts = Texts::default();
    if interner.texts().is_empty() {
        return texts;
    }
    let mut codes = vec![None; interner.texts().len()];
    renumber(key, known, keys, packed, |own| {
        *codes[own].get_or_insert_with(|| {
            texts.push(interner.texts().get(own));
            texts.len() - 1
        })
    });
    texts
}

/// Changes the codes behind a dictionary's: `number` is given how far behind the last one each is, and says how far it shall be.
pub(super) fn renumber(
    key: usize,
    known: i64,
    keys: &Keys,
    packed: &mut [u64],
    mut number: impl FnMut(usize) -> usize,
) {
    let (null, lane) = (keys.keys[key].null, keys.lanes[keys.keys[key].lane]);
    for words in packed.chunks_exact_mut(keys.words) {
        let code = lane.unpack(words);
        if code >= known && !null.is_set(words) {
            let code = known + number((code - known) as usize) as i64;
            let word = &mut words[lane.place.word];
            *word = *word & !lane.pack(-1) | lane.pack(code);
        }
    }
}
