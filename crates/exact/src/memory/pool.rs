//! DataFusion's operators draw on the same budget as the tables, and share it fairly.
//!
//! ```text
//! limit  |== tables ==|== cannot spill ==|=== can spill ===|····· free ·····|·guaranteed·|·reserve·|
//! ```
//!
//! The pool grants or denies at once. Nobody ever waits for memory, so nobody can wait in a circle. Whether a request
//! is granted depends on what the operator does next:
//!
//! - It *collects*: batches of a sort, groups, a join's build side, an exchange. If it is denied memory, it spills
//!   what it has. It may not take what is *guaranteed* to other collectors that have not got it yet, or else the
//!   first sort of a plan would starve the last; nor the *reserve*. Up to what is guaranteed to itself it may take
//!   both.
//! - It *spills*: it sorts what it collected in order to write it, merges what it wrote, groups the merged rows.
//!   That needs less than what was collected, but fails if it is denied. It gets all that is free: the reserve is
//!   there for that. A sort keeps rows in another form beside the batches, and an aggregate doubles its tables before
//!   it asks; so a third stays free of them. Reading what was written is also collecting: the more files at once the
//!   better, but two will do. A sort does not need the sorted rows that it gathers before it writes them: it writes
//!   batch after batch.
//! - It has allocated the memory already, or asks for so little that a failed statement is not worth it: a batch,
//!   an empty table, the rows that a merge in memory compares. This is granted always. Where it does not fit, the
//!   budget is exceeded by that much.
//! - It *cannot spill* (a window, a nested-loop join): it gets what is free and not guaranteed to others.
//!
//! So whoever can spill gets on with little, and the little is never denied. Which of these an operator does shows in
//! its reservations: while it spills, it asks for memory beside another reservation that it holds.
//!
//! **Stands for** DataFusion's `FairSpillPool`. That splits a limit of its own evenly among the operators that can
//! spill, and asks no one else before it grants memory; here tables and operators have one limit.

mod operator;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use eris_numa::{Budget, Bytes, Reservation};
use operator::{OperatorKind, in_words};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A collector is guaranteed so much, if a part of what there is for all of them is enough for that. Spilled files of
/// this size are efficient.
const GUARANTEED: u64 = 32 << 20;
/// That part.
const GUARANTEED_PART: u64 = 2;
/// This part of what the operators could have is left free by sorts and aggregates,
const GROWING_RESERVE_PART: u64 = 3;
/// and this by joins and exchanges, which need little more than they hold;
const RESERVE_PART: u64 = 8;
/// and so many bytes, if there are four times as many.
const RESERVE_LEAST: u64 = 8 << 20;
/// What a sort or an aggregate is never denied: a few batches.
const LEAST: u64 = 4 << 20;
/// How many operators an error names.
const NAMED: usize = 3;

/// A pool that takes every byte out of the engine's budget.
#[derive(Debug)]
pub(crate) struct BudgetPool {
    budget: Budget,
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    held: Reservation,
    consumers: HashMap<usize, Consumer>,
}

#[derive(Debug)]
struct Consumer {
    name: String,
    kind: OperatorKind,
    bytes: u64,
    /// Of a sort: what its merge holds, which is nothing only while the sort begins to spill.
    merging: Option<u64>,
    /// Whether its last request was denied.
    was_denied: bool,
    /// Whether any request ever was, so that it has spilled.
    spilled: bool,
}

/// What a request is measured by.
enum Claim {
    /// It is granted, also beyond the limit.
    Needed,
    /// So much has to stay free.
    Leaving(u64),
}

impl BudgetPool {
    /// A pool over this budget, nothing taken.
    pub fn new(budget: &Budget) -> Self {
        BudgetPool {
            budget: budget.clone(),
            state: Mutex::new(PoolState {
                held: budget.try_reserve(0).expect("nothing is asked"),
                consumers: HashMap::new(),
            }),
        }
    }

