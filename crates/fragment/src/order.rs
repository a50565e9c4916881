//! Which rows are enough: the first ones by an order that the receiver will sort by.

use serde::{Deserialize, Serialize};

/// The receiver keeps only the first rows by this order. An executor may send more, in any order; of rows that are
/// equal by the order it may choose. Both zeros are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What rows are compared by.
    pub keys: Vec<OrderKey>,
    /// How many rows are kept.
    pub rows: u64,
}

/// A column that rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderKey {
    /// A position in [`Fragment::columns`](crate::Fragment::columns).
    pub column: usize,
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}
