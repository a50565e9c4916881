//! The read bandwidth of all AEUs together: at one moment, or at its best.

use super::sequential::{Readings, sequential};
use super::{MEASURING, MeasureError, default_bytes, last_level_bytes};
use crate::buffer::Buffer;
use crate::memory::Memory;
use crate::topology::Topology;
use eris_types::{AeuId, NodeId};
use std::time::Duration;

/// Memory for every AEU on its own node, to be read by all AEUs at the same time: what a scan of partitions can reach
/// at most. On a shared machine the bandwidth changes from second to second, by half and more; a scan is therefore
/// compared with reads right before and after it, and this keeps the memory for them.
#[derive(Debug)]
pub struct LocalReads {
    parts: Vec<(Buffer, Option<u32>)>,
}

impl LocalReads {
    /// Takes the memory: together as much as [`Options::buffer_bytes`](super::Options::buffer_bytes) by default.
    ///
    /// # Errors
    /// [`MeasureError::Memory`].
    pub fn new(topology: &Topology, memory: &Memory) -> Result<Self, MeasureError> {
        Self::of(default_bytes(topology), topology, memory)
    }

    /// Of so many bytes together.
    fn of(bytes: usize, topology: &Topology, memory: &Memory) -> Result<Self, MeasureError> {
        let bytes = bytes / topology.aeus().len();
        let parts = topology.aeus().iter().map(|aeu| {
            let mut buffer = memory
                .node(aeu.node)
                .allocate(MEASURING, bytes.next_multiple_of(4096))?;
            // Pages that were never written are all the same page of zeros.
            buffer.as_mut_slice::<u64>().fill(1);
            Ok((buffer, aeu.cpu))
        });
        Ok(LocalReads {
            parts: parts.collect::<Result<_, MeasureError>>()?,
        })
    }

    /// Bytes per second that all AEUs read together, for about `window`.
    ///
    /// # Errors
    /// [`MeasureError::Pin`].
    pub fn measure(&self, window: Duration) -> Result<f64, MeasureError> {
        Ok(self.read(window)?.together()[0])
    }

    fn read(&self, window: Duration) -> Result<Readings, MeasureError> {
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(|(buffer, cpu)| (buffer.as_slice::<u64>(), *cpu))
            .collect();
        sequential(&parts, window, 1)
    }
}

/// What each AEU can read from the memory of its node while all others read from theirs, in bytes per second.
///
/// Found out in a tenth of a second by reading a few times the bytes of the last-level caches: good enough to hold a
/// statement against, no benchmark. The best moment counts, for whatever else goes on meanwhile only takes away from
/// it.
#[derive(Clone, Debug)]
pub struct ReadBandwidth {
    aeus: Vec<(NodeId, f64)>,
}

impl ReadBandwidth {
    /// Measures it. Takes memory for the moment, and the cores of all AEUs; blocks.
    ///
    /// # Errors
    /// [`MeasureError`]: no memory to read, or a thread cannot be bound to its core.
    pub fn measure(topology: &Topology, memory: &Memory) -> Result<Self, MeasureError> {
        const WINDOW: Duration = Duration::from_millis(40);
        const MOMENT: Duration = Duration::from_millis(2);
        let bytes = (4 * last_level_bytes(topology)).clamp(64 << 20, 512 << 20);
        let reads = LocalReads::of(bytes as usize, topology, memory)?;
        let best = reads.read(WINDOW)?.at_best(MOMENT);
        let nodes = topology.aeus().iter().map(|place| place.node);
        let read: Vec<(NodeId, f64)> = nodes.zip(best).collect();
        // The cores of a node have its memory in common: which of them came first in this moment says nothing.
        let share = |node: NodeId| {
            let there = read.iter().filter(|(other, _)| *other == node);
            there.clone().map(|(_, rate)| rate).sum::<f64>() / there.count() as f64
        };
        Ok(ReadBandwidth {
            aeus: read.iter().map(|(node, _)| (*node, share(*node))).collect(),
        })
    }

    /// One AEU's; 0 of one that there was not.
    pub fn of_aeu(&self, aeu: AeuId) -> f64 {
        self.aeus.get(aeu.index()).map_or(0.0, |(_, rate)| *rate)
    }

    /// That of all AEUs of a node together.
    pub fn of_node(&self, node: NodeId) -> f64 {
        let there = self.aeus.iter().filter(|(other, _)| *other == node);
        there.map(|(_, rate)| rate).sum()
    }
}
