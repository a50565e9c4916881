//! Buffers lie on the node they were allocated on, whichever thread touches them first. It says most on a machine (or a
//! virtual one) with several nodes, memory-only ones among them; with one node everything has to be there.

#![cfg(not(miri))]

use eris_numa::{HugePages, Memory, Topology, pin_current_thread};
use eris_types::ObjectId;

const OBJECT: ObjectId = ObjectId(1);
/// A run, a mapping without and one with huge pages.
const SIZES: [usize; 3] = [200_000, 1 << 20, 9 << 20];

#[test]
fn a_buffer_lies_on_its_node_whoever_touches_it() {
    let topology = Topology::from_sysfs("/".as_ref()).unwrap();
    for huge in [HugePages::Auto, HugePages::Always, HugePages::Never] {
        let memory = Memory::new(&topology, huge, Some(256 << 20)).unwrap();
        for place in topology.aeus() {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // A cpuset may withhold it; where the thread runs matters only as a temptation.
                    let _ = place.cpu.map(pin_current_thread);
                    touch_everywhere(&topology, &memory);
                });
            });
        }
        assert_eq!(memory.budget().used(), 0);
    }
}

fn touch_everywhere(topology: &Topology, memory: &Memory) {
    for node in topology.nodes() {
        for bytes in SIZES {
            let mut buffer = memory.node(node.id).allocate(OBJECT, bytes).unwrap();
            buffer.as_mut_slice::<u8>().fill(1);
            // Sandboxes may forbid the question.
            let Some(placement) = buffer.placement() else {
                return;
            };
            let nodes: Vec<u32> = placement.pages.iter().map(|(node, _)| *node).collect();
            assert_eq!(
                nodes,
                [node.os_node.unwrap()],
                "{bytes} bytes on {}: {placement:?}",
                node.id
            );
            assert_eq!(placement.untouched, 0);
        }
    }
}

#[test]
fn a_full_node_lends_from_another_and_placement_tells() {
    let topology = Topology::from_sysfs("/".as_ref()).unwrap();
    let Some(smallest) = topology.nodes().iter().min_by_key(|node| node.memory_bytes) else {
        return;
    };
    // Only where filling a node is cheap and others have room: a virtual machine made for it.
    if topology.nodes().len() < 2 || smallest.memory_bytes > 256 << 20 {
        return;
    }
    let memory = Memory::new(&topology, HugePages::Never, None).unwrap();
    let bytes = smallest.memory_bytes as usize + (32 << 20);
    let mut buffer = memory.node(smallest.id).allocate(OBJECT, bytes).unwrap();
    buffer.as_mut_slice::<u8>().fill(1);
    let placement = buffer.placement().unwrap();
    assert!(placement.pages.len() > 1, "{placement:?}");
    assert!(
        placement
            .pages
            .iter()
            .any(|(node, _)| Some(*node) == smallest.os_node),
        "{placement:?}"
    );
}
