//! What lies between nodes: the links, what is known of them, and counts of what crossed.
//!
//! ```text
//!  AEUs of node 0 ──request(bytes)──▶ link 0 → 1 ──arrival──▶ …      paced if the topology imitates a machine
//!                                        │
//!                                     traffic[0][1][kind]            bytes and requests
//! ```

use crossbeam_utils::CachePadded;
use eris_cost::help::Way;
use eris_home::{Traffic, TrafficKind};
use eris_numa::{Arrival, Links, Topology};
use eris_types::NodeId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes per second that one AEU copies where no link slows it down.
const COPY: f64 = 8e9;

/// Bytes per second of a link of distance 20, shared by the AEUs of a node, until something better is known.
const LINK: f64 = 16e9;

/// Seconds of a load over such a link.
const LATENCY: f64 = 200e-9;

/// The distance for which these are.
const DISTANCE: f64 = 20.0;

/// What lies between the nodes of an engine. AEUs and clients share it.
#[derive(Debug)]
pub(crate) struct Remote {
    nodes: usize,
    links: Links,
    /// By source, then home.
    ways: Box<[Way]>,
    /// The same, and by kind. Written by AEUs of the source, a few times per block of data; read by who asks. Each is a
    /// count of its own, so that no order is needed.
    traffic: Box<[CachePadded<[Count; TrafficKind::ALL.len()]>]>,
}

#[derive(Debug, Default)]
struct Count {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Remote {
    pub fn new(topology: &Topology) -> Self {
        let nodes = topology.nodes();
        let pairs = || {
            let sources = nodes.iter().map(|node| node.id);
            sources.flat_map(|source| nodes.iter().map(move |home| (source, home.id)))
        };
        Remote {
            nodes: nodes.len(),
            links: Links::of(topology),
            ways: pairs()
                .map(|(source, home)| way(topology, source, home))
                .collect(),
            traffic: pairs().map(|_| CachePadded::default()).collect(),
        }
    }

    /// What lies between an AEU of `source` and memory of `home`.
    pub fn way(&self, source: NodeId, home: NodeId) -> &Way {
        &self.ways[self.pair(source, home)]
    }

    /// Counts bytes that an AEU of `source` reads from `home`, and says when they are there. Nothing within a node.
    pub fn request(&self, source: NodeId, home: NodeId, kind: TrafficKind, bytes: u64) -> Arrival {
        if source == home || bytes == 0 {
            return Arrival::NOW;
        }
        let count = &self.traffic[self.pair(source, home)][kind as usize];
        count.requests.fetch_add(1, Relaxed);
        count.bytes.fetch_add(bytes, Relaxed);
        self.links.request(source, home, bytes)
    }

    /// What has crossed so far, pairs and kinds without any left out.
    pub fn traffic(&self) -> Vec<Traffic> {
        let kinds = |(pair, counts): (usize, &CachePadded<[Count; TrafficKind::ALL.len()]>)| {
            let traffic = |kind: TrafficKind| Traffic {
                source: NodeId((pair / self.nodes) as u16),
                home: NodeId((pair % self.nodes) as u16),
                kind,
                requests: counts[kind as usize].requests.load(Relaxed),
                bytes: counts[kind as usize].bytes.load(Relaxed),
            };
            TrafficKind::ALL.map(traffic)
        };
        let all = self.traffic.iter().enumerate().flat_map(kinds);
        all.filter(|traffic| traffic.requests > 0).collect()
    }

    fn pair(&self, source: NodeId, home: NodeId) -> usize {
        source.index() * self.nodes + home.index()
    }
}

/// What is known of a pair without measuring: the machine that is imitated; nothing lies between made-up nodes; and of
/// real ones what firmware says.
fn way(topology: &Topology, source: NodeId, home: NodeId) -> Way {
    let on_node = topology.aeus().iter().filter(|place| place.node == source);
    let sharers = on_node.count().max(1) as f64;
    if let Some(machine) = topology.machine() {
        let link = machine.link(source, home);
        return Way {
            link: link.gigabytes_per_second * 1e9 / sharers,
            latency: link.nanoseconds * 1e-9,
            copy: COPY,
        };
    }
    if topology.is_fake() || source == home {
        return Way {
            link: f64::INFINITY,
            latency: 0.0,
            copy: COPY,
        };
    }
    let distance = f64::from(topology.nodes()[source.index()].distances[home.index()]);
    Way {
        link: LINK * DISTANCE / distance / sharers,
        latency: LATENCY * distance / DISTANCE,
        copy: COPY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_is_counted_by_pair_and_kind() {
        let remote = Remote::new(&Topology::fake(3, 1));
        let node = NodeId;
        remote
            .request(node(0), node(2), TrafficKind::Scan, 100)
            .wait();
        remote
            .request(node(0), node(2), TrafficKind::Scan, 11)
            .wait();
        remote
            .request(node(2), node(1), TrafficKind::Scan, 5)
            .wait();
        remote
            .request(node(1), node(1), TrafficKind::Scan, 7)
            .wait();
        let counts = remote.traffic();
        let counts: Vec<_> = (counts.iter())
            .map(|t| (t.source.0, t.home.0, t.requests, t.bytes))
            .collect();
        assert_eq!(counts, [(0, 2, 2, 111), (2, 1, 1, 5)]);
    }
}
