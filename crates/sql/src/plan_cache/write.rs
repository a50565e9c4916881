//! Writes of single rows by their keys: what the statement computes is planned once, and a row is looked up, computed
//! and put back where it is.
//!
//! ```text
//! INSERT INTO t VALUES (7, 1) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n
//!    │ values of the text, or of the prepared statement
//!    ▼
//! key 7 ─▶ the row that has it ──┬─ none ──▶ (7, 1) ────────────────┐
//!                                └─ (7, 41) ─▶ steps ─▶ (7, 42) ─▶ coerce ─▶ put, if nobody has changed it meanwhile
//! ```
//!
//! Where only the row itself has to be asked, its owner does all of it [in one go](at_home), and nobody can come in
//! between. On its way in the row passes the table's rules and its foreign keys, as any row does. RETURNING is computed
//! before it is put. All other writes take the general path, before anything is written: several rows, keys that others
//! refer to, values of another type, errors.

mod answer;
mod at_home;
mod compile;
mod execution;
mod operand;
mod program;
mod syntax;
#[cfg(test)]
mod tests;

pub(super) use compile::compile;
pub(super) use operand::{Operand, values};

use super::{Attempt, NotShort};
use crate::cancel::CancelToken;
use crate::catalog::{Contents, Table};
use crate::context::{StatementContext, Variables};
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::write::locks::SharedLocks;
use crate::write::references::Parents;
use crate::write::row_rules::{ComputedDefault, RowRules};
use crate::write::unique_keys::UniqueKeys;
use answer::Answer;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use execution::{Execution, Stop};
use program::Program;
use std::sync::{Arc, Weak};

/// A write that is ready for other values.
#[derive(Debug)]
pub(super) struct Write {
    /// The contents of the catalogue that own it.
    contents: Weak<Contents>,
    variables: Variables,
    table: Arc<Table>,
    /// What changes from time to time.
    operands: Vec<Operand>,
    action: WriteAction,
    /// RETURNING.
    answer: Option<Answer>,
    /// NOT NULL and CHECK; `None`: they have to be compiled for every statement.
    rules: Option<RowRules>,
    /// What new rows refer to.
    parents: Parents,
    /// What is written with rows beside them.
    uniques: UniqueKeys,
    locks: SharedLocks,
    /// The row's owner can do all of it.
    is_at_home: bool,
    tag: &'static str,
}

#[derive(Debug)]
enum WriteAction {
    Insert {
        rows: Vec<CellSource>,
        /// The columns that get a default which is no constant; `None`: it has to be compiled for every statement.
        computed: Vec<(usize, Option<ComputedDefault>)>,
        conflict: Conflict,
    },
    /// The operands that are the key's values.
    Update(Vec<usize>, Program),
    Delete(Vec<usize>, Option<Program>),
}

/// Where the value of a new row's column comes from.
#[derive(Debug)]
enum CellSource {
    Operand(usize),
    Constant(ScalarValue),
}

/// What becomes of a new row whose key another row has.
#[derive(Debug)]
enum Conflict {
    Reject,
    Nothing,
    Update(Program),
}

/// What a write has done.
struct WriteResult {
    rows: u64,
    /// What RETURNING says.
    answer: Option<RecordBatch>,
}

impl Write {
    /// The contents of the catalogue that it was planned with, if they are still there.
    pub fn contents(&self) -> Option<Arc<Contents>> {
        self.contents.upgrade()
    }

    /// What changes from time to time.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// Executes it with these values of its operands.
    pub async fn run(
        self: &Arc<Self>,
        context: &StatementContext,
        values: &Arc<[ScalarValue]>,
        token: &CancelToken,
    ) -> Result<Attempt, SqlError> {
        if *context.variables() != self.variables {
            return Ok(Err(NotShort::Outdated));
        }
        let held = self.locks.hold().await;
        // Now nobody changes the table, or those to which it refers.
        if !context.catalog.is_at(&self.contents) {
            return Ok(Err(NotShort::Outdated));
        }
        if !self.parents.is_empty() {
            // Whoever took keys away may not have waited for that.
            context.home.settle().await;
        }
        let written = match Execution::new(self, context, values, token, held) {
            Ok(execution) => execution.run().await,
            Err(stop) => Err(stop),
        };
        match written {
            Ok(written) => {
                match written.rows {
                    0 => context.show_found().await?,
                    rows => context.wrote(&self.table, rows),
                }
                Ok(Ok(self.begun(written)))
            }
            Err(Stop::NotShort(reason)) => {
                token.end_commit();
                Ok(Err(reason))
            }
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// What the program makes of a row, of which there are the columns that it reads, if it makes anything of it.
    fn changed(
        &self,
        program: &Program,
        rules: &RowRules,
        row: &[ArrayRef],
        excluded: Option<&RecordBatch>,
        values: &[ScalarValue],
    ) -> Result<Option<RecordBatch>, SqlError> {
        let computed = program.run(row, excluded, values)?;
        if computed.num_rows() == 0 {
            return Ok(None);
        }
        let changed = rules.apply(&self.table, &computed, &program.targets, 1)?;
        Ok(Some(changed))
    }

    fn begun(&self, written: WriteResult) -> Begun {
        let (rows, tag) = (written.rows, self.tag);
        match (&self.answer, written.answer) {
            (Some(answer), rows) => {
                let rows = rows.filter(|rows| rows.num_rows() > 0);
                let rows = futures::stream::iter(rows.map(Ok));
                let schema = Arc::clone(&answer.schema);
                Begun::Rows(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
            }
            (None, _) => Begun::Count { rows, tag },
        }
    }
}
