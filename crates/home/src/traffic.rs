//! What crossed from node to node.

use eris_types::NodeId;

/// Why memory of another node is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// Chunks that a query scans.
    Scan,
}

impl TrafficKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [TrafficKind; 1] = [TrafficKind::Scan];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            TrafficKind::Scan => "scan",
        }
    }
}

/// Bytes that cores of one node read from memory of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The node that reads.
    pub source: NodeId,
    /// The node whose memory it is.
    pub home: NodeId,
    /// What for.
    pub kind: TrafficKind,
    /// How often it asked.
    pub requests: u64,
    /// How much.
    pub bytes: u64,
}
