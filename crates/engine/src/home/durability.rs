//! The engine as a home that outlives its process.

use crate::clients::engine::Engine;
use eris_disk::RealDisk;
use eris_home::{Checkpoint, Durability, DurabilityStatus, HomeError, Synchronous};
use futures::future::{BoxFuture, pending};
use std::path::PathBuf;
use std::sync::Arc;

impl Durability for Engine {
    fn is_read_only(&self) -> bool {
        self.kept().is_read_only()
    }

    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        Box::pin(Engine::checkpoint(self))
    }

    fn backup(&self, directory: PathBuf) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        let disk = Arc::new(RealDisk::new(&directory));
        Box::pin(Engine::backup(self, disk))
    }

    fn synchronous(&self) -> Synchronous {
        self.kept().synchronous()
    }

    fn set_synchronous(&self, synchronous: Synchronous) {
        self.kept().set_synchronous(synchronous);
    }

    fn checkpoint_due(&self) -> BoxFuture<'_, ()> {
        match self.kept().to_write(String::new) {
            Ok(open) => Box::pin(open.requests.due()),
            Err(_) => Box::pin(pending()),
        }
    }

    fn status(&self) -> DurabilityStatus {
        self.kept().status(&self.shared().sequencer)
    }

    fn close(&self) -> Result<(), HomeError> {
        self.kept().close()
    }
}
