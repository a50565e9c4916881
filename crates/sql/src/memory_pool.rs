//! DataFusion's operators draw on the same budget as the tables, and share it fairly.
//!
//! ```text
//! limit  |== tables ==|== cannot spill ==|=== can spill ===|····· free ·····|·guaranteed·|·reserve·|
//! ```
//!
//! An operator that *cannot* spill (a window, a nested-loop join) gets what is free. One that *can* (a sort, an aggregate, a join's
//! hash table, an exchange) gets what is free too, and spills when it is refused; but it may not take what was *guaranteed* to
//! other such operators that have not got it yet, or else the first sort of a plan would starve the last. Nor may it take
//! the *reserve*: from it come the guaranteed bytes of operators that begin later, and the rows that it yields can
//! still be written into a table.

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use eris_numa::{Budget, Bytes, Reservation};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An operator that can spill is guaranteed so much, if a part of what there is for all of them is enough for that. Spilling
/// files of this size is efficient.
const GUARANTEED: u64 = 32 << 20;
/// That part.
const GUARANTEED_PART: u64 = 2;
/// This part of what the operators could have is left free by those that can spill,
const RESERVE_PART: u64 = 8;
/// and so many bytes, if there are four times as many.
const RESERVE_LEAST: u64 = 8 << 20;
/// How many operators an error names.
const NAMED: usize = 3;

/// A pool that takes every byte out of the engine's budget.
#[derive(Debug)]
pub(crate) struct BudgetPool {
    budget: Budget,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: Reservation,
    consumers: HashMap<usize, Consumer>,
}

#[derive(Debug)]
struct Consumer {
    name: String,
    can_spill: bool,
    bytes: u64,
    /// Whether the last that it asked for was refused.
    refused: bool,
}

impl Consumer {
    /// Whether it needs memory to get anywhere. An exchange does not: it writes what it gets.
    fn is_guaranteed(&self) -> bool {
        self.can_spill && !self.name.starts_with("Repartition")
    }

    fn is_aggregate(&self) -> bool {
        self.name.contains("Aggregate") || self.name.contains("GroupedHash")
    }
}

impl BudgetPool {
    /// A pool over this budget, nothing taken.
    pub fn new(budget: &Budget) -> Self {
        BudgetPool {
            budget: budget.clone(),
            state: Mutex::new(State {
                held: budget.try_reserve(0).expect("nothing is asked"),
                consumers: HashMap::new(),
            }),
        }
    }

    /// The state, also behind a panic: every change is complete or did not happen.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to stay free if this consumer takes so much more.
    fn untouchable(&self, state: &State, asking: usize, asked: u64) -> u64 {
        let unspillable: u64 = (state.consumers.values())
            .filter(|consumer| !consumer.can_spill)
            .map(|consumer| consumer.bytes)
            .sum();
        let tables = self.budget.used().saturating_sub(state.held.bytes());
        let for_spillers = (self.budget.limit()).saturating_sub(tables + unspillable);
        let spillers = (state.consumers.iter()).filter(|(_, consumer)| consumer.is_guaranteed());
        let count = spillers.clone().count().max(1) as u64;
        let guaranteed = GUARANTEED.min(for_spillers / GUARANTEED_PART / count);
        let owed: u64 = spillers
            .filter(|(id, _)| **id != asking)
            .map(|(_, consumer)| guaranteed.saturating_sub(consumer.bytes))
            .sum();
        match state.consumers.get(&asking) {
            // Its own, also if it came late: that is what the reserve is for.
            Some(consumer) if consumer.is_guaranteed() && consumer.bytes + asked <= guaranteed => 0,
            // It has put its groups on the disk or handed them on, and asks for what its empty tables take.
            Some(consumer) if consumer.refused && consumer.is_aggregate() => 0,
            // Nor can it spill any more while it merges what it has put there.
            Some(consumer) if consumer.name.starts_with("OrderedFinal") => owed,
            Some(consumer) if consumer.can_spill => {
                let least = RESERVE_LEAST.min(for_spillers / 4);
                owed + least.max(for_spillers / RESERVE_PART)
            }
            _ => owed,
        }
    }

