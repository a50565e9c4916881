//! Memory that a statement holds outside of plans, counted in the budget.

use crate::error::SqlError;
use eris_fragment::FragmentError;
use eris_numa::{Budget, Reservation};

/// Bytes that are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved(Reservation);

impl Reserved {
    /// None yet.
    pub fn new(budget: &Budget) -> Self {
        Reserved(budget.try_reserve(0).expect("nothing is always granted"))
    }

    /// Takes more.
    ///
    /// # Errors
    /// There is no more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), SqlError> {
        let grown = self.0.try_grow(bytes as u64);
        grown.map_err(|rejected| FragmentError::OutOfMemory(rejected.to_string()).into())
    }
}
