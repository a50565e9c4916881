//! Which values of a foreign key a statement has looked at already.
//!
//! Millions of rows refer to few others, so this is asked of every row, and has to be quick; but it may forget: what
//! was forgotten is looked up once more. A number therefore has one slot, its lowest bits, which it shares with others;
//! keys of a table are mostly numbered in a row, and then each has a slot of its own.
//!
//! ```text
//! 1993 ─▶ slot 1993 ── has 1993: seen
//!                   └─ has another number: put in its place, and looked up
//! ```

use super::key_set::{KeySet, is_number};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::reserved::Reserved;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};

/// Most slots, and most keys that are remembered otherwise: some megabytes.
const REMEMBERED: usize = 1 << 20;
/// Slots at first; there are more of them once so many numbers have come.
const SLOTS: usize = 1 << 10;
const MORE: usize = 8;

/// Numbers by their lowest bits.
pub(super) struct Slots {
    slots: Vec<i64>,
    /// How many numbers have got a slot since there are as many.
    filled: usize,
    reserved: Reserved,
}

impl Slots {
    fn new(context: &StatementContext) -> Result<Self, SqlError> {
        let mut slots = Slots {
            slots: Vec::new(),
            filled: 0,
            reserved: Reserved::new(context.home.budget()),
        };
        slots.resize(SLOTS)?;
        Ok(slots)
    }

    /// Forgets all, and takes so many slots.
    fn resize(&mut self, slots: usize) -> Result<(), SqlError> {
        let more = slots - self.slots.len();
        self.reserved.grow(more * size_of::<i64>())?;
        self.filled = 0;
        self.slots = vec![0; slots];
        // Every slot has a number of another one.
        self.slots[0] = 1;
        Ok(())
    }

    fn add(&mut self, numbers: &[i64]) -> Result<Vec<u32>, SqlError> {
        if self.filled > self.slots.len() && self.slots.len() < REMEMBERED {
            self.resize((self.slots.len() * MORE).min(REMEMBERED))?;
        }
        let mask = self.slots.len() - 1;
        let mut fresh = Vec::new();
        for (row, &number) in (0..).zip(numbers) {
            let slot = &mut self.slots[number as usize & mask];
            if *slot != number {
                *slot = number;
                fresh.push(row);
            }
        }
        self.filled += fresh.len();
        Ok(fresh)
    }
}

/// Values that were looked at.
pub(super) enum SeenKeys {
    /// All of them.
    All(KeySet),
    /// Most of them.
    Some(KeySet),
    /// Most of them, by their lowest bits.
    Numbers(Slots),
}

impl SeenKeys {
    /// None yet, of keys of these types; with `keeps`, none is ever forgotten.
    pub fn new(
        context: &StatementContext,
        types: Vec<DataType>,
        keeps: bool,
    ) -> Result<Self, SqlError> {
        if keeps {
            return KeySet::new(context, types).map(SeenKeys::All);
        }
        if !is_number(&types) {
            return KeySet::new(context, types).map(SeenKeys::Some);
        }
        Slots::new(context).map(SeenKeys::Numbers)
    }

    /// Adds keys without NULL, given as one array per column; the positions of those that are to be looked at.
    pub fn add(&mut self, columns: &[ArrayRef]) -> Result<Vec<u32>, SqlError> {
        match self {
            SeenKeys::All(keys) => keys.add(columns),
            SeenKeys::Some(keys) => {
                if keys.len() > REMEMBERED {
                    keys.clear();
                }
                keys.add(columns)
            }
            SeenKeys::Numbers(slots) => {
                let numbers = cast(&columns[0], &DataType::Int64)?;
                slots.add(numbers.as_primitive::<Int64Type>().values())
            }
        }
    }

    /// All values, if none was forgotten.
    pub fn all(&self) -> Option<&KeySet> {
        match self {
            SeenKeys::All(keys) => Some(keys),
            SeenKeys::Some(_) | SeenKeys::Numbers(_) => None,
        }
    }
}
