//! Snapshots that readers hold.

use super::engine::Engine;
use super::shared::EngineState;
use eris_home::HeldSnapshot;
use eris_types::Timestamp;
use std::sync::Arc;

impl Engine {
    /// The newest snapshot, held for a reader: everything that was committed before this call, and nothing half-way.
    pub fn hold(&self) -> HeldSnapshot {
        let shared = Arc::clone(self.shared());
        let at = shared.sequencer.hold();
        HeldSnapshot::new(at, Arc::new(Held { at, shared }))
    }
}

/// What ends with the last clone of a [`HeldSnapshot`].
struct Held {
    at: Timestamp,
    shared: Arc<EngineState>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let horizon = self.shared.sequencer.release(self.at);
        self.shared.collect_garbage(horizon);
    }
}
