//! SQL over Eris: DataFusion parses, plans and finishes; everything that can be done where the rows are goes there as a
//! fragment.
//!
//! ```text
//! doors ─[sql]─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! ```text
//! text ── statement: split ── parse ──┬── CREATE, ALTER, DROP, SHOW: catalogue
//!                                     ├── INSERT, CREATE TABLE AS: query ── coerce ── row rules ── engine's writer
//!                                     ├── SET, PREPARE, EXECUTE: the session's settings and prepared statements
//!                                     └── query ── names at one snapshot ── DataFusion's planner
//!                                                                               │
//!   logical:  filters move into the scan, as far as fragments can express them  │
//!   physical: aggregates move into the scan; joins send their keys to it        ▼
//!             ProjectionExec … HashJoinExec … FragmentExec ── fragment ── Executor
//! ```
//!
//! DataFusion runs on threads of its own, never on an AEU. This crate is the only one that knows DataFusion; it must not
//! know chunks, encodings or commands: to it a table is a [`TableProvider`](datafusion::catalog::TableProvider) over an
//! executor of fragments. What system tables tell of chunks and encodings is the engine's report, shown as it is.

#![forbid(unsafe_code)]

mod aggregate_rule;
mod arithmetic;
mod balance;
mod cancel;
mod catalog;
mod coerce;
mod comparison_rule;
mod core;
mod create_statement;
mod database;
mod ddl;
mod depth;
mod dml;
mod dynamic_filter;
mod error;
mod exact;
mod explain;
mod extreme_row;
mod files;
mod fragment_exec;
mod functions;
mod group_keys;
mod insert;
mod lexeme;
mod locks;
mod membership;
mod memory_pool;
mod merge_groups;
mod moment_rule;
mod moments;
mod named_windows;
mod names;
mod namesake_rule;
mod once;
mod order_rule;
mod parameter;
mod parse;
mod phrases;
mod plan_cache;
mod planner;
mod position;
mod precedence;
mod prepare;
mod progress;
mod queries;
mod query;
mod recoding;
mod references;
mod refuse;
mod relations;
mod repeated_keys;
mod reserved;
mod resolve;
mod rewrite;
mod rounding;
mod row_rules;
mod run;
mod scalar;
mod scan;
mod session;
mod set_all;
mod settings;
mod shorthand;
mod show;
mod single_distinct;
mod spans;
mod spill;
mod spilling_join;
mod star_rule;
mod statement;
mod statistics;
mod sum;
mod system;
mod table_rows;
mod table_writer;
mod transaction;
mod translate;
mod types;
mod unique_keys;
mod using;
mod windows;
mod wording;
mod yield_rule;

pub use catalog::quoted;
pub use database::Database;
pub use error::{SqlError, SqlErrorKind};
pub use lexeme::{Lexeme, LexemeKind, lexemes};
pub use parameter::Parameter;
pub use position::Position;
pub use prepare::PreparedStatement;
pub use progress::{Amount, Progress};
pub use query::QueryStream;
pub use relations::{Function, FunctionKind, Relation, RelationColumn, RelationKind};
pub use session::{Canceller, Outcome, Running, Session};
pub use spill::Spill;
pub use statement::Statement;
pub use table_rows::TableRows;
