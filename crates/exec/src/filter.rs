//! Which rows pass: conditions on encoded columns first, zone maps before them, computed conditions last.
//!
//! ```text
//! conjuncts + probes ─classify─▶ tests (one column each, on packed values)   ┐
//!                                residual (anything else, on gathered rows)  ┘ Filter
//!
//! chunk: zones ─excluded?─▶ skipped
//!          └─covered?─▶ test dropped ─▶ visible rows ─▶ tests, best first ─▶ residual ─▶ Selection
//! ```

mod classify;
mod form;
mod interval;
mod order;
mod predicate;
mod residual;
mod run;
mod streamed;
mod together;
mod truth;

pub(crate) use classify::Filter;
pub(crate) use form::ChunkTest;
pub(crate) use run::{ChunkInput, FEW_TESTED, FilterState, Passed};
pub(crate) use together::run_tests;
pub(crate) use truth::{float_key, float_of_key};
