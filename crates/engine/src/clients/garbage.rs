//! What was deleted since the last collection. See [`crate::tasks::collect`].

use crate::lock::Lock;
use eris_types::{ObjectId, Timestamp};
use std::collections::HashMap;

/// So many deleted rows of an object are worth a collection.
const WORTH: u64 = 1024;

/// What was deleted since the last collection, by object.
#[derive(Debug, Default)]
pub(crate) struct Garbage(Lock<HashMap<ObjectId, Deleted>>);

#[derive(Clone, Copy, Debug, Default)]
struct Deleted {
    rows: u64,
    /// When so many had been deleted that it was worth a collection; those that come after it wait for the next one.
    worth: Option<Timestamp>,
}

impl Garbage {
    /// Rows of the object were deleted.
    pub fn note(&self, object: ObjectId, rows: u64, at: Timestamp) {
        let mut objects = self.0.lock();
        let deleted = objects.entry(object).or_default();
        deleted.rows += rows;
        if deleted.rows >= WORTH && deleted.worth.is_none() {
            deleted.worth = Some(at);
        }
    }

    /// The object is no more.
    pub fn forget(&self, object: ObjectId) {
        let mut objects = self.0.lock();
        objects.remove(&object);
    }

    /// The objects whose deleted rows nobody can see from `horizon` on, if they are worth a collection.
    pub fn due(&self, horizon: Timestamp) -> Vec<ObjectId> {
        let mut objects = self.0.lock();
        let due =
            objects.extract_if(|_, deleted| deleted.worth.is_some_and(|worth| worth <= horizon));
        due.map(|(object, _)| object).collect()
    }
}
