//! Node-local bytes as Arrow buffers, without a copy: the Arrow buffer owns the node's, and its last clone gives the
//! bytes back to their home.

use arrow_buffer::{ArrowNativeType, Buffer as ArrowBuffer, ScalarBuffer};
use eris_numa::{Buffer, Plain};

struct Owner(Buffer);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// The bytes as an Arrow buffer.
pub(crate) fn bytes(buffer: Buffer) -> ArrowBuffer {
    ArrowBuffer::from(bytes::Bytes::from_owner(Owner(buffer)))
}

/// The bytes as numbers.
pub(crate) fn numbers<T: ArrowNativeType + Plain>(buffer: Buffer) -> ScalarBuffer<T> {
    ScalarBuffer::from(bytes(buffer))
}
