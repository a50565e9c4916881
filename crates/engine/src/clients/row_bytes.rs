//! The memory of rows on their way to an owner.

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray, RecordBatch};
use arrow_schema::DataType;

/// What the rows take, without what they share with others.
pub(crate) fn row_bytes(batch: &RecordBatch) -> u64 {
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
