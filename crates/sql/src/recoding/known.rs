//! What is known of a column that tables are joined by, and whether it is time to store it anew.

use super::{Join, Outcome, Sizes};
use crate::catalog::Table;
use eris_types::ObjectId;
use std::sync::{Arc, Weak};

/// Another time when one of the tables has grown or shrunk by one row in so many.
const CHANGED: u64 = 8;

/// A column of a fact, and the table that it is joined to.
#[derive(Debug)]
pub(super) struct Known {
    pub dimension: ObjectId,
    /// While it is a table.
    pub table: Weak<Table>,
    pub key: usize,
    /// When the work was begun last.
    sizes: Sizes,
    /// Not only remembered.
    begun: bool,
    /// How often it is being done.
    pub under_way: usize,
    pub outcome: Option<Outcome>,
}

impl Known {
    /// Nothing has been done yet.
    pub fn new(join: &Join) -> Self {
        Known {
            dimension: join.dimension.object,
            table: Arc::downgrade(&join.dimension),
            key: join.key,
            sizes: join.sizes,
            begun: false,
            under_way: 0,
            outcome: None,
        }
    }

    /// Whether this join is the one that the column is stored for, or takes that one's place: a column that several tables are
    /// joined to is not stored by the one and the other in turns.
    pub fn gives_way(&self, join: &Join) -> bool {
        self.dimension == join.dimension.object || self.table.strong_count() == 0
    }

    /// Another join of the same tables, or the first one that takes another's place.
    pub fn is_seen(&mut self, join: &Join) {
        match self.dimension == join.dimension.object {
            // It may have been altered meanwhile.
            true => self.table = Arc::downgrade(&join.dimension),
            false if self.under_way == 0 => *self = Known::new(join),
            false => {}
        }
    }

    /// Whether nobody has done it for tables of this size, or is about to.
    pub fn is_due(&self, join: &Join) -> bool {
        let changed = |now: u64, then: u64| now.abs_diff(then) > then / CHANGED;
        let is_other = self.dimension != join.dimension.object
            || changed(join.sizes.fact_rows, self.sizes.fact_rows)
            || changed(join.sizes.dimension_rows, self.sizes.dimension_rows);
        self.under_way == 0 && self.gives_way(join) && (is_other || !self.begun)
    }

    /// It is being done for this join.
    pub fn begins(&mut self, join: &Join) {
        let is_same = self.dimension == join.dimension.object;
        *self = Known {
            begun: true,
            under_way: self.under_way + 1,
            outcome: self.outcome.take().filter(|_| is_same),
            ..Known::new(join)
        };
    }

    /// It has been done, or could not be.
    pub fn ends(&mut self, outcome: Option<Outcome>) {
        self.under_way -= 1;
        self.outcome = outcome.or(self.outcome.take());
    }
}
