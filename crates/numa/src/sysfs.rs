//! Reading the topology from plain files: sysfs for nodes, CPUs, caches and pages, procfs for the memory's size.
//!
//! ```text
//! sys/devices/system/node/online               0-1        nodes in use (absent: all directories)
//! sys/devices/system/node/nodeN/cpulist        0-7,16-23  empty: memory alone
//!                              /meminfo        Node N MemTotal:  33554432 kB
//!                              /distance       10 21      to each online node, in their order
//! sys/devices/system/cpu/online                0-31
//! sys/devices/system/cpu/cpuN/topology/thread_siblings_list   0,16
//! ```

use crate::caches;
use crate::error::TopologyError;
use crate::files::Files;
use crate::list;
use crate::pages::PageSizes;
use crate::topology::{LOCAL, Node, REMOTE, Topology};
use eris_types::NodeId;
use std::collections::BTreeSet;
use std::path::Path;

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";

/// Reads the topology. `allowed`: the CPUs that may be used; `None`: all.
pub(crate) fn read(root: &Path, allowed: Option<&[u32]>) -> Result<Topology, TopologyError> {
    let files = Files::new(root);
    let online = online_cpus(&files, allowed)?;
    let usable = |cpu: &u32| {
        online.binary_search(cpu).is_ok() && allowed.is_none_or(|list| list.contains(cpu))
    };
    let mut nodes = Vec::new();
    let mut withheld = BTreeSet::new();
    for (os_node, directory) in online_nodes(&files)? {
        let all = files
            .list(&format!("{directory}/cpulist"))?
            .unwrap_or_default();
        let cpus: Vec<u32> = all.iter().copied().filter(usable).collect();
        if cpus.is_empty() && all.iter().any(|cpu| online.binary_search(cpu).is_ok()) {
            withheld.insert(os_node);
        }
        nodes.push(Node {
            id: NodeId(nodes.len() as u16),
            os_node: Some(os_node),
            cpus,
            memory_bytes: node_memory(&files, &directory)?,
            distances: distances(&files, &directory)?,
        });
    }
    if nodes.is_empty() {
        let cpus = online.iter().copied().filter(usable).collect();
        let memory_bytes = memory_total(root)?;
        nodes.push(Node {
            id: NodeId(0),
            os_node: Some(0),
            cpus,
            memory_bytes,
            distances: vec![LOCAL],
        });
    } else {
        complete_distances(&files, &mut nodes)?;
        // Where all memory is on one node the machine's total is the better number: memory that a hypervisor adds
        // later is missing in the node's own.
        if let [only] = &mut nodes[..] {
            only.memory_bytes = only.memory_bytes.max(memory_total(root).unwrap_or(0));
        }
    }
    let cpus: Vec<u32> = nodes
        .iter()
        .flat_map(|node| node.cpus.iter().copied())
        .collect();
    let mut topology = Topology {
        caches: caches::read(&files, &cpus)?,
        page_sizes: PageSizes::read(&files)?,
        fake: false,
        aeus: Vec::new(),
        pin_order: Vec::new(),
        cores: Vec::new(),
        machine: None,
        paced: false,
        nodes,
    };
    for node in &topology.nodes {
        let (order, cores) = pin_order(&files, &node.cpus)?;
        topology.pin_order.push(order);
        topology.cores.push(cores);
    }
    topology.retain_nodes(|node| {
        let kept = !node.os_node.is_some_and(|os| withheld.contains(&os));
        kept && (!node.cpus.is_empty() || node.memory_bytes > 0)
    });
    topology.with_aeu_per_core()
}

/// The nodes whose memory the process may use (the cgroup's cpuset); `None` where the kernel does not tell.
pub(crate) fn allowed_memory(root: &Path) -> Result<Option<Vec<u32>>, TopologyError> {
    let files = Files::new(root);
    let path = "proc/self/status";
    let Some(text) = files.text(path)? else {
        return Ok(None);
    };
    let Some(found) = text
        .lines()
        .find_map(|line| line.strip_prefix("Mems_allowed_list:"))
    else {
        return Ok(None);
    };
    list::parse(found)
        .map(Some)
        .ok_or_else(|| files.wrong(path, "a list of nodes", found))
}

/// The machine's memory in bytes.
pub(crate) fn memory_total(root: &Path) -> Result<u64, TopologyError> {
    let files = Files::new(root);
    let path = "proc/meminfo";
    let text = files.text(path)?.unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(kibibytes)
        .ok_or_else(|| files.wrong(path, "a line MemTotal: N kB", &text))
}

fn online_cpus(files: &Files, allowed: Option<&[u32]>) -> Result<Vec<u32>, TopologyError> {
    if let Some(online) = files.list(&format!("{CPUS}/online"))? {
        return Ok(online);
    }
    let present = files.numbered(CPUS, "cpu", "")?;
    if present.is_empty() {
        // Sandboxes without sysfs: a CPU on which the process may run is online.
        return Ok(allowed.unwrap_or_default().to_vec());
    }
    Ok(present.into_iter().map(|(cpu, _)| cpu).collect())
}

fn online_nodes(files: &Files) -> Result<Vec<(u32, String)>, TopologyError> {
    let mut nodes = files.numbered(NODES, "node", "")?;
    if let Some(online) = files.list(&format!("{NODES}/online"))? {
        nodes.retain(|(node, _)| online.contains(node));
    }
    Ok(nodes)
}

