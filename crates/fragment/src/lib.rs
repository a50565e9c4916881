//! The language between SQL and whoever executes it: a *fragment* is the piece of a plan that travels to the data.
//!
//! ```text
//! doors ─ sql ─[fragment]─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! A fragment reads **one** data object at **one** snapshot and does, in this order:
//!
//! ```text
//! scan columns → filter (conjuncts) → probes (key sets) → lookups (joined rows) → output: rows | groups
//! ```
//!
//! What it yields are Arrow batches: rows in no particular order, or one partial state per group and worker, to be
//! merged by the receiver with the rule of each [`AggregateFunction`]. Fragments have a [wire
//! form](Fragment::to_bytes), so an executor may be another thread or another machine. This crate does no I/O and must
//! not know SQL, DataFusion, AEUs or encodings.

#![forbid(unsafe_code)]

mod access;
mod bytes;
mod error;
mod executor;
mod expr;
mod keys;
mod lookup;
mod order;
mod phases;
mod scalar;
pub mod text;
mod views;
mod wire;

pub use access::Access;
pub use bytes::bytes_of;
pub use error::FragmentError;
pub use executor::{
    Copied, Estimate, Execution, Executor, FragmentReport, FragmentStream, WorkerReport,
};
pub use expr::{BinaryOp, Expr};
pub use keys::{KeySet, Probe, integer_keys};
pub use lookup::Lookup;
pub use order::{Order, OrderKey};
pub use phases::{PhaseCounts, PhaseKind, Phases};
pub use scalar::{Scalar, TimeUnit, Type, UnsupportedType, Value};
pub use views::{values_in_few_buffers, with_few_buffers};
pub use wire::WireError;

use eris_types::{ColumnId, ObjectId, Timestamp};
use serde::{Deserialize, Serialize};

/// One scan with everything that can be done on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fragment {
    /// The data object that is read.
    pub object: ObjectId,
    /// Writes up to this timestamp are seen, all others are not.
    pub snapshot: Timestamp,
    /// The columns that are read. [`Expr::Column`] is a position in this list, and behind it in the columns of the
    /// lookups.
    pub columns: Vec<ColumnId>,
    /// Conjuncts; a row passes when each is true (not false, not NULL).
    pub filter: Vec<Expr>,
    /// Key sets of semi-joins; a row passes when each contains its key. NULL never passes.
    pub probes: Vec<Probe>,
    /// Relations whose rows are joined by their keys. Their columns follow those of the fragment, for the output alone.
    pub lookups: Vec<Lookup>,
    /// What becomes of the rows that passed.
    pub output: Output,
    /// If not all rows are needed: which are enough.
    pub order: Option<Order>,
    /// How it is executed. That makes no difference to what it yields.
    pub options: ScanOptions,
}

/// How a fragment is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanOptions {
    /// Where rows are worked on.
    pub strategy: NumaStrategy,
    /// Whether chunks are worked on together with other fragments that are about to read them.
    pub sharing: bool,
    /// The number of the statement that it is a part of: all fragments of a statement together get as much of a worker
    /// as one fragment. 0: it is none's.
    pub statement: u64,
}

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions {
            strategy: NumaStrategy::Auto,
            sharing: true,
            statement: 0,
        }
    }
}

/// Whether an operation goes to the data, or data to whoever has time for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NumaStrategy {
    /// Whichever is estimated to end sooner.
    #[default]
    Auto,
    /// Rows are worked on at the place where they lie, by its workers alone.
    Push,
    /// Idle workers take rows from other places, however far they are.
    Pull,
}

/// What a fragment yields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Output {
    /// One output row per passing row.
    Rows {
        /// The output columns.
        columns: Vec<Expr>,
        /// Enough rows for the receiver: execution may stop once this many were sent in all.
        limit: Option<u64>,
    },
    /// One row per group and worker: the keys, then each aggregate's partial state.
    Groups {
        /// Group keys; empty for one group of all rows, which then exists even without rows.
        keys: Vec<Expr>,
        /// Partial aggregates, one state column each.
        aggregates: Vec<Aggregate>,
    },
}

/// A partial aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateFunction,
    /// The argument; `None` only for [`AggregateFunction::Count`]: count rows.
    pub input: Option<Expr>,
    /// `FILTER (WHERE …)`: rows for which it is not true are left out.
    pub filter: Option<Expr>,
    /// The type of the state column.
    pub state: Type,
}

/// The aggregate functions whose partial states fit one column. AVG is a SUM and a COUNT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AggregateFunction {
    /// Sum of the non-NULL arguments, NULL without any; partial states are merged by summing. An integer or decimal sum
    /// that leaves the state's type is an error, never wrapped.
    Sum,
    /// Number of non-NULL arguments; partial states are merged by summing.
    Count,
    /// Least non-NULL argument, NULL without any; merged by the least.
    Min,
    /// Greatest non-NULL argument, NULL without any; merged by the greatest.
    Max,
}

impl std::fmt::Display for AggregateFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Count => "COUNT",
            AggregateFunction::Min => "MIN",
            AggregateFunction::Max => "MAX",
        })
    }
}

impl Fragment {
    /// The types of the output columns, given the types of [`Fragment::columns`] and behind
    /// them of the lookups' columns.
    pub fn output_types(&self, inputs: &[Type]) -> Result<Vec<Type>, FragmentError> {
        match &self.output {
            Output::Rows { columns, .. } => {
                columns.iter().map(|expr| expr.data_type(inputs)).collect()
            }
            Output::Groups { keys, aggregates } => {
                let keys = keys.iter().map(|expr| expr.data_type(inputs));
                let states = aggregates
                    .iter()
                    .map(|aggregate| Ok(aggregate.state.clone()));
                keys.chain(states).collect()
            }
        }
    }
}
