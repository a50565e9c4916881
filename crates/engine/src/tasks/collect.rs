//! Collecting garbage: rows that were deleted before every snapshot in use.
//!
//! ```text
//! the last reader of an old snapshot goes, or a statement that deletes is done
//!         └── enough was deleted? ── CollectGarbage ──▶ every owner: forgets versions and chunks that nobody can see,
//!                                                       rewrites chunks that are mostly garbage, one column per slice
//! ```
//!
//! Whoever lets the horizon pass what was deleted says so; owners neither poll nor keep time. What is deleted row by
//! row is garbage of the append buffer for the most part, and left out whenever its levels are joined.

use super::build::BuildTask;
use super::owner::Owner;
use crate::protocol::message::Context;
use eris_aeu::{Slice, Sliced};
use eris_column::ObjectMemory;
use eris_store::Rewrite;
use eris_types::ObjectId;

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

    pub fn slice<T: Sliced + From<BuildTask>>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        let horizon = owner.sequencer.horizon();
        let memory = owner.memory.clone();
        let home = ObjectMemory {
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
                            cx.spawn(BuildTask::anew(object, index).into());
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
