//! Entries of keys that have changed owners are brought to where they belong, while they are used.

use super::keys::pace::Pace;
use super::owner::Owner;
use crate::held::primary::Unsharing;
use crate::protocol::message::Context;
use eris_aeu::{Slice, Sliced};
use eris_types::ObjectId;
use std::time::Duration;

/// Steps in one slice, for which it pays to wake up.
const STEPS: usize = 4;
/// How long an owner rests that waits for others, or for memory.
const WAITS: Duration = Duration::from_micros(if cfg!(test) { 50 } else { 2_000 });
/// How often it goes on after a panic. Without it, keys are found as before, and all that is left is two trees.
const MOST_PANICS: usize = 16;

/// Brings the entries of one object at one owner into a tree that is not shared.
pub(crate) struct UnshareTask {
    object: ObjectId,
    pace: Pace,
    panics: usize,
}

impl UnshareTask {
    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let aeu = owner.aeu;
        let Some(partition) = owner.existing(self.object) else {
            self.end(owner);
            return Slice::Done;
        };
        self.pace.begin(partition.object.loads.keys_of(aeu));
        for _ in 0..STEPS {
            match partition.unshare() {
                Ok(Unsharing::Again) => {}
                Ok(Unsharing::Waits) | Err(_) => return Slice::Rest(WAITS),
                Ok(Unsharing::Done) => {
                    self.end(owner);
                    return Slice::Done;
                }
            }
        }
        self.pace.end()
    }

    fn end(&self, owner: &mut Owner) {
        owner.unsharing.remove(&self.object);
    }

    /// A slice has panicked. Others wait until it is done.
    pub fn panicked<T: Sliced + From<UnshareTask>>(
        mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) {
        self.panics += 1;
        match self.panics < MOST_PANICS {
            true => drop(cx.spawn(self.into())),
            false => self.end(owner),
        }
    }
}

impl Owner {
    /// Begins to copy what is in shared trees of an object, if there is anything to do and nobody is at it.
    pub fn begin_to_unshare<T: Sliced + From<UnshareTask>>(
        &mut self,
        object: ObjectId,
        cx: &mut Context<'_, T>,
    ) {
        let aeu = self.aeu;
        let partition = self.partitions.get(&object);
        let Some(partition) = partition.filter(|partition| partition.has_shared_keys()) else {
            return;
        };
        if self.unsharing.insert(object) {
            let pace = Pace::new(partition.object.loads.keys_of(aeu));
            let task = UnshareTask {
                object,
                pace,
                panics: 0,
            };
            cx.spawn(task.into());
        }
    }
}
