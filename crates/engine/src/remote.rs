//! What lies between nodes: the links, what is known of them, and counts of what crossed.
//!
//! ```text
//!  AEUs of node 0 ──request(bytes)──▶ link 0 → 1 ──arrival──▶ …      paced if the topology imitates a machine,
//!                                        │                          for chunks that are read there
//!                                     traffic[0][1][kind]            bytes and requests
//! ```
//!
//! Chunks that are scanned, or copied to another owner, are counted here. What AEUs send each other is counted by the
//! sender, with its other counters. What clients send and get is counted by them: see [`clients`].

pub(crate) mod clients;

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use eris_cost::help::{Copying, Way};
use eris_home::{Traffic, TrafficKind};
use eris_numa::{Arrival, CopyEngine, CopySpeed, Links, Profile, ScanKernel, Speeds, Topology};
use eris_types::{AeuId, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes per second of a link of distance 20, shared by the AEUs of a node, until something better is known.
const LINK: f64 = 16e9;

/// Seconds of a load over such a link.
const LATENCY: f64 = 200e-9;

/// What a block for copies holds: a chunk's columns if they are a few, or several chunks of narrow ones. A huge page.
pub(crate) const BLOCK_BYTES: usize = 2 << 20;

/// Bytes of it that are used, until something better is known.
const BLOCK: f64 = (128 << 10) as f64;

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
    between: Box<[Between]>,
    speeds: Speeds,
}

/// What is known of a pair of nodes.
#[derive(Debug)]
struct Between {
    /// Bytes per second that the link gives one of the AEUs that share it.
    link: f64,
    /// Seconds of a request.
    latency: f64,
    /// Never empty.
    copies: Box<[(CopyEngine, Copying)]>,
}

