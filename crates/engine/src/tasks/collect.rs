//! Collecting garbage: rows that have ended before every snapshot in use began.
//!
//! ```text
//! the last reader of an old snapshot goes, or a statement that deletes is done
//!         └── enough was deleted? ── COLLECT ──▶ every owner: forgets versions and chunks that nobody can see,
//!                                                rewrites chunks that are mostly garbage, one column per slice
//! ```
//!
//! Whoever lets the horizon pass what was deleted says so; owners neither poll nor keep time. What is deleted row by row
//! is garbage of the append buffer for the most part, and left out whenever its levels are joined.

use crate::clients::engine::Shared;
use crate::protocol::commands::COLLECT;
use crate::tasks::build::BuildTask;
use crate::tasks::owner::{Context, Owner, Task};
use eris_aeu::Slice;
use eris_column::Home;
use eris_home::HeldSnapshot;
use eris_store::Rewrite;
use eris_types::{AeuId, ObjectId, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// So many deleted rows of an object are worth a collection.
const WORTH: u64 = 1024;

/// What was deleted since the last collection, by object.
#[derive(Debug, Default)]
pub(crate) struct Garbage(Mutex<HashMap<ObjectId, Deleted>>);

#[derive(Clone, Copy, Debug, Default)]
struct Deleted {
    rows: u64,
    /// When so many had been deleted that it was worth a collection; those that come after it wait for the next one.
    worth: Option<Timestamp>,
}

impl Garbage {
    /// Rows of the object were deleted.
    pub fn note(&self, object: ObjectId, rows: u64, at: Timestamp) {
        let mut objects = self.0.lock().expect("nothing panics under this lock");
        let deleted = objects.entry(object).or_default();
        deleted.rows += rows;
        if deleted.rows >= WORTH && deleted.worth.is_none() {
            deleted.worth = Some(at);
        }
    }

    /// The object is no more.
    pub fn forget(&self, object: ObjectId) {
        let mut objects = self.0.lock().expect("nothing panics under this lock");
        objects.remove(&object);
    }

    /// The objects whose deleted rows nobody can see from `horizon` on, if they are worth a collection.
    pub fn due(&self, horizon: Timestamp) -> Vec<ObjectId> {
        let mut objects = self.0.lock().expect("nothing panics under this lock");
        let due =
            objects.extract_if(|_, deleted| deleted.worth.is_some_and(|worth| worth <= horizon));
        due.map(|(object, _)| object).collect()
    }
}

impl Shared {
    /// The newest snapshot, held for a reader.
    pub fn hold(self: &Arc<Self>) -> HeldSnapshot {
        let at = self.sequencer.hold();
        let shared = Arc::clone(self);
        HeldSnapshot::new(at, Arc::new(Held { at, shared }))
    }

    /// Has the owners collect what nobody can see from `horizon` on.
    pub fn collect_garbage(&self, horizon: Timestamp) {
        let due = self.garbage.due(horizon);
        if due.is_empty() {
            return;
        }
        // Without a session to say it with it is said after the next deletions.
        let Ok(mut client) = self.client() else {
            return;
        };
        let aeus: Vec<AeuId> = self.aeus().collect();
        for object in due {
            for &aeu in &aeus {
                client.tell(aeu, COLLECT, object, 0, &[]);
            }
        }
        client.flush_all();
        self.give_back(&mut client);
    }
}

/// What ends with the last clone of a [`HeldSnapshot`].
struct Held {
    at: Timestamp,
    shared: Arc<Shared>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let horizon = self.shared.sequencer.release(self.at);
        self.shared.collect_garbage(horizon);
    }
}

/// The collection of one object's garbage at one owner.
pub(crate) struct CollectTask {
    object: ObjectId,
    rewrite: Option<Rewrite>,
}

impl CollectTask {
    pub fn new(object: ObjectId) -> Self {
        CollectTask {
            object,
            rewrite: None,
        }
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let horizon = owner.sequencer.horizon();
        let memory = owner.memory.clone();
        let home = Home {
            memory: &memory,
            object: self.object,
        };
        if let Some(partition) = owner.existing(self.object) {
            let rewritten = match self.rewrite.take() {
                Some(rewrite) => partition.rewrite(rewrite, home, horizon),
                None => match partition.collect(home, horizon) {
                    Some(rewrite) => Ok(Some(rewrite)),
                    None => {
                        if let Some(index) = partition.stale_index() {
                            let object = partition.object.clone();
                            cx.spawn(Task::Build(BuildTask::new(object, index, None)));
                        }
                        self.end(owner);
                        return Slice::Done;
                    }
                },
            };
            // Without memory for the new chunk the old ones stay, until the next collection.
            if let Ok(rewrite) = rewritten {
                self.rewrite = rewrite;
                return Slice::Again;
            }
        }
        self.end(owner);
        Slice::Done
    }

    pub fn end(&self, owner: &mut Owner) {
        owner.collecting.remove(&self.object);
    }
}