    /// The state, also behind a panic: every change is complete or did not happen.
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this consumer may take for a reservation of so many bytes.
    fn claim(&self, state: &PoolState, id: usize, reserved: u64, asked: u64) -> Claim {
        let Some(asking) = state.consumers.get(&id) else {
            return Claim::Leaving(0);
        };
        let few = asking.bytes + asked <= LEAST;
        match asking.kind {
            // It has put its groups on the disk or handed them on, and its empty tables take this.
            kind if kind.is_aggregate() && (asking.was_denied || few) => Claim::Needed,
            // It reads one of the files that it has written.
            kind if kind.is_aggregate() && asking.spilled && asking.bytes == 0 => Claim::Needed,
            // The second file, without which it cannot merge.
            kind if kind.is_aggregate() && asking.spilled && asking.bytes <= asked => {
                Claim::Leaving(0)
            }
            // Groups of the rows that it merges, which is what its other reservation is for.
            kind if kind.is_aggregate()
                && reserved < asking.bytes
                && reserved + asked <= GUARANTEED =>
            {
                Claim::Needed
            }
            // The batch is there.
            OperatorKind::Sort if asking.bytes == 0 || few => Claim::Needed,
            // Merged rows, which it would rather write together.
            OperatorKind::Sort if reserved == 0 => Claim::Leaving(u64::MAX),
            // Rows that it has sorted already, of some of its batches: they are to be merged.
            OperatorKind::Sort if reserved < asking.bytes || asking.merging == Some(0) => {
                Claim::Needed
            }
            // Rows that it compares, already there: of files, it has reserved the largest batches before it reads any.
            OperatorKind::Merge { .. } if few || reserved < asking.bytes => Claim::Needed,
            OperatorKind::Merge { sort } => {
                match sort.and_then(|sort| state.consumers.get(&sort)) {
                    // The sort has written its batches, so it merges files, more than two.
                    Some(sort) if sort.bytes == 0 && asking.bytes > asked => {
                        self.leaving(state, sort, asked)
                    }
                    _ => Claim::Leaving(0),
                }
            }
            _ => self.leaving(state, asking, asked),
        }
    }

    /// What has to stay free if a collector takes so much more, or one that cannot spill.
    fn leaving(&self, state: &PoolState, asking: &Consumer, asked: u64) -> Claim {
        let unspillable: u64 = (state.consumers.values())
            .filter(|consumer| consumer.kind == OperatorKind::CannotSpill)
            .map(|consumer| consumer.bytes)
            .sum();
        let tables = self.budget.used().saturating_sub(state.held.bytes());
        let for_spillers = (self.budget.limit()).saturating_sub(tables + unspillable);
        let spillers = (state.consumers.values()).filter(|consumer| consumer.kind.is_guaranteed());
        let count = spillers.clone().count().max(1) as u64;
        let guaranteed = GUARANTEED.min(for_spillers / GUARANTEED_PART / count);
        let held = |consumer: &Consumer| consumer.bytes + consumer.merging.unwrap_or(0);
        // Its own, also if it came late: that is what the reserve is for, too.
        if asking.kind.is_guaranteed() && held(asking) + asked <= guaranteed {
            return Claim::Leaving(0);
        }
        let owed: u64 = spillers
            .filter(|other| !std::ptr::eq(*other, asking))
            .map(|other| guaranteed.saturating_sub(held(other)))
            .sum();
        let part = match asking.kind {
            OperatorKind::CannotSpill | OperatorKind::OrderedAggregate => {
                return Claim::Leaving(owed);
            }
            OperatorKind::Sort | OperatorKind::Aggregate | OperatorKind::Merge { .. } => {
                GROWING_RESERVE_PART
            }
            OperatorKind::Join | OperatorKind::Exchange => RESERVE_PART,
        };
        let least = RESERVE_LEAST.min(for_spillers / 4);
        Claim::Leaving(owed + least.max(for_spillers / part))
    }

    fn denied(&self, state: &PoolState, asking: usize, asked: u64) -> DataFusionError {
        let mut others: Vec<&Consumer> = state.consumers.values().collect();
        others.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        let holders: Vec<String> = (others.iter())
            .filter(|consumer| consumer.bytes > 0)
            .take(NAMED)
            .map(|consumer| format!("{} {}", in_words(&consumer.name), Bytes(consumer.bytes)))
            .collect();
        let tables = self.budget.used().saturating_sub(state.held.bytes());
        let name = (state.consumers.get(&asking)).map_or("an operator", |asking| &asking.name);
        let mut message = format!(
            "out of memory: {} needs {} more; of {}, tables and scans hold {}, operators {}",
            in_words(name),
            Bytes(asked),
            Bytes(self.budget.limit()),
            Bytes(tables),
            Bytes(state.held.bytes()),
        );
        if !holders.is_empty() {
            message += &format!(" ({})", holders.join(", "));
        }
        // Operators that can spill do so when they see this kind of error.
        DataFusionError::ResourcesExhausted(message)
    }
}

