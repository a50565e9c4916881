//! Texts and prepared statements of which no plan can be used again: as long as nothing has changed that this may be due to.
//!
//! Most never have one, for what they are. But which table of a join is read last, and what becomes of the others, depends on how many rows
//! they have.

use crate::catalog::{Contents, Table};
use crate::context::StatementContext;
use eris_types::ObjectId;
use std::sync::{Arc, Weak};

/// Tables are others when one of them has so many times the rows it had, or had so many times those it has.
const OTHER: u64 = 2;

/// What has not been there when no plan was found.
#[derive(Debug)]
pub(super) struct Hopeless {
    contents: Weak<Contents>,
    /// Rows of the tables that a plan depends on.
    rows: Vec<(ObjectId, u64)>,
}

impl Hopeless {
    /// For what reads these tables now.
    pub fn now(context: &StatementContext, tables: &[Arc<Table>]) -> Self {
        let rows = tables.iter().filter_map(|table| {
            let rows = context.home.row_count(table.object).ok()?;
            Some((table.object, rows))
        });
        Hopeless {
            contents: Arc::downgrade(&context.catalog.contents()),
            rows: rows.collect(),
        }
    }

    /// Whether it is so still.
    pub fn is_so(&self, context: &StatementContext) -> bool {
        let is_same = |(object, then): &(ObjectId, u64)| {
            let now = context.home.row_count(*object);
            now.is_ok_and(|now| now.max(*then) < OTHER * now.min(*then).max(1))
        };
        std::ptr::eq(
            Arc::as_ptr(&context.catalog.contents()),
            self.contents.as_ptr(),
        ) && self.rows.iter().all(is_same)
    }
}
