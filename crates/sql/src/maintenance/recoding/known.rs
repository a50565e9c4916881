//! What is known of a column that tables are joined by, and whether it is time to store it, or what has come of it
//! since.
//!
//! ```text
//! other table's rows   ├── order made ──┤ ± 1/8 ├── made anew ──┤           all chunks are stored by the new order
//! fact's rows          ├── stored ──┤ + 1/16 ├── stored ──┤ + 1/16 ├──     late chunks are stored by it, extended
//! ```
//!
//! A sixteenth, so that what is asked of late rows in the way of others is little; and as many as the other table has,
//! for that is read each time. What could not be stored the last time, because a chunk would grow, is no reason to try
//! again; nor is what failed, for want of memory, before the tables have changed.

use super::{Join, RecodingOutcome, Sizes, Stored};
use crate::catalog::Table;
use eris_home::KeyOrder;
use eris_types::ObjectId;
use std::sync::{Arc, Weak};

/// All is done anew when the other table has grown or shrunk by one row in so many, or the order by one key; what could
/// not be done is tried again when the fact has.
const CHANGED: u64 = 8;
/// A table of few rows is no other one for some more.
const FEW: u64 = 16;
/// Late rows are stored when they are one in so many, at least.
const LATE: u64 = 16;

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// The other table's keys are put in order.
    Anew,
    /// What is not stored by this order, by these attributes, is.
    Late(Vec<String>, KeyOrder),
}

/// A column of a fact, and the table that it is joined to.
#[derive(Debug)]
pub(super) struct KnownJoin {
    pub dimension: ObjectId,
    /// While it is a table.
    pub table: Weak<Table>,
    pub key: usize,
    /// That of the other table when the order was made, of the fact when the work was begun last.
    sizes: Sizes,
    /// Rows that could not be stored the last time.
    left: u64,
    /// With which sizes the work was begun that failed last.
    failed: Option<Sizes>,
    /// Not only remembered.
    begun: bool,
    /// How often it is being done.
    pub under_way: usize,
    pub outcome: Option<RecodingOutcome>,
}

impl KnownJoin {
    /// Nothing has been done yet.
    pub fn new(join: &Join) -> Self {
        KnownJoin {
            dimension: join.dimension.object,
            table: Arc::downgrade(&join.dimension),
            key: join.key,
            sizes: join.sizes,
            left: 0,
            failed: None,
            begun: false,
            under_way: 0,
            outcome: None,
        }
    }

    /// Whether this join is the one that the column is stored for, or takes that one's place: a column that several
    /// tables are joined to is not stored by the one and the other in turns.
    pub fn gives_way(&self, join: &Join) -> bool {
        self.dimension == join.dimension.object || self.table.strong_count() == 0
    }

    /// Another join of the same tables, or the first one that takes another's place.
    pub fn is_seen(&mut self, join: &Join) {
        match self.dimension == join.dimension.object {
            // It may have been altered meanwhile.
            true => self.table = Arc::downgrade(&join.dimension),
            false if self.under_way == 0 => *self = KnownJoin::new(join),
            false => {}
        }
    }

    /// What is to be done, unless somebody is about to.
    pub fn due(&mut self, join: &Join) -> Option<Due> {
        if self.under_way > 0 || !self.gives_way(join) {
            return None;
        }
        let changed = |now: u64, then: u64| now.abs_diff(then) > (then / CHANGED).max(FEW);
        let Sizes {
            fact_rows,
            late_rows,
            dimension_rows,
        } = join.sizes;
        // They may have been deleted meanwhile.
        self.left = self.left.min(late_rows);
        if let Some(then) = self.failed
            && !changed(fact_rows, then.fact_rows)
            && !changed(dimension_rows, then.dimension_rows)
        {
            return None;
        }
        if !self.begun
            || self.dimension != join.dimension.object
            || changed(dimension_rows, self.sizes.dimension_rows)
        {
            return Some(Due::Anew);
        }
        let Stored { attributes, order } = match &self.outcome {
            Some(RecodingOutcome::Stored(stored)) => stored,
            Some(RecodingOutcome::AsItIs) => return None,
            None => return Some(Due::Anew),
        };
        let enough = (fact_rows / LATE).max(dimension_rows);
        if late_rows - self.left < enough {
            return None;
        }
        let order = order.upgrade();
        // Rows of the other table that have come and gone in the place of others.
        let order = order.filter(|order| order.size().late * CHANGED as usize <= order.size().keys);
        Some(order.map_or(Due::Anew, |order| Due::Late(attributes.clone(), order)))
    }

    /// It is being done for this join.
    pub fn begins(&mut self, join: &Join, due: &Due) {
        let sizes = self.sizes;
        let is_same = self.dimension == join.dimension.object;
        *self = KnownJoin {
            left: self.left,
            // Until it ends otherwise.
            failed: Some(join.sizes),
            begun: true,
            under_way: self.under_way + 1,
            outcome: self.outcome.take().filter(|_| is_same),
            ..KnownJoin::new(join)
        };
        if let Due::Late(..) = due {
            self.sizes.dimension_rows = sizes.dimension_rows;
        }
    }

    /// It has been done, with so many rows that are left, or could not be.
    pub fn ends(&mut self, done: Option<(RecodingOutcome, u64)>) {
        self.under_way -= 1;
        if let Some((outcome, left)) = done {
            self.outcome = Some(outcome);
            self.left = left;
            self.failed = None;
        }
    }
}
