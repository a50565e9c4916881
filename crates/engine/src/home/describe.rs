//! What the engine tells of itself: its AEUs, and the nodes of its topology.

use crate::clients::engine::Engine;
use eris_home::{NodeDescription, ReadBandwidth, WorkerDescription};
use eris_numa::{Placement, measure};

/// An entry for each AEU.
pub(super) fn workers(engine: &Engine) -> Vec<WorkerDescription> {
    let counted = engine.counters();
    let places = engine.topology().aeus().iter();
    let workers = places.map(|place| WorkerDescription {
        aeu: place.aeu,
        node: place.node,
        cpu: place.cpu,
        counters: counted
            .aeus
            .get(place.aeu.index())
            .copied()
            .unwrap_or_default(),
        work: engine.work_of(place.aeu),
    });
    workers.collect()
}

/// An entry for each node.
pub(super) fn nodes(engine: &Engine) -> Vec<NodeDescription> {
    let topology = engine.topology();
    let nodes = topology.nodes().iter().map(|node| {
        let placement = engine.memory().node(node.id).placement();
        let (resident, elsewhere) = resident(placement.as_ref(), node.os_node);
        NodeDescription {
            node: node.id,
            os_node: node.os_node,
            cores: topology.cores_of(node.id),
            memory_bytes: node.memory_bytes,
            resident,
            elsewhere,
        }
    });
    nodes.collect()
}

/// Bytes of pages that there are, and of those of them that are not on this node of the operating system.
pub(super) fn resident(
    placement: Option<&Placement>,
    os_node: Option<u32>,
) -> (Option<u64>, Option<u64>) {
    // A number of no node: all are elsewhere.
    let resident = placement.map(|placement| placement.bytes_elsewhere(u32::MAX));
    let elsewhere = placement.zip(os_node);
    let elsewhere = elsewhere.map(|(placement, node)| placement.bytes_elsewhere(node));
    (resident, elsewhere)
}

/// What AEUs can read, measured now.
pub(super) fn bandwidth(engine: &Engine) -> Option<ReadBandwidth> {
    let topology = engine.topology();
    let measured = measure::ReadBandwidth::measure(topology, engine.memory()).ok()?;
    let aeus = topology.aeus().iter();
    let nodes = topology.nodes().iter();
    Some(ReadBandwidth {
        workers: aeus.map(|place| measured.of_aeu(place.aeu)).collect(),
        nodes: nodes.map(|node| measured.of_node(node.id)).collect(),
    })
}
