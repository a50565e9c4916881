//! Node-local memory as its users see it: under threads, with the operating system behind it.

use eris_numa::{Buffer, HugePages, Memory, MemoryError, NodeMemory, Plain, Topology, Usage};
use eris_types::{NodeId, ObjectId};
use std::sync::mpsc;
use std::thread;

const MODES: [HugePages; 3] = [HugePages::Auto, HugePages::Always, HugePages::Never];

fn memory(nodes: u16, huge: HugePages, budget: u64) -> Memory {
    Memory::new(&Topology::fake(nodes, 1), huge, Some(budget)).unwrap()
}

#[test]
fn buffers_are_zeroed_aligned_and_typed() {
    for huge in MODES {
        let memory = memory(2, huge, 64 << 20);
        let sizes = [0, 1, 7, 64, 1000, 9000, 300_000, 5_000_001];
        for bytes in sizes.into_iter().take(if cfg!(miri) { 6 } else { 8 }) {
            let mut buffer = memory.node(NodeId(1)).allocate(ObjectId(3), bytes).unwrap();
            assert_eq!((buffer.len(), buffer.is_empty()), (bytes, bytes == 0));
            assert_eq!((buffer.node(), buffer.object()), (NodeId(1), ObjectId(3)));
            assert!(buffer.as_slice::<u8>().iter().all(|&byte| byte == 0));
            view::<u8>(&buffer);
            view::<u16>(&buffer);
            view::<u32>(&buffer);
            view::<i64>(&buffer);
            view::<f64>(&buffer);
            view::<i128>(&buffer);
            buffer.as_mut_slice::<u64>().fill(u64::MAX);
            assert!(
                buffer
                    .as_slice::<i32>()
                    .iter()
                    .take(bytes / 8)
                    .all(|&number| number == -1)
            );
        }
    }
}

fn view<T: Plain>(buffer: &Buffer) {
    let slice = buffer.as_slice::<T>();
    assert_eq!(slice.len(), buffer.len() / size_of::<T>());
    assert!(slice.as_ptr().addr().is_multiple_of(64));
}

#[test]
fn large_buffers_begin_at_a_huge_page() {
    let memory = memory(1, HugePages::Auto, 64 << 20);
    for bytes in [600_000, 2 << 20, 5_000_000] {
        let buffer = memory.node(NodeId(0)).allocate(ObjectId(1), bytes).unwrap();
        assert!(
            buffer
                .as_slice::<u8>()
                .as_ptr()
                .addr()
                .is_multiple_of(2 << 20)
        );
    }
}

#[test]
fn bytes_are_accounted_by_object_and_node() {
    let memory = memory(2, HugePages::Always, 64 << 20);
    let allocate = |object, node, bytes| {
        memory
            .node(NodeId(node))
            .allocate(ObjectId(object), bytes)
            .unwrap()
    };
    let a = allocate(1, 0, 64);
    let b = allocate(1, 1, 4097 * 3);
    let c = allocate(2, 0, 3 << 20);
    let d = allocate(1, 0, 65);
    let _nothing = allocate(9, 0, 0);
    let usage = |object, node, bytes| Usage {
        object: ObjectId(object),
        node: NodeId(node),
        bytes,
    };
    // Slots, runs of 4 KiB and, in this mode, whole huge pages.
    assert_eq!(
        memory.usage(),
        [
            usage(1, 0, 64 + 128),
            usage(1, 1, 16_384),
            usage(2, 0, 4 << 20)
        ]
    );
    assert_eq!(
        memory.budget().used(),
        memory.usage().iter().map(|usage| usage.bytes).sum()
    );
    drop((a, b));
    assert_eq!(memory.usage(), [usage(1, 0, 128), usage(2, 0, 4 << 20)]);
    drop((c, d));
    assert_eq!(memory.usage(), []);
    assert_eq!(memory.budget().used(), 0);
}

#[test]
fn buffers_travel_between_threads() {
    let memory = memory(2, HugePages::Auto, 1 << 30);
    let (sender, receiver) = mpsc::sync_channel(256);
    // Two threads allocate and write; a third one checks and drops, far from the home of the bytes.
    let writers = [1, 2].map(|seed| {
        let (sender, node) = (sender.clone(), memory.node(NodeId(seed as u16 - 1)));
        thread::spawn(move || allocate_and_send(&node, seed, &sender))
    });
    drop(sender);
    let reader = thread::spawn(move || check_and_drop(receiver));
    // Joined one by one: only then have the threads given back what they had kept.
    writers
        .into_iter()
        .chain([reader])
        .for_each(|thread| thread.join().unwrap());
    assert_eq!((memory.usage(), memory.budget().used()), (vec![], 0));
    memory.trim();
    let mapped = |node| memory.node(NodeId(node)).mapped_bytes();
    assert_eq!((mapped(0), mapped(1)), (0, 0));
}

