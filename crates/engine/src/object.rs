//! What everybody knows of a data object: what it is, which of its rows are whose, what it holds.
//!
//! Clients and owners share it. It has no rows: those are [held](crate::held) by its owners.

pub(crate) mod coding;
pub(crate) mod collected;
pub(crate) mod data_object;
pub(crate) mod indexes;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod numbers;
pub(crate) mod path;
pub(crate) mod pick;
pub(crate) mod profile;
pub(crate) mod ranges;
pub(crate) mod scatter;
pub(crate) mod shared_index;
pub(crate) mod statement;
pub(crate) mod statistics;