impl PoolState {
    /// Changes what a consumer holds.
    fn count(&mut self, id: usize, change: impl Fn(u64) -> u64) {
        let Some(consumer) = self.consumers.get_mut(&id) else {
            return;
        };
        consumer.bytes = change(consumer.bytes);
        if let OperatorKind::Merge { sort: Some(sort) } = consumer.kind
            && let Some(sort) = self.consumers.get_mut(&sort)
        {
            sort.merging = sort.merging.map(change);
        }
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "budget"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut state = self.state();
        let others = state.consumers.iter();
        let others = others.map(|(id, other)| (*id, other.name.as_str()));
        let known = Consumer {
            name: consumer.name().to_owned(),
            kind: OperatorKind::of(consumer, others),
            bytes: 0,
            merging: None,
            was_denied: false,
            spilled: false,
        };
        if let OperatorKind::Merge { sort: Some(sort) } = known.kind
            && let Some(sort) = state.consumers.get_mut(&sort)
        {
            sort.merging = Some(0);
        }
        state.consumers.insert(consumer.id(), known);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.state().consumers.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state();
        state.held.grow(additional as u64);
        state.count(reservation.consumer().id(), |bytes| {
            bytes.saturating_add(additional as u64)
        });
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        let id = reservation.consumer().id();
        let mut state = self.state();
        state.held.shrink(less as u64);
        state.count(id, |bytes| bytes.saturating_sub(less as u64));
        if let Some(consumer) = state.consumers.get_mut(&id) {
            consumer.was_denied = false;
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let asked = additional as u64;
        let id = reservation.consumer().id();
        let mut state = self.state();
        let granted = match self.claim(&state, id, reservation.size() as u64, asked) {
            _ if asked == 0 => true,
            Claim::Needed => {
                state.held.grow(asked);
                true
            }
            Claim::Leaving(rest) => {
                let fits = (asked.checked_add(rest)).is_some_and(|sum| sum <= self.budget.free());
                fits && state.held.try_grow(asked).is_ok()
            }
        };
        if let Some(consumer) = state.consumers.get_mut(&id) {
            consumer.was_denied = !granted;
            consumer.spilled |= !granted;
        }
        if !granted {
            return Err(self.denied(&state, id, asked));
        }
        state.count(id, |bytes| bytes.saturating_add(asked));
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state().held.bytes() as usize
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.budget.limit() as usize)
    }
}

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "budget({} of {})",
            Bytes(self.reserved() as u64),
            Bytes(self.budget.limit())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn pool(budget: &Budget) -> Arc<dyn MemoryPool> {
        Arc::new(BudgetPool::new(budget))
    }

    fn register(pool: &Arc<dyn MemoryPool>, name: &str, can_spill: bool) -> MemoryReservation {
        let consumer = MemoryConsumer::new(name).with_can_spill(can_spill);
        consumer.register(pool)
    }

    #[test]
    fn operators_and_tables_share_one_limit() {
        let budget = Budget::new(1000);
        let table = budget.try_reserve(600).unwrap();
        let pool = pool(&budget);
        let operator = register(&pool, "window", false);
        operator.try_grow(300).unwrap();
        assert_eq!(budget.used(), 900);
        assert!(operator.try_grow(200).is_err());
        drop(table);
        operator.try_grow(200).unwrap();
        operator.shrink(100);
        assert_eq!(pool.reserved(), 400);
        drop(operator);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_sort_takes_much_but_not_what_the_others_need() {
        const MB: usize = 1_000_000;
        let budget = Budget::new(1000 * MB as u64);
        let pool = pool(&budget);
        let first = register(&pool, "ExternalSorter[0]", true);
        let second = register(&pool, "ExternalSorter[1]", true);
        let window = register(&pool, "Window", false);
        // 32 MiB are guaranteed to the second sort; a third is left free.
        first.try_grow(633 * MB).unwrap();
        assert!(first.try_grow(MB).is_err());
        second.try_grow(33 * MB).unwrap();
        assert!(second.try_grow(2 * MB).is_err());
        // What is left free is for others.
        window.try_grow(325 * MB).unwrap();
        let error = window.try_grow(10 * MB).unwrap_err().to_string();
        assert!(
            error.contains(
                "out of memory: a window function needs 10 MB more; of 1 GB, tables and scans hold 0 bytes, \
                 operators 991 MB (a sort 633 MB, a window function 325 MB, a sort 33 MB)"
            ),
            "{error}"
        );
        first.free();
        second.try_grow(100 * MB).unwrap();
    }

    #[test]
    fn who_comes_late_gets_what_is_guaranteed_and_who_has_spilled_what_is_there() {
        const MB: usize = 1_000_000;
        let budget = Budget::new(1000 * MB as u64);
        let pool = pool(&budget);
        let join = register(&pool, "HashJoinInput[0]", false);
        join.try_grow(870 * MB).unwrap();
        assert!(join.try_grow(10 * MB).is_err());
        let late = register(&pool, "ExternalSorter[0]", true);
        late.try_grow(33 * MB).unwrap();
        assert!(late.try_grow(MB).is_err());
        drop((join, late));
        let aggregate = register(&pool, "FinalHashAggregateStream[0]", true);
        aggregate.try_grow(660 * MB).unwrap();
        assert!(aggregate.try_grow(10 * MB).is_err());
        // Denied once, it has emptied its tables; their capacity may be more than it had before.
        aggregate.try_grow(20 * MB).unwrap();
        assert!(aggregate.try_grow(MB).is_err());
        aggregate.shrink(400 * MB);
        aggregate.try_grow(100 * MB).unwrap();
    }

    #[test]
    fn what_is_needed_after_a_denial_is_never_denied() {
        const MB: usize = 1_000_000;
        let budget = Budget::new(1000 * MB as u64);
        let pool = pool(&budget);
        let sort = register(&pool, "ExternalSorter[1]", true);
        let merge = register(&pool, "ExternalSorterMerge[1]", false);
        let aggregate = register(&pool, "FinalHashAggregateStream[0]", true);
        let window = register(&pool, "Window", false);
        aggregate.try_grow(600 * MB).unwrap();
        assert!(aggregate.try_grow(100 * MB).is_err());
        aggregate.free();
        window.try_grow(930 * MB).unwrap();
        // One of its files has to be read; a third is not worth the limit.
        let files = aggregate.new_empty();
        files.try_grow(40 * MB).unwrap();
        files.try_grow(20 * MB).unwrap_err();
        // The groups of what it reads are few.
        let groups = aggregate.new_empty();
        for _ in 0..5 {
            groups.try_grow(5 * MB).unwrap();
        }
        // The first batch of a sort is there; the second is written instead.
        merge.try_grow(MB).unwrap();
        sort.try_grow(40 * MB).unwrap();
        assert!(sort.try_grow(MB).is_err());
        merge.try_grow(3 * MB).unwrap();
        assert!(merge.try_grow(MB).is_err());
        assert!(window.try_grow(MB).is_err());
        assert!(budget.used() > budget.limit());
    }

    #[test]
    fn sorts_that_spill_at_once_do_not_take_it_from_each_other() {
        const MB: usize = 1_000_000;
        let budget = Budget::new(100 * MB as u64);
        let pool = pool(&budget);
        let window = register(&pool, "Window", false);
        let sorts = [0, 1].map(|partition| {
            let sort = register(&pool, &format!("ExternalSorter[{partition}]"), true);
            let merge = register(&pool, &format!("ExternalSorterMerge[{partition}]"), false);
            merge.try_grow(MB).unwrap();
            sort.try_grow(25 * MB).unwrap();
            (sort, merge)
        });
        window.try_grow(48 * MB).unwrap();
        for (sort, merge) in &sorts {
            assert!(sort.try_grow(MB).is_err());
            merge.free();
        }
        // All sort their batches, and find that they are a little larger now.
        let batches = sorts.each_ref().map(|(sort, _)| sort.split(20 * MB));
        for ((sort, _), batches) in sorts.iter().zip(&batches) {
            batches.try_grow(MB).unwrap();
            sort.try_grow(MB).unwrap();
            sort.free();
        }
        // One gathers what it merges, the other still compares its rows.
        let (first, _) = &sorts[0];
        batches[0].shrink(5 * MB);
        assert!(first.try_grow(MB).is_err());
        let (_, merge) = &sorts[1];
        merge.try_grow(4 * MB).unwrap();
        batches[1].free();
        let rows = merge.new_empty();
        rows.try_grow(20 * MB).unwrap();
        merge.try_grow(20 * MB).unwrap();
        assert!(window.try_grow(MB).is_err());
    }

    #[test]
    fn a_lower_limit_is_heeded_at_once() {
        let budget = Budget::new(1000);
        let pool = pool(&budget);
        let window = register(&pool, "Window", false);
        window.try_grow(500).unwrap();
        budget.set_limit(400);
        assert!(window.try_grow(1).is_err());
        window.shrink(300);
        window.try_grow(50).unwrap();
    }
}
