//! Texts whose array refers to many buffers, brought together.
//!
//! ```text
//! 21 batches of a scan ──put together──▶ views │ 21 buffers
//!   joined to 60 others ──────────────▶ views │ 1,260 buffers, 60 times the same 21
//!     in 64 parts ────────────────────▶ views │ 80,640 buffers: a hundred for each row
//! ```
//! An array of views keeps all buffers of what it was taken from, and one that is put together has those of all its
//! parts. Whoever takes rows of it or asks for its size goes through that list. So it is cut short on the way.

use arrow_array::builder::GenericByteViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{
    Array, ArrayRef, GenericByteViewArray, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// If each buffer has as many rows, its place in the list does no harm.
const ROWS: usize = 512;

/// Up to so many bytes, a value lies in its view.
const INLINE: u32 = 12;

/// The same rows. The texts of each column lie in few buffers.
pub fn with_few_buffers(rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
    if rows.columns().iter().all(has_few_buffers) {
        return Ok(rows);
    }
    let columns = rows.columns().iter().map(values_in_few_buffers);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(rows.schema(), columns, &options)
}

/// The same values. If they are texts, they lie in few buffers.
pub fn values_in_few_buffers(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        _ if has_few_buffers(column) => Ok(Arc::clone(column)),
        DataType::Utf8View => gathered::<StringViewType>(column.as_byte_view()),
        _ => gathered::<BinaryViewType>(column.as_byte_view()),
    }
}

fn has_few_buffers(column: &ArrayRef) -> bool {
    buffers(column) <= 1 + column.len() / ROWS
}

/// How many buffers of values a column refers to.
fn buffers(column: &ArrayRef) -> usize {
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().data_buffers().len(),
        DataType::BinaryView => column.as_binary_view().data_buffers().len(),
        _ => 0,
    }
}

fn gathered<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Result<ArrayRef, ArrowError> {
    let mut known = HashSet::new();
    let distinct = array.data_buffers().iter();
    let distinct = distinct.filter(|buffer| known.insert(buffer.as_ptr()));
    let there: usize = distinct.map(|buffer| buffer.len()).sum();
    // Values that many rows share, as those of a dictionary, are not written for each of them.
    match array.total_buffer_bytes_used() <= there {
        true => Ok(Arc::new(array.gc())),
        // Others overlap. They would take more room apart.
        false => Ok(once_each(array, there)?.unwrap_or_else(|| Arc::new(array.clone()))),
    }
}

