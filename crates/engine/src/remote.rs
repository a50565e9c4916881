//! What lies between nodes: the links, what is known of them, and counts of what crossed.
//!
//! ```text
//!  AEUs of node 0 ──request(bytes)──▶ link 0 → 1 ──arrival──▶ …      paced if the topology imitates a machine,
//!                                        │                          for chunks that are scanned
//!                                     traffic[0][1][kind]            bytes and requests
//! ```
//!
//! Chunks that are scanned, or copied to another owner, are counted here. What AEUs send each other is counted by the
//! sender, with its other counters. What clients send and get is counted by them: see [`clients`].

pub(crate) mod clients;

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use eris_cost::help::Way;
use eris_home::{Traffic, TrafficKind};
use eris_numa::{Arrival, Links, Profile, ScanKernel, Speeds, Topology};
use eris_types::{AeuId, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes per second of a link of distance 20, shared by the AEUs of a node, until something better is known.
const LINK: f64 = 16e9;

/// Seconds of a load over such a link.
const LATENCY: f64 = 200e-9;

/// The distance for which these are.
const DISTANCE: f64 = 20.0;

/// What lies between the nodes of an engine. AEUs and clients share it.
#[derive(Debug)]
pub(crate) struct Remote {
    topology: Arc<Topology>,
    nodes: usize,
    links: Links,
    /// Replaced as a whole when the machine is known.
    known: ArcSwap<Known>,
    /// By AEU: scans that have begun there and are not over. Written by the AEU, read by whoever wonders how long it
    /// takes for one of them. A relaxed number: it says how things are about now.
    scans: Box<[CachePadded<AtomicU32>]>,
    /// The same, and by kind. Written by AEUs of the source, a few times per block of data; read by who asks. Each is a
    /// count of its own, so that no order is needed.
    traffic: Box<[CachePadded<[Count; TrafficKind::ALL.len()]>]>,
}

/// What is known of the machine.
#[derive(Debug)]
struct Known {
    /// By source, then home.
    ways: Box<[Way]>,
    speeds: Speeds,
}

#[derive(Debug, Default)]
struct Count {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Remote {
    pub fn new(topology: &Arc<Topology>) -> Self {
        let nodes = topology.nodes().len();
        // Of a machine that is given, nothing else is learned.
        let given = topology.machine().and_then(|machine| machine.speeds());
        let speeds = given.cloned().unwrap_or_else(Speeds::usual);
        let known = Known::new(topology, None, speeds);
        Remote {
            topology: Arc::clone(topology),
            nodes,
            links: Links::of(topology),
            known: ArcSwap::from_pointee(known),
            scans: topology
                .aeus()
                .iter()
                .map(|_| CachePadded::default())
                .collect(),
            traffic: (0..nodes * nodes).map(|_| CachePadded::default()).collect(),
        }
    }

    /// The machine at hand has become known. It is not asked for if another one is given.
    pub fn learn(&self, machine: &Profile) {
        let speeds = machine.speeds().cloned().unwrap_or_else(Speeds::usual);
        let known = Known::new(&self.topology, Some(machine), speeds);
        self.known.store(Arc::new(known));
    }

    /// What lies between an AEU of `source` and memory of `home`.
    pub fn way(&self, source: NodeId, home: NodeId) -> Way {
        self.known.load().ways[self.pair(source, home)]
    }

    /// Bytes per second that one AEU reads of values of so many bits on average, from its own node.
    pub fn scan(&self, kernel: ScanKernel, bits: f64) -> f64 {
        self.known.load().speeds.scan(kernel, bits)
    }

    /// So many scans are under way at an AEU, which says so.
    pub fn set_scans(&self, aeu: AeuId, count: usize) {
        self.scans[aeu.index()].store(count as u32, Relaxed);
    }

    /// How many scans are under way at an AEU.
    pub fn scans(&self, aeu: AeuId) -> u32 {
        self.scans[aeu.index()].load(Relaxed)
    }

    /// Counts bytes that an AEU of `source` reads from `home`, and says when they are there: at once, unless links are
    /// paced, and this kind with them. Nothing within a node.
    pub fn request(&self, source: NodeId, home: NodeId, kind: TrafficKind, bytes: u64) -> Arrival {
        if source == home || bytes == 0 {
            return Arrival::NOW;
        }
        self.note(source, home, kind, bytes);
        match kind.is_paced() {
            true => self.links.request(source, home, bytes),
            false => Arrival::NOW,
        }
    }

    /// Counts bytes that an AEU of `source` reads from `home`. Nothing within a node.
    pub fn note(&self, source: NodeId, home: NodeId, kind: TrafficKind, bytes: u64) {
        if source != home && bytes > 0 {
            let count = &self.traffic[self.pair(source, home)][kind as usize];
            count.requests.fetch_add(1, Relaxed);
            count.bytes.fetch_add(bytes, Relaxed);
        }
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

impl Known {
    fn new(topology: &Topology, measured: Option<&Profile>, speeds: Speeds) -> Self {
        let nodes = topology.nodes();
        let sources = nodes.iter().map(|node| node.id);
        let pairs = sources.flat_map(|source| nodes.iter().map(move |home| (source, home.id)));
        let copy = speeds.copy * 1e9;
        let ways = pairs.map(|(source, home)| way(topology, measured, copy, source, home));
        Known {
            ways: ways.collect(),
            speeds,
        }
    }
}

/// What lies between a pair: that of the machine that is imitated; nothing between made-up nodes; and of real ones what
/// was measured, or else what firmware says.
fn way(
    topology: &Topology,
    measured: Option<&Profile>,
    copy: f64,
    source: NodeId,
    home: NodeId,
) -> Way {
    let on_node = topology.aeus().iter().filter(|place| place.node == source);
    let sharers = on_node.count().max(1) as f64;
    let imitated = topology.machine().map(|machine| &**machine);
    if imitated.is_none() && (topology.is_fake() || source == home) {
        return Way {
            link: f64::INFINITY,
            latency: 0.0,
            copy,
        };
    }
    if let Some(machine) = imitated.or(measured) {
        let link = machine.link(source, home);
        return Way {
            link: link.gigabytes_per_second * 1e9 / sharers,
            latency: link.nanoseconds * 1e-9,
            copy,
        };
    }
    let distance = f64::from(topology.nodes()[source.index()].distances[home.index()]);
    Way {
        link: LINK * DISTANCE / distance / sharers,
        latency: LATENCY * distance / DISTANCE,
        copy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_is_counted_by_pair_and_kind() {
        let remote = Remote::new(&Arc::new(Topology::fake(3, 1)));
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

    #[test]
    fn only_chunks_that_are_scanned_wait_for_a_paced_link() {
        let machine = Arc::new(Profile::known("eris-sgi").unwrap());
        let topology = Topology::fake(2, 1).paced_as(machine).unwrap();
        let remote = Remote::new(&Arc::new(topology));
        for kind in TrafficKind::ALL {
            let arrival = remote.request(NodeId(0), NodeId(1), kind, 1 << 28);
            assert_eq!(arrival.is_there(), !kind.is_paced(), "{}", kind.name());
        }
    }

    #[test]
    fn what_becomes_known_replaces_what_is_usual() {
        let remote = Remote::new(&Arc::new(Topology::fake(2, 1)));
        let way = || remote.way(NodeId(0), NodeId(1));
        assert_eq!((way().link, way().copy), (f64::INFINITY, 8e9));
        let machine = Profile::known("eris-intel").unwrap();
        let speeds = Speeds {
            copy: 5.0,
            ..Speeds::usual()
        };
        remote.learn(&machine.with_speeds(speeds));
        // Nothing lies between nodes that are made up, whatever was measured.
        assert_eq!((way().link, way().copy), (f64::INFINITY, 5e9));
    }

    #[test]
    fn real_nodes_have_the_links_that_were_measured() {
        let topology = Topology::fake(2, 2);
        let machine = Arc::new(Profile::known("eris-intel").unwrap());
        let planned = topology.planned_as(machine).unwrap();
        let far = way(&planned, None, 8e9, NodeId(0), NodeId(1));
        assert_eq!(far.link, 10.7e9 / 2.0);
        assert!((far.latency - 193e-9).abs() < 1e-12);
    }
}
