//! Copies of a column chunk's pieces of memory.

use crate::resident;
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use eris_numa::{Buffer, CopyBlock, CopyEngine};

/// Where copies go, and how they are made. Each is `None` if the block has no room.
pub(crate) struct Copier<'a> {
    pub(crate) block: &'a mut CopyBlock,
    pub(crate) engine: CopyEngine,
}

impl Copier<'_> {
    pub(crate) fn copy(&mut self, buffer: &Buffer) -> Option<Buffer> {
        self.bytes(buffer.as_slice())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<Buffer> {
        self.block.copy(bytes, self.engine)
    }

    pub(crate) fn numbers<T: ArrowNativeType + eris_numa::Plain>(
        &mut self,
        numbers: &ScalarBuffer<T>,
    ) -> Option<ScalarBuffer<T>> {
        self.bytes(numbers.inner()).map(resident::numbers)
    }
}