fn node_memory(files: &Files, directory: &str) -> Result<u64, TopologyError> {
    let path = format!("{directory}/meminfo");
    let Some(text) = files.text(&path)? else {
        return Ok(0);
    };
    let total = text.lines().find_map(|line| line.split_once("MemTotal:"));
    let bytes = total.and_then(|(_, rest)| kibibytes(rest));
    bytes.ok_or_else(|| files.wrong(&path, "a line Node N MemTotal: N kB", &text))
}

/// `  33554432 kB` in bytes.
fn kibibytes(text: &str) -> Option<u64> {
    text.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// As the file gives them, one per online node; empty without the file.
fn distances(files: &Files, directory: &str) -> Result<Vec<u32>, TopologyError> {
    let path = format!("{directory}/distance");
    let Some(text) = files.text(&path)? else {
        return Ok(Vec::new());
    };
    let numbers: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
    numbers.map_err(|_| files.wrong(&path, "distances to all online nodes", &text))
}

/// Fills in missing rows; denies rows of another length than there are nodes.
fn complete_distances(files: &Files, nodes: &mut [Node]) -> Result<(), TopologyError> {
    let count = nodes.len();
    for (i, node) in nodes.iter_mut().enumerate() {
        if node.distances.is_empty() {
            node.distances = (0..count)
                .map(|to| if to == i { LOCAL } else { REMOTE })
                .collect();
        } else if node.distances.len() != count {
            let os_node = node.os_node.unwrap_or_default();
            let found = format!(
                "{} distances for {count} online nodes",
                node.distances.len()
            );
            return Err(files.wrong(
                &format!("{NODES}/node{os_node}/distance"),
                "distances to all online nodes",
                &found,
            ));
        }
    }
    Ok(())
}

/// The order in which AEUs are bound to a node's CPUs, and the number of physical cores: the first threads of all
/// cores, then the second threads, and so on.
fn pin_order(files: &Files, cpus: &[u32]) -> Result<(Vec<u32>, u32), TopologyError> {
    let mut ranked = Vec::new();
    for &cpu in cpus {
        let path = format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let siblings = files.list(&path)?.unwrap_or_else(|| vec![cpu]);
        // Siblings that may not be used do not count: the first usable thread stands for the core.
        let rank = siblings
            .iter()
            .filter(|sibling| **sibling < cpu && cpus.contains(sibling))
            .count();
        ranked.push((rank, cpu));
    }
    ranked.sort_unstable();
    let cores = ranked.iter().filter(|(rank, _)| *rank == 0).count() as u32;
    Ok((ranked.into_iter().map(|(_, cpu)| cpu).collect(), cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Three nodes of two CPUs each, and one of memory alone.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-5\n");
        for (node, cpus) in ["0-1", "2-3", "4-5", ""].iter().enumerate() {
            put(&format!("{NODES}/node{node}/cpulist"), cpus);
            put(
                &format!("{NODES}/node{node}/meminfo"),
                &format!("Node {node} MemTotal: 1024 kB\n"),
            );
            put(
                &format!("{NODES}/node{node}/distance"),
                ["10 11 12 13", "11 10 14 15", "12 14 10 16", "13 15 16 10"][node],
            );
        }
        put(
            "proc/self/status",
            "Name:\tx\nMems_allowed:\tff\nMems_allowed_list:\t0-2\n",
        );
        root
    }

    fn os_nodes(topology: &Topology) -> Vec<u32> {
        topology
            .nodes()
            .iter()
            .filter_map(|node| node.os_node)
            .collect()
    }

    #[test]
    fn a_node_whose_cpus_are_withheld_is_left_out_and_memory_alone_stays() {
        let root = machine();
        let topology = read(root.path(), Some(&[1, 4, 5])).unwrap();
        assert_eq!(os_nodes(&topology), [0, 2, 3]);
        assert_eq!(topology.nodes()[0].cpus, [1]);
        assert_eq!(topology.nodes()[1].distances, [12, 10, 16]);
        let places: Vec<_> = topology
            .aeus()
            .iter()
            .map(|place| (place.node.0, place.cpu))
            .collect();
        assert_eq!(places, [(0, Some(1)), (1, Some(4)), (1, Some(5))]);
    }

    #[test]
    fn memory_outside_of_the_cpuset_does_not_count() {
        let root = machine();
        let mut topology = read(root.path(), None).unwrap();
        let allowed = allowed_memory(root.path()).unwrap().unwrap();
        assert_eq!(allowed, [0, 1, 2]);
        topology.withhold_memory(&allowed);
        assert_eq!(os_nodes(&topology), [0, 1, 2]);
        topology.withhold_memory(&[1]);
        assert_eq!(topology.memory_bytes(), 1 << 20);
        assert_eq!(topology.aeus().len(), 6);
    }

    #[test]
    fn without_sysfs_the_affinity_mask_tells_the_cpus() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/meminfo"), "MemTotal: 2048 kB\n").unwrap();
        let topology = read(root.path(), Some(&[3, 7])).unwrap();
        assert_eq!(topology.nodes()[0].cpus, [3, 7]);
        assert_eq!(topology.memory_bytes(), 2 << 20);
    }
}
