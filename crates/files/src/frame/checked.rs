//! Buffers of others, checked before anybody reads them.
//!
//! ```text
//! numbers, BOOLEAN, times        any bits are a value: lengths only
//! texts and blobs with offsets   per slice: offsets rise and stay inside, texts are UTF-8 and cut between characters
//! views                          per slice
//! dictionaries, run-ends, lists, structs    once per batch: their parts belong to all of its slices
//! ```
//!
//! Arrow's own check of texts reads the whole buffer, whatever the slice: it would take time by the square of the rows.

use super::FrameFaultKind;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericByteArray, OffsetSizeTrait, RecordBatch,
};
use datafusion::arrow::datatypes::{ArrowNativeType, ByteArrayType, DataType};

/// Checks what all slices of a batch share; the position of the column that is wrong, and why.
pub(super) fn check_batch(batch: &RecordBatch) -> Result<(), (usize, FrameFaultKind)> {
    let columns = batch.columns().iter().enumerate();
    let mut shared = columns.filter(|(_, column)| {
        matches!(
            column.data_type(),
            DataType::Dictionary(..) | DataType::RunEndEncoded(..)
        ) || column.data_type().is_nested()
    });
    shared.try_for_each(|(position, column)| whole(column).map_err(|fault| (position, fault)))
}

/// Checks a column of a slice.
pub(super) fn check_slice(column: &ArrayRef) -> Result<(), FrameFaultKind> {
    match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            inside(texts)?;
            utf8(texts.value_offsets(), texts.value_data())
        }
        DataType::LargeUtf8 => {
            let texts = column.as_string::<i64>();
            inside(texts)?;
            utf8(texts.value_offsets(), texts.value_data())
        }
        DataType::Binary => inside(column.as_binary::<i32>()),
        DataType::LargeBinary => inside(column.as_binary::<i64>()),
        DataType::Utf8View | DataType::BinaryView => whole(column),
        _ => Ok(()),
    }
}

fn whole(column: &ArrayRef) -> Result<(), FrameFaultKind> {
    let valid = column.to_data().validate_full();
    valid.map_err(|error| FrameFaultKind::Invalid(error.to_string()))
}

fn invalid(what: &str) -> FrameFaultKind {
    FrameFaultKind::Invalid(what.to_owned())
}

/// Offsets do not fall, and end inside of the bytes.
fn inside<T: ByteArrayType>(array: &GenericByteArray<T>) -> Result<(), FrameFaultKind> {
    let offsets = array.value_offsets();
    let rise = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    let first = offsets
        .first()
        .map_or(0, |offset| offset.to_usize().unwrap_or(usize::MAX));
    let last = offsets
        .last()
        .map_or(0, |offset| offset.to_usize().unwrap_or(usize::MAX));
    match rise && first <= last && last <= array.value_data().len() {
        true => Ok(()),
        false => Err(invalid("an offset lies outside of the values")),
    }
}

/// The bytes are UTF-8, and no character is cut.
fn utf8<O: OffsetSizeTrait>(offsets: &[O], bytes: &[u8]) -> Result<(), FrameFaultKind> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Ok(());
    };
    let first = first.as_usize();
    let Ok(text) = std::str::from_utf8(&bytes[first..last.as_usize()]) else {
        return Err(invalid("a text is not UTF-8"));
    };
    let is_cut = |offset: &O| !text.is_char_boundary(offset.as_usize() - first);
    match !text.is_ascii() && offsets.iter().any(is_cut) {
        true => Err(invalid("a text begins or ends inside of a character")),
        false => Ok(()),
    }
}
