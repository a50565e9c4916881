//! What a home tells of itself: its workers and nodes, and what data objects consist of.

use eris_fragment::Scalar;
use eris_telemetry::AeuSnapshot;
use eris_types::{AeuId, NodeId, ObjectId, SegmentId};
use std::time::Duration;

/// What workers' own buffers are accounted to: no data object.
pub const BUFFERS: ObjectId = ObjectId(0);

/// A worker.
#[derive(Clone, Debug)]
pub struct WorkerDescription {
    /// Its number.
    pub aeu: AeuId,
    /// The node that it belongs to.
    pub node: NodeId,
    /// The CPU that it runs on, if it has one of its own.
    pub cpu: Option<u32>,
    /// What it has done since the start.
    pub counters: AeuSnapshot,
    /// The same by kind of work, without kinds of which there was nothing.
    pub work: Vec<WorkDescription>,
}

/// What a worker has done of one kind of work.
#[derive(Clone, Debug)]
pub struct WorkDescription {
    /// What it is.
    pub name: &'static str,
    /// Whether it is a task that runs in slices; otherwise a command, which is executed in one go.
    pub is_task: bool,
    /// Commands that were executed, or slices that were run.
    pub run: u64,
    /// Tasks that have been spawned.
    pub spawned: u64,
    /// Those of them that are not at their end: they are queued, wait for something else, or run.
    pub waiting: u64,
    /// How often a task has begun to wait for something else.
    pub waits: u64,
    /// What all of them took, estimated from some; `None` if the time of none was taken.
    pub time: Option<Duration>,
}

/// A node: workers with a memory of their own.
#[derive(Clone, Debug)]
pub struct NodeDescription {
    /// Its number.
    pub node: NodeId,
    /// The operating system's number; `None` if the node is made up.
    pub os_node: Option<u32>,
    /// Its cores.
    pub cores: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// Bytes of pages that hold data; `None` where the system does not tell.
    pub resident: Option<u64>,
    /// Bytes of these that the system has taken from other nodes; `None` also if nodes are made up.
    pub elsewhere: Option<u64>,
}

/// What workers can read from memory while the others do the same, in bytes per second.
#[derive(Clone, Debug)]
pub struct ReadBandwidth {
    /// Per worker.
    pub workers: Vec<f64>,
    /// Per node, by its workers together.
    pub nodes: Vec<f64>,
}

impl ReadBandwidth {
    /// One worker's; 0 of one that there was not.
    pub fn of_aeu(&self, aeu: AeuId) -> f64 {
        self.workers.get(aeu.index()).copied().unwrap_or(0.0)
    }

    /// That of all workers of a node together.
    pub fn of_node(&self, node: NodeId) -> f64 {
        self.nodes.get(node.index()).copied().unwrap_or(0.0)
    }
}

/// What a data object holds at about one time: each owner's part is of one point in time.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// In order of their owners, then of their age.
    pub segments: Vec<SegmentInspection>,
    /// Per column, the dictionary if the column has one.
    pub dictionaries: Vec<Option<DictionaryInspection>>,
}

/// A segment.
#[derive(Clone, Debug)]
pub struct SegmentInspection {
    /// Its number, unique in the process.
    pub segment: SegmentId,
    /// Its owner.
    pub aeu: AeuId,
    /// The owner's node, where its memory is.
    pub node: NodeId,
    /// Bytes of its committed rows, append buffer included.
    pub bytes: u64,
    /// Chunks with committed rows, first the sealed ones.
    pub chunks: Vec<ChunkInspection>,
}

/// A chunk, or a level of the append buffer.
#[derive(Clone, Debug)]
pub struct ChunkInspection {
    /// Whether it is sealed; otherwise it is part of the append buffer.
    pub sealed: bool,
    /// Committed rows. Deleted ones count until they are collected.
    pub rows: u64,
    /// How many of them are deleted.
    pub deleted: u64,
    /// In the order of the schema.
    pub columns: Vec<ColumnChunkInspection>,
}

/// A column chunk.
#[derive(Clone, Debug)]
pub struct ColumnChunkInspection {
    /// As in views: `packed`, `run-length`, …, with `codes` before it where the values are the column dictionary's
    /// codes, and `ordinals` where they are places in a key order.
    pub encoding: String,
    /// Whether the values are places in a key order.
    pub is_by_key_order: bool,
    /// Bits of a value, where values are packed.
    pub width: Option<u8>,
    /// NULLs.
    pub nulls: u64,
    /// Bytes of values and validity.
    pub bytes: u64,
    /// The least and the greatest value; `None` without values, and for strings.
    pub range: Option<(Scalar, Scalar)>,
}

/// A column's dictionary.
#[derive(Clone, Copy, Debug)]
pub struct DictionaryInspection {
    /// Distinct strings.
    pub entries: u64,
    /// Bytes of strings and index.
    pub bytes: u64,
}
