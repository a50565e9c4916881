//! Batches of operations on the keys that one AEU owns: by segment, in runs as long as possible.

use super::OwnedKeys;
use crate::key_index::batch::{KeyBatch, KeyOperation, RangeRead, Rest};
use crate::key_index::layout::parts;
use crate::key_index::segment::Segment;
use std::mem;
use std::ops::Range;

/// Operations on fewer keys of a segment than this gain by being done together with others.
const FEW: usize = 32;

impl OwnedKeys {
    /// Executes batches, each with whoever wants it done, in their order. Lookups that follow each other become one if
    /// they have few keys for each segment. What belongs to others is left.
    pub fn execute<A>(&mut self, batches: &mut [(A, Box<KeyBatch>)]) {
        self.note_work();
        let keys = batches.iter().map(|(_, batch)| batch.left());
        self.asked += keys.sum::<usize>() as u64;
        let few = FEW * self.segments.len();
        let joins = |batch: &KeyBatch| {
            let is_whole = matches!(batch.rest, Rest::All);
            is_whole && batch.operation == KeyOperation::Get && batch.keys.len() < few
        };
        for run in batches.chunk_by_mut(|a, b| joins(&a.1) && joins(&b.1)) {
            match run {
                [(_, batch)] => self.execute_one(batch),
                lookups => self.get_together(lookups),
            }
        }
    }

    fn execute_one(&mut self, batch: &mut KeyBatch) {
        let KeyBatch {
            operation,
            keys,
            entries,
            runs,
            values,
            rest,
            failure,
            ..
        } = batch;
        match *operation {
            KeyOperation::Ranges => {
                let Rest::Reads(reads) = mem::replace(rest, Rest::All) else {
                    unreachable!("ranges have reads");
                };
                *rest = Rest::Reads(self.read(&reads, entries, runs));
            }
            KeyOperation::Put => {
                values.resize(entries.len(), None);
                let mut keys = mem::take(&mut self.keys);
                keys.clear();
                keys.extend(entries.iter().map(|entry| entry.0));
                *rest =
                    self.by_segment(rest, &keys, entries, values, |segment, entries, values| {
                        let put = segment.put_many(entries, values);
                        put.map_err(|error| *failure = Some(error.error)).is_ok()
                    });
                self.keys = keys;
            }
            KeyOperation::Get => {
                values.resize(keys.len(), None);
                *rest = self.by_segment(rest, keys, keys, values, get);
            }
            KeyOperation::Remove => {
                values.resize(keys.len(), None);
                *rest = self.by_segment(rest, keys, keys, values, |segment, keys, values| {
                    segment.remove_many(keys, values);
                    true
                });
            }
        }
    }

    /// Has something done for each key for which it is still to be done, segment by segment, until one says that it
    /// failed: `inputs[i]` is what goes with `keys[i]`, and `values[i]` becomes what comes of it. Returns what others
    /// have.
    fn by_segment<T: Copy>(
        &mut self,
        rest: &Rest,
        keys: &[u64],
        inputs: &[T],
        values: &mut [Option<u64>],
        mut execute: impl FnMut(&mut Segment, &[T], &mut [Option<u64>]) -> bool,
    ) -> Rest {
        let wanted = match rest {
            Rest::All if self.find_runs(keys) => {
                let runs = self.runs.iter().cloned();
                let left = in_runs(&mut self.segments, runs, inputs, values, execute);
                return Rest::Positions(left);
            }
            Rest::Positions(positions) => Some(positions),
            _ => None,
        };
        let keys_of_wanted: Vec<u64>;
        let keys = match wanted {
            None => keys,
            Some(wanted) => {
                keys_of_wanted = wanted.iter().map(|&at| keys[at as usize]).collect();
                &keys_of_wanted
            }
        };
        self.directory.split(keys, &mut self.split);
        let (mut part, mut found, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (at, positions) in self.directory.parts(&self.split) {
            let of_batch = |at: &u32| wanted.map_or(*at, |wanted| wanted[*at as usize]);
            let positions = positions.iter().map(of_batch);
            let Some(segment) = self.segments.get_mut(at as usize) else {
                left.extend(positions);
                continue;
            };
            part.clear();
            part.extend(positions.clone().map(|at| inputs[at as usize]));
            found.clear();
            found.resize(part.len(), None);
            let is_done = execute(segment, &part, &mut found);
            positions
                .zip(&found)
                .for_each(|(at, value)| values[at as usize] = *value);
            if !is_done {
                left.clear();
                break;
            }
        }
        left.sort_unstable();
        Rest::Positions(left)
    }

    /// Finds the runs of keys that lie in one segment; says whether they are long enough to be executed as they are.
    /// They are if a client has split his batch by the ranges that segments have.
    fn find_runs(&mut self, keys: &[u64]) -> bool {
        let most = 1 + keys.len() / FEW;
        self.runs.clear();
        self.runs.extend(self.directory.runs(keys).take(most + 1));
        self.runs.len() <= most
    }

    /// Appends the entries of these ranges, and a run of each; returns the parts of them that others have.
    fn read(
        &mut self,
        reads: &[RangeRead],
        entries: &mut Vec<(u64, u64)>,
        runs: &mut Vec<(usize, usize)>,
    ) -> Vec<RangeRead> {
        let directory = self.directory.clone();
        let mut others = Vec::new();
        for read in reads {
            let first = entries.len();
            let most = first.saturating_add(read.limit);
            for (low, high, at) in parts(&directory, read.low, read.high) {
                match self.segments.get_mut(at as usize) {
                    Some(segment) => segment.read(low, high, most - entries.len(), entries),
                    None => others.push(RangeRead { low, high, ..*read }),
                }
            }
            if entries.len() > first {
                runs.push((read.range, entries.len() - first));
            }
        }
        others
    }

    fn get_together<A>(&mut self, lookups: &mut [(A, Box<KeyBatch>)]) {
        let mut keys = mem::take(&mut self.keys);
        keys.clear();
        keys.extend(lookups.iter().flat_map(|(_, batch)| &batch.keys));
        let mut values = vec![None; keys.len()];
        let Rest::Positions(left) = self.by_segment(&Rest::All, &keys, &keys, &mut values, get)
        else {
            unreachable!("keys have positions");
        };
        let (mut first, mut left) = (0, &left[..]);
        for (_, batch) in lookups {
            let end = first + batch.keys.len();
            batch.values.extend_from_slice(&values[first..end]);
            let (of_batch, others) = left.split_at(left.partition_point(|at| (*at as usize) < end));
            let of_batch = of_batch.iter().map(|at| at - first as u32);
            batch.rest = Rest::Positions(of_batch.collect());
            (first, left) = (end, others);
        }
        self.keys = keys;
    }
}

fn get(segment: &mut Segment, keys: &[u64], values: &mut [Option<u64>]) -> bool {
    segment.get_many(keys, values);
    true
}

/// Has something done run by run, without a copy of anything; returns the positions of what is in no segment here.
fn in_runs<T>(
    segments: &mut [Segment],
    runs: impl Iterator<Item = (u32, Range<usize>)>,
    inputs: &[T],
    values: &mut [Option<u64>],
    mut execute: impl FnMut(&mut Segment, &[T], &mut [Option<u64>]) -> bool,
) -> Vec<u32> {
    let mut left = Vec::new();
    for (at, run) in runs {
        let Some(segment) = segments.get_mut(at as usize) else {
            left.extend(run.map(|at| at as u32));
            continue;
        };
        if !execute(segment, &inputs[run.clone()], &mut values[run]) {
            return Vec::new();
        }
    }
    left
}
