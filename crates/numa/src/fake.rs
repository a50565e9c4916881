//! Made-up topologies, `NODESxCORES`: every NUMA path really runs, although all memory lies on one node.

use crate::error::{MOST_AEUS, TopologyError};
use crate::pages::PageSizes;
use crate::sysfs;
use crate::topology::{LOCAL, Node, REMOTE, Topology, place};
use eris_types::NodeId;
use std::path::Path;

/// Parses `4x2` into nodes and AEUs per node.
pub(crate) fn parse(value: &str) -> Result<(u16, u16), TopologyError> {
    let wrong = || TopologyError::Variable {
        value: value.to_string(),
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| text.parse::<u16>().ok())
            .flatten()
            .filter(|&n| n > 0)
            .ok_or_else(wrong)
    };
    let (nodes, cores) = value.trim().split_once(['x', 'X']).ok_or_else(wrong)?;
    let (nodes, cores) = (number(nodes)?, number(cores)?);
    match nodes.checked_mul(cores) {
        Some(..=MOST_AEUS) => Ok((nodes, cores)),
        _ => Err(wrong()),
    }
}

/// Nothing of the machine but its memory size and page sizes.
pub(crate) fn unbound(nodes: u16, cores: u16) -> Topology {
    let root = Path::new("/");
    // A machine that hides its memory size still can run a made-up topology; so can Miri, which opens no files.
    let memory = if cfg!(miri) {
        0
    } else {
        sysfs::memory_total(root).unwrap_or(0)
    };
    make(
        nodes,
        cores,
        memory,
        Vec::new(),
        PageSizes::of_process(root),
    )
}

/// With the caches and pages of `real`, and its CPUs if there is one for each AEU.
pub(crate) fn over(real: &Topology, nodes: u16, cores: u16) -> Topology {
    let cpus: Vec<u32> = real.pin_order.iter().flatten().copied().collect();
    let mut made = make(
        nodes,
        cores,
        real.memory_bytes(),
        cpus,
        real.page_sizes.clone(),
    );
    made.caches.clone_from(&real.caches);
    made
}

fn make(nodes: u16, cores: u16, memory: u64, cpus: Vec<u32>, page_sizes: PageSizes) -> Topology {
    assert!(
        nodes > 0 && cores > 0,
        "a topology of {nodes} nodes with {cores} cores each"
    );
    let aeus = usize::from(nodes) * usize::from(cores);
    assert!(
        aeus <= usize::from(u16::MAX),
        "{aeus} AEUs, at most 65,535 can be"
    );
    let pin_order: Vec<Vec<u32>> = if cpus.len() >= aeus {
        cpus.chunks(usize::from(cores))
            .take(usize::from(nodes))
            .map(<[u32]>::to_vec)
            .collect()
    } else {
        vec![Vec::new(); usize::from(nodes)]
    };
    let make_node = |i: u16| {
        let mut cpus = pin_order[usize::from(i)].clone();
        cpus.sort_unstable();
        let distance = |to| if to == i { LOCAL } else { REMOTE };
        Node {
            id: NodeId(i),
            os_node: None,
            cpus,
            memory_bytes: memory / u64::from(nodes),
            distances: (0..nodes).map(distance).collect(),
        }
    };
    let shares = vec![u32::from(cores); usize::from(nodes)];
    Topology {
        nodes: (0..nodes).map(make_node).collect(),
        aeus: place(&shares, &pin_order),
        fake: true,
        caches: Vec::new(),
        page_sizes,
        pin_order,
        cores: shares,
        machine: None,
        paced: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_by_cores() {
        assert_eq!(parse("4x2").unwrap(), (4, 2));
        assert_eq!(parse(" 1X16\n").unwrap(), (1, 16));
        assert_eq!(parse("8x16").unwrap(), (8, 16));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_variable() {
        for value in [
            "", "4", "x", "4x", "x2", "0x2", "2x0", "-1x2", "+1x2", "4x2x1", "a x b", "300x300",
            "65536x1", "1x129", "43x3",
        ] {
            let error = parse(value).unwrap_err().to_string();
            let named = format!("ERIS_TOPOLOGY={value:?} is no topology");
            assert!(error.starts_with(&named), "{error}");
            assert!(error.contains("4x2"), "{error}");
        }
    }

    #[test]
    fn aeus_are_numbered_node_by_node() {
        let made = unbound(4, 2);
        assert!(made.is_fake());
        let nodes: Vec<u16> = made.aeus().iter().map(|place| place.node.0).collect();
        assert_eq!(nodes, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert!(made.aeus().iter().all(|place| place.cpu.is_none()));
        assert_eq!(made.nodes()[1].distances, [20, 10, 20, 20]);
    }

    #[test]
    fn aeus_are_bound_when_the_machine_has_a_cpu_for_each() {
        let real = make(1, 6, 600, (0..6).collect(), PageSizes::default());
        let made = over(&real, 3, 2);
        let cpus: Vec<Option<u32>> = made.aeus().iter().map(|place| place.cpu).collect();
        assert_eq!(cpus, (0..6).map(Some).collect::<Vec<_>>());
        assert_eq!(made.nodes()[2].cpus, [4, 5]);
        assert_eq!(made.nodes()[2].memory_bytes, 200);
        assert!(
            over(&real, 7, 1)
                .aeus()
                .iter()
                .all(|place| place.cpu.is_none())
        );
    }
}
