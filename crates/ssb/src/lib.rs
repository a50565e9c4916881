//! The Star Schema Benchmark: its data, at any scale, and its thirteen queries.
//!
//! ```text
//! shell ─ bench ─ tests                     who uses it: `eris ssb …`, benchmarks, tests of every layer
//!        │
//!     [ ssb ]    generator → Arrow batches → Parquet or .tbl files; schemas; query texts
//!        │
//!   arrow · parquet
//! ```
//!
//! It must not know any other crate of Eris: the same files and texts go to every engine that is compared.
//!
//! # The data
//!
//! One fact table, four dimensions (O'Neil, O'Neil, Chen, Revilak: *The Star Schema Benchmark and Augmented
//! Fact Table Indexing*, TPCTC 2009; SF is the scale factor):
//!
//! ```text
//!             customer  30,000 × SF                     date  2,556 days
//!                     │                                  │
//!                     └──── lineorder  about 6,000,000 × SF ────┐
//!                     ┌────────────────┘                        │
//!             supplier  2,000 × SF              part  200,000 × ⌊1 + log₂ SF⌋
//! ```
//!
//! Every value is a pure function of (seed, table, column, row): a [`Generator`] has no state, so rows may be made in
//! any order, by any number of threads, and always come out the same. Memory is bounded by the batch.
//!
//! ```
//! use eris_ssb::{Generator, Scale, SsbTable};
//! let generator = Generator::new(Scale::new(0.01)?);
//! let rows: usize = generator
//!     .table(SsbTable::Lineorder)
//!     .partition(0, 1)
//!     .map(|batch| batch.num_rows())
//!     .sum();
//! assert_eq!(rows as u64, generator.rows(SsbTable::Lineorder));
//! # Ok::<(), eris_ssb::ScaleError>(())
//! ```
//!
//! # Where it differs from the original generator
//!
//! The distributions are the published ones; the random numbers, and so the single values, are not. Days and
//! months carry their calendar names; a flag is 1 when what it says holds; the first seven days of a year are its
//! week 1; `lo_partkey` reaches every part. Scales below one are allowed and shrink every table but `date`.
#![forbid(unsafe_code)]

mod calendar;
mod customer;
mod date;
mod ddl;
mod generator;
mod lineorder;
pub mod load;
mod parquet_file;
mod part;
mod pipeline;
mod place;
mod queries;
mod random;
mod scale;
mod supplier;
mod table;
mod tbl_file;
mod words;
mod write;

pub use ddl::{TableDefinition, ddl};
pub use generator::{BATCH_ROWS, Batches, Generator, TableGenerator};
pub use parquet_file::{Compression, write_parquet};
pub use queries::{Query, queries};
pub use scale::{Scale, ScaleError};
pub use table::{SsbTable, UnknownTable};
pub use tbl_file::write_tbl;
pub use write::{Progress, WriteError, Written};
