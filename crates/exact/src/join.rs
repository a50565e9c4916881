//! Joins that spill, that can be cancelled, and whose filters reach the right column; ASOF joins.

pub(crate) mod asof;
pub(crate) mod hash;
pub(crate) mod null_keys;
pub(crate) mod same_names;
pub(crate) mod sides;
pub(crate) mod spilling;
pub(crate) mod yielding;
