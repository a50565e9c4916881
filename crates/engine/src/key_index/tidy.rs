//! Entries that are out of reach are removed, and neighbouring segments become one when there are many: batches are looked up tree by tree.

use super::OwnedKeys;
use super::pace::Pace;
use crate::tasks::owner::{Context, Owner, Task};
use eris_aeu::Slice;
use eris_index::IndexError;
use eris_types::ObjectId;

/// Segments beyond which neighbours are put together.
const MOST_SEGMENTS: usize = 8;
/// Entries that are moved from tree to tree in one step.
const TIDIED: usize = 256;
/// Entries that are removed in one step.
const CLEANED: usize = 512;
/// Steps in one slice, for which it pays to wake up.
const STEPS: usize = 4;

/// Removes what is out of reach, then puts segments together that lie side by side, until there are few.
pub(crate) struct TidyTask {
    object: ObjectId,
    pace: Pace,
}

impl TidyTask {
    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let Some(keys) = owner.key_indexes.get_mut(&self.object) else {
            self.end(owner);
            return Slice::Done;
        };
        self.pace.begin(keys.asked());
        for _ in 0..STEPS {
            // Short of memory it stays as it is.
            if !keys.tidy().unwrap_or(false) {
                self.end(owner);
                return Slice::Done;
            }
        }
        self.pace.end()
    }

    pub fn end(&self, owner: &mut Owner) {
        owner.tidying.remove(&self.object);
    }
}

impl Owner {
    /// Sees to it that segments are few.
    pub(crate) fn tidy(&mut self, object: ObjectId, cx: &mut Context<'_>) {
        let is_giving = self.giving.contains_key(&object);
        let Some(keys) = self.key_indexes.get(&object).filter(|_| !is_giving) else {
            return;
        };
        if self.tidying.insert(object) {
            let pace = Pace::new(keys.asked());
            cx.spawn(Task::Tidy(TidyTask { object, pace }));
        }
    }
}

impl OwnedKeys {
    /// Removes some entries that are out of reach. If there are none: puts some entries of one segment into its neighbour's tree, if there are
    /// more segments than are good for batches, whose keys are looked up tree by tree. Says whether there is more to be done.
    ///
    /// # Errors
    /// No memory.
    fn tidy(&mut self) -> Result<bool, IndexError> {
        let mut segments = self.segments.iter_mut();
        if let Some(segment) = segments.find(|segment| segment.has_garbage()) {
            segment.clean(CLEANED);
            self.note_work();
            return Ok(true);
        }
        if self.segments.len() <= MOST_SEGMENTS || self.is_changing() {
            return Ok(false);
        }
        let neighbours = (1..self.segments.len())
            .filter(|&at| self.segments[at - 1].high.checked_add(1) == Some(self.segments[at].low));
        let Some(at) = neighbours.min_by_key(|&at| self.segments[at].len()) else {
            return Ok(false);
        };
        // The one behind is copied: if that is by far the larger one, it is not worth it.
        if self.segments[at].len() > 4 * self.segments[at - 1].len().max(TIDIED) {
            return Ok(false);
        }
        let (before, behind) = self.segments.split_at_mut(at);
        let (first, next) = (&mut before[at - 1], &mut behind[0]);
        if !first.absorb(next, TIDIED)? {
            self.segments.remove(at);
        }
        self.renew();
        Ok(true)
    }
}
