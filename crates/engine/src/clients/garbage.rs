//! What was deleted since the last collection. See [`crate::tasks::collect`].
//!
//! ```text
//! a row is deleted ─▶ its object counts ── not many yet ─▶ nothing
//!                                      └── worth it ─▶ the object waits ─▶ gather ── nobody reads before ─▶ collect
//!                                                                              └── a reader does ┐
//! a reader leaves ── does an object wait for what it has held? ── no ─▶ nothing                  │
//!                                                              └── yes ─▶ gather ─▶ collect ◀────┘
//! ```
//!
//! Whoever makes an object wait writes `awaited` and then gathers what readers hold. A reader gives its snapshot up and
//! then reads `awaited`. One of the two sees the other, for all accesses are `SeqCst`. So the lock is taken once in
//! [`WORTH`] deleted rows.

use crate::object::data_object::DataObject;
use eris_atomics::Lock;
use eris_types::{ObjectId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// So many deleted rows of an object are worth a collection.
const WORTH: u64 = 1024;

/// The objects that wait to be collected.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Each with the commit that made it worth a collection. What is deleted after that waits for the next one.
    waiting: Lock<Vec<(Arc<DataObject>, Timestamp)>>,
    /// The newest of these commits, or 0: a reader whose snapshot is older may be who they wait for. Written under the
    /// lock, read by readers that leave.
    awaited: AtomicU64,
}

impl Garbage {
    /// Rows of the object were deleted. Whether it waits from now on; then the horizon is to be moved.
    pub fn note(&self, object: &Arc<DataObject>, rows: u64, at: Timestamp) -> bool {
        let before = object.add_deleted(rows);
        if before >= WORTH || before + rows < WORTH {
            return false;
        }
        let mut waiting = self.waiting.lock();
        waiting.push((Arc::clone(object), at));
        self.set_awaited(&waiting);
        true
    }

    /// Whether objects may have waited for a reader that has held nothing older than `since`, and has given it up.
    pub fn has_waited(&self, since: Timestamp) -> bool {
        since.0 < self.awaited.load(SeqCst)
    }

    /// The object is no more.
    pub fn forget(&self, object: ObjectId) {
        let mut waiting = self.waiting.lock();
        waiting.retain(|(other, _)| other.id != object);
        self.set_awaited(&waiting);
    }

    /// The objects whose deleted rows nobody can see from `horizon` on, if they are worth a collection.
    pub fn due(&self, horizon: Timestamp) -> Vec<ObjectId> {
        if self.awaited.load(SeqCst) == 0 {
            return Vec::new();
        }
        let mut waiting = self.waiting.lock();
        let due = waiting.extract_if(.., |(_, worth)| *worth <= horizon);
        let due: Vec<ObjectId> = due
            .map(|(object, _)| {
                object.forget_deleted();
                object.id
            })
            .collect();
        self.set_awaited(&waiting);
        due
    }

    fn set_awaited(&self, waiting: &[(Arc<DataObject>, Timestamp)]) {
        let newest = waiting.iter().map(|(_, worth)| worth.0).max();
        self.awaited.store(newest.unwrap_or(0), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequencer::Sequencer;
    use arrow_schema::Schema;
    use eris_atomics::Way;
    use eris_home::Partitioning;
    use eris_types::NodeId;

    fn object(id: u32) -> Arc<DataObject> {
        let (schema, partitioning) = (Arc::new(Schema::empty()), Partitioning::Size);
        let object = DataObject::new(ObjectId(id), "t", schema, partitioning, &[], 1);
        Arc::new(object.unwrap())
    }

    #[test]
    fn an_object_is_due_when_the_last_reader_leaves_that_may_see_what_was_deleted() {
        let (garbage, sequencer) = (Garbage::default(), Sequencer::new(1, Way::Cpu));
        let commit = || {
            let at = sequencer.draw(NodeId(0)).unwrap();
            sequencer.finish(at);
            at
        };
        let (one, other) = (object(1), object(2));
        commit();
        let readers = [sequencer.hold(), sequencer.hold()];
        assert!(!garbage.note(&one, WORTH - 1, commit()));
        assert!(garbage.note(&one, 1, commit()), "worth it");
        assert!(!garbage.note(&one, 1, commit()), "it waits already");
        let newer = sequencer.hold();
        assert!(garbage.note(&other, WORTH, commit()));
        assert!(garbage.due(sequencer.advance_horizon()).is_empty());
        let mut due = Vec::new();
        for reader in readers {
            assert!(garbage.has_waited(sequencer.release(reader)));
            due.push(garbage.due(sequencer.advance_horizon()));
        }
        assert_eq!(due, [vec![], vec![one.id]]);
        let newest = sequencer.hold();
        assert!(!garbage.has_waited(sequencer.release(newest)));
        assert!(garbage.has_waited(sequencer.release(newer)));
        assert_eq!(garbage.due(sequencer.advance_horizon()), [other.id]);
        assert!(!garbage.has_waited(Timestamp::ZERO), "nothing waits");
        assert!(garbage.note(&one, WORTH, commit()), "counted anew");
        garbage.forget(one.id);
        assert!(garbage.due(sequencer.advance_horizon()).is_empty());
    }
}
