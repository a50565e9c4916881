//! Groups and their partial aggregates.
//!
//! ```text
//! window of selected rows
//!   keys       ─fields──▶ i64 per key and row ─index──▶ number of the group, per row
//!   arguments ─input─▶ i64 / f64 / i128 / string per row ─┐        │
//!                                  one loop per aggregate ▼        ▼
//!                                                 states: one column per aggregate, one entry per group
//!                                                                       │
//!            of tables too large for a cache: cut by a hash of the keys ▼
//!                                        Groups ─▶ Merger of the worker to which the keys belong
//! ```
//!
//! Groups are numbered in the order in which they are met. Only the index knows how a key leads to its number. So it
//! can change its form (dense table, hash table) without touching a state.

mod aggregate;
mod division;
mod gathered;
mod index;
mod input;
mod interner;
mod keys;
mod merge;
mod merger;
mod most;
mod output;
mod plan;
mod repartition;
mod seen;
mod state;
mod strings;

pub use division::Division;
pub(crate) use input::Window;
pub use merger::Merger;
pub(crate) use plan::{GroupPlan, GroupState};
pub use repartition::Groups;
