//! What a fragment did with its rows, phase by phase.

use crate::Expr;
use serde::Serialize;

/// The phases of a fragment, and how its columns are called. Which of the conditions come first is found out anew for
/// each chunk.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// The names of the fragment's columns and, behind them, of those that lookups join.
    pub columns: Vec<String>,
    /// What each phase is.
    pub kinds: Vec<PhaseKind>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq)]
pub enum PhaseKind {
    /// Rows that the snapshot does not see are left out.
    Visible,
    /// All of these conditions hold.
    Conditions(Vec<Expr>),
    /// The value of a column is one of a set of keys: a probe, or a lookup that has a row for it.
    Keys {
        /// The column.
        column: usize,
        /// How many there are.
        keys: u64,
        /// The columns that a lookup joins.
        joined: Vec<String>,
    },
    /// Rows that cannot be among the first by the fragment's order are left out, as far as its first key tells.
    First {
        /// The column of that key.
        column: usize,
        /// How many rows are enough.
        rows: u64,
    },
    /// Columns are read for the output.
    Output,
}

/// What one worker did in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhaseCounts {
    /// Chunks that it took place in.
    pub chunks: u64,
    /// Chunks whose zone maps showed that all rows pass.
    pub chunks_held: u64,
    /// Chunks whose zone maps showed that no row passes.
    pub chunks_excluded: u64,
    /// Rows that it met.
    pub rows_in: u64,
    /// Rows that were left.
    pub rows_out: u64,
    /// Encoded bytes that it was the first to touch, of vectors in which rows were left, about.
    pub bytes: u64,
}

impl PhaseCounts {
    /// Adds what another worker did.
    pub fn add(&mut self, other: &PhaseCounts) {
        self.chunks += other.chunks;
        self.chunks_held += other.chunks_held;
        self.chunks_excluded += other.chunks_excluded;
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.bytes += other.bytes;
    }
}
