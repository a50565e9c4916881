//! What crossed from node to node.

use eris_types::NodeId;

/// What for something crosses from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// Chunks that a query scans.
    Scan,
    /// Batches of a query's result, and groups on their way to whoever merges them.
    Result,
    /// Rows that are looked up or changed by their keys, and what comes back.
    Rows,
    /// The same of indexes without rows.
    Keys,
    /// Rows that a statement inserts, or names to delete them.
    Load,
    /// That a statement's rows are checked, committed or given up.
    Commit,
    /// Rows and keys that get another owner.
    Move,
    /// All else that is asked and answered: that a scan begins, credits, questions.
    Control,
}

impl TrafficKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [TrafficKind; 8] = [
        TrafficKind::Scan,
        TrafficKind::Result,
        TrafficKind::Rows,
        TrafficKind::Keys,
        TrafficKind::Load,
        TrafficKind::Commit,
        TrafficKind::Move,
        TrafficKind::Control,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            TrafficKind::Scan => "scan",
            TrafficKind::Result => "result",
            TrafficKind::Rows => "rows",
            TrafficKind::Keys => "keys",
            TrafficKind::Load => "load",
            TrafficKind::Commit => "commit",
            TrafficKind::Move => "move",
            TrafficKind::Control => "control",
        }
    }

    /// Whether paced links slow it down: chunks that an AEU reads in another node's memory, to scan them or to copy
    /// them. Keys that move, and all that is sent in commands, cross as fast as they do here.
    pub fn is_paced(self) -> bool {
        matches!(self, TrafficKind::Scan | TrafficKind::Move)
    }
}

/// Bytes that came to one node from another: read there by a core, or sent with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The node that reads them.
    pub source: NodeId,
    /// The node from whose memory they come.
    pub home: NodeId,
    /// What for.
    pub kind: TrafficKind,
    /// How often it asked, or was sent something.
    pub requests: u64,
    /// How much.
    pub bytes: u64,
}
