//! What a careless disk does with chunk files.

use crate::common::careless::{self, Flushed, Flushing};
use eris_disk::SimulatedDisk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    FileNotFlushed,
    DirectoryNotFlushed,
    FileFlushTriedAgain,
    DirectoryFlushTriedAgain,
}

impl careless::Mistake for Mistake {
    fn flushing(self, what: Flushed<'_>, _: &SimulatedDisk) -> Flushing {
        match (self, what) {
            (Mistake::FileNotFlushed, Flushed::File(_))
            | (Mistake::DirectoryNotFlushed, Flushed::Directory(_)) => Flushing::Never,
            (Mistake::FileFlushTriedAgain, Flushed::File(_))
            | (Mistake::DirectoryFlushTriedAgain, Flushed::Directory(_)) => Flushing::Again,
            _ => Flushing::Once,
        }
    }
}
