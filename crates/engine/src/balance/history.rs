//! What was moved, and what came of it.

use super::decide::{by_owner, imbalance};
use crate::key_index::{KeyIndex, Moved, SegmentLoad, Shift, Shifted};
use eris_types::{AeuId, ObjectId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// So many shifts are remembered.
const KEPT: usize = 1_024;

/// Keys that have changed their owner.
#[derive(Clone, Debug)]
pub struct Balanced {
    /// When.
    pub at: SystemTime,
    /// The index, and its name.
    pub object: ObjectId,
    /// See there.
    pub name: String,
    /// Which keys, and their owner now.
    pub shift: Shift,
    /// Their owner before.
    pub from: AeuId,
    /// What was moved, or why not.
    pub result: Result<Moved, String>,
    /// From the command to the end.
    pub time: Duration,
    /// The busiest owner's load as so many times the mean, before the cycle
    pub imbalance: f64,
    /// and in the period after it, once that is over.
    pub after: Option<f64>,
}

#[derive(Default)]
pub(super) struct History(Mutex<VecDeque<Balanced>>);

impl History {
    pub fn all(&self) -> Vec<Balanced> {
        self.lock().iter().cloned().collect()
    }

    pub fn add(&self, index: &KeyIndex, imbalance: f64, shifted: Vec<Shifted>) {
        let mut all = self.lock();
        for one in shifted {
            if all.len() == KEPT {
                all.pop_front();
            }
            all.push_back(Balanced {
                at: SystemTime::now(),
                object: index.id(),
                name: index.name().to_owned(),
                shift: one.shift,
                from: one.from,
                result: one.result,
                time: one.time,
                imbalance,
                after: None,
            });
        }
    }

    /// The first loads after a cycle show its effect.
    pub fn note_effect(&self, object: ObjectId, segments: &[SegmentLoad]) {
        let mut all = self.lock();
        let newest = all.iter_mut().rev().take_while(|one| one.after.is_none());
        let mut newest = newest.filter(|one| one.object == object).peekable();
        if newest.peek().is_some() {
            let owners = segments.iter().map(|segment| segment.aeu.index() + 1).max();
            let after = imbalance(&by_owner(segments, owners.unwrap_or(1)));
            newest.for_each(|one| one.after = Some(after));
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Balanced>> {
        self.0.lock().expect("nothing panics under this lock")
    }
}
