//! Work on the order of one object's index at one owner, while nobody else has any.

use super::owner::Owner;
use eris_aeu::Slice;
use eris_types::ObjectId;

/// Does the work on one object's index at one owner while nobody else has any.
pub(crate) struct ReorganizeTask {
    object: ObjectId,
}

impl ReorganizeTask {
    pub fn new(object: ObjectId) -> Self {
        ReorganizeTask { object }
    }

    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let goes_on = (owner.index(self.object)).is_some_and(|index| index.slice());
        if goes_on {
            return Slice::Again;
        }
        self.end(owner);
        Slice::Done
    }

    fn end(&self, owner: &mut Owner) {
        owner.reorganizing.remove(&self.object);
    }

    /// A slice panicked: the index stays as it is, for nobody waits for its order.
    pub fn panicked(&mut self, message: &str, owner: &mut Owner) {
        self.end(owner);
        if let Some(index) = owner.index(self.object) {
            index.give_up(message);
        }
    }
}
