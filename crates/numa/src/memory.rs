//! All nodes' memory managers and the one budget over them.

use crate::budget::Budget;
use crate::cgroup;
use crate::error::TopologyError;
use crate::node::{NodeMemory, NodeState};
use crate::os;
use crate::source::{HugePages, MemorySource};
use crate::topology::{Node, Topology};
use eris_types::{NodeId, ObjectId};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The memory of all nodes. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Memory {
    nodes: Arc<[NodeMemory]>,
    budget: Budget,
}

/// Bytes that one data object holds on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// The data object.
    pub object: ObjectId,
    /// The node.
    pub node: NodeId,
    /// Bytes that its buffers occupy there, rounding up included.
    pub bytes: u64,
}

/// Memory management cannot start.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A budget of no bytes.
    #[error("a memory budget of 0 bytes holds nothing")]
    NoBudget,
    /// No budget was given, and neither cgroup nor machine tells how much memory there is.
    #[error("cannot find out how much memory there is, so a memory budget must be given: {0}")]
    UnknownSize(#[source] TopologyError),
}

impl Memory {
    /// A memory manager for each node of the topology. `budget_bytes` limits the bytes of all buffers together; `None`:
    /// 80 % of the machine's memory, or of the cgroup's limit if that is lower.
    ///
    /// Memory is bound to nodes if the topology is real and the operating system knows more than one.
    ///
    /// # Errors
    /// [`MemoryError`]: no budget, or none can be found out.
    pub fn new(
        topology: &Topology,
        huge: HugePages,
        budget_bytes: Option<u64>,
    ) -> Result<Memory, MemoryError> {
        let limit = match budget_bytes {
            Some(bytes) => bytes,
            None => {
                cgroup::available_memory(Path::new("/")).map_err(MemoryError::UnknownSize)? / 5 * 4
            }
        };
        if limit == 0 {
            return Err(MemoryError::NoBudget);
        }
        let bind = !topology.is_fake() && topology.nodes().len() > 1;
        let source = |node: &Node| source(node.os_node.filter(|_| bind), huge);
        let granule = NodeState::granule_of(huge, os::page_bytes());
        Ok(Self::over(
            topology.nodes(),
            Budget::new(limit),
            source,
            granule,
        ))
    }

    pub(crate) fn over(
        nodes: &[Node],
        budget: Budget,
        source: impl Fn(&Node) -> Box<dyn MemorySource>,
        granule: usize,
    ) -> Memory {
        let manager = |node: &Node| NodeMemory::new(node.id, budget.clone(), source(node), granule);
        Memory {
            nodes: nodes.iter().map(manager).collect(),
            budget,
        }
    }

    /// The manager of one node.
    ///
    /// # Panics
    /// If the topology has no such node.
    pub fn node(&self, node: NodeId) -> NodeMemory {
        self.nodes[node.index()].clone()
    }

    /// What every data object holds on every node, where it holds anything; ascending by object, then node.
    pub fn usage(&self) -> Vec<Usage> {
        let mut usage = Vec::new();
        for memory in self.nodes.iter() {
            let node = memory.node();
            let held = memory.0.accounts.list();
            usage.extend(held.into_iter().map(|(object, bytes)| Usage {
                object,
                node,
                bytes,
            }));
        }
        usage.sort_unstable_by_key(|usage| (usage.object, usage.node));
        usage
    }

    /// The limit over all nodes.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// [`NodeMemory::trim`] on every node.
    pub fn trim(&self) {
        for node in self.nodes.iter() {
            node.trim();
        }
    }
}

#[cfg(not(miri))]
fn source(home: Option<u32>, huge: HugePages) -> Box<dyn MemorySource> {
    Box::new(os::OsSource {
        home,
        huge,
        page_bytes: os::page_bytes(),
    })
}

