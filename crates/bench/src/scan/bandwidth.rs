//! How fast the memory is read, between the runs of a scan.

use eris_numa::measure::{LocalReads, MeasureError};
use std::time::Duration;

/// How long the memory is read between two measurements: long enough for 256 MiB and more.
pub const READING: Duration = Duration::from_millis(20);

/// Bytes per second that all AEUs read together, each from its own node.
pub fn read_bandwidth(reads: &LocalReads, runs: usize) -> Result<Vec<f64>, MeasureError> {
    (0..runs).map(|_| reads.measure(READING)).collect()
}
