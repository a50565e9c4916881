//! What a cycle for a table has moved so far.

use super::history::BalancingHistory;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::ranges::Assignment;
use crate::{Shift, Shifted};
use eris_home::Moved;
use eris_types::AeuId;
use std::sync::Arc;
use std::time::Duration;

/// Every statement of a cycle is noted when it is over. So the [history](BalancingHistory) tells what has moved also if
/// a later one fails, or if whoever waits for the cycle goes away: it is written when this is dropped.
pub(super) struct Cycle<'a> {
    history: &'a BalancingHistory,
    object: &'a DataObject,
    /// The keys' ranges before, of what is cut by keys.
    assignment: Option<Arc<Assignment>>,
    imbalance: f64,
    pub shifted: Vec<Shifted>,
}

impl<'a> Cycle<'a> {
    pub fn new(
        history: &'a BalancingHistory,
        object: &'a DataObject,
        assignment: Option<Arc<Assignment>>,
        imbalance: f64,
    ) -> Self {
        Cycle {
            history,
            object,
            assignment,
            imbalance,
            shifted: Vec::new(),
        }
    }

    /// A statement has moved the first keys of a piece, or some rows: more of the piece that was moved last if
    /// `is_more`. `time` is that of the whole piece.
    pub fn moved(
        &mut self,
        shift: Shift,
        from: AeuId,
        moved: Moved,
        time: Duration,
        is_more: bool,
    ) {
        let last = self.shifted.last_mut().filter(|_| is_more);
        let last = last.and_then(|last| {
            let all = last.result.as_mut().ok()?;
            Some((&mut last.shift, all, &mut last.time))
        });
        let Some((piece, all, all_time)) = last else {
            return self.shifted.push(Shifted {
                shift,
                from,
                result: Ok(moved),
                time,
            });
        };
        piece.high = shift.high;
        all.keys += moved.keys;
        all.linked += moved.linked;
        all.copied += moved.copied;
        *all_time = time;
    }

    /// These keys, or rows, have stayed where they were.
    pub fn failed(&mut self, shift: Shift, from: AeuId, error: &EngineError, time: Duration) {
        self.shifted.push(Shifted {
            shift,
            from,
            result: Err(error.to_string()),
            time,
        });
    }
}

impl Drop for Cycle<'_> {
    fn drop(&mut self) {
        let named = (self.object.id, &self.object.name[..]);
        let shifted = std::mem::take(&mut self.shifted);
        self.history.add(named, self.imbalance, shifted, |shift| {
            let assignment = self.assignment.as_ref()?;
            let number = |word: u64| (word ^ 1 << 63) as i64;
            let low = Some(number(shift.low)).filter(|low| *low > i64::MIN);
            let next = number(shift.high).checked_add(1);
            Some(self.object.shown_range(assignment, low, next))
        });
    }
}
