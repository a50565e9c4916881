//! A buffer that is given away in parts.
//!
//! ```text
//! whole   ▕ head ▏▕███████████████▏··▕████████▏ head ▏···················▏
//!          passed      part      passed part   passed  rest
//! ```
//!
//! What was read into one buffer becomes several, without a copy: each part is a [`Buffer`] as any, and the bytes
//! between them are looked at and passed over. The memory is given back once no part is left.

use crate::buffer::Buffer;
use crate::classes::ALIGN;
use std::fmt;
use std::sync::Arc;

/// A buffer that is given away front to back.
pub struct BufferParts {
    whole: Arc<Buffer>,
    /// No part reaches behind this.
    used: usize,
}

impl BufferParts {
    /// All parts of a buffer.
    pub fn new(whole: Buffer) -> Self {
        BufferParts {
            whole: Arc::new(whole),
            used: 0,
        }
    }

    /// How many bytes have been passed over or given away.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &[u8] {
        // SAFETY: the bytes from `used` on are in bounds and initialised, as the buffer's are. No part has any of them:
        // a part is made by `take` alone, which takes the receiver exclusively and moves `used` behind it.
        unsafe {
            let start = self.whole.start().add(self.used);
            std::slice::from_raw_parts(start.as_ptr(), self.whole.len() - self.used)
        }
    }

    /// Passes over some bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn skip(&mut self, bytes: usize) {
        assert!(
            bytes <= self.whole.len() - self.used,
            "{bytes} bytes are not left"
        );
        self.used += bytes;
    }

    /// The next bytes as a buffer of their own. `None` if there are fewer, or if they do not begin at a multiple of 64.
    pub fn take(&mut self, bytes: usize) -> Option<Buffer> {
        if bytes > self.whole.len() - self.used || !self.used.is_multiple_of(ALIGN) {
            return None;
        }
        // SAFETY: the bytes are in bounds and aligned, by the check. Parts that were made before end at `used` at the
        // latest, and later ones begin behind this one.
        let part = unsafe { Buffer::part(&self.whole, self.used, bytes) };
        self.used += bytes;
        Some(part)
    }
}

impl fmt::Debug for BufferParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferParts({} of {:?})", self.used, self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::source::HugePages;
    use crate::topology::Topology;
    use eris_types::{NodeId, ObjectId};

    #[test]
    fn parts_are_apart_and_keep_the_memory() {
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 20)).unwrap();
        let mut whole = memory.node(NodeId(0)).allocate(ObjectId(3), 200).unwrap();
        for (byte, number) in whole.as_mut_slice::<u8>().iter_mut().zip(0..) {
            *byte = number;
        }
        let taken = memory.budget().used();
        let mut parts = BufferParts::new(whole);
        assert_eq!(parts.rest()[..3], [0, 1, 2]);
        parts.skip(3);
        assert!(parts.take(1).is_none(), "not aligned");
        parts.skip(61);
        let mut first = parts.take(10).unwrap();
        // A part may be written while the rest is read.
        let rest = parts.rest();
        first.as_mut_slice::<u8>()[9] = 99;
        assert_eq!((rest[0], rest.len()), (74, 126));
        parts.skip(54);
        assert!(parts.take(73).is_none(), "beyond the end");
        let last = parts.take(72).unwrap();
        assert!(parts.rest().is_empty() && parts.used() == 200);
        assert_eq!(
            (first.as_slice::<u8>()[0], first.as_slice::<u8>()[9]),
            (64, 99)
        );
        assert_eq!((last.as_slice::<u8>()[0], last.len()), (128, 72));
        drop((parts, first));
        assert_eq!(memory.budget().used(), taken);
        drop(last);
        assert!(memory.budget().used() < taken);
    }

    #[test]
    #[should_panic(expected = "9 bytes are not left")]
    fn more_than_there_is_cannot_be_passed_over() {
        let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 20)).unwrap();
        let whole = memory.node(NodeId(0)).allocate(ObjectId(3), 8).unwrap();
        BufferParts::new(whole).skip(9);
    }
}
