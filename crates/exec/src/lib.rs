//! Fragment × chunks → batches or partial aggregates, in one thread.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ [exec] ─ store ─ column·kernels
//!
//!   Fragment ──compile──▶ Program ──start──▶ Partial ──run(chunk) …──finish──▶ batches
//!                            │                  one per worker
//!        filter   zone maps, tests on encoded values, residual conditions      ─▶ rows that pass
//!        rows     output columns of those rows alone                           ─▶ batches
//!        group    keys → numbers of groups → one state per aggregate and group ─▶ partial aggregates
//!        expr     everything that is computed, by Arrow's kernels on gathered rows
//! ```
//!
//! A [`Program`] is compiled once per statement and shared; a [`Partial`] belongs to one worker, which feeds it chunks
//! in any order. The semantics are those of the SQL layer's own operators, so that it makes no difference which part of
//! a plan runs here; except that integer overflow is always an error, never a wrapped result.
//!
//! Programs that read the same chunks run over each of them [together](run_together): what they have in common comes
//! from memory once.
//!
//! What this crate must not know: AEUs, work queues, scheduling, SQL, and how a column is encoded.

#![forbid(unsafe_code)]

mod ahead;
mod bounds;
mod by_order;
mod check;
mod columns;
mod expr;
mod filter;
mod first;
mod group;
mod lookup;
mod pairs;
mod phases;
mod program;
mod rows;
mod together;
mod values;
mod window;
mod work;

pub use group::{Division, Groups, Merger};
pub use lookup::TableMemory;
pub use program::{Partial, Program};
pub use together::{Member, Outcome, run_together};
pub use work::Work;
