//! Neighbouring segments become one when there are many: batches are looked up tree by tree.

use crate::owner::{Context, Owner, Task};
use eris_aeu::Slice;
use eris_types::ObjectId;

/// Puts segments together that lie side by side, until there are few.
pub(crate) struct TidyTask(ObjectId);

impl TidyTask {
    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let keys = owner.key_indexes.get_mut(&self.0);
        // Short of memory it stays as it is.
        if keys.is_some_and(|keys| keys.tidy().unwrap_or(false)) {
            return Slice::Again;
        }
        self.end(owner);
        Slice::Done
    }

    pub fn end(&self, owner: &mut Owner) {
        owner.tidying.remove(&self.0);
    }
}

impl Owner {
    /// Sees to it that segments are few.
    pub(super) fn tidy(&mut self, object: ObjectId, cx: &mut Context<'_>) {
        let is_giving = self.giving.contains_key(&object);
        if self.key_indexes.contains_key(&object) && !is_giving && self.tidying.insert(object) {
            cx.spawn(Task::Tidy(TidyTask(object)));
        }
    }
}