#[cfg(miri)]
fn source(_home: Option<u32>, _huge: HugePages) -> Box<dyn MemorySource> {
    Box::new(crate::source::HeapSource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{HUGE, HeapSource};
    use crate::{Cause, OutOfMemory};
    use std::ptr::NonNull;
    use std::sync::Mutex;

    const OBJECT: ObjectId = ObjectId(7);

    /// A source that knows what is mapped, and has a limit of its own.
    #[derive(Default)]
    struct Watched {
        mapped: Mutex<Vec<(usize, usize)>>,
        limit: usize,
        /// Dropped by the next mapping, as if by another thread.
        meanwhile: Mutex<Option<crate::Buffer>>,
    }

    impl MemorySource for Arc<Watched> {
        fn map(&self, bytes: usize) -> Result<NonNull<u8>, i32> {
            drop(self.meanwhile.lock().unwrap().take());
            let mut mapped = self.mapped.lock().unwrap();
            if mapped.iter().map(|(_, bytes)| bytes).sum::<usize>() + bytes > self.limit {
                return Err(libc::ENOMEM);
            }
            let start = HeapSource.map(bytes)?;
            mapped.push((start.addr().get(), bytes));
            Ok(start)
        }

        unsafe fn unmap(&self, start: NonNull<u8>, bytes: usize) {
            let mut mapped = self.mapped.lock().unwrap();
            let which = mapped
                .iter()
                .position(|known| *known == (start.addr().get(), bytes));
            mapped.swap_remove(which.expect("a whole mapping, once"));
            // SAFETY: the caller's promise is the same.
            unsafe { HeapSource.unmap(start, bytes) }
        }

        unsafe fn discard(&self, start: NonNull<u8>, bytes: usize) -> bool {
            // SAFETY: the caller's promise is the same.
            unsafe { HeapSource.discard(start, bytes) }
        }
    }

    fn memory(budget: u64, source_limit: usize) -> (Memory, Arc<Watched>) {
        let source = Arc::new(Watched {
            limit: source_limit,
            ..Watched::default()
        });
        let topology = Topology::fake(1, 1);
        let make = |_: &Node| Box::new(source.clone()) as Box<dyn MemorySource>;
        (
            Memory::over(topology.nodes(), Budget::new(budget), make, 4096),
            source,
        )
    }

    fn mapped(source: &Watched) -> usize {
        source
            .mapped
            .lock()
            .unwrap()
            .iter()
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// Sizes around every border between the kinds of places.
    const SIZES: [usize; 12] = [
        1,
        64,
        65,
        700,
        8192,
        8193,
        65_536,
        100_000,
        512 << 10,
        (512 << 10) + 1,
        2 << 20,
        3_000_000,
    ];

    #[test]
    fn a_region_that_is_not_needed_any_more_goes_again() {
        const RUN: usize = 512 << 10;
        let (memory, source) = memory(64 << 20, usize::MAX);
        let allocate = || memory.node(NodeId(0)).allocate(OBJECT, RUN).unwrap();
        let mut buffers = vec![allocate()];
        let region = mapped(&source);
        while buffers.len() < region / RUN {
            buffers.push(allocate());
        }
        assert_eq!(mapped(&source), region, "there is no room");
        *source.meanwhile.lock().unwrap() = buffers.pop();
        buffers.push(allocate());
        assert!(source.meanwhile.lock().unwrap().is_none(), "it was mapped");
        assert_eq!(mapped(&source), region);
        drop(buffers);
        memory.trim();
        assert_eq!(mapped(&source), 0);
    }

    #[test]
    fn every_kind_of_buffer_is_zeroed_even_where_another_was() {
        let (memory, source) = memory(64 << 20, usize::MAX);
        let sizes = if cfg!(miri) { &SIZES[..7] } else { &SIZES[..] };
        // Keeps a region alive, so that runs and slots are really used again.
        let kept = memory.node(NodeId(0)).allocate(OBJECT, 10_000).unwrap();
        for _ in 0..3 {
            let mut all = Vec::new();
            for &bytes in sizes {
                let mut buffer = memory.node(NodeId(0)).allocate(OBJECT, bytes).unwrap();
                assert_eq!(buffer.len(), bytes);
                assert!(buffer.as_slice::<u8>().as_ptr().addr().is_multiple_of(64));
                assert!(
                    buffer.as_slice::<u8>().iter().all(|&byte| byte == 0),
                    "{bytes} bytes"
                );
                buffer.as_mut_slice::<u8>().fill(0xff);
                all.push(buffer);
            }
        }
        drop(kept);
        assert_eq!((memory.usage(), memory.budget().used()), (vec![], 0));
        memory.trim();
        assert_eq!(mapped(&source), 0);
        assert_eq!(memory.node(NodeId(0)).mapped_bytes(), 0);
    }

    #[test]
    fn an_empty_region_is_unmapped_at_once() {
        let (memory, source) = memory(64 << 20, usize::MAX);
        let node = memory.node(NodeId(0));
        let (run, large) = (
            node.allocate(OBJECT, 100_000).unwrap(),
            node.allocate(OBJECT, 1 << 20).unwrap(),
        );
        assert_eq!(mapped(&source), HUGE + (1 << 20));
        drop(large);
        assert_eq!(mapped(&source), HUGE);
        drop(run);
        assert_eq!(mapped(&source), 0);
    }

    #[test]
    fn a_rejected_mapping_leaves_nothing() {
        let (memory, source) = memory(64 << 20, 3 << 20);
        let node = memory.node(NodeId(0));
        let kept = node.allocate(OBJECT, 100).unwrap();
        let used = memory.budget().used();
        for bytes in [2 << 20, 600_000 * 4] {
            let denied = node.allocate(ObjectId(8), bytes).unwrap_err();
            assert_eq!(denied.cause, Cause::System(libc::ENOMEM));
            assert!(
                denied
                    .to_string()
                    .contains("the operating system denied it"),
                "{denied}"
            );
        }
        // The region is full, another one is denied.
        let runs: Vec<_> = std::iter::from_fn(|| node.allocate(OBJECT, 512 << 10).ok()).collect();
        assert_eq!(runs.len(), 3);
        drop(runs);
        assert_eq!(memory.budget().used(), used);
        assert_eq!(
            memory.usage(),
            [Usage {
                object: OBJECT,
                node: NodeId(0),
                bytes: 128
            }]
        );
        assert_eq!(mapped(&source), HUGE);
        drop(kept);
    }

    #[test]
    fn what_threads_keep_is_bounded_and_given_back() {
        let (memory, source) = memory(64 << 20, usize::MAX);
        let count = if cfg!(miri) { 200 } else { 10_000 };
        let node = memory.node(NodeId(0));
        let thread = std::thread::spawn(move || {
            let many: Vec<_> = (0..count)
                .map(|_| node.allocate(OBJECT, 1000).unwrap())
                .collect();
            drop(many);
            // 16 KiB of the class may be kept, in as many slabs at most.
            assert!(
                node.mapped_bytes() <= 2 * HUGE as u64,
                "{}",
                node.mapped_bytes()
            );
        });
        thread.join().unwrap();
        assert_eq!(memory.budget().used(), 0);
        // The thread has ended and gave all slots back.
        assert_eq!(mapped(&source), 0);
    }

    #[test]
    fn a_manager_that_is_gone_leaves_no_mapping_although_a_thread_kept_slots() {
        let (memory, source) = memory(64 << 20, usize::MAX);
        drop(memory.node(NodeId(0)).allocate(OBJECT, 64).unwrap());
        assert_eq!(mapped(&source), HUGE, "the thread keeps the slot");
        drop(memory);
        assert_eq!(mapped(&source), 0);
        // And the next manager starts afresh.
        let (memory, _source) = self::memory(64 << 20, usize::MAX);
        let buffer = memory.node(NodeId(0)).allocate(OBJECT, 64).unwrap();
        drop(memory);
        assert_eq!(
            buffer.as_slice::<u64>(),
            [0; 8],
            "a buffer outlives the handle it came from"
        );
    }

    #[test]
    fn what_lies_in_no_buffer_is_accounted_by_node_while_it_is_held() {
        let (memory, _source) = memory(100_000, usize::MAX);
        let node = memory.node(NodeId(0));
        let account = node.account(OBJECT);
        let _buffer = node.allocate(OBJECT, 8_192).unwrap();
        let held = account.try_reserve(50_000).unwrap();
        let usage = |bytes| {
            [Usage {
                object: OBJECT,
                node: NodeId(0),
                bytes,
            }]
        };
        assert_eq!(memory.usage(), usage(58_192));
        let denied = account.try_reserve(50_000).unwrap_err();
        assert_eq!((denied.asked, denied.node), (50_000, Some(NodeId(0))));
        assert_eq!(memory.budget().used(), 58_192);
        drop(held);
        assert_eq!(memory.usage(), usage(8_192));
        assert_eq!(memory.budget().used(), 8_192);
    }

    #[test]
    fn the_budget_denies_before_the_source_is_asked() {
        let (memory, source) = memory(100_000, usize::MAX);
        let node = memory.node(NodeId(0));
        let _held = node.allocate(OBJECT, 60_000).unwrap();
        let denied = node.allocate(OBJECT, 50_000).unwrap_err();
        let expected = OutOfMemory {
            asked: 53_248,
            used: 61_440,
            limit: 100_000,
            node: Some(NodeId(0)),
            cause: Cause::Budget,
        };
        assert_eq!(denied, expected);
        assert_eq!(mapped(&source), HUGE);
        for absurd in [usize::MAX, usize::MAX - 4096, isize::MAX as usize] {
            assert!(node.allocate(OBJECT, absurd).is_err());
        }
        assert_eq!(memory.budget().used(), 61_440);
    }
}
