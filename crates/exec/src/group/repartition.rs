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

use super::division::{Division, GroupsByPart, parts};
use super::index::GroupIndex;
use super::interner::Interner;
use super::keys::{GroupKeys, dictionary};
use super::most::Most;
use super::plan::{GroupPlan, GroupState};
use super::state::AggregateState;
use super::strings::Strings;
use crate::columns::FragmentColumns;
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use std::ops::Range;

/// Groups with partial states, sorted by the buckets of the worker that merges them. Belong to the program that made
/// them.
#[derive(Debug)]
pub struct Groups {
    pub(super) packed: Vec<u64>,
    pub(super) states: Vec<AggregateState>,
    /// Per key, strings without a code in the dictionary: their codes are those behind the dictionary's.
    pub(super) strings: Vec<Strings>,
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
        let strings: usize = self.strings.iter().map(Strings::bytes).sum();
        let states: usize = self.states.iter().map(AggregateState::bytes).sum();
        self.packed.capacity() * size_of::<u64>() + self.ends.capacity() * 4 + states + strings
    }

    /// The groups of a bucket.
    pub(super) fn of_bucket(&self, bucket: usize) -> Range<usize> {
        let start = bucket.checked_sub(1).map_or(0, |last| self.ends[last]);
        start as usize..self.ends[bucket] as usize
    }
}

/// That groups leave the table when they are too many for it.
#[derive(Debug)]
pub(super) struct GroupOverflow {
    division: Division,
    most: Most,
    repartitioned: Vec<(u32, Groups)>,
}

impl GroupOverflow {
    /// Memory of what has left the table and was not taken.
    pub(super) fn bytes(&self) -> usize {
        self.repartitioned
            .iter()
            .map(|(_, groups)| groups.bytes())
            .sum()
    }
}

impl GroupPlan {
    /// Has groups leave the table from now on when they are too many for a cache.
    pub(crate) fn start_repartitioning(&self, division: Division, state: &mut GroupState) {
        state.repartitioning = Some(GroupOverflow {
            division,
            most: Most::default(),
            repartitioned: Vec::new(),
        });
    }

    /// What has left the table.
    pub(crate) fn take_repartitioned(&self, state: &mut GroupState) -> Vec<(u32, Groups)> {
        let repartitioning = state.repartitioning.as_mut();
        repartitioning.map_or_else(Vec::new, |repartitioning| {
            std::mem::take(&mut repartitioning.repartitioned)
        })
    }

    /// Has all groups leave the table.
    pub(crate) fn repartition(
        &self,
        division: Division,
        state: &mut GroupState,
        columns: &FragmentColumns,
    ) -> Vec<(u32, Groups)> {
        let GroupState {
            index,
            interners,
            states,
            ..
        } = state;
        let repartitioned = repartition(division, index, states, interners, &self.keys, columns);
        index.clear();
        states.iter_mut().for_each(AggregateState::clear);
        interners.iter_mut().for_each(Interner::clear);
        repartitioned
    }

    /// Has groups leave the table if they are too many for it, behind so many more rows.
    pub(super) fn repartition_if_many(
        &self,
        rows: usize,
        state: &mut GroupState,
        columns: &FragmentColumns,
    ) {
        if let Some(repartitioning) = &mut state.repartitioning
            && repartitioning.most.is_exceeded(rows, &state.index)
        {
            let division = repartitioning.division;
            let more = self.repartition(division, state, columns);
            if let Some(repartitioning) = &mut state.repartitioning {
                repartitioning.repartitioned.extend(more);
            }
        }
    }

    /// The groups so far as batches, each with the worker among so many to which its keys belong.
    pub(crate) fn finish_by_worker(
        &self,
        state: GroupState,
        workers: u32,
        columns: &FragmentColumns,
    ) -> Result<Vec<(u32, RecordBatch)>, FragmentError> {
        let of = |worker: u32| move |batch| (worker, batch);
        if workers == 1 || !self.has_keys() {
            let batches = self.finish(state, columns)?.into_iter();
            return Ok(batches.map(of(0)).collect());
        }
        let buckets = 1;
        let division = Division { workers, buckets };
        let (index, states) = (&state.index, &state.states);
        let mut batches = Vec::new();
        for (worker, groups) in repartition(
            division,
            index,
            states,
            &state.interners,
            &self.keys,
            columns,
        ) {
            let groups = self.batches(groups, columns)?.into_iter();
            batches.extend(groups.map(of(worker)));
        }
        Ok(batches)
    }
}

impl GroupState {
    /// Has groups stay in the table again.
    pub(crate) fn stop_repartitioning(&mut self) {
        if let Some(repartitioning) = &mut self.repartitioning {
            repartitioning.most = Most::never();
        }
    }
}

/// A table's groups, by the worker that merges them: of each that gets any, its number and its groups.
fn repartition(
    division: Division,
    index: &GroupIndex,
    states: &[AggregateState],
    interners: &[Interner],
    keys: &GroupKeys,
    columns: &FragmentColumns,
) -> Vec<(u32, Groups)> {
    let numbers = parts(division, index.packed(), keys, interners, columns);
    let parts = (division.workers * division.buckets) as usize;
    let sorted = GroupsByPart::by(&numbers, parts);
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
        let strings = own.map(|(key, (compiled, interner))| {
            let known = dictionary(compiled, columns).map_or(0, |dictionary| dictionary.len());
            take_along(key, known as i64, interner, keys, &mut packed)
        });
        let strings = strings.collect();
        let groups = Groups {
            states: states.iter().map(|state| state.gather(order)).collect(),
            ends: sorted.ends[parts].iter().map(|end| end - start).collect(),
            packed,
            strings,
        };
        Some((worker, groups))
    };
    (0..division.workers).filter_map(of_worker).collect()
}

/// The packed keys of some groups.
fn gather_packed(index: &GroupIndex, order: &[u32], words: usize) -> Vec<u64> {
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
    keys: &GroupKeys,
    packed: &mut [u64],
) -> Strings {
    let mut strings = Strings::default();
    if interner.strings().is_empty() {
        return strings;
    }
    let mut codes = vec![None; interner.strings().len()];
    renumber(key, known, keys, packed, |own| {
        *codes[own].get_or_insert_with(|| {
            strings.push(interner.strings().get(own));
            strings.len() - 1
        })
    });
    strings
}

/// Changes the codes behind a dictionary's: `number` is given how far behind the last one each is, and says how far it
/// shall be.
pub(super) fn renumber(
    key: usize,
    known: i64,
    keys: &GroupKeys,
    packed: &mut [u64],
    mut number: impl FnMut(usize) -> usize,
) {
    let (null, field) = (keys.keys[key].null, keys.fields[keys.keys[key].field]);
    for words in packed.chunks_exact_mut(keys.words) {
        let code = field.unpack(words);
        if code >= known && !null.is_set(words) {
            let code = known + number((code - known) as usize) as i64;
            let word = &mut words[field.place.word];
            *word = *word & !field.pack(-1) | field.pack(code);
        }
    }
}
