//! What clients do: the engine as its users see it, fragments, writers, changes of rows, questions to owners.

mod analyze;
pub(crate) mod ask;
mod checkpoint;
pub(crate) mod client;
pub(crate) mod columns;
pub(crate) mod create_index;
pub(crate) mod engine;
mod estimate;
pub(crate) mod exchange;
pub(crate) mod foundation;
pub(crate) mod fragments;
pub(crate) mod garbage;
pub(crate) mod held_snapshot;
pub(crate) mod inspect;
pub(crate) mod key_index;
pub(crate) mod locate;
pub(crate) mod moves;
pub(crate) mod partitions;
pub(crate) mod recode;
pub(crate) mod reorganize;
pub(crate) mod rows;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod writer;
