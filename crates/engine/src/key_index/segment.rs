//! A segment: some range of an index's keys with a tree of its own, so that it changes owner as a whole.
//!
//! ```text
//! keys   low ──────────────────────── high
//! tree   ● ● ● ● ● ● ● ● ● ● ● ● ● ● ● ●  ○ ○ ○       ○ given away: out of reach, and removed bit by bit
//!                └── copied ──┘                       changes within are noted meanwhile
//! ```

use crate::reorganize::Watched;
use eris_index::{Art, BatchError, IndexError};
use eris_numa::thread_cpu_time;
use std::ops::RangeInclusive;
use std::time::Duration;

/// An operation on so many keys is timed; of those on fewer, one of so many: the thread's own clock, which does not run while others have the
/// core, costs as much as some lookups.
const MANY: usize = 2_048;
const TIMED: u64 = 16;
/// One key of so many is kept, as what was asked for.
const SAMPLED: usize = 61;
/// So many are kept: enough to cut a segment to a percent of its load.
const SAMPLES: usize = 2_048;

pub(crate) struct Segment {
    /// Its keys, both included.
    pub low: u64,
    pub high: u64,
    tree: Watched<u64>,
    /// Keys beyond its own that are still in the tree.
    garbage: Vec<(u64, u64)>,
    /// About how many entries that is.
    dead: usize,
    copied: Option<Copied>,
    asked: Asked,
}

/// Keys that have been copied so far, and those of them that have been changed since.
struct Copied {
    keys: RangeInclusive<u64>,
    /// The first of them that has not been copied; `None` once all have.
    next: Option<u64>,
    /// Each key once, in a tree: its memory is counted, and no single change costs more than others, as where a table grows.
    changed: Art<u64>,
    /// How many have become changed since some were copied, or taken, last.
    added: usize,
    /// Why changes could not be noted: the copy is of no use.
    failure: Option<IndexError>,
}

/// Keys that have been changed since they were copied.
#[derive(Clone, Copy, Default)]
pub(crate) struct Changes {
    pub left: usize,
    /// Those of them that have been since some were copied, or taken, last.
    pub added: usize,
}

/// What a segment was asked for since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub keys: u64,
    /// Some of the keys, in no order.
    pub samples: Vec<u64>,
    /// What operations on many keys took, and how many keys those were.
    of_many: Duration,
    many: u64,
    /// Other operations; how many keys those had that were timed, and what they took.
    operations: u64,
    timed: u64,
    time: Duration,
    /// Keys up to the next sample, and where it goes.
    until: usize,
    next: usize,
}

/// An operation that is timed.
struct Began {
    at: Duration,
    is_many: bool,
}

impl Segment {
    pub fn new(low: u64, high: u64, tree: Watched<u64>) -> Self {
        Segment {
            low,
            high,
            tree,
            garbage: Vec::new(),
            dead: 0,
            copied: None,
            asked: Asked::default(),
        }
    }

    pub fn tree(&mut self) -> &mut Watched<u64> {
        &mut self.tree
    }

    pub fn has(&self, key: u64) -> bool {
        (self.low..=self.high).contains(&key)
    }

    pub fn get_many(&mut self, keys: &[u64], values: &mut [Option<u64>]) {
        let began = self.asked.begin(keys.len());
        self.tree.get_many(keys, values);
        self.asked.note(keys.len(), began, |at| keys[at]);
    }

    pub fn put_many(
        &mut self,
        entries: &[(u64, u64)],
        before: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        let began = self.asked.begin(entries.len());
        self.note_changes(entries.iter().map(|entry| entry.0));
        let result = self.tree.upsert_many(entries, before);
        self.asked.note(entries.len(), began, |at| entries[at].0);
        result
    }

    pub fn remove_many(&mut self, keys: &[u64], values: &mut [Option<u64>]) {
        let began = self.asked.begin(keys.len());
        self.note_changes(keys.iter().copied());
        self.tree.remove_many(keys, values);
        self.asked.note(keys.len(), began, |at| keys[at]);
    }

    /// Appends the entries of its own keys from `low` to `high`, ascending, so many at most.
    pub fn read(&mut self, low: u64, high: u64, most: usize, entries: &mut Vec<(u64, u64)>) {
        let began = self.asked.begin(0);
        let first = entries.len();
        entries.extend(self.range(low, high).take(most));
        let read = entries.len() - first;
        self.asked.note(read.max(1), began, |at| {
            entries.get(first + at).map_or(low, |entry| entry.0)
        });
    }

