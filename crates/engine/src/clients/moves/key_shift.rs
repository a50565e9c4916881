//! Keys whose rows a statement moves to another owner.

use crate::object::data_object::DataObject;
use eris_types::{AeuId, Timestamp};

/// Keys whose rows a statement moves.
#[derive(Debug)]
pub(crate) struct KeyShift {
    /// The first and the last number.
    pub numbers: (i64, i64),
    pub to: AeuId,
    pub rows: u64,
}

impl KeyShift {
    /// Makes it known, for snapshots from `at` on.
    pub fn publish(&self, object: &DataObject, at: Timestamp) {
        object.ranges.shift(self.numbers, self.to, self.rows, at);
    }
}
