//! Window functions that rank rows: of sorted rows, batch by batch; and only of rows that may be among the first
//! (docs/decisions/0049).

mod first_ranks;
mod ranking;
mod ranks;

pub(crate) use first_ranks::KeepFirstRanks;
pub(crate) use ranks::RankInBatches;
