//! What clients and owners of other nodes send each other. The clients count it, for they know both nodes.
//!
//! A client is on the node of the core that it runs on when its statement begins. Nothing can be said of nodes that are
//! made up, so that there all clients are on the first one.

use crossbeam_utils::CachePadded;
use eris_home::{Traffic, TrafficKind};
use eris_numa::{Topology, current_cpu};
use eris_types::{AeuId, NodeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Clients share this many sets of counters, so that few meet at one.
const SETS: usize = 8;

/// Requests and bytes. Added to by clients; each is a count of its own, so that no order is needed.
#[derive(Debug, Default)]
struct Count {
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// The counts of all clients.
#[derive(Debug)]
pub(crate) struct ClientTraffic {
    topology: Arc<Topology>,
    /// The node of each core that an AEU has, unless nodes are made up.
    by_cpu: Vec<NodeId>,
    /// By source, home and kind.
    sets: [CachePadded<Box<[Count]>>; SETS],
}

/// A client's way to count.
pub(crate) struct ClientCrossing {
    all: Arc<ClientTraffic>,
    node: NodeId,
    set: usize,
}

impl ClientTraffic {
    /// Nothing is to be counted on one node.
    pub fn new(topology: &Arc<Topology>) -> Option<Arc<Self>> {
        let nodes = topology.nodes().len();
        if nodes < 2 {
            return None;
        }
        let mut by_cpu = Vec::new();
        for place in topology.aeus().iter().filter(|_| !topology.is_fake()) {
            let Some(cpu) = place.cpu else {
                continue;
            };
            if by_cpu.len() <= cpu as usize {
                by_cpu.resize(cpu as usize + 1, NodeId(0));
            }
            by_cpu[cpu as usize] = place.node;
        }
        let counts = nodes * nodes * TrafficKind::ALL.len();
        let set = || CachePadded::new((0..counts).map(|_| Count::default()).collect());
        Some(Arc::new(ClientTraffic {
            topology: Arc::clone(topology),
            by_cpu,
            sets: std::array::from_fn(|_| set()),
        }))
    }

    /// For a client that begins now, on this thread. Numbers of clients spread them.
    pub fn here(self: &Arc<Self>, number: u64) -> ClientCrossing {
        let cpu = match self.by_cpu.is_empty() {
            true => None,
            false => current_cpu(),
        };
        let node = cpu.and_then(|cpu| self.by_cpu.get(cpu as usize));
        ClientCrossing {
            all: Arc::clone(self),
            node: node.copied().unwrap_or(NodeId(0)),
            set: number as usize % SETS,
        }
    }

    fn place(&self, source: NodeId, home: NodeId, kind: TrafficKind) -> usize {
        let pair = source.index() * self.topology.nodes().len() + home.index();
        pair * TrafficKind::ALL.len() + kind as usize
    }

    /// What has crossed so far.
    pub fn traffic(&self) -> impl Iterator<Item = Traffic> + '_ {
        let nodes = self.topology.nodes().iter().map(|node| node.id);
        let pairs = nodes.clone().flat_map(move |source| {
            let homes = nodes.clone();
            homes.map(move |home| (source, home))
        });
        let all =
            pairs.flat_map(|(source, home)| TrafficKind::ALL.map(|kind| (source, home, kind)));
        all.map(|(source, home, kind)| {
            let place = self.place(source, home, kind);
            let sum = |of: fn(&Count) -> &AtomicU64| -> u64 {
                let counts = self.sets.iter().map(|set| &set[place]);
                counts.map(|count| of(count).load(Relaxed)).sum()
            };
            Traffic {
                source,
                home,
                kind,
                requests: sum(|count| &count.requests),
                bytes: sum(|count| &count.bytes),
            }
        })
    }
}

impl ClientCrossing {
    /// The node of an owner, if it is another one.
    pub fn other(&self, owner: AeuId) -> Option<NodeId> {
        Some(self.all.topology.node_of(owner)).filter(|node| *node != self.node)
    }

    /// Counts a request to an owner of another node.
    pub fn sent(&self, to: NodeId, kind: TrafficKind, bytes: u64) {
        self.count(to, self.node, kind, bytes);
    }

    /// Counts an answer of an owner of another node.
    pub fn received(&self, from: NodeId, kind: TrafficKind, bytes: u64) {
        self.count(self.node, from, kind, bytes);
    }

    fn count(&self, source: NodeId, home: NodeId, kind: TrafficKind, bytes: u64) {
        let count = &self.all.sets[self.set][self.all.place(source, home, kind)];
        count.requests.fetch_add(1, Relaxed);
        count.bytes.fetch_add(bytes, Relaxed);
    }
}
