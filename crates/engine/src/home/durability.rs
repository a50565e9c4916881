//! The engine as a home that outlives its process.

use crate::clients::engine::Engine;
use eris_disk::RealDisk;
use eris_home::{Checkpoint, Durability, DurabilityStatus, HomeError};
use futures::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;

impl Durability for Engine {
    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        Box::pin(Engine::checkpoint(self))
    }

    fn backup(&self, directory: PathBuf) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        let disk = Arc::new(RealDisk::new(&directory));
        Box::pin(Engine::backup(self, disk))
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