    /// The entries of its own keys from `low` to `high`, ascending.
    pub fn range(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (low, high) = (low.max(self.low), high.min(self.high));
        (low <= high)
            .then(|| self.tree.range(low..=high))
            .into_iter()
            .flatten()
    }

    /// How many keys it has; about, as long as there is garbage, of which less may be left than there was.
    pub fn len(&self) -> usize {
        self.tree.len().saturating_sub(self.dead)
    }

    pub fn bytes(&self) -> u64 {
        self.tree.footprint().used as u64
    }

    /// What it was asked for since the last call.
    pub fn take_asked(&mut self) -> Asked {
        std::mem::take(&mut self.asked)
    }

    /// These keys are going to be copied, in order.
    pub fn begin_copy(&mut self, keys: RangeInclusive<u64>) {
        self.copied = Some(Copied {
            next: Some(*keys.start()),
            keys,
            changed: Art::new(self.tree.memory().clone(), self.tree.object()),
            added: 0,
            failure: None,
        });
    }

    /// The keys before this one have been copied, or all: from here on changes of them are noted.
    pub fn set_copied(&mut self, next: Option<u64>) {
        if let Some(copied) = &mut self.copied {
            copied.next = next;
            copied.added = 0;
        }
    }

    /// Some of the keys that were changed since they were copied, ascending, with their values now.
    ///
    /// # Errors
    /// There was no memory to note them all.
    pub fn take_changes(&mut self, most: usize) -> Result<Vec<(u64, Option<u64>)>, IndexError> {
        let Some(copied) = &mut self.copied else {
            return Ok(Vec::new());
        };
        if let Some(failure) = copied.failure.take() {
            return Err(failure);
        }
        let keys = copied.changed.iter().take(most);
        let keys: Vec<u64> = keys.map(|(key, _)| key).collect();
        let mut values = vec![None; keys.len()];
        copied.changed.remove_many(&keys, &mut values);
        copied.added = 0;
        Art::get_many(&self.tree, &keys, &mut values);
        Ok(keys.into_iter().zip(values).collect())
    }

    /// How many keys have been changed since they were copied.
    pub fn changes(&self) -> Changes {
        let copied = self.copied.as_ref();
        copied.map_or(Changes::default(), |copied| Changes {
            left: copied.changed.len(),
            added: copied.added,
        })
    }

    /// No more changes need be noted.
    pub fn end_copy(&mut self) {
        self.copied = None;
    }

    /// Has entries as another owner has them by now, of each key one.
    pub fn apply(&mut self, changes: &[(u64, Option<u64>)]) -> Result<(), IndexError> {
        let put = changes
            .iter()
            .filter_map(|&(key, value)| Some((key, value?)));
        let put: Vec<_> = put.collect();
        let removed = changes.iter().filter(|(_, value)| value.is_none());
        let removed: Vec<u64> = removed.map(|(key, _)| *key).collect();
        Art::upsert_many(&mut self.tree, &put, &mut vec![None; put.len()])
            .map_err(|error| error.error)?;
        Art::remove_many(&mut self.tree, &removed, &mut vec![None; removed.len()]);
        Ok(())
    }

    /// Gives up keys at one of its ends, whose entries, about so many, become garbage.
    ///
    /// # Panics
    /// If these are not the first or the last of its keys, or all.
    pub fn shrink(&mut self, low: u64, high: u64, entries: usize) {
        match (low == self.low, high == self.high) {
            (true, false) => self.low = high + 1,
            (false, true) => self.high = low - 1,
            _ => panic!("{low}..={high} of {}..={}", self.low, self.high),
        }
        self.garbage.push((low, high));
        self.dead = (self.dead + entries).min(self.tree.len());
    }

    /// Whether keys of it are being copied.
    pub fn is_copied(&self) -> bool {
        self.copied.is_some()
    }

    /// Whether keys that are not its own are still in the tree.
    pub fn has_garbage(&self) -> bool {
        !self.garbage.is_empty()
    }

