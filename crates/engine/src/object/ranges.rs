//! Which AEU has which keys of a data object: ranges that are cut when keys come that are greater than all before.
//!
//! ```text
//! nothing ─▶ first rows: quantiles │ ← AEU 0 │ AEU 1 → │
//!         ─▶ mostly greater keys   │ ← AEU 0 │ AEU 1   │ AEU 0 │ AEU 1 → │   assigned keys keep their owner
//! ```
//!
//! Only the part above the greatest assigned key is cut. So rows stay, and ascending keys spread over all AEUs. Writers
//! assign by this table, under its lock. A reader finds its key in every later table, unless keys were
//! [shifted](Ranges::shift) since: rows that an older snapshot shows may be with any former owner.
//!
//! Few keys that are no greater than the greatest assigned one take no lock. No cut can change their owner. So that
//! this holds for most keys of rows that come one by one and ascend, some more than have come count as assigned.

mod stored;

use crate::durability::Log;
use crate::object::keys::{KeyRange, Keys, least, routing_of};
use arc_swap::ArcSwapOption;
use arrow_array::Int64Array;
use crossbeam_utils::CachePadded;
use eris_atomics::{Lock, LockGuard};
use eris_column::CHUNK_ROWS;
use eris_kernels::Isa;
use eris_route::RangeTable;
use eris_types::{AeuId, ObjectId, Timestamp};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// From so many keys on, what they all begin with is passed over when they are assigned.
const COMMON_OF: usize = 1_024;
/// A range above all others is cut once it has got this share of all rows of an AEU: 1 / 16.
const SHARES: u64 = 16;

/// So many rows at a time are few.
const FEW: usize = 16;
/// So many numbers above those of few rows count as assigned.
const AHEAD: i64 = 256;

/// The ranges as they are now.
#[derive(Debug)]
pub(crate) struct Ranges {
    state: Lock<Cuts>,
    /// The newest ranges, from the first row on. Written under the lock.
    current: ArcSwapOption<Assignment>,
    /// The owners of numbers up to this one are fixed. Written under the lock after `current`, and read before it: who
    /// sees it sees ranges that are at least as new.
    assigned: AtomicI64,
    /// Rows that took no lock since somebody did: to each AEU, and into the last range. Relaxed numbers: a sample.
    unlocked: OnceLock<Box<[CachePadded<AtomicU64>]>>,
    unlocked_last: AtomicU64,
    /// Set once, with the first shift, before anybody can see what it has done; owners need not look at ranges before.
    has_shifted: AtomicBool,
    /// Where changes are logged, under the lock, if the object is durable.
    log: OnceLock<(Log, ObjectId)>,
}

#[derive(Debug, Default)]
struct Cuts {
    /// From the first row on.
    current: Option<Arc<Assignment>>,
    bounds: Vec<(i64, AeuId)>,
    /// The greatest number that was assigned.
    highest: i64,
    /// How many rows got into the last range, and to each AEU, by a sample.
    last: u64,
    rows: Vec<u64>,
    since: Timestamp,
}

/// Ranges, as they are from one shift to the next.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub table: RangeTable<i64, AeuId>,
    /// What snapshots from here on show is with the owners of this table; of what older ones show, some may be with
    /// others.
    pub since: Timestamp,
    bounds: Box<[(i64, AeuId)]>,
    /// What keys that are bytes begin with; the numbers are those of the eight bytes behind it.
    common: Arc<[u8]>,
}

impl Assignment {
    /// The numbers of keys.
    pub fn routing(&self, keys: &Keys) -> Vec<i64> {
        keys.routing(&self.common)
    }

    /// The keys between two, by owner: those of one range after those of the other, so that they come in order.
    pub fn parts(&self, keys: &KeyRange) -> Vec<(AeuId, KeyRange)> {
        let (from, to) = keys.routing(&self.common);
        let mut parts = Vec::new();
        for (place, (low, owner)) in self.bounds.iter().enumerate() {
            let next = self.bounds.get(place + 1).map(|(next, _)| *next);
            if *low > to || next.is_some_and(|next| next <= from) {
                continue;
            }
            let low = Some(*low).filter(|low| *low > from);
            let high = next.filter(|next| *next <= to);
            parts.push((*owner, keys.clipped(low, high, &self.common)));
        }
        parts
    }

