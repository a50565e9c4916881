//! Topologies read from the files of machines that are not at hand, and their AEUs.

mod fixtures;

use eris_numa::{CacheKind, HugePool, Topology, TopologyError, TransparentHuge};
use eris_types::{AeuId, NodeId};
use fixtures::{Machine, put};
use std::fs;

fn aeus_per_node(topology: &Topology) -> Vec<usize> {
    let count = |node| {
        topology
            .aeus()
            .iter()
            .filter(|place| place.node == node)
            .count()
    };
    topology.nodes().iter().map(|node| count(node.id)).collect()
}

#[test]
fn four_sockets_with_hardware_threads() {
    let root = Machine::intel().write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    assert!(!topology.is_fake());
    assert_eq!(topology.nodes().len(), 4);
    assert_eq!(topology.memory_bytes(), 128 << 30);
    let second = &topology.nodes()[1];
    assert_eq!((second.id, second.os_node), (NodeId(1), Some(1)));
    assert_eq!(second.distances, [21, 10, 21, 21]);
    assert_eq!(second.cpus, (10..20).chain(50..60).collect::<Vec<_>>());
    // One AEU per core, on its first thread.
    assert_eq!(aeus_per_node(&topology), [10; 4]);
    let bound: Vec<_> = topology.aeus().iter().map(|place| place.cpu).collect();
    assert_eq!(bound, (0..40).map(Some).collect::<Vec<_>>());
    assert_eq!(topology.node_of(AeuId(39)), NodeId(3));
    assert_eq!(topology.cores_of(NodeId(0)), 10);
}

#[test]
fn caches_and_page_sizes() {
    let root = Machine::intel().write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    let caches: Vec<_> = topology
        .caches()
        .iter()
        .map(|c| (c.level, c.kind, c.bytes, c.shared_by, c.instances))
        .collect();
    assert_eq!(
        caches,
        [
            (1, CacheKind::Data, 32 << 10, 2, 40),
            (1, CacheKind::Instruction, 32 << 10, 2, 40),
            (3, CacheKind::Unified, 24 << 20, 20, 4),
        ]
    );
    let pages = topology.page_sizes();
    assert_eq!(pages.transparent, TransparentHuge::Madvise);
    assert_eq!(pages.transparent_bytes, Some(2 << 20));
    let pool = |page_bytes, pages, free| HugePool {
        page_bytes,
        pages,
        free,
    };
    assert_eq!(pages.pools, [pool(2 << 20, 12, 5), pool(1 << 30, 0, 0)]);
}

#[test]
fn eight_nodes_in_four_packages() {
    let root = Machine::amd().write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    assert_eq!(aeus_per_node(&topology), [8; 8]);
    assert_eq!(
        topology.nodes()[0].distances,
        [10, 16, 16, 22, 16, 22, 16, 22]
    );
    assert_eq!(topology.nodes()[7].memory_bytes, 8 << 30);
}

#[test]
fn sixty_four_nodes() {
    let root = Machine::sgi().write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    assert_eq!(topology.aeus().len(), 512);
    assert_eq!(topology.memory_bytes(), 8 << 40);
    assert_eq!(topology.nodes()[63].distances.len(), 64);
    assert_eq!(topology.nodes()[2].distances[..4], [65, 65, 10, 50]);
    assert_eq!(topology.aeus()[511].cpu, Some(511));
}

#[test]
fn without_numa_files_the_machine_is_one_node() {
    let root = Machine::amd().write();
    fs::remove_dir_all(root.path().join("sys/devices/system/node")).unwrap();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    assert_eq!(topology.nodes().len(), 1);
    assert_eq!(topology.memory_bytes(), 64 << 30);
    assert_eq!(topology.nodes()[0].distances, [10]);
    assert_eq!(topology.aeus().len(), 64);
}

#[test]
fn a_node_without_cpus_is_memory_alone() {
    let mut machine = Machine::amd();
    // The last node's CPUs are simply not there.
    machine.nodes[7].clear();
    let root = machine.write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    assert_eq!(topology.nodes().len(), 8);
    assert!(topology.nodes()[7].cpus.is_empty());
    assert_eq!(aeus_per_node(&topology), [8, 8, 8, 8, 8, 8, 8, 0]);
    // Nor does it get one when more are asked for than there are CPUs.
    let crowded = topology.with_aeus(70).unwrap();
    assert_eq!(aeus_per_node(&crowded), [10, 10, 10, 10, 10, 10, 10, 0]);
    assert!(crowded.aeus().iter().all(|place| place.cpu.is_none()));
}

