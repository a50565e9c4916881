//! Memory of one node into which pieces of other nodes' memory are copied, again and again.
//!
//! ```text
//! remote    ▕ words of column 0 ▏      ▕ words of column 3 ▏ ▕ validity ▏
//!                    ╲                        │                ╱
//! block     ▕█████████████████████▏█████████████████▏███▏·················▏    each piece aligned to 64 bytes
//!            part                  part              part  room
//! ```
//!
//! A scan of another node's memory has two of them: it works on one while the other one is being filled (Dreseler et
//! al., "Hardware-Accelerated Memory Operations on Large-Scale NUMA Systems", ADMS 2017, Section 3.2, Figure 4). Parts
//! are [`Buffer`]s as any, so that whoever reads them cannot tell. A block is filled anew once none of its parts is
//! left.

use crate::budget::OutOfMemory;
use crate::buffer::{Buffer, Plain};
use crate::classes::ALIGN;
use crate::copy::CopyEngine;
use crate::node::NodeMemory;
use eris_types::{NodeId, ObjectId};
use std::fmt;
use std::sync::Arc;

/// A buffer that is handed out in parts, front to back, as they are copied in.
pub struct CopyBlock {
    whole: Arc<Buffer>,
    used: usize,
}

impl CopyBlock {
    /// A block of so many bytes on a node.
    ///
    /// # Errors
    /// [`OutOfMemory`] as any buffer.
    pub fn allocate(
        memory: &NodeMemory,
        object: ObjectId,
        bytes: usize,
    ) -> Result<Self, OutOfMemory> {
        Ok(CopyBlock {
            whole: Arc::new(memory.allocate(object, bytes)?),
            used: 0,
        })
    }

    /// The node it lies on.
    pub fn node(&self) -> NodeId {
        self.whole.node()
    }

    /// All its bytes.
    pub fn len(&self) -> usize {
        self.whole.len()
    }

    /// Bytes that are left.
    pub fn room(&self) -> usize {
        self.len() - self.used
    }

    /// Whether nothing has been copied into it since it was [cleared](Self::clear).
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Copies numbers in. `None` if there is no room for them.
    pub fn copy<T: Plain>(&mut self, numbers: &[T], engine: CopyEngine) -> Option<Buffer> {
        let bytes = size_of_val(numbers);
        if bytes > self.len() - self.used {
            return None;
        }
        // SAFETY: the bytes are in bounds, from `used` on, where no part has been made of them; `used` is aligned.
        let mut part = unsafe { Buffer::part(&self.whole, self.used, bytes) };
        engine.copy(numbers, part.as_mut_slice());
        self.used = (self.used + bytes).next_multiple_of(ALIGN).min(self.len());
        Some(part)
    }

    /// Makes room again; `false` as long as somebody has a part.
    pub fn clear(&mut self) -> bool {
        // It tells of the drops of other threads what they did before: they have read to the end.
        let unshared = Arc::get_mut(&mut self.whole).is_some();
        if unshared {
            self.used = 0;
        }
        unshared
    }
}

impl fmt::Debug for CopyBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopyBlock({} of {:?})", self.used, self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::source::HugePages;
    use crate::topology::Topology;

    const OBJECT: ObjectId = ObjectId(3);

    #[test]
    fn parts_stay_until_they_are_dropped_and_count_once() {
        let memory = Memory::new(&Topology::fake(2, 1), HugePages::Never, Some(1 << 20)).unwrap();
        let node = NodeId(1);
        let mut block = CopyBlock::allocate(&memory.node(node), OBJECT, 1 << 12).unwrap();
        let used = memory.budget().used();
        let words: Vec<u64> = (0..100).collect();
        let first = block.copy(&words, CopyEngine::Plain).unwrap();
        let second = block.copy(&[1u8, 2, 3], CopyEngine::Streaming).unwrap();
        assert_eq!(first.as_slice::<u64>(), words);
        assert_eq!(
            (second.as_slice::<u8>(), second.node()),
            (&[1u8, 2, 3][..], node)
        );
        assert!(second.as_slice::<u8>().as_ptr().addr().is_multiple_of(64));
        assert_eq!(memory.budget().used(), used);

        assert!(block.copy(&[0u8; 4096], CopyEngine::Plain).is_none());
        assert!(!block.clear());
        drop(first);
        assert!(!block.clear());
        drop(second);
        assert!(block.clear() && block.is_empty());
        let whole = block.copy(&[7u8; 4096], CopyEngine::Plain).unwrap();
        assert!(block.copy(&[0u8], CopyEngine::Plain).is_none());

        // Who has a part keeps the memory.
        drop(block);
        assert_eq!(memory.budget().used(), used);
        assert!(whole.as_slice::<u8>().iter().all(|&byte| byte == 7));
        drop(whole);
        assert!(memory.budget().used() < used);
    }
}
