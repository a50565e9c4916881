//! What one worker merges of all workers' groups: those whose keys are its own.
//!
//! ```text
//! Groups ─▶ pending ──round──▶ bucket 0's table ─┐
//! Groups ─▶         (bucket by bucket, each      ├─ in the end, bucket by bucket ─▶ batches
//! Groups ─▶          small enough for a cache) ──┘
//! ```
//!
//! Tables are made and grown by the worker's own thread, in its own memory.

use super::keys::dictionary;
use super::output::BATCH_ROWS;
use super::plan::{GroupPlan, GroupState};
use super::repartition::{Groups, renumber};
use crate::columns::FragmentColumns;
use crate::expr::unexpected;
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use eris_fragment::{FragmentError, with_few_buffers};
use std::borrow::Cow;

/// Batches of fewer rows than this are put together.
const FEW_ROWS: usize = BATCH_ROWS / 4;

/// A worker's share of all groups. Belongs to the program that [started](crate::Program::merger) it.
#[derive(Debug)]
pub struct Merger {
    buckets: Vec<Bucket>,
    /// Of all buckets' tables.
    bytes: usize,
    /// What came since the round began.
    pending: Vec<Groups>,
    pending_bytes: usize,
    /// What is being merged, and the first bucket of it that is not.
    round: Vec<Groups>,
    next: usize,
    /// The first bucket whose groups have not been taken.
    rest: usize,
    numbers: Vec<u32>,
}

/// The groups of a bucket.
#[derive(Debug, Default)]
struct Bucket {
    table: Option<Box<GroupState>>,
    bytes: usize,
}

impl Merger {
    pub(crate) fn new(buckets: u32) -> Self {
        Merger {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            bytes: 0,
            pending: Vec::new(),
            pending_bytes: 0,
            round: Vec::new(),
            next: 0,
            rest: 0,
            numbers: Vec::new(),
        }
    }

    /// Takes groups in, to be merged later.
    pub fn push(&mut self, groups: Groups) {
        self.pending_bytes += groups.bytes();
        self.pending.push(groups);
    }

    /// Memory of what came and no round has begun with.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Memory of the tables.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a round has begun and not ended.
    pub fn is_in_round(&self) -> bool {
        !self.round.is_empty()
    }

    /// Whether nothing is left of what was pushed.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.round.is_empty() && self.bytes == 0 && self.rest == 0
    }

    /// Begins to merge what is pending.
    pub fn begin_round(&mut self) {
        debug_assert!(!self.is_in_round());
        self.round = std::mem::take(&mut self.pending);
        (self.pending_bytes, self.next) = (0, 0);
    }

    /// Everything was taken.
    fn clear(&mut self) {
        self.pending.clear();
        self.round.clear();
        (self.pending_bytes, self.rest) = (0, 0);
    }
}

impl GroupPlan {
    /// Merges one bucket of the round; says whether that was the last one.
    pub(crate) fn merge_next(
        &self,
        merger: &mut Merger,
        columns: &FragmentColumns,
    ) -> Result<bool, FragmentError> {
        let number = merger.next;
        let bucket = &mut merger.buckets[number];
        let table = bucket.table.get_or_insert_with(|| Box::new(self.table()));
        for groups in &merger.round {
            self.merge(groups, number, table, &mut merger.numbers, columns)?;
        }
        merger.bytes -= bucket.bytes;
        bucket.bytes = table.bytes();
        merger.bytes += bucket.bytes;
        merger.next += 1;
        let is_over = merger.next == merger.buckets.len();
        if is_over {
            merger.round.clear();
        }
        Ok(is_over)
    }

    /// Merges what is left of the next buckets and takes their groups, about a batch of them; none once all that was
    /// pushed is gone.
    pub(crate) fn take_next(
        &self,
        merger: &mut Merger,
        columns: &FragmentColumns,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        let mut batches = Vec::new();
        let mut rows = 0;
        while rows < BATCH_ROWS && merger.rest < merger.buckets.len() {
            let number = merger.rest;
            merger.rest += 1;
            let Bucket { table, bytes } = std::mem::take(&mut merger.buckets[number]);
            merger.bytes -= bytes;
            let mut table = table.unwrap_or_else(|| Box::new(self.table()));
            let is_merged = number < merger.next;
            let round = merger.round.iter().filter(|_| !is_merged);
            for groups in round.chain(&merger.pending) {
                self.merge(groups, number, &mut table, &mut merger.numbers, columns)?;
            }
            rows += table.groups();
            batches.extend(self.finish(*table, columns)?);
        }
        if rows == 0 {
            merger.clear();
        }
        if rows > FEW_ROWS * batches.len() {
            return Ok(batches);
        }
        match batches.is_empty() {
            true => Ok(batches),
            false => {
                let batch = concat_batches(&self.schema, &batches).and_then(with_few_buffers);
                Ok(vec![batch.map_err(unexpected)?])
            }
        }
    }

    /// The groups as batches, without being merged.
    pub(crate) fn batches(
        &self,
        groups: Groups,
        columns: &FragmentColumns,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        self.finish(self.table_of(groups), columns)
    }

    /// Merges the groups of a bucket.
    fn merge(
        &self,
        groups: &Groups,
        bucket: usize,
        table: &mut GroupState,
        numbers: &mut Vec<u32>,
        columns: &FragmentColumns,
    ) -> Result<(), FragmentError> {
        let range = groups.of_bucket(bucket);
        if range.is_empty() {
            return Ok(());
        }
        let words = self.keys.words;
        let packed = &groups.packed[range.start * words..range.end * words];
        let mut packed = Cow::Borrowed(packed);
        for (key, strings) in groups.strings.iter().enumerate() {
            if strings.is_empty() {
                continue;
            }
            let known = dictionary(&self.keys.keys[key], columns);
            let known = known.map_or(0, |dictionary| dictionary.len()) as i64;
            let interner = &mut table.interners[key];
            renumber(key, known, &self.keys, packed.to_mut(), |string| {
                interner.number(strings.get(string)) as usize
            });
        }
        table.index.assign_packed(&self.keys, &packed, numbers);
        let all = table.index.groups();
        let pairs = table.states.iter_mut().zip(&groups.states);
        for ((ours, theirs), plan) in pairs.zip(&self.aggregates) {
            ours.grow(all);
            plan.merge(ours, theirs, range.clone(), numbers)?;
        }
        Ok(())
    }
}
