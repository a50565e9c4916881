//! A row computed by its owner.
//!
//! ```text
//! there and back twice     get ─▶ row ─▶ compute ─▶ put, if nobody has changed it meanwhile ── else from the beginning
//! at home                  key, values ─▶ owner: row, compute, put ─▶ done
//! ```
//!
//! Besides half of the way this saves trying again: of many who count in one row, everybody gets through at once. What asks others
//! has to go there and back: foreign keys, UNIQUE, RETURNING; and what a small stack is no place for.

use super::{Action, Conflict, Program, Write};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use eris_engine::{Becomes, Compute};
use eris_types::ColumnId;
use std::sync::Arc;

/// An execution of a write for one row.
#[derive(Debug)]
pub(super) struct AtHome {
    pub write: Arc<Write>,
    pub values: Arc<[ScalarValue]>,
    /// The row that is to be inserted, if there is none.
    pub new: Option<RecordBatch>,
}

impl Write {
    /// Whether an owner can do it alone.
    pub(super) fn is_at_home(&self) -> bool {
        let needs_nobody = self.parents.is_empty() && self.uniques.is_empty();
        let computes = |program: &Program| program.is_shallow();
        needs_nobody
            && self.answer.is_none()
            && self.rules.is_some()
            && self.program().is_some_and(computes)
    }

    /// What it computes of rows that are there.
    fn program(&self) -> Option<&Program> {
        match &self.action {
            Action::Insert {
                conflict: Conflict::Update(program),
                ..
            }
            | Action::Update(_, program) => Some(program),
            _ => None,
        }
    }
}

impl Compute for AtHome {
    fn reads(&self) -> &[ColumnId] {
        self.write.program().map_or(&[], |program| &program.reads)
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        let Some(row) = row else {
            return self.new.clone().map_or(Becomes::Same, Becomes::Row);
        };
        let (Some(program), Some(rules)) = (self.write.program(), &self.write.rules) else {
            return Becomes::Unclear;
        };
        let excluded = self.new.as_ref();
        let changed = self
            .write
            .changed(program, rules, row, excluded, &self.values);
        match changed {
            Ok(Some(changed)) => Becomes::Row(changed),
            Ok(None) => Becomes::Same,
            // The statement's own way tells what is wrong.
            Err(_) => Becomes::Unclear,
        }
    }
}
