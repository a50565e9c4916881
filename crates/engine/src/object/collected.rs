//! Rows on their way into a partition, until they fill a chunk.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray, RecordBatch};
use arrow_schema::DataType;
use eris_column::CHUNK_ROWS;

/// Rows that take so much are written, although they do not fill a chunk.
pub(crate) const MOST_COLLECTED: u64 = 32 << 20;

/// Rows that wait to fill a chunk.
#[derive(Default)]
pub(crate) struct Collected {
    pub batches: Vec<RecordBatch>,
    pub rows: usize,
    pub bytes: u64,
}

impl Collected {
    /// Whether it is time to write them.
    pub fn is_full(&self) -> bool {
        self.rows == CHUNK_ROWS || self.bytes >= MOST_COLLECTED
    }

    /// The first of these rows, as many as there is room for, and what they take.
    pub fn next(&self, batch: &RecordBatch) -> (RecordBatch, u64) {
        let room = (CHUNK_ROWS - self.rows).min(batch.num_rows());
        let taken = batch.slice(0, room);
        let bytes = row_bytes(&taken);
        (taken, bytes)
    }

    /// Takes rows in that [are next](Self::next).
    pub fn push(&mut self, rows: RecordBatch, bytes: u64) {
        self.rows += rows.num_rows();
        self.bytes += bytes;
        self.batches.push(rows);
    }
}

/// What the rows take, without what they share with others.
fn row_bytes(batch: &RecordBatch) -> u64 {
    let column = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View => view_bytes(column.as_string_view()),
        DataType::BinaryView => view_bytes(column.as_binary_view()),
        data_type => {
            let width = match data_type {
                DataType::FixedSizeBinary(width) => *width as usize,
                other => other.primitive_width().unwrap_or(1),
            };
            (column.len() * width) as u64
        }
    };
    batch.columns().iter().map(column).sum()
}

fn view_bytes<T: ByteViewType>(strings: &GenericByteViewArray<T>) -> u64 {
    let views = size_of_val(strings.views().as_ref()) as u64;
    let buffers = strings.data_buffers().iter();
    let held = buffers.map(|buffer| buffer.len()).sum::<usize>() as u64;
    if held <= views {
        return views + held;
    }
    // Batches share buffers; if these are large, what is in them is the strings' length, the low half of a view's first
    // word.
    let lengths = strings.views().iter().map(|view| u64::from(*view as u32));
    views + lengths.sum::<u64>()
}
