//! Nodes that lie beside each other in memory.

use crate::node::WORDS;
use crate::sync::AtomicU64;
#[cfg(not(loom))]
use eris_numa::AtomicBuffer;
use eris_numa::{NodeMemory, OutOfMemory};
use eris_types::ObjectId;

/// A piece of a node's memory.
#[cfg(not(loom))]
pub(crate) struct Slab(AtomicBuffer);

#[cfg(not(loom))]
impl Slab {
    pub fn new(memory: &NodeMemory, object: ObjectId, nodes: usize) -> Result<Self, OutOfMemory> {
        let bytes = nodes * WORDS * size_of::<u64>();
        Ok(Slab(AtomicBuffer::from(memory.allocate(object, bytes)?)))
    }

    #[inline]
    pub fn nodes(&self) -> &[[AtomicU64; WORDS]] {
        self.0.words().as_chunks().0
    }
}

/// The model checker has atomic words of its own.
#[cfg(loom)]
pub(crate) struct Slab(Box<[[AtomicU64; WORDS]]>);

#[cfg(loom)]
impl Slab {
    pub fn new(_: &NodeMemory, _: ObjectId, nodes: usize) -> Result<Self, OutOfMemory> {
        let node = || std::array::from_fn(|_| AtomicU64::new(0));
        Ok(Slab((0..nodes).map(|_| node()).collect()))
    }

    pub fn nodes(&self) -> &[[AtomicU64; WORDS]] {
        &self.0
    }
}
