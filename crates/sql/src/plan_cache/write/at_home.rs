//! A row computed by its owner.
//!
//! ```text
//! there and back twice     get ─▶ row ─▶ compute ─▶ put, if nobody has changed it meanwhile ── else from the beginning
//! at home                  key, values ─▶ owner: row, compute, put ─▶ done
//! ```
//!
//! Besides half of the way this saves trying again where many count in one row. What asks others has to go there and
//! back: foreign keys, UNIQUE, RETURNING; and what may take an owner long.

use super::{Conflict, Program, Write, WriteAction};
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;
use eris_home::{Becomes, Compute};
use eris_types::ColumnId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// An execution of a write for one row.
#[derive(Debug)]
pub(super) struct AtHome {
    pub write: Arc<Write>,
    pub values: Arc<[ScalarValue]>,
    /// The row that is to be inserted, if there is none.
    pub new: Option<RecordBatch>,
}

impl WriteAction {
    /// What it computes of rows that are there.
    pub(super) fn program(&self) -> Option<&Program> {
        match self {
            WriteAction::Insert {
                conflict: Conflict::Update(program),
                ..
            }
            | WriteAction::Update(_, program) => Some(program),
            _ => None,
        }
    }
}

impl Compute for AtHome {
    fn reads(&self) -> &[ColumnId] {
        let program = self.write.action.program();
        program.map_or(&[], |program| &program.reads)
    }

    fn may_add(&self) -> bool {
        self.new.is_some()
    }

    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes {
        let Some(row) = row else {
            return self.new.clone().map_or(Becomes::Same, Becomes::Row);
        };
        let write = &self.write;
        let (Some(program), Some(rules)) = (write.action.program(), &write.rules) else {
            return Becomes::Unclear;
        };
        let excluded = self.new.as_ref();
        // Others are served by this thread, too.
        let changed = catch_unwind(AssertUnwindSafe(|| {
            write.changed(program, rules, row, excluded, &self.values)
        }));
        match changed {
            Ok(Ok(Some(changed))) => Becomes::Row(changed),
            Ok(Ok(None)) => Becomes::Same,
            // The general path tells what is wrong.
            Ok(Err(_)) | Err(_) => Becomes::Unclear,
        }
    }
}
