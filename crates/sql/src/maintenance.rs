//! What is done to tables while they are used, and what nobody asked for in a statement: balancing and re-coding.

pub(crate) mod balance;
pub(crate) mod recoding;
