//! The blocks into which an AEU copies chunks of other nodes: two, so that it scans one while the other one is filled.

use eris_home::BUFFERS;
use eris_numa::{CopyBlock, NodeMemory};

/// What a block holds: a chunk's columns if they are a few, or several chunks of narrow ones. A huge page.
pub(crate) const BLOCK_BYTES: usize = 2 << 20;

/// Blocks of an AEU.
const BLOCKS: usize = 2;

/// The blocks of an AEU that are not in use. They are allocated when they are first
/// needed, and given back when the AEU has no scan left.
#[derive(Debug, Default)]
pub(crate) struct CopyBlocks {
    free: Vec<CopyBlock>,
    lent: usize,
}

impl CopyBlocks {
    /// An empty block; `None` if both are in use, or there is no memory: chunks are then read where they lie.
    pub fn lend(&mut self, memory: &NodeMemory) -> Option<CopyBlock> {
        let block = match self.free.pop() {
            Some(block) => block,
            None if self.lent >= BLOCKS => return None,
            None => CopyBlock::allocate(memory, BUFFERS, BLOCK_BYTES).ok()?,
        };
        self.lent += 1;
        Some(block)
    }

    /// Takes a block back. Batches may still have parts of it: then it goes with the last of them.
    pub fn give_back(&mut self, mut block: CopyBlock) {
        self.lent -= 1;
        if block.clear() {
            self.free.push(block);
        }
    }

    /// Gives the memory of free blocks back: no scan is left here, and the budget is everybody's.
    pub fn release(&mut self) {
        self.free.clear();
    }
}
