//! SQL over Eris: DataFusion parses, plans and finishes; everything that can be done where the rows are goes there as a
//! fragment.
//!
//! ```text
//! doors ─[sql]─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! ```text
//! text ── statement: split ── parse ──┬── CREATE, ALTER, DROP, SHOW: catalogue
//!                                     ├── INSERT, CREATE TABLE AS: query ── coerce ── row rules ── home's writer
//!                                     ├── SET, PREPARE, EXECUTE: the session's settings and prepared statements
//!                                     └── query ── names at one snapshot ── DataFusion's planner
//!                                                                               │
//!   logical:  filters move into the scan, as far as fragments can express them  │
//!   physical: aggregates move into the scan; joins send their keys to it        ▼
//!             ProjectionExec … HashJoinExec … FragmentExec ── fragment ── Executor
//! ```
//!
//! DataFusion runs on threads of its own, never on an AEU. Beside this crate only `exact` and `files` know it. It must
//! not know chunks, encodings or commands: to it a table is a [`TableProvider`](datafusion::catalog::TableProvider)
//! over an executor of fragments. What system tables tell of chunks and encodings is the home's report, shown as it is.

#![forbid(unsafe_code)]

mod cancel;
mod catalog;
mod context;
mod error;
mod maintenance;
mod plan;
mod plan_cache;
mod progress;
mod running;
mod session;
mod settings;
mod statements;
mod system;
mod text;
mod write;

pub use catalog::quoted;
pub use context::Frames;
pub use eris_exact::text::{VALUE_FORMAT, formatter};
pub use eris_exact::{Spill, SpillError};
pub use eris_files::{
    Comparison, Condition, ConditionTest, Frame, FrameBatches, FrameError, FrameFault,
    FrameFaultKind, allow_standard_input, is_within,
};
pub use error::position::Position;
pub use error::{Mistake, SqlError, SqlErrorKind, SqlState, Violation};
pub use progress::{Amount, Progress};
pub use running::outcome::Outcome;
pub use running::query::QueryStream;
pub use session::database::Database;
pub use session::prepared_statement::PreparedStatement;
pub use session::relations::{
    Function, FunctionKind, IsWanted, Relation, RelationColumn, RelationKind, ScriptPart,
};
pub use session::salvage::{DanglingRows, SalvageTarget, SalvagedDatabase, unique_columns};
pub use session::table_rows::TableRows;
pub use session::{Canceller, Running, Session};
pub use text::lexeme::{Lexeme, LexemeKind, lexemes};
pub use text::parameter::Parameter;
pub use text::statement::Statement;