fn allocate_and_send(node: &NodeMemory, mut seed: u64, sender: &mpsc::SyncSender<(u64, Buffer)>) {
    // Miri looks at every byte, slowly.
    let (rounds, small, medium) = if cfg!(miri) {
        (10, 300, 9000)
    } else {
        (3000, 9000, 60_000)
    };
    for round in 0..rounds {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        // Mostly small, sometimes a run, seldom a mapping.
        let most = match seed % 20 {
            0 if !cfg!(miri) => 1 << 20,
            0..4 => medium,
            _ => small,
        };
        let bytes = (seed >> 8) as usize % most + 16;
        let mut buffer = node.allocate(ObjectId(1 + round % 5), bytes).unwrap();
        let zeroed = buffer.as_slice::<u8>().iter().all(|&byte| byte == 0);
        assert!(zeroed, "round {round}: {bytes} bytes");
        buffer.as_mut_slice::<u64>().fill(seed);
        if round % 3 != 0 {
            sender.send((seed, buffer)).unwrap();
        }
    }
}

fn check_and_drop(received: mpsc::Receiver<(u64, Buffer)>) {
    let check = |(seed, buffer): (u64, Buffer)| {
        assert!(buffer.as_slice::<u64>().iter().all(|&word| word == seed));
    };
    let mut waiting = Vec::new();
    for (seed, buffer) in received {
        waiting.push((seed, buffer));
        if waiting.len() > 100 {
            check(waiting.swap_remove(seed as usize % 100));
        }
    }
    waiting.into_iter().for_each(check);
}

#[test]
fn the_budget_is_shared_by_all_nodes() {
    let memory = memory(2, HugePages::Never, 10 << 20);
    let reservation = memory.budget().try_reserve(3 << 20).unwrap();
    let a = memory
        .node(NodeId(0))
        .allocate(ObjectId(1), 6 << 20)
        .unwrap();
    let denied = memory
        .node(NodeId(1))
        .allocate(ObjectId(1), 2 << 20)
        .unwrap_err();
    assert_eq!(
        (denied.asked, denied.used, denied.limit),
        (2 << 20, 9 << 20, 10 << 20)
    );
    assert_eq!(
        denied.to_string(),
        "out of memory: 2.1 MB asked on node 1, 9.44 MB of 10.5 MB in use"
    );
    assert_eq!(memory.node(NodeId(1)).mapped_bytes(), 0);
    assert_eq!(memory.usage().len(), 1);
    drop((a, reservation));
    let _b = memory
        .node(NodeId(1))
        .allocate(ObjectId(1), 9 << 20)
        .unwrap();
}

#[test]
fn without_a_number_the_budget_is_most_of_the_memory() {
    if cfg!(miri) {
        return; // There is no machine to ask.
    }
    let topology = Topology::fake(1, 1);
    let limit = Memory::new(&topology, HugePages::Auto, None)
        .unwrap()
        .budget()
        .limit();
    assert!(limit > 0 && limit <= topology.memory_bytes() / 5 * 4);
    assert!(matches!(
        Memory::new(&topology, HugePages::Auto, Some(0)),
        Err(MemoryError::NoBudget)
    ));
}

#[cfg(not(miri))]
#[test]
fn pages_tell_where_they_are_once_they_are_touched() {
    let memory = memory(1, HugePages::Never, 64 << 20);
    let mut buffer = memory
        .node(NodeId(0))
        .allocate(ObjectId(1), 4 << 20)
        .unwrap();
    // Sandboxes may forbid the question.
    let Some(before) = buffer.placement() else {
        return;
    };
    assert_eq!((before.pages.len(), before.untouched), (0, 1024));
    buffer.as_mut_slice::<u8>().fill(1);
    let after = buffer.placement().unwrap();
    assert_eq!(after.untouched, 0);
    assert_eq!(
        after.pages.iter().map(|(_, pages)| pages).sum::<usize>(),
        1024
    );
}