/// The same values. Those that lie in one place still do so, and so they still have equal views. `None` if they take
/// more than so many bytes.
fn once_each<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    most: usize,
) -> Result<Option<ArrayRef>, ArrowError> {
    let mut values = GenericByteViewBuilder::<T>::new();
    let (mut known, mut bytes) = (HashMap::new(), 0);
    let mut numbers = Vec::with_capacity(array.len());
    for (row, &view) in array.views().iter().enumerate() {
        if array.is_null(row) {
            numbers.push(0);
            continue;
        }
        // The length is in the lower half, and tells the two kinds apart.
        let length = view as u32;
        let place = match length <= INLINE {
            true => view,
            false => {
                let value: &[u8] = array.value(row).as_ref();
                (value.as_ptr() as u128) << 64 | u128::from(length)
            }
        };
        let next = known.len() as u32;
        let number = *known.entry(place).or_insert(next);
        if number == next {
            values.append_value(array.value(row));
            bytes += if length <= INLINE { 0 } else { length as usize };
            if bytes > most {
                return Ok(None);
            }
        }
        numbers.push(number);
    }
    let numbers = UInt32Array::new(numbers.into(), array.nulls().cloned());
    take(&values.finish(), &numbers, None).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryViewArray, Int32Array, StringViewArray};
    use arrow_schema::{Field, Schema};
    use arrow_select::concat::concat;

    const LONG: &str = "longer than what a view holds";

    fn rows(columns: Vec<ArrayRef>) -> RecordBatch {
        let field = |(number, column): (usize, &ArrayRef)| {
            Field::new(format!("{number}"), column.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    /// The same array so many times, one behind the other.
    fn repeated(array: ArrayRef, times: usize) -> ArrayRef {
        concat(&vec![array.as_ref(); times]).unwrap()
    }

    fn values() -> impl Iterator<Item = Option<String>> + Clone {
        (0..100).map(|row| match row % 5 {
            0 => None,
            1 => Some("short".to_owned()),
            _ => Some(format!("{LONG}, {}", row % 7)),
        })
    }

    #[test]
    fn what_rows_share_is_there_once() {
        let texts: ArrayRef = Arc::new(values().collect::<StringViewArray>());
        let bytes = values().map(|value| value.map(String::into_bytes));
        let bytes: ArrayRef = Arc::new(bytes.collect::<BinaryViewArray>());
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..6400));
        let before = rows(vec![repeated(texts, 64), repeated(bytes, 64), numbers]);
        assert_eq!(buffers(before.column(0)), 64);
        let after = with_few_buffers(before.clone()).unwrap();
        assert_eq!(after, before);
        for column in &after.columns()[..2] {
            assert_eq!(buffers(column), 1);
        }
        let texts = after.column(0).as_string_view();
        let once = 60 * (LONG.len() + 3);
        assert_eq!(texts.data_buffers()[0].len(), once);
        assert_eq!(texts.views()[2], texts.views()[102], "equal views stay so");
    }

    #[test]
    fn values_that_overlap_stay_where_they_are() {
        let long = LONG.repeat(100);
        let mut suffixes = arrow_array::builder::StringViewBuilder::new();
        let block = suffixes.append_block(long.as_bytes().into());
        for start in 0..2_000 {
            let length = long.len() as u32 - start;
            suffixes.try_append_view(block, start, length).unwrap();
        }
        let before = rows(vec![repeated(Arc::new(suffixes.finish()), 64)]);
        let before = before.slice(0, 2_000);
        assert_eq!(with_few_buffers(before.clone()).unwrap(), before);
        assert_eq!(buffers(with_few_buffers(before).unwrap().column(0)), 64);
    }

    #[test]
    fn what_no_row_refers_to_is_left_behind() {
        let texts: ArrayRef = Arc::new(values().collect::<StringViewArray>());
        let all = repeated(texts, 64);
        let few = rows(vec![all.slice(0, 10)]);
        assert_eq!(buffers(few.column(0)), 64);
        let after = with_few_buffers(few.clone()).unwrap();
        assert_eq!((buffers(after.column(0)), after), (1, few));
    }

    #[test]
    fn few_buffers_stay() {
        let many = values().cycle().take(2 * ROWS);
        let before = rows(vec![repeated(
            Arc::new(many.collect::<StringViewArray>()),
            6,
        )]);
        assert!((2..=1 + before.num_rows() / ROWS).contains(&buffers(before.column(0))));
        let after = with_few_buffers(before.clone()).unwrap();
        assert!(Arc::ptr_eq(after.column(0), before.column(0)));
    }

    #[test]
    fn rows_without_values_and_columns() {
        let nulls: ArrayRef = Arc::new(StringViewArray::new_null(3));
        let texts: ArrayRef = Arc::new(values().collect::<StringViewArray>());
        let all = [nulls, repeated(texts, 64)];
        let all = concat(&[all[0].as_ref(), all[1].as_ref()]).unwrap();
        let none = rows(vec![all.slice(0, 3)]);
        assert_eq!(with_few_buffers(none.clone()).unwrap(), none);
        let options = RecordBatchOptions::new().with_row_count(Some(7));
        let empty = Arc::new(Schema::empty());
        let empty = RecordBatch::try_new_with_options(empty, Vec::new(), &options).unwrap();
        assert_eq!(with_few_buffers(empty).unwrap().num_rows(), 7);
    }
}
