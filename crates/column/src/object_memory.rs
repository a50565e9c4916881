//! Where encoded values are to lie.

use eris_numa::{Buffer, NodeMemory, OutOfMemory};
use eris_types::ObjectId;

/// Where a chunk's bytes are to lie, and to whom they are accounted.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMemory<'a> {
    /// The memory of a node.
    pub memory: &'a NodeMemory,
    /// The data object that the chunk belongs to.
    pub object: ObjectId,
}

impl ObjectMemory<'_> {
    /// Room for `count` numbers, zeroed.
    pub(crate) fn allocate<T>(&self, count: usize) -> Result<Buffer, OutOfMemory> {
        self.memory.allocate(self.object, count * size_of::<T>())
    }
}