    /// All ranges in their order, those side by side that have one owner as one: the least number, and the least of the
    /// next one.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<i64>, Option<i64>, AeuId)> + '_ {
        let mut runs = self.bounds.chunk_by(|a, b| a.1 == b.1).peekable();
        std::iter::from_fn(move || {
            let (low, owner) = runs.next()?[0];
            let high = runs.peek().map(|next| next[0].0);
            Some(((low > i64::MIN).then_some(low), high, owner))
        })
    }

    /// Those of some keys whose numbers are at least `low` and less than `high`.
    pub fn clipped(&self, keys: &KeyRange, low: Option<i64>, high: Option<i64>) -> KeyRange {
        keys.clipped(low, high, &self.common)
    }

    /// The least key, in the index's bytes, that has a number, if keys are bytes.
    pub fn least(&self, number: i64) -> Vec<u8> {
        least(number, &self.common)
    }

    /// The owner of a key in the index's bytes; those of a number are its eight, the most significant first.
    pub fn owner_of(&self, key: &[u8]) -> AeuId {
        self.get(self.number_of(key))
    }

    /// The number of such a key.
    pub fn number_of(&self, key: &[u8]) -> i64 {
        routing_of(key, &self.common)
    }

    /// The owners of keys from `low` to before `high`, in that index's bytes; one beside them, perhaps.
    pub fn owners_between(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> impl Iterator<Item = AeuId> + '_ {
        let low = routing_of(low, &self.common);
        let high = high.map_or(i64::MAX, |high| routing_of(high, &self.common));
        self.table.overlapping(low, high.max(low))
    }

    /// The owner of a number.
    pub fn get(&self, number: i64) -> AeuId {
        self.table.get(number)
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges {
            state: Lock::default(),
            current: ArcSwapOption::empty(),
            assigned: AtomicI64::new(i64::MIN),
            unlocked: OnceLock::new(),
            unlocked_last: AtomicU64::new(0),
            has_shifted: AtomicBool::new(false),
            log: OnceLock::new(),
        }
    }
}

impl Ranges {
    /// The ranges; `None` before the first row.
    pub fn get(&self) -> Option<Arc<Assignment>> {
        self.current.load_full()
    }

    /// The same for a moment: for who looks and goes on.
    pub fn look(&self) -> impl Deref<Target = Option<Arc<Assignment>>> {
        self.current.load()
    }

    /// The ranges by which rows with these keys are assigned, and their numbers.
    pub fn assign(&self, keys: &[Keys], aeus: usize) -> (Arc<Assignment>, Vec<Vec<i64>>) {
        if let Some(assigned) = self.assign_unlocked(keys, aeus) {
            return assigned;
        }
        let mut state = self.lock();
        let common = match &state.current {
            Some(assignment) => Arc::clone(&assignment.common),
            None => common(keys).into(),
        };
        let numbers = keys.iter().map(|keys| keys.routing(&common));
        let numbers: Vec<Vec<i64>> = numbers.collect();
        let all: Vec<Numbers> = numbers.iter().map(|some| Numbers::new(some)).collect();
        (self.assign_locked(&mut state, &all, &common, aeus), numbers)
    }