#[test]
fn offline_cpus_and_nodes_are_left_out() {
    let root = Machine::amd().write();
    put(root.path(), "sys/devices/system/cpu/online", "0-2,5-47\n");
    put(root.path(), "sys/devices/system/node/online", "0,2-5\n");
    for (node, row) in [
        (0, "10 16 22 16 22"),
        (2, "16 10 16 16 22"),
        (3, "22 16 10 22 16"),
    ] {
        put(
            root.path(),
            &format!("sys/devices/system/node/node{node}/distance"),
            row,
        );
    }
    for node in [4, 5] {
        fs::remove_file(
            root.path()
                .join(format!("sys/devices/system/node/node{node}/distance")),
        )
        .unwrap();
    }
    let topology = Topology::from_sysfs(root.path()).unwrap();
    let os_nodes: Vec<_> = topology
        .nodes()
        .iter()
        .map(|node| node.os_node.unwrap())
        .collect();
    assert_eq!(os_nodes, [0, 2, 3, 4, 5]);
    assert_eq!(topology.nodes()[0].cpus, [0, 1, 2, 5, 6, 7]);
    assert_eq!(topology.nodes()[1].distances, [16, 10, 16, 16, 22]);
    // Distances nobody tells: local and remote.
    assert_eq!(topology.nodes()[4].distances, [20, 20, 20, 20, 10]);
}

#[test]
fn broken_files_are_named() {
    for (path, text) in [
        ("sys/devices/system/node/node1/distance", "20 ten"),
        ("sys/devices/system/node/node1/distance", "20 10 20"),
        ("sys/devices/system/node/node1/cpulist", "2-"),
        (
            "sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal: many kB",
        ),
        ("sys/devices/system/cpu/online", "zero"),
        (
            "sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
            "3-2",
        ),
        ("sys/devices/system/cpu/cpu3/cache/index2/size", "6MB"),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "big"),
    ] {
        let root = Machine::small().write();
        put(root.path(), path, text);
        let error = Topology::from_sysfs(root.path()).unwrap_err();
        assert!(matches!(error, TopologyError::Parse { .. }), "{error}");
        assert!(error.to_string().contains(path), "{error}");
    }
    let nothing = tempfile::tempdir().unwrap();
    put(nothing.path(), "proc/meminfo", "MemTotal: 1024 kB\n");
    assert!(matches!(
        Topology::from_sysfs(nothing.path()),
        Err(TopologyError::NoCpus)
    ));
}

#[test]
fn aeus_are_distributed_in_proportion_to_the_cores() {
    let root = Machine::intel().write();
    let topology = Topology::from_sysfs(root.path()).unwrap();
    let aeus_of = |n| topology.clone().with_aeus(n).unwrap();
    assert_eq!(aeus_per_node(&aeus_of(1)), [1, 0, 0, 0]);
    assert_eq!(aeus_per_node(&aeus_of(6)), [2, 2, 1, 1]);
    // Up to the hardware threads they are bound, every first thread before any second one.
    let threads = aeus_of(80);
    assert!(threads.aeus().iter().all(|place| place.cpu.is_some()));
    let first: Vec<_> = threads.aeus()[..20]
        .iter()
        .filter_map(|place| place.cpu)
        .collect();
    assert_eq!(first, (0..10).chain(40..50).collect::<Vec<_>>());
    assert!(aeus_of(81).aeus().iter().all(|place| place.cpu.is_none()));
    for (i, place) in aeus_of(81).aeus().iter().enumerate() {
        assert_eq!(place.aeu, AeuId(i as u16));
    }
    for asked in [0, 65_536] {
        let error = topology.clone().with_aeus(asked).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{asked} AEUs cannot be")),
            "{error}"
        );
    }
}

#[test]
fn nodes_with_fewer_cores_get_fewer_aeus() {
    let mut machine = Machine::amd();
    machine.nodes.truncate(2);
    machine.nodes[1].truncate(2);
    machine.distances = vec![vec![10, 20], vec![20, 10]];
    let topology = Topology::from_sysfs(machine.write().path()).unwrap();
    assert_eq!(aeus_per_node(&topology), [8, 2]);
    assert_eq!(
        aeus_per_node(&topology.clone().with_aeus(5).unwrap()),
        [4, 1]
    );
    assert_eq!(aeus_per_node(&topology.with_aeus(20).unwrap()), [16, 4]);
}

#[test]
fn this_machine_is_understood() {
    let topology = Topology::from_sysfs("/".as_ref()).unwrap();
    assert!(!topology.aeus().is_empty());
    assert!(topology.memory_bytes() > 0);
    assert!(topology.page_sizes().base >= 4096);
    let text = serde_json::to_string(&topology).unwrap();
    assert!(text.contains("\"nodes\""), "{text}");
}