    fn refused(&self, state: &State, asking: usize, asked: u64) -> DataFusionError {
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

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "budget"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let known = Consumer {
            name: consumer.name().to_owned(),
            // DataFusion's hash join does not, but ours does.
            can_spill: consumer.can_spill() || consumer.name().starts_with("HashJoin"),
            bytes: 0,
            refused: false,
        };
        self.state().consumers.insert(consumer.id(), known);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.state().consumers.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state();
        state.held.grow(additional as u64);
        if let Some(consumer) = state.consumers.get_mut(&reservation.consumer().id()) {
            consumer.bytes += additional as u64;
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, less: usize) {
        let mut state = self.state();
        state.held.shrink(less as u64);
        if let Some(consumer) = state.consumers.get_mut(&reservation.consumer().id()) {
            consumer.bytes -= less as u64;
            consumer.refused = false;
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let asked = additional as u64;
        let id = reservation.consumer().id();
        let mut state = self.state();
        let untouchable = self.untouchable(&state, id, asked);
        let fits = (asked.checked_add(untouchable)).is_some_and(|sum| sum <= self.budget.free());
        let granted = asked == 0 || (fits && state.held.try_grow(asked).is_ok());
        if let Some(consumer) = state.consumers.get_mut(&id) {
            consumer.refused = !granted;
            consumer.bytes += if granted { asked } else { 0 };
        }
        if !granted {
            return Err(self.refused(&state, id, asked));
        }
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

/// What users call the operator of this name, such as `ExternalSorterMerge[3]`.
fn in_words(name: &str) -> &str {
    const WORDS: [(&str, &str); 12] = [
        ("ExternalSorter", "a sort"),
        ("SortPreservingMerge", "a merge of sorted rows"),
        ("TopK", "a sort with a limit"),
        ("PartitionedTopK", "a window with a limit"),
        ("HashJoin", "a join's hash table"),
        ("SymmetricHashJoin", "a join's hash table"),
        ("NestedLoopJoin", "a nested-loop join"),
        ("CrossJoin", "a cross join"),
        ("SMJ", "a merge join"),
        ("Repartition", "an exchange between threads"),
        ("RecursiveQuery", "a recursive query"),
        ("Window", "a window function"),
    ];
    let plain = name.split('[').next().unwrap_or(name);
    if plain.contains("Aggregate") || plain.contains("GroupedHash") {
        return "an aggregate";
    }
    let known = WORDS.iter().find(|(start, _)| plain.starts_with(start));
    known.map_or(name, |(_, words)| words)
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
        // 32 MiB are guaranteed to the second sort; an eighth is left free.
        first.try_grow(841 * MB).unwrap();
        assert!(first.try_grow(MB).is_err());
        second.try_grow(33 * MB).unwrap();
        assert!(second.try_grow(2 * MB).is_err());
        // What is left free is for others.
        window.try_grow(125 * MB).unwrap();
        let error = window.try_grow(10 * MB).unwrap_err().to_string();
        assert!(
            error.contains("out of memory: a window function needs 10 MB more; of 1 GB, tables and scans hold 0 bytes, operators 999 MB (a sort 841 MB, a window function 125 MB, a sort 33 MB)"),
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
        aggregate.try_grow(870 * MB).unwrap();
        assert!(aggregate.try_grow(10 * MB).is_err());
        // Refused once, it has emptied its tables; their capacity may be more than it had before.
        aggregate.try_grow(20 * MB).unwrap();
        assert!(aggregate.try_grow(MB).is_err());
        aggregate.shrink(400 * MB);
        aggregate.try_grow(100 * MB).unwrap();
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
