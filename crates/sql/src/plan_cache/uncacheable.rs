//! Texts and prepared statements of which no plan can be used again: as long as nothing has changed that this may be
//! due to.
//!
//! Most never have one, for what they are. But which table of a join is read last, and what becomes of the others,
//! depends on how many rows they have.

use super::NotShort;
use crate::catalog::{Contents, Table};
use crate::context::StatementContext;
use eris_types::ObjectId;
use std::sync::{Arc, Weak};

/// Tables are others when one of them has so many times the rows it had, or had so many times those it has.
const OTHER: u64 = 2;

/// What has not been there when no plan was found.
#[derive(Debug)]
pub(super) struct Uncacheable {
    contents: Weak<Contents>,
    reason: NotShort,
    /// Rows of the tables that a plan depends on.
    rows: Vec<(ObjectId, u64)>,
}

impl Uncacheable {
    /// For what reads these tables now.
    pub fn now(context: &StatementContext, reason: NotShort, tables: &[Arc<Table>]) -> Self {
        let rows = tables.iter().filter_map(|table| {
            let rows = context.home.row_count(table.object).ok()?;
            Some((table.object, rows))
        });
        Uncacheable {
            reason,
            contents: Arc::downgrade(&context.catalog.contents()),
            rows: rows.collect(),
        }
    }

    /// The reason.
    pub fn why(&self) -> NotShort {
        self.reason
    }

    /// The reason, if it holds still.
    pub fn reason(&self, context: &StatementContext) -> Option<NotShort> {
        let is_same = |(object, then): &(ObjectId, u64)| {
            let now = context.home.row_count(*object);
            now.is_ok_and(|now| now.max(*then) < OTHER * now.min(*then).max(1))
        };
        let holds = context.catalog.is_at(&self.contents) && self.rows.iter().all(is_same);
        holds.then_some(self.reason)
    }
}