    /// The same for few keys whose owners are fixed.
    fn assign_unlocked(
        &self,
        keys: &[Keys],
        aeus: usize,
    ) -> Option<(Arc<Assignment>, Vec<Vec<i64>>)> {
        let [keys] = keys else {
            return None;
        };
        let assigned = self.assigned.load(Ordering::Acquire);
        let ranges = self.get().filter(|_| keys.len() <= FEW)?;
        let numbers = ranges.routing(keys);
        if numbers.iter().any(|number| *number > assigned) {
            return None;
        }
        let last = ranges.bounds.last().expect("it has a first").0;
        let unlocked = self.unlocked(aeus);
        for number in &numbers {
            unlocked[ranges.get(*number).index()].fetch_add(1, Ordering::Relaxed);
            if *number >= last {
                self.unlocked_last.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some((ranges, vec![numbers]))
    }

    fn unlocked(&self, aeus: usize) -> &[CachePadded<AtomicU64>] {
        self.unlocked
            .get_or_init(|| (0..aeus).map(|_| CachePadded::default()).collect())
    }

    fn assign_locked(
        &self,
        state: &mut Cuts,
        numbers: &[Numbers],
        common: &Arc<[u8]>,
        aeus: usize,
    ) -> Arc<Assignment> {
        let unlocked = self.unlocked(aeus).iter();
        for (rows, unlocked) in state.rows.iter_mut().zip(unlocked) {
            *rows += unlocked.swap(0, Ordering::Relaxed);
        }
        state.last += self.unlocked_last.swap(0, Ordering::Relaxed);
        let before = state.current.clone();
        let assignment = state.assign(numbers, common, aeus);
        if !before.is_some_and(|before| Arc::ptr_eq(&before, &assignment)) {
            self.current.store(Some(Arc::clone(&assignment)));
            self.say(state);
        }
        self.assigned.store(state.highest, Ordering::Release);
        assignment
    }

    /// The same for keys that are numbers, or numbers of another column.
    pub fn assign_numbers(&self, numbers: &[Int64Array], aeus: usize) -> Arc<Assignment> {
        let all = numbers.iter().map(|some| Numbers::new(some.values()));
        let all: Vec<Numbers> = all.collect();
        self.assign_locked(&mut self.lock(), &all, &Arc::default(), aeus)
    }

    /// Whether keys that had an owner have got another one, ever.
    pub fn has_shifted(&self) -> bool {
        self.has_shifted.load(Ordering::Acquire)
    }

    /// The keys with numbers from `low` to `high` are another AEU's from the commit at `at` on, with about so many
    /// rows. Nobody is assigning rows with such keys, or has written some.
    pub fn shift(&self, (low, high): (i64, i64), to: AeuId, rows: u64, at: Timestamp) {
        self.has_shifted.store(true, Ordering::Release);
        let mut state = self.lock();
        let common = match &state.current {
            Some(assignment) => assignment.common.clone(),
            None => return,
        };
        let behind = |number: i64| {
            let before = state.bounds.partition_point(|(bound, _)| *bound <= number);
            state.bounds[before - 1].1
        };
        let (from, next) = (behind(low), high.checked_add(1));
        let next = next.map(|next| (next, behind(next)));
        state
            .bounds
            .retain(|(bound, _)| !(low..=high).contains(bound));
        state
            .bounds
            .retain(|(bound, _)| next.is_none_or(|(next, _)| *bound != next));
        state.bounds.extend([(low, to)].into_iter().chain(next));
        state.bounds.sort_unstable_by_key(|(bound, _)| *bound);
        state.bounds.dedup_by_key(|(_, owner)| *owner);
        state.rows[from.index()] = state.rows[from.index()].saturating_sub(rows);
        state.rows[to.index()] += rows;
        state.since = state.since.max(at);
        state.last = 0;
        state.publish(common);
        self.current.store(state.current.clone());
        self.say(&state);
    }

    fn lock(&self) -> LockGuard<'_, Cuts> {
        self.state.lock()
    }
}

/// Numbers of some rows, one after the other.
struct Numbers<'a> {
    all: &'a [i64],
    ascend: bool,
    greatest: i64,
}

impl<'a> Numbers<'a> {
    fn new(all: &'a [i64]) -> Self {
        let ascend = all.is_sorted();
        let greatest = match ascend {
            true => all.last().copied(),
            false => Isa::best().min_max_i64(all).map(|(_, greatest)| greatest),
        };
        Numbers {
            all,
            ascend,
            greatest: greatest.unwrap_or(i64::MIN),
        }
    }

    /// How many are greater than another.
    fn above(&self, other: i64) -> usize {
        if self.greatest <= other {
            return 0;
        }
        match self.ascend {
            true => self.all.len() - self.all.partition_point(|number| *number <= other),
            false => self.all.iter().filter(|number| **number > other).count(),
        }
    }
}

impl Cuts {
    fn assign(&mut self, numbers: &[Numbers], common: &Arc<[u8]>, aeus: usize) -> Arc<Assignment> {
        self.extend(numbers, common, aeus);
        let assignment = self.current.clone().expect("made if it was not there");
        self.count(&assignment, numbers);
        assignment
    }

