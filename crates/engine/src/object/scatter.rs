//! Which AEU a row belongs to.

use crate::object::data_object::DataObject;
use crate::object::pick::pick;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use eris_route::{RangeTable, Split};
use eris_types::AeuId;
use std::sync::Arc;

/// So many rows of a statement are looked at before ranges are cut.
const SAMPLE_ROWS: usize = 1 << 18;

/// Splits batches by partition.
pub(crate) struct Scatter {
    object: Arc<DataObject>,
    aeus: usize,
    /// The first rows of the statement.
    held: Vec<RecordBatch>,
    held_rows: usize,
    /// Enough rows have been looked at.
    is_sampled: bool,
}

impl Scatter {
    pub fn new(object: &Arc<DataObject>, aeus: usize) -> Self {
        Scatter {
            object: object.clone(),
            aeus,
            held: Vec::new(),
            held_rows: 0,
            is_sampled: false,
        }
    }

    /// The parts of a batch with the target of each: an AEU's number by range, always 0 by size.
    pub fn split(&mut self, batch: RecordBatch) -> Vec<(usize, RecordBatch)> {
        if !self.object.is_ranged() {
            return vec![(0, batch)];
        }
        self.held_rows += batch.num_rows();
        self.held.push(batch);
        match self.is_sampled || self.held_rows >= SAMPLE_ROWS {
            true => self.flush(),
            false => Vec::new(),
        }
    }

    /// What was held back, split.
    pub fn flush(&mut self) -> Vec<(usize, RecordBatch)> {
        let held = std::mem::take(&mut self.held);
        self.is_sampled |= self.held_rows >= SAMPLE_ROWS;
        self.held_rows = 0;
        if held.is_empty() {
            return Vec::new();
        }
        let (assignment, numbers) = self.object.assign(&held, self.aeus);
        let parts = held.into_iter().zip(&numbers);
        parts
            .flat_map(|(batch, numbers)| scatter(batch, numbers.values(), &assignment.table))
            .collect()
    }
}

fn scatter(
    batch: RecordBatch,
    keys: &[i64],
    ranges: &RangeTable<i64, AeuId>,
) -> Vec<(usize, RecordBatch)> {
    if keys.is_sorted() {
        let parts = ranges.split_sorted(keys);
        return parts
            .map(|(aeu, rows)| (aeu.index(), batch.slice(rows.start, rows.len())))
            .collect();
    }
    if let Some(parts) = pick(&batch, keys, ranges) {
        let parts = parts.into_iter();
        return parts.map(|(aeu, part)| (aeu.index(), part)).collect();
    }
    let mut split = Split::default();
    ranges.split(keys, &mut split);
    let parts = ranges.parts(&split);
    parts
        .map(|(aeu, rows)| {
            let part = match is_run(rows) {
                true => batch.slice(rows[0] as usize, rows.len()),
                false => take_record_batch(&batch, &UInt32Array::from(rows.to_vec()))
                    .expect("the rows are of this batch"),
            };
            (aeu.index(), part)
        })
        .collect()
}

/// Whether these are rows one after the other. They ascend.
fn is_run(rows: &[u32]) -> bool {
    rows.last()
        .is_some_and(|last| (last - rows[0]) as usize == rows.len() - 1)
}
