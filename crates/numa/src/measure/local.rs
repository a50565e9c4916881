//! The read bandwidth of all AEUs together, at one moment.

use super::sequential::sequential;
use super::{MEASURING, MeasureError, default_bytes};
use crate::buffer::Buffer;
use crate::memory::Memory;
use crate::topology::Topology;
use std::time::Duration;

/// Memory for every AEU on its own node, to be read by all AEUs at the same time: what a scan of partitions can reach at
/// most. On a shared machine the bandwidth changes from second to second, by half and more; a scan is therefore compared
/// with reads right before and after it, and this keeps the memory for them.
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
        let bytes = default_bytes(topology) / topology.aeus().len();
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
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(|(buffer, cpu)| (buffer.as_slice::<u64>(), *cpu))
            .collect();
        Ok(sequential(&parts, window, 1)?[0])
    }
}
