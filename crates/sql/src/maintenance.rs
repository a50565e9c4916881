//! What is done to tables while they are used, and what nobody asked for in a statement: balancing, re-coding and
//! checkpoints.

pub(crate) mod balance;
pub(crate) mod checkpoints;
pub(crate) mod recoding;
