//! The blocks into which an AEU copies chunks of other nodes: two, so that it scans one while the other one is filled.

use crate::remote::BLOCK_BYTES;
use eris_home::BUFFERS;
use eris_numa::{Budget, CopyBlock, NodeMemory};

/// Blocks of an AEU.
const BLOCKS: usize = 2;

/// Of the budget this part may be kept for blocks that nobody uses.
const KEPT: u64 = 32;

/// The blocks of an AEU that are not in use. They are allocated when they are first needed, and kept for scans to come:
/// the system takes a millisecond for a new huge page, and more where memory is in pieces. If the budget is small, they
/// are given back when the AEU has no scan left.
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

    /// No scan is left here. The memory of free blocks is given back if all AEUs' blocks are more than a small part of
    /// the budget.
    pub fn release(&mut self, budget: &Budget, aeus: usize) {
        let all = aeus as u64 * BLOCKS as u64 * BLOCK_BYTES as u64;
        if all > budget.limit() / KEPT {
            self.free.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Memory, Topology};
    use eris_types::NodeId;

    #[test]
    fn blocks_are_kept_unless_the_budget_is_small() {
        let all = BLOCKS * BLOCK_BYTES;
        let topology = Topology::fake(1, 1);
        for (budget, aeus, kept) in [(32 * all, 1, all), (32 * all, 2, 0), (4 * all, 1, 0)] {
            let memory = Memory::new(&topology, HugePages::Never, Some(budget as u64)).unwrap();
            let node = memory.node(NodeId(0));
            let mut copies = CopyBlocks::default();
            for _ in 0..2 {
                let lent = [copies.lend(&node).unwrap(), copies.lend(&node).unwrap()];
                assert!(copies.lend(&node).is_none(), "there are two");
                for block in lent {
                    copies.give_back(block);
                }
                copies.release(memory.budget(), aeus);
                assert_eq!(memory.budget().used(), kept as u64, "{budget} {aeus}");
            }
        }
    }
}
