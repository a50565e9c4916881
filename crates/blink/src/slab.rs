//! Nodes that lie beside each other in memory.

use crate::key::Key;
use crate::sync::AtomicU64;
#[cfg(not(loom))]
use eris_numa::{AtomicBuffer, Extent};
use eris_numa::{NodeMemory, OutOfMemory};
use eris_types::ObjectId;

/// A piece of a node's memory.
#[cfg(not(loom))]
pub(crate) struct Slab(AtomicBuffer);

#[cfg(not(loom))]
impl Slab {
    pub fn new(memory: &NodeMemory, object: ObjectId, words: usize) -> Result<Self, OutOfMemory> {
        let bytes = words * size_of::<AtomicU64>();
        Ok(Slab(AtomicBuffer::from(memory.allocate(object, bytes)?)))
    }

    #[inline]
    pub fn nodes<K: Key + ?Sized>(&self) -> &[K::Words] {
        K::nodes(self.0.words())
    }

    /// The memory that it is.
    pub fn extent(&self) -> Extent {
        self.0.extent()
    }
}

/// The model checker has atomic words of its own.
#[cfg(loom)]
pub(crate) struct Slab(Box<[AtomicU64]>);

#[cfg(loom)]
impl Slab {
    pub fn new(_: &NodeMemory, _: ObjectId, words: usize) -> Result<Self, OutOfMemory> {
        Ok(Slab((0..words).map(|_| AtomicU64::new(0)).collect()))
    }

    pub fn nodes<K: Key + ?Sized>(&self) -> &[K::Words] {
        K::nodes(&self.0)
    }
}