    /// Cuts ranges above the greatest number assigned, if that is where most of these belong.
    fn extend(&mut self, numbers: &[Numbers], common: &Arc<[u8]>, aeus: usize) {
        let is_new = self.current.is_none();
        let count: usize = numbers.iter().map(|some| some.all.len()).sum();
        if is_new {
            self.rows = vec![0; aeus];
            self.bounds = vec![(i64::MIN, AeuId(0))];
        } else {
            let most = self.rows.iter().sum::<u64>() / (SHARES * aeus as u64);
            if self.last < most.max(CHUNK_ROWS as u64) && count < CHUNK_ROWS {
                return;
            }
        }
        let new = match is_new {
            true => count,
            false => numbers.iter().map(|some| some.above(self.highest)).sum(),
        };
        if new == 0 || new < count / 2 {
            return;
        }
        let before = self.bounds.clone();
        if count < aeus * CHUNK_ROWS && !is_new {
            let most = self.rows.iter().sum::<u64>() / (SHARES * aeus as u64);
            if self.last >= most.max(CHUNK_ROWS as u64) {
                let least = (0..aeus).min_by_key(|&aeu| self.rows[aeu]);
                let least = least.expect("there is an AEU");
                self.begin_above(AeuId(least as u16));
            }
        } else {
            let all = numbers.iter().flat_map(|some| some.all).copied();
            let above = all.filter(|number| is_new || *number > self.highest);
            let mut sorted: Vec<i64> = above.collect();
            sorted.sort_unstable();
            if !is_new && aeus > 1 {
                self.begin_above(AeuId(0));
            }
            for aeu in 1..aeus {
                let bound = sorted[sorted.len() * aeu / aeus];
                if bound > self.bounds.last().expect("it has a first").0 {
                    self.bounds.push((bound, AeuId(aeu as u16)));
                }
            }
        }
        if is_new || self.bounds != before {
            self.publish(Arc::clone(common));
            self.last = 0;
        }
        if is_new {
            self.highest = i64::MIN;
        }
    }

    /// Begins a range above the greatest key that was assigned. Nobody has rows of ranges there, which come from
    /// shifts.
    fn begin_above(&mut self, owner: AeuId) {
        let first = self.highest + 1;
        self.bounds.retain(|(bound, _)| *bound < first);
        self.bounds.push((first, owner));
    }

    /// Makes the ranges known.
    fn publish(&mut self, common: Arc<[u8]>) {
        let bounds = self.bounds.iter().copied();
        let table = RangeTable::new(bounds).expect("bounds ascend from the least number");
        self.current = Some(Arc::new(Assignment {
            table,
            since: self.since,
            bounds: self.bounds.as_slice().into(),
            common,
        }));
    }

    /// Notes where rows go.
    fn count(&mut self, assignment: &Assignment, numbers: &[Numbers]) {
        let last = self.bounds.last().expect("it has a first").0;
        let count: usize = numbers.iter().map(|some| some.all.len()).sum();
        let ahead = if count <= FEW { AHEAD } else { 0 };
        for some in numbers {
            self.highest = self.highest.max(some.greatest.saturating_add(ahead));
            // A sample tells how many get where.
            let step = (some.all.len() / 64).max(1);
            for number in some.all.iter().step_by(step) {
                self.rows[assignment.get(*number).index()] += step as u64;
                self.last += if *number >= last { step as u64 } else { 0 };
            }
        }
    }
}

