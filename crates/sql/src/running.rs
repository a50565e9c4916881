//! What a running statement is to others: its entry among the running ones, its memory, its temporary files.

pub(crate) mod outcome;
pub(crate) mod queries;
pub(crate) mod query;
pub(crate) mod reserved;