/// How chunks of another node are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub way: Way,
    pub engine: CopyEngine,
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

    /// What lies between an AEU of `source` and memory of `home`, with any of the ways of copying.
    pub fn way(&self, source: NodeId, home: NodeId) -> Way {
        self.known.load().between[self.pair(source, home)].way()
    }

    /// The same with the way of copying that is best for one who scans so many bytes per second.
    pub fn crossing(&self, source: NodeId, home: NodeId, scan: f64) -> Crossing {
        let known = self.known.load();
        let between = &known.between[self.pair(source, home)];
        let mut way = between.way();
        let number = way.fastest(between.copies.iter().map(|(_, copy)| *copy), scan);
        let (engine, copy) = between.copies[number];
        way.copy = copy;
        Crossing { way, engine }
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

impl Between {
    fn way(&self) -> Way {
        Way {
            link: self.link,
            latency: self.latency,
            copy: self.copies[0].1,
        }
    }
}

impl Known {
    fn new(topology: &Topology, measured: Option<&Profile>, speeds: Speeds) -> Self {
        let nodes = topology.nodes();
        let sources = nodes.iter().map(|node| node.id);
        let pairs = sources.flat_map(|source| nodes.iter().map(move |home| (source, home.id)));
        let between = pairs.map(|(source, home)| {
            let copies = copies(topology, measured, &speeds, source, home);
            let (link, latency) = link(topology, measured, source, home);
            Between {
                link,
                latency,
                copies,
            }
        });
        Known {
            between: between.collect(),
            speeds,
        }
    }
}

/// Bytes per second and seconds between a pair: those of the machine that is imitated; nothing between made-up nodes;
/// and of real ones what was measured, or else what firmware says.
fn link(
    topology: &Topology,
    measured: Option<&Profile>,
    source: NodeId,
    home: NodeId,
) -> (f64, f64) {
    let on_node = topology.aeus().iter().filter(|place| place.node == source);
    let sharers = on_node.count().max(1) as f64;
    let imitated = topology.machine().map(|machine| &**machine);
    if imitated.is_none() && (topology.is_fake() || source == home) {
        return (f64::INFINITY, 0.0);
    }
    if let Some(machine) = imitated.or(measured) {
        let link = machine.link(source, home);
        let bytes = link.gigabytes_per_second * 1e9 / sharers;
        return (bytes, link.nanoseconds * 1e-9);
    }
    let distance = f64::from(topology.nodes()[source.index()].distances[home.index()]);
    (
        LINK * DISTANCE / distance / sharers,
        LATENCY * distance / DISTANCE,
    )
}

/// The ways of copying between a pair: those that were measured there, or else one of which nothing but its speed
/// within a node is known.
fn copies(
    topology: &Topology,
    measured: Option<&Profile>,
    speeds: &Speeds,
    source: NodeId,
    home: NodeId,
) -> Box<[(CopyEngine, Copying)]> {
    let machine = topology.machine().map(|machine| &**machine).or(measured);
    let measured = machine.map_or(&[][..], |machine| &machine.link(source, home).copies);
    // A block is full when a chunk more has come: the other half is for that.
    let fits = |copy: &&CopySpeed| copy.block <= BLOCK_BYTES / 2;
    let known = measured.iter().filter(fits).map(|copy| {
        let copying = Copying {
            block: copy.block as f64,
            rate: copy.gigabytes_per_second * 1e9,
        };
        (copy.engine, copying)
    });
    let known: Box<[_]> = known.collect();
    if !known.is_empty() {
        return known;
    }
    let usual = Copying {
        block: BLOCK,
        rate: speeds.copy * 1e9,
    };
    Box::new([(CopyEngine::Prefetched, usual)])
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
    fn only_chunks_that_are_read_wait_for_a_paced_link() {
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
        assert_eq!((way().link, way().copy.rate), (f64::INFINITY, 8e9));
        let machine = Profile::known("eris-intel").unwrap();
        let speeds = Speeds {
            copy: 5.0,
            ..Speeds::usual()
        };
        remote.learn(&machine.with_speeds(speeds));
        // Nothing lies between nodes that are made up, whatever was measured.
        assert_eq!((way().link, way().copy.rate), (f64::INFINITY, 5e9));
    }

    #[test]
    fn real_nodes_have_the_links_that_were_measured() {
        let topology = Topology::fake(2, 2);
        let machine = Arc::new(Profile::known("eris-intel").unwrap());
        let planned = topology.planned_as(machine).unwrap();
        let (bytes, seconds) = link(&planned, None, NodeId(0), NodeId(1));
        assert_eq!(bytes, 10.7e9 / 2.0);
        assert!((seconds - 193e-9).abs() < 1e-12);
    }

    #[test]
    fn the_engine_and_block_of_a_copy_are_the_fastest_that_were_measured() {
        let copy = |engine, block, gigabytes_per_second| CopySpeed {
            engine,
            block,
            gigabytes_per_second,
        };
        let machine = Profile::known("eris-intel").unwrap();
        let far = machine.link_number(NodeId(0), NodeId(1));
        let mut copies = vec![Vec::new(); machine.links().len()];
        copies[far] = vec![
            copy(CopyEngine::Plain, 64 << 10, 7.0),
            copy(CopyEngine::Streaming, 128 << 10, 9.0),
            copy(CopyEngine::Plain, 512 << 10, 8.0),
            // No block of an AEU has room for it.
            copy(CopyEngine::Streaming, 64 << 20, 20.0),
        ];
        let machine = Arc::new(machine.with_copies(copies));
        let topology = Topology::fake(2, 1).planned_as(machine).unwrap();
        let remote = Remote::new(&Arc::new(topology));
        let crossing = remote.crossing(NodeId(0), NodeId(1), 20e9);
        assert_eq!(crossing.engine, CopyEngine::Streaming);
        assert_eq!(crossing.way.copy.block, f64::from(128 << 10));
        // Of a pair without any, what is usual.
        let near = remote.crossing(NodeId(0), NodeId(0), 20e9);
        assert_eq!(
            (near.engine, near.way.copy.block),
            (CopyEngine::Prefetched, BLOCK)
        );
    }
}
