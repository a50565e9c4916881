//! Benchmarks of the engine's parts, and the form in which all of them report.
//!
//! ```text
//! doors ─ [bench] ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! A number comes beside the machine it was measured on, the runs it was chosen from, and the limit that the machine
//! sets. See [`report::BenchReport`] for the form and [`machine`] for those limits.

#![forbid(unsafe_code)]

pub mod atomics;
pub mod balance;
pub mod busy;
pub mod commit;
pub mod copy;
mod figure;
pub mod figures;
pub mod index;
pub mod join;
pub mod machine;
pub mod placement;
pub mod plot;
pub mod pushpull;
pub mod report;
pub mod route;
pub mod scan;
pub mod sharing;
pub mod ssb;
pub mod statement;
pub mod tasks;
