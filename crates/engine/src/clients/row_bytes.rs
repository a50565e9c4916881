//! The memory of rows on their way to an owner.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};

/// What the rows take, without what they share with others.
pub(crate) fn row_bytes(batch: &RecordBatch) -> u64 {
    let column = |column: &ArrayRef| match column.as_string_view_opt() {
        Some(texts) => {
            let views = size_of_val(texts.views().as_ref()) as u64;
            let held: usize = texts.data_buffers().iter().map(|buffer| buffer.len()).sum();
            // Batches share buffers; if these are large, what is in them is the strings' length, the low half of a
            // view's first word.
            let lengths = texts.views().iter().map(|view| u64::from(*view as u32));
            views
                + if held as u64 <= views {
                    held as u64
                } else {
                    lengths.sum()
                }
        }
        None => {
            let width = column.data_type().primitive_width().unwrap_or(1);
            (column.len() * width) as u64
        }
    };
    batch.columns().iter().map(column).sum()
}
