//! DataFusion's operators draw on the same budget as the tables.

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use eris_numa::{Budget, OutOfMemory, Reservation};
use std::fmt;
use std::sync::{Mutex, MutexGuard};

/// A pool that takes every byte out of the engine's budget.
#[derive(Debug)]
pub(crate) struct BudgetPool {
    budget: Budget,
    held: Mutex<Reservation>,
}

impl BudgetPool {
    /// A pool over this budget, nothing taken.
    ///
    /// # Errors
    /// The budget is overdrawn already.
    pub fn new(budget: &Budget) -> Result<Self, OutOfMemory> {
        let held = Mutex::new(budget.try_reserve(0)?);
        Ok(BudgetPool {
            budget: budget.clone(),
            held,
        })
    }

    fn held(&self) -> MutexGuard<'_, Reservation> {
        self.held.lock().expect("nothing panics under this lock")
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "budget"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.held().grow(additional as u64);
    }

    fn shrink(&self, _: &MemoryReservation, less: usize) {
        self.held().shrink(less as u64);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // Operators that can spill do so when they see this kind of error.
        self.held().try_grow(additional as u64).map_err(|refused| {
            DataFusionError::ResourcesExhausted(format!(
                "{}: {refused}",
                reservation.consumer().name()
            ))
        })
    }

    fn reserved(&self) -> usize {
        self.held().bytes() as usize
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.budget.limit() as usize)
    }
}

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "budget({} of {} bytes)",
            self.reserved(),
            self.budget.limit()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::MemoryConsumer;
    use std::sync::Arc;

    #[test]
    fn operators_and_tables_share_one_limit() {
        let budget = Budget::new(1000);
        let table = budget.try_reserve(600).unwrap();
        let pool: Arc<dyn MemoryPool> = Arc::new(BudgetPool::new(&budget).unwrap());
        let operator = MemoryConsumer::new("sort").register(&pool);
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
}
