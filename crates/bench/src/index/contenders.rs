//! Which structures take part.

use super::error::IndexBenchError;
use super::keys::{BATCH, KeySequence};
use super::latched::LatchedTree;
use super::shared::Shared;
use super::structure::{Owned, Routed, Structure};
use super::tasked::Tasked;
use eris_engine::Settings;

/// Those of Eris, for these keys.
pub fn structures(
    settings: &Settings,
    keys: KeySequence,
    threads: usize,
) -> Result<Vec<Box<dyn Structure>>, IndexBenchError> {
    Ok(vec![
        Box::new(Owned::new(settings, keys, threads, BATCH)?),
        Box::new(Owned::new(settings, keys, threads, 1)?),
        Box::new(Routed::new(settings, keys, threads)?),
        Box::new(Shared::new(settings, keys, threads, BATCH)?),
        Box::new(Shared::new(settings, keys, threads, 1)?),
    ])
}

/// Trees that threads share, by how they do so, and the tree that nobody shares.
pub fn shared_trees(
    settings: &Settings,
    keys: KeySequence,
    threads: usize,
) -> Result<Vec<Box<dyn Structure>>, IndexBenchError> {
    Ok(vec![
        Box::new(LatchedTree::new(settings, keys, threads)?),
        Box::new(Shared::new(settings, keys, threads, 1)?),
        Box::new(Tasked::new(settings, keys, threads, false)?),
        Box::new(Tasked::new(settings, keys, threads, true)?),
        Box::new(Shared::new(settings, keys, threads, BATCH)?),
        Box::new(Owned::new(settings, keys, threads, 1)?),
        Box::new(Owned::new(settings, keys, threads, BATCH)?),
    ])
}
