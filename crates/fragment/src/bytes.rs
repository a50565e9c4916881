//! How many bytes rows have.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// The bytes of these rows alone: the array may be a part of a larger one.
pub fn bytes_of(array: &ArrayRef) -> u64 {
    let rows = array.len();
    if let Some(width) = array.data_type().primitive_width() {
        // Most are of this kind. The general way makes a copy of what the array says of itself.
        let nulls = array.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
        return (width * rows + nulls) as u64;
    }
    let bytes = match array.data_type() {
        // Views lead to bytes elsewhere, unless they have them in themselves.
        DataType::Utf8View => 16 * rows + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => 16 * rows + array.as_binary_view().total_buffer_bytes_used(),
        _ => (array.to_data().get_slice_memory_size())
            .unwrap_or_else(|_| array.get_array_memory_size()),
    };
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Int64Array, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn parts_of_arrays_count_for_themselves() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        assert_eq!(bytes_of(&numbers.slice(7, 10)), 80);
        let some: Int64Array = (0..1_000).map(|n| (n % 3 != 0).then_some(n)).collect();
        let some: ArrayRef = Arc::new(some);
        assert_eq!(bytes_of(&some.slice(7, 10)), 80 + 2);
        let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1_000]));
        assert_eq!(bytes_of(&bits.slice(8, 10)), 2);
        let texts = (0..1_000).map(|n| format!("{n:020}"));
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        assert_eq!(bytes_of(&texts.slice(7, 10)), 10 * (16 + 20));
    }
}
