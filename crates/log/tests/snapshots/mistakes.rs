//! What a careless disk does with snapshots and the manifest.

use crate::common::careless::{self, Flushed, Flushing};
use crate::common::paths;
use eris_disk::SimulatedDisk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    SnapshotNotFlushed,
    SnapshotNameNotFlushed,
    ManifestNotFlushed,
    ManifestNameNotFlushed,
    ManifestNameFlushTriedAgain,
    /// What is older is removed before the manifest is written. That is no mistake of the disk.
    RemovedFirst,
}

impl careless::Mistake for Mistake {
    fn flushing(self, what: Flushed<'_>, disk: &SimulatedDisk) -> Flushing {
        let is_left_out = match (self, what) {
            (Mistake::SnapshotNotFlushed, Flushed::File(path)) => path.starts_with("snapshots"),
            (Mistake::ManifestNotFlushed, Flushed::File(path)) => path == "eris.db.new",
            (Mistake::SnapshotNameNotFlushed, Flushed::Directory(path)) => path == "snapshots",
            // Not of the first one: then there is nothing to be removed.
            (Mistake::ManifestNameNotFlushed, Flushed::Directory(path)) => {
                path == "" && !paths(disk, "snapshots").is_empty()
            }
            (Mistake::ManifestNameFlushTriedAgain, Flushed::Directory(path)) if path == "" => {
                return Flushing::Again;
            }
            _ => false,
        };
        match is_left_out {
            true => Flushing::Never,
            false => Flushing::Once,
        }
    }
}