/// What keys that are bytes begin with, if there are enough to tell.
fn common(keys: &[Keys]) -> Vec<u8> {
    let count: usize = keys.iter().map(Keys::len).sum();
    let Some(first) = keys
        .first()
        .filter(|first| matches!(first, Keys::Bytes(..)) && count >= COMMON_OF)
    else {
        return Vec::new();
    };
    let mut length = usize::MAX;
    for keys in keys {
        // Those that are too long are rejected later.
        length = length.min(keys.common(first).unwrap_or(0));
    }
    first.bytes(0)[..length.min(first.bytes(0).len())].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = CHUNK_ROWS;

    fn words(from: u64, count: usize) -> Vec<Keys> {
        vec![Keys::Words(
            (from..from + count as u64)
                .map(|word| word ^ 1 << 63)
                .collect(),
        )]
    }

    #[test]
    fn ascending_keys_are_spread_and_stay_where_they_are() {
        for aeus in [1, 2, 3, 8] {
            let ranges = Ranges::default();
            let mut owners: Vec<(i64, AeuId)> = Vec::new();
            let mut rows = vec![0usize; aeus];
            for part in 0..60 {
                let keys = words(part * MANY as u64, MANY);
                let (assignment, numbers) = ranges.assign(&keys, aeus);
                for number in &numbers[0] {
                    rows[assignment.get(*number).index()] += 1;
                }
                owners.push((numbers[0][7], assignment.get(numbers[0][7])));
                for (number, owner) in &owners {
                    assert_eq!(assignment.get(*number), *owner);
                }
            }
            let (least, most) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
            assert!(
                most - least <= rows.iter().sum::<usize>() / 8 + MANY,
                "{rows:?}"
            );
        }
    }

    #[test]
    fn keys_in_no_order_keep_their_first_ranges() {
        let ranges = Ranges::default();
        let mixed = |seed: u64| {
            let mix = |word: u64| {
                word.wrapping_add(seed << 40)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            };
            vec![Keys::Words((0..4 * MANY as u64).map(mix).collect())]
        };
        let (first, _) = ranges.assign(&mixed(0), 4);
        for seed in 1..5 {
            let (assignment, numbers) = ranges.assign(&mixed(seed), 4);
            assert!(Arc::ptr_eq(&first, &assignment), "cut again");
            let mut rows = [0usize; 4];
            numbers[0]
                .iter()
                .for_each(|number| rows[assignment.get(*number).index()] += 1);
            assert!(
                rows.iter().all(|rows| rows.abs_diff(MANY) < MANY / 8),
                "{rows:?}"
            );
        }
    }

    #[test]
    fn shifted_keys_have_their_new_owner_and_later_ones_are_assigned_as_before() {
        let ranges = Ranges::default();
        ranges.assign(&words(0, MANY), 2);
        assert!(!ranges.has_shifted());
        let owners = || {
            let assignment = ranges.get().unwrap();
            let all: Vec<_> = assignment.ranges().collect();
            (all, assignment.since)
        };
        let half = MANY as i64 / 2;
        let (a, b) = (AeuId(0), AeuId(1));
        assert_eq!(owners().0, [(None, Some(half), a), (Some(half), None, b)]);
        ranges.shift((100, 199), b, 100, Timestamp(5));
        let parts = [
            (None, Some(100), a),
            (Some(100), Some(200), b),
            (Some(200), Some(half), a),
            (Some(half), None, b),
        ];
        assert_eq!(owners(), (parts.to_vec(), Timestamp(5)));
        ranges.shift((200, half - 1), b, 100, Timestamp(7));
        assert_eq!(owners().0, [(None, Some(100), a), (Some(100), None, b)]);
        // Beyond all keys: nobody has rows there, and the next ones are cut as if nothing had happened.
        ranges.shift((2 * MANY as i64, i64::MAX), a, 0, Timestamp(8));
        ranges.shift((i64::MIN, 50), b, 50, Timestamp(9));
        assert_eq!(
            owners().0[..2],
            [(None, Some(51), b), (Some(51), Some(100), a)]
        );
        let mut rows = 0;
        for part in 1..20 {
            let keys = words(part * MANY as u64, MANY);
            let (assignment, numbers) = ranges.assign(&keys, 2);
            let of_a = numbers[0]
                .iter()
                .filter(|number| assignment.get(**number) == a);
            rows += of_a.count();
        }
        assert!((7..13).contains(&(rows / MANY)), "{rows}");
        assert_eq!(owners().1, Timestamp(9));
    }

    #[test]
    fn what_texts_begin_with_does_not_matter() {
        let ranges = Ranges::default();
        let mut bytes = Vec::new();
        let ends = (0..2_000).map(|row| {
            bytes.extend_from_slice(format!("Customer#{:09}\0", row * 7).as_bytes());
            bytes.len()
        });
        let ends = ends.collect();
        let (assignment, numbers) = ranges.assign(&[Keys::Bytes(bytes, ends)], 4);
        assert!(numbers[0].is_sorted());
        let mut rows = [0; 4];
        numbers[0]
            .iter()
            .for_each(|number| rows[assignment.get(*number).index()] += 1);
        assert!(
            rows.iter().all(|rows| (450..=550).contains(rows)),
            "{rows:?}"
        );
        assert_eq!(routing_of(b"A", &assignment.common), i64::MIN);
        assert_eq!(routing_of(b"Z", &assignment.common), i64::MAX);
    }
}
