//! Snapshots that readers hold.

use super::engine::Engine;
use super::shared::EngineState;
use eris_atomics::Hold;
use eris_home::HeldSnapshot;
use eris_types::Timestamp;
use std::sync::Arc;

impl Engine {
    /// The newest snapshot, held for a reader: everything that was committed before this call, and nothing half-way.
    pub fn hold(&self) -> HeldSnapshot {
        self.held(self.shared().sequencer.hold())
    }

    /// The same of what is applied, visible or not: for a statement that has the write locks of what it changes.
    pub fn hold_applied(&self) -> HeldSnapshot {
        self.held(self.shared().sequencer.hold_applied())
    }

    fn held(&self, hold: Hold) -> HeldSnapshot {
        let shared = Arc::clone(self.shared());
        let at = Timestamp(hold.at());
        let hold = Some(hold);
        HeldSnapshot::new(at, Arc::new(Held { hold, shared }))
    }
}

/// What ends with the last clone of a [`HeldSnapshot`].
struct Held {
    /// Until it is dropped.
    hold: Option<Hold>,
    shared: Arc<EngineState>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let EngineState {
            sequencer, garbage, ..
        } = &*self.shared;
        let since = self.hold.take().map(|hold| sequencer.release(hold));
        if since.is_some_and(|since| garbage.has_waited(since)) {
            self.shared.collect_garbage(sequencer.advance_horizon());
        }
    }
}
