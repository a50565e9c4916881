//! SQL over Eris: DataFusion parses, plans and finishes; everything that can be done where the rows are goes there as a
//! fragment.
//!
//! ```text
//! doors ─[sql]─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! ```text
//! text ── statement: split ── parse ──┬── CREATE, DROP, SHOW: catalogue
//!                                     ├── INSERT, CREATE TABLE AS: query ── coerce ── engine's writer
//!                                     └── query ── names at one snapshot ── DataFusion's planner
//!                                                                               │
//!   logical:  filters move into the scan, as far as fragments can express them  │
//!   physical: aggregates move into the scan; joins send their keys to it        ▼
//!             ProjectionExec … HashJoinExec … FragmentExec ── fragment ── Executor
//! ```
//!
//! DataFusion runs on threads of its own, never on an AEU. This crate is the only one that knows DataFusion; it must not
//! know chunks, encodings or commands: to it a table is a [`TableProvider`](datafusion::catalog::TableProvider) over an
//! executor of fragments.

#![forbid(unsafe_code)]

mod aggregate_rule;
mod cancel;
mod catalog;
mod coerce;
mod comparison_rule;
mod core;
mod database;
mod ddl;
mod definition;
mod dynamic_filter;
mod error;
mod explain;
mod files;
mod fragment_exec;
mod insert;
mod lexeme;
mod memory_pool;
mod names;
mod parse;
mod planner;
mod position;
mod progress;
mod query;
mod relations;
mod resolve;
mod run;
mod scalar;
mod scan;
mod session;
mod show;
mod statement;
mod statistics;
mod sum;
mod translate;
mod types;
mod yield_rule;

pub use database::Database;
pub use error::{SqlError, SqlErrorKind};
pub use lexeme::{Lexeme, LexemeKind, lexemes};
pub use position::Position;
pub use progress::{Amount, Progress};
pub use query::QueryStream;
pub use relations::{Function, FunctionKind, Relation, RelationColumn, RelationKind};
pub use session::{Outcome, Running, Session};
pub use statement::Statement;
