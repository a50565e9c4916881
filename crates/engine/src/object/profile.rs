//! The profile of a table: what planners may know of its values, beside [sizes and ranges](crate::object::statistics).
//!
//! ```text
//! owner    chunk sealed ─▶ its sketches, merged ─┐
//!                     └──▶ one row of `step` ────┴─▶ PartitionProfile ──▶ published, by reference
//! client   PartitionProfile of each AEU, merged ──▶ ObjectProfile: distinct values, sampled rows
//! ```
//!
//! A profile is made while rows are written, and never by a scan. Sketches of large chunks come with their columns,
//! also from files. Of a chunk that is sealed, so many rows are read as belong into a sample of [`SAMPLED_ROWS`]: each
//! `step` rows one of them, chosen by chance. When there are too many, every other one is left out, and the step is
//! doubled. So the rows of an owner's sample are in its order, each chosen with the same chance.
//!
//! Rows in append buffers are looked at whenever the partition has twice as many rows as the last time. So most rows
//! that are written alone cost nothing, and a small table has a profile, too. All rows are sampled again if more than
//! an eighth of them was deleted or moved since. Sketches may count values of deleted rows until their chunk is
//! rewritten.
//!
//! Why: docs/decisions/0047.

mod owned;
mod whole;

pub(crate) use owned::{Profiler, Readable};
pub(crate) use whole::ObjectProfile;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;
use eris_column::DistinctCount;
use std::sync::Arc;

/// Rows of the samples of all owners together, at most; at least a sixteenth of them, if there are so many rows.
pub(crate) const SAMPLED_ROWS: usize = 16_384;
/// Values that take more bytes than so many on average are not sampled: a table of documents would be there twice.
const LONG: usize = 256;

/// What one AEU knows of the values of its partition.
#[derive(Debug, Default)]
pub(crate) struct PartitionProfile {
    /// The rows that the sample stands for.
    rows: u64,
    /// Of so many rows one is in the sample.
    step: usize,
    sampled: usize,
    /// Per column.
    columns: Vec<ColumnProfile>,
}

#[derive(Clone, Debug, Default)]
struct ColumnProfile {
    /// `None`: there are chunks whose values nobody has counted.
    distinct: Option<DistinctCount>,
    /// The sampled values; `None` if they are too long.
    sample: Option<ArrayRef>,
}

/// Every so many rows of these, from the last of the first ones on. They are copied: values may be lent by chunks,
/// whose memory would stay.
fn thinned(values: &ArrayRef, times: usize) -> ArrayRef {
    let rows = (times - 1..values.len()).step_by(times);
    let rows: UInt32Array = rows.map(|row| row as u32).collect();
    let taken = take(values, &rows, None).expect("these rows are there");
    match taken.as_string_view_opt() {
        Some(strings) => Arc::new(strings.gc()),
        None => taken,
    }
}
