//! What an AEU sends to other nodes, counted where it is sent.

use crate::counter::Counter;
use eris_types::NodeId;
use std::sync::OnceLock;

/// As many kinds of traffic can be told apart. What they are, others know.
pub const TRAFFIC_KINDS: usize = 8;

/// How much of one kind.
#[derive(Debug, Default)]
pub struct Amount {
    /// Requests or answers, as they were sent.
    pub requests: Counter,
    /// Their bytes.
    pub bytes: Counter,
}

/// What went to each node, by kind. It takes no memory before anything has gone to another node, so that a machine with
/// one node has nothing of it.
#[derive(Debug, Default)]
pub struct Crossed(OnceLock<Box<[[Amount; TRAFFIC_KINDS]]>>);

impl Crossed {
    /// Counts a request to one of so many nodes. For the counters' writer alone.
    pub fn add(&self, nodes: usize, to: NodeId, kind: usize, bytes: u64) {
        let by_node = self
            .0
            .get_or_init(|| (0..nodes).map(|_| Default::default()).collect());
        let amount = &by_node[to.index()][kind];
        amount.requests.increment();
        amount.bytes.add(bytes);
    }

    /// What has gone so far: node, kind, requests, bytes. What never went is left out. For anyone.
    pub fn read(&self) -> impl Iterator<Item = (NodeId, usize, u64, u64)> + '_ {
        let by_node = self.0.get().into_iter().flatten().zip(0..);
        let all = by_node.flat_map(|(kinds, node)| {
            let amounts = kinds.iter().enumerate();
            amounts.map(move |(kind, amount)| {
                let (requests, bytes) = (amount.requests.get(), amount.bytes.get());
                (NodeId(node), kind, requests, bytes)
            })
        });
        all.filter(|(_, _, requests, _)| *requests > 0)
    }
}
