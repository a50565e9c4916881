//! Entries that are out of reach are removed, and neighbouring segments become one when there are many: batches are
//! looked up tree by tree.

use super::pace::Pace;
use crate::protocol::message::Context;
use crate::tasks::owner::Owner;
use eris_aeu::{Slice, Sliced};
use eris_types::ObjectId;

/// Steps in one slice, for which it pays to wake up.
const STEPS: usize = 4;

/// Removes what is out of reach, then puts segments together that lie side by side, until there are few.
pub(crate) struct CompactTask {
    object: ObjectId,
    pace: Pace,
}

impl CompactTask {
    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let Some(keys) = owner.key_indexes.get_mut(&self.object) else {
            self.end(owner);
            return Slice::Done;
        };
        self.pace.begin(keys.asked());
        for _ in 0..STEPS {
            // Short of memory it stays as it is.
            if !keys.compact().unwrap_or(false) {
                self.end(owner);
                return Slice::Done;
            }
        }
        self.pace.end()
    }

    pub fn end(&self, owner: &mut Owner) {
        owner.compacting.remove(&self.object);
    }
}

impl Owner {
    /// Sees to it that segments are few.
    pub fn compact<T: Sliced + From<CompactTask>>(
        &mut self,
        object: ObjectId,
        cx: &mut Context<'_, T>,
    ) {
        let is_moving = self.moving_out.contains_key(&object);
        let Some(keys) = self.key_indexes.get(&object).filter(|_| !is_moving) else {
            return;
        };
        if self.compacting.insert(object) {
            let pace = Pace::new(keys.asked());
            cx.spawn(CompactTask { object, pace }.into());
        }
    }
}
