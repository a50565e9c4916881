//! From objects to arrays.

use crate::column::FileColumn;
use crate::values::whole;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, StringViewArray, downcast_integer,
};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Schema};
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::record_batch::RecordBatch;
use eris_exact::text::{has_own_text, read_exactly};
use std::sync::Arc;

/// The objects' members as columns; whatever is wrong is found out by who reads it again.
pub(super) fn decode(text: &[u8], columns: &[FileColumn], rows: usize) -> Result<RecordBatch, ()> {
    // NULLs are looked for afterwards.
    let fields = columns
        .iter()
        .map(|column| column.field.as_ref().clone().with_nullable(true));
    let target = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    // Integers come as they are written: the decoder would cut off their fractions. So do values whose texts it does
    // not know.
    let written = target.fields().iter().map(|field| match field.data_type() {
        of if of.is_integer() || has_own_text(of) => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        _ => Arc::clone(field),
    });
    let written = Arc::new(Schema::new(written.collect::<Vec<_>>()));
    let decoder = ReaderBuilder::new(Arc::clone(&written))
        .with_batch_size(rows)
        .with_coerce_primitive(true);
    let mut decoder = decoder.build_decoder().map_err(drop)?;
    let mut batches = Vec::new();
    let mut at = 0;
    while at < text.len() {
        at += decoder.decode(&text[at..]).map_err(drop)?;
        if at < text.len() {
            batches.extend(decoder.flush().map_err(drop)?);
        }
    }
    batches.extend(decoder.flush().map_err(drop)?);
    let batch = concat_batches(&written, &batches).map_err(drop)?;
    let arrays = batch.columns().iter().zip(target.fields());
    let arrays = arrays.map(|(array, field)| match field.data_type() {
        of if of.is_integer() => integers(array.as_string_view(), of),
        of if has_own_text(of) => values(array, of),
        of => cast(array, of).map_err(drop),
    });
    RecordBatch::try_new(Arc::clone(&target), arrays.collect::<Result<_, _>>()?).map_err(drop)
}

/// Texts as values of this type, of which none is lost.
fn values(texts: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ()> {
    let values = read_exactly(texts, data_type).map_err(drop)?;
    match values.null_count() == texts.null_count() {
        true => Ok(values),
        false => Err(()),
    }
}

/// Texts as integers of this type.
fn integers(texts: &StringViewArray, data_type: &DataType) -> Result<ArrayRef, ()> {
    fn of<T: ArrowPrimitiveType>(texts: &StringViewArray) -> Result<ArrayRef, ()>
    where
        T::Native: std::str::FromStr + TryFrom<i128>,
    {
        let values = texts.iter().map(|text| {
            let value = text.map(|text| whole::<T::Native>(text).ok_or(()));
            value.transpose()
        });
        Ok(Arc::new(values.collect::<Result<PrimitiveArray<T>, ()>>()?))
    }
    macro_rules! of_type {
        ($type:ty, $texts:ident) => {
            of::<$type>($texts)
        };
    }
    downcast_integer! {
        data_type => (of_type, texts),
        _ => Err(()),
    }
}

/// Whether one of the strings has more characters.
pub(super) fn is_longer(array: &dyn Array, most: u64) -> bool {
    array.as_string_view_opt().is_some_and(|texts| {
        texts
            .iter()
            .flatten()
            .any(|text| text.len() as u64 > most && text.chars().count() as u64 > most)
    })
}
