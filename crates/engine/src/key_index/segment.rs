//! A segment: some range of an index's keys with a tree of its own, so that it changes owner as a whole.
//!
//! ```text
//! keys   low ──────────────────────── high
//! tree   ● ● ● ● ● ● ● ● ● ● ● ● ● ● ● ●  ○ ○ ○       ○ given away: out of reach, and removed bit by bit
//!        └ piece ┘             └ piece ┘              keys go to another segment from one end, a piece at a time
//! ```

use crate::held::reorganize::Watched;
use eris_index::{Art, BatchError, IndexError};
use eris_numa::thread_cpu_time;
use std::time::Duration;

/// An operation on so many keys is timed; of those on fewer, one of so many: the thread's own clock, which does not run
/// while others have the core, costs as much as some lookups.
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
    asked: Demand,
}

/// An end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// Keys that lie side by side, with their entries: what goes from segment to segment at once.
#[derive(Debug)]
pub(crate) struct Piece {
    /// From this key
    pub low: u64,
    /// to this one.
    pub high: u64,
    /// Ascending.
    pub entries: Vec<(u64, u64)>,
}

/// What a segment was asked for since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
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
            asked: Demand::default(),
        }
    }

    /// A segment of these keys alone.
    ///
    /// # Errors
    /// No memory.
    pub fn of(piece: &Piece, tree: Watched<u64>) -> Result<Self, IndexError> {
        let mut segment = Segment::new(piece.low, piece.high, tree);
        segment.put(&piece.entries).map_err(|error| error.error)?;
        Ok(segment)
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
        let result = self.tree.upsert_many(entries, before);
        self.asked.note(entries.len(), began, |at| entries[at].0);
        result
    }

    pub fn remove_many(&mut self, keys: &[u64], values: &mut [Option<u64>]) {
        let began = self.asked.begin(keys.len());
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
    pub fn range(&self, low: u64, high: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
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
    pub fn take_asked(&mut self) -> Demand {
        std::mem::take(&mut self.asked)
    }

    /// The first or the last of these keys, so many entries at most.
    pub fn piece(&self, (mut low, mut high): (u64, u64), end: End, most: usize) -> Piece {
        let range = self.range(low, high);
        let mut entries: Vec<_> = match end {
            End::First => range.take(most).collect(),
            End::Last => range.rev().take(most).collect(),
        };
        match entries.last() {
            // There may be more.
            Some(&(last, _)) if entries.len() == most => match end {
                End::First => high = last,
                End::Last => low = last,
            },
            _ => {}
        }
        if end == End::Last {
            entries.reverse();
        }
        Piece { low, high, entries }
    }

    /// Whether these keys lie beside its own, and nothing is in its tree that may have been theirs.
    pub fn adjoins(&self, piece: &Piece) -> bool {
        let Piece { low, high, .. } = *piece;
        let is_beside =
            self.high.checked_add(1) == Some(low) || high.checked_add(1) == Some(self.low);
        is_beside && (self.garbage.iter()).all(|&(first, last)| last < low || first > high)
    }

    /// Takes over keys that [adjoin](Segment::adjoins) its own.
    ///
    /// # Errors
    /// No memory: they are not its own.
    pub fn take_in(&mut self, piece: &Piece) -> Result<(), IndexError> {
        // Until all are there they are garbage: what fails or panics half-way is out of reach, and removed.
        self.garbage.push((piece.low, piece.high));
        if let Err(error) = self.put(&piece.entries) {
            self.dead = (self.dead + error.done).min(self.tree.len());
            return Err(error.error);
        }
        self.garbage.pop();
        match piece.low > self.high {
            true => self.high = piece.high,
            false => self.low = piece.low,
        }
        Ok(())
    }

    /// Not as what is asked for, which is noted.
    fn put(&mut self, entries: &[(u64, u64)]) -> Result<(), BatchError> {
        #[cfg(test)]
        if let Some(done) = super::denials::denial(entries.len()) {
            Art::upsert_many(&mut self.tree, &entries[..done], &mut vec![None; done])?;
            let error = IndexError::Full;
            return Err(BatchError { done, error });
        }
        Art::upsert_many(&mut self.tree, entries, &mut vec![None; entries.len()])
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
        // Pieces that went one by one are one range again.
        let beside = |(first, last): &&mut (u64, u64)| {
            last.checked_add(1) == Some(low) || high.checked_add(1) == Some(*first)
        };
        match self.garbage.iter_mut().find(beside) {
            Some((first, last)) => (*first, *last) = (low.min(*first), high.max(*last)),
            None => self.garbage.push((low, high)),
        }
        self.dead = (self.dead + entries).min(self.tree.len());
    }

    /// Whether keys that are not its own are still in the tree.
    pub fn has_garbage(&self) -> bool {
        !self.garbage.is_empty()
    }

    /// Takes over some of the first keys of the segment behind it; says whether there are more.
    ///
    /// # Errors
    /// No memory: these are still the other one's.
    pub fn absorb(&mut self, next: &mut Segment, most: usize) -> Result<bool, IndexError> {
        let piece = next.piece((next.low, next.high), End::First, most);
        self.take_in(&piece)?;
        if piece.high == next.high {
            return Ok(false);
        }
        next.shrink(piece.low, piece.high, piece.entries.len());
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
}

impl Demand {
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
    use std::ops::RangeInclusive;

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
    fn pieces_go_from_either_end() {
        for end in [End::First, End::Last] {
            let mut source = segment(0..=999);
            let memory = source.tree.memory().clone();
            source.remove_many(&[300, 301, 699, 700], &mut [None; 4]);
            let side = match end {
                End::First => (0, 299),
                End::Last => (700, 999),
            };
            let mut target: Option<Segment> = None;
            let mut left = Some(side);
            while let Some((low, high)) = left {
                let piece = source.piece((low, high), end, 70);
                source.shrink(piece.low, piece.high, piece.entries.len());
                left = match end {
                    End::First => (piece.high < high).then(|| (piece.high + 1, high)),
                    End::Last => (piece.low > low).then(|| (low, piece.low - 1)),
                };
                match &mut target {
                    None => {
                        let tree = Watched::new(memory.clone(), ObjectId(1));
                        target = Some(Segment::of(&piece, tree).unwrap());
                    }
                    Some(target) => {
                        assert!(target.adjoins(&piece));
                        target.take_in(&piece).unwrap();
                    }
                }
            }
            let mut target = target.unwrap();
            assert_eq!((target.low, target.high), side, "{end:?}");
            let keys =
                (0..=999).filter(|key| !(300..=301).contains(key) && !(699..=700).contains(key));
            let expected: Vec<_> = keys.map(|key| (key, key * 10)).collect();
            let both = |first: &Segment, next: &Segment| -> Vec<_> {
                first.range(0, 999).chain(next.range(0, 999)).collect()
            };
            let all = match end {
                End::First => both(&target, &source),
                End::Last => both(&source, &target),
            };
            assert_eq!(all, expected);
            assert_eq!(source.garbage, [side], "one range again");
            assert_eq!(
                (target.len(), source.len()),
                (all.len() - source.len(), source.len())
            );
            // What it has given away cannot come back to it before it is gone from its tree.
            let back = target.piece(side, end, 1_000);
            assert!(!source.adjoins(&back));
            while source.clean(64) {}
            assert!(source.adjoins(&back));
            target.put_many(&[(side.0, 7)], &mut [None]).unwrap();
        }
    }

    #[test]
    fn what_is_taken_in_by_half_is_not_its_own() {
        let mut segment = segment(0..=999);
        let budget = segment.tree.memory().budget().clone();
        let rest = budget.try_reserve(budget.limit() - budget.used() - (64 << 10));
        let entries: Vec<_> = (1_000..=99_999).map(|key| (key, 1)).collect();
        let piece = Piece {
            low: 1_000,
            high: 99_999,
            entries,
        };
        assert!(segment.take_in(&piece).is_err());
        assert!(segment.tree.len() > 1_000, "some were put in");
        assert_eq!((segment.high, segment.len()), (999, 1_000));
        assert!(!segment.adjoins(&piece));
        drop(rest);
        while segment.clean(100) {}
        assert_eq!(segment.tree.len(), 1_000);
        segment.take_in(&piece).unwrap();
        assert_eq!((segment.high, segment.len()), (99_999, 100_000));
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

    #[test]
    fn samples_are_spread_over_what_is_asked_for() {
        let mut asked = Demand::default();
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