    /// Takes over some of the first keys of the segment behind it; says whether there are more.
    ///
    /// # Errors
    /// No memory: nothing has changed but that some entries are in both trees, in this one as garbage.
    pub fn absorb(&mut self, next: &mut Segment, most: usize) -> Result<bool, IndexError> {
        let entries: Vec<_> = next.range(next.low, next.high).take(most).collect();
        let put = self
            .tree
            .upsert_many(&entries, &mut vec![None; entries.len()]);
        if let Err(error) = put {
            // Some are in both trees: they must be gone from here before their keys are, for there they may be removed.
            if let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) {
                self.garbage.push((*first, *last));
                self.dead = (self.dead + error.done).min(self.tree.len());
            }
            return Err(error.error);
        }
        let last = match entries.last() {
            Some((last, _)) if entries.len() == most && *last < next.high => *last,
            _ => {
                self.high = next.high;
                return Ok(false);
            }
        };
        self.high = last;
        next.shrink(next.low, last, entries.len());
        next.clean(usize::MAX);
        Ok(true)
    }

    /// Removes some garbage; says whether there is more.
    pub fn clean(&mut self, most: usize) -> bool {
        let Some(&(low, high)) = self.garbage.last() else {
            return false;
        };
        let keys = self.tree.range(low..=high).take(most);
        let keys: Vec<u64> = keys.map(|(key, _)| key).collect();
        self.tree.remove_many(&keys, &mut vec![None; keys.len()]);
        self.dead = self.dead.saturating_sub(keys.len());
        if keys.len() < most {
            self.garbage.pop();
        }
        if self.garbage.is_empty() {
            self.dead = 0;
            self.tree.trim();
        }
        !self.garbage.is_empty()
    }

    pub fn watched(&self) -> &Watched<u64> {
        &self.tree
    }

    fn note_changes(&mut self, changed: impl Iterator<Item = u64>) {
        if let Some(copied) = &mut self.copied {
            copied.note(changed);
        }
    }
}

impl Copied {
    fn note(&mut self, changed: impl Iterator<Item = u64>) {
        if self.failure.is_some() {
            return;
        }
        let Copied { keys, next, .. } = self;
        let is_copied = |key: &u64| keys.contains(key) && next.is_none_or(|next| *key < next);
        let changed: Vec<_> = changed.filter(is_copied).map(|key| (key, 0)).collect();
        let before = self.changed.len();
        let noted = (self.changed).upsert_many(&changed, &mut vec![None; changed.len()]);
        self.added += self.changed.len() - before;
        if let Err(error) = noted {
            self.failure = Some(error.error);
            self.changed.clear();
        }
    }
}

impl Asked {
    /// What that took its owner, as far as can be told from what was timed.
    pub fn busy(&self) -> Duration {
        let others = self.keys - self.many;
        let of_others = match self.timed {
            0 => Duration::ZERO,
            timed => self.time.mul_f64(others as f64 / timed as f64),
        };
        self.of_many + of_others
    }

    /// The thread's clock before an operation on at least so many keys, if that is to be timed.
    #[inline]
    fn begin(&mut self, count: usize) -> Option<Began> {
        let is_many = count >= MANY;
        self.operations += u64::from(!is_many);
        (is_many || self.operations % TIMED == 1).then(|| Began {
            at: thread_cpu_time(),
            is_many,
        })
    }

    #[inline]
    fn note(&mut self, count: usize, began: Option<Began>, key: impl Fn(usize) -> u64) {
        self.keys += count as u64;
        if let Some(Began { at, is_many }) = began {
            let took = thread_cpu_time().saturating_sub(at);
            let (keys, time) = match is_many {
                true => (&mut self.many, &mut self.of_many),
                false => (&mut self.timed, &mut self.time),
            };
            *keys += count as u64;
            *time += took;
        }
        while self.until < count {
            let key = key(self.until);
            match self.samples.get_mut(self.next) {
                Some(sample) => *sample = key,
                None => self.samples.push(key),
            }
            self.next = (self.next + 1) % SAMPLES;
            self.until += SAMPLED;
        }
        self.until -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Memory, Topology};
    use eris_types::{NodeId, ObjectId};

