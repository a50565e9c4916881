//! What running a program cost, for `EXPLAIN ANALYZE` and the counters of a worker.

/// Counters; a caller adds them up over chunks, or resets them between chunks, as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Chunks that were read.
    pub chunks: u64,
    /// Chunks that their zone maps excluded, without a value read.
    pub chunks_skipped: u64,
    /// Rows in the chunks that were read.
    pub rows_scanned: u64,
    /// Rows that passed visibility, filter and probes.
    pub rows_passed: u64,
    /// Encoded bytes of the column chunks that were touched.
    pub bytes: u64,
    /// Encoded bytes of the column chunks that programs before this one had read in the same call of
    /// [`run_together`](crate::run_together): they came from memory once for all of these.
    pub bytes_shared: u64,
}
