//! Ranges that outlive the process: what the log gets to know of them, and how they begin again.

use super::{Cuts, Numbers, Ranges};
use crate::durability::Log;
use crate::durability::records::{self, StoredRanges};
use eris_types::{AeuId, ObjectId};
use std::sync::atomic::Ordering;

impl Ranges {
    /// Changes are logged from now on, as those of an object.
    pub fn log_to(&self, log: Log, object: ObjectId) {
        self.log.set((log, object)).expect("said once");
    }

    /// Begins with ranges that were stored, before there is any row. AEUs that are not there any more leave theirs to
    /// others.
    pub fn restore(&self, stored: &StoredRanges, aeus: usize) {
        let mut state = self.lock();
        let bounds = stored.bounds.iter();
        let bounds = bounds.map(|(low, owner)| (*low, AeuId(owner.0 % aeus as u16)));
        state.bounds = bounds.collect();
        state.bounds.dedup_by_key(|(_, owner)| *owner);
        state.highest = i64::MIN;
        state.rows = vec![0; aeus];
        state.publish(stored.common.as_slice().into());
        self.current.store(state.current.clone());
    }

    /// The ranges have rows with these numbers already.
    pub fn count(&self, numbers: &[i64]) {
        let mut state = self.lock();
        let assignment = state.current.clone().expect("they were restored");
        state.count(&assignment, &[Numbers::new(numbers)]);
        self.assigned.store(state.highest, Ordering::Release);
    }

    /// The ranges as they are now, if there are any.
    pub fn stored(&self) -> Option<StoredRanges> {
        self.lock().stored()
    }

    /// Logs ranges that have changed. Said under the lock, so that the last that is said is the last that was.
    pub(super) fn say(&self, state: &Cuts) {
        if let (Some((log, object)), Some(stored)) = (self.log.get(), state.stored()) {
            // Without them rows are found, too: whoever reads the log puts them somewhere.
            let _ = log.note(records::ranges(*object, &stored), "");
        }
    }
}

impl Cuts {
    fn stored(&self) -> Option<StoredRanges> {
        let current = self.current.as_ref()?;
        Some(StoredRanges {
            common: current.common.to_vec(),
            bounds: self.bounds.clone(),
        })
    }
}