    fn segment(keys: RangeInclusive<u64>) -> Segment {
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(64 << 20)).unwrap();
        let entries: Vec<_> = keys.clone().map(|key| (key, key * 10)).collect();
        let tree = Art::build(memory.node(NodeId(0)), ObjectId(1), &entries).unwrap();
        Segment::new(*keys.start(), *keys.end(), tree.into())
    }

    #[test]
    fn what_is_given_up_is_out_of_reach_at_once_and_removed_bit_by_bit() {
        let mut segment = segment(0..=999);
        segment.shrink(400, 999, 600);
        assert_eq!(segment.range(0, u64::MAX).count(), 400);
        assert_eq!((segment.len(), segment.tree.len()), (400, 1_000));
        let mut slices = 1;
        while segment.clean(100) {
            slices += 1;
        }
        assert_eq!((segment.len(), segment.tree.len(), slices), (400, 400, 7));
        assert_eq!(segment.range(0, 9).last(), Some((9, 90)));
    }

    /// What was taken over before memory was short is removed again, lest a key that is removed meanwhile comes back.
    #[test]
    fn what_was_taken_over_by_half_does_not_come_back() {
        let mut first = segment(0..=999);
        let mut next = segment(1_000..=99_999);
        let budget = first.tree.memory().budget().clone();
        let rest = budget.try_reserve(budget.limit() - budget.used() - (64 << 10));
        assert!(first.absorb(&mut next, 50_000).is_err());
        assert!(first.tree.len() > 1_000, "some were put in");
        assert_eq!(
            (first.len(), first.range(0, u64::MAX).count()),
            (1_000, 1_000)
        );
        next.remove_many(&[1_000], &mut [None]);
        drop(rest);
        while first.clean(100) {}
        assert_eq!(first.tree.len(), 1_000);
        while first.absorb(&mut next, 256).unwrap() {}
        let mut found = [None; 3];
        first.get_many(&[999, 1_000, 1_001], &mut found);
        assert_eq!(found, [Some(9_990), None, Some(10_010)]);
        assert_eq!(first.len(), 99_999);
    }

    #[test]
    fn a_copy_catches_up_with_what_was_changed_meanwhile() {
        let mut source = segment(0..=99);
        source.begin_copy(50..=99);
        // Not copied yet, so that it need not be noted.
        source.put_many(&[(60, 5)], &mut [None]).unwrap();
        let copied: Vec<_> = source.range(50, 99).collect();
        source.set_copied(None);
        source
            .put_many(&[(60, 1), (10, 2), (60, 3)], &mut [None; 3])
            .unwrap();
        source.remove_many(&[70], &mut [None]);
        let memory = source.tree.memory().clone();
        let tree = Art::build(memory, ObjectId(1), &copied).unwrap();
        let mut target = Segment::new(50, 99, tree.into());
        let Changes { left, added } = source.changes();
        assert_eq!((left, added), (2, 2));
        let changes = source.take_changes(9).unwrap();
        assert_eq!(changes, [(60, Some(3)), (70, None)]);
        target.apply(&changes).unwrap();
        assert!(source.take_changes(9).unwrap().is_empty());
        assert!(target.range(50, 99).eq(source.range(50, 99)));
    }

    /// What was removed after it was copied is counted as garbage, too.
    #[test]
    fn less_garbage_than_was_counted_is_no_harm() {
        let mut segment = segment(0..=999);
        let copied: Vec<u64> = (500..=999).collect();
        segment.remove_many(&copied, &mut [None; 500]);
        segment.shrink(400, 999, 600);
        segment.remove_many(&copied, &mut [None; 500]);
        assert_eq!(segment.len(), 0);
        let own: Vec<u64> = (0..=199).collect();
        segment.remove_many(&own, &mut [None; 200]);
        assert_eq!(segment.len(), 0);
        while segment.clean(64) {}
        assert_eq!(segment.len(), 200);
    }

    /// Writes go on; it is the copy that is of no use.
    #[test]
    fn a_copy_whose_changes_cannot_be_noted_fails() {
        let mut source = segment(0..=99_999);
        source.begin_copy(0..=99_999);
        source.set_copied(None);
        let budget = source.tree.memory().budget().clone();
        let rest = budget.try_reserve(budget.limit() - budget.used());
        let entries: Vec<_> = (0..=99_999).map(|key| (key, 1)).collect();
        let mut before = vec![None; entries.len()];
        source.put_many(&entries, &mut before).unwrap();
        assert_eq!(before[7], Some(70));
        assert!(source.take_changes(9).is_err());
        drop(rest);
        source.end_copy();
        source.begin_copy(0..=9);
        source.set_copied(None);
        source.put_many(&[(5, 2)], &mut [None]).unwrap();
        assert_eq!(source.take_changes(9).unwrap(), [(5, Some(2))]);
    }

    #[test]
    fn samples_are_spread_over_what_is_asked_for() {
        let mut asked = Asked::default();
        for first in (0..SAMPLED * SAMPLES * 2).step_by(10) {
            asked.note(10, None, |at| (first + at) as u64);
        }
        assert_eq!(asked.samples.len(), SAMPLES);
        assert!(
            asked
                .samples
                .iter()
                .all(|sample| (*sample as usize).is_multiple_of(SAMPLED))
        );
        let oldest = asked.samples.iter().min().unwrap();
        assert!(*oldest as usize >= SAMPLED * SAMPLES, "the newest are kept");
    }
}
