//! The engine as a home that outlives its process.

use crate::clients::engine::Engine;
use eris_home::{Checkpoint, Durability, DurabilityStatus, HomeError};
use futures::future::BoxFuture;

impl Durability for Engine {
    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        Box::pin(Engine::checkpoint(self))
    }

    fn checkpoint_due(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.kept().requests.due())
    }

    fn status(&self) -> DurabilityStatus {
        self.kept().status(&self.shared().sequencer)
    }

    fn close(&self) -> Result<(), HomeError> {
        self.kept().close()
    }
}
