//! The `customer` table.

use crate::place::Addresses;
use crate::random::Stream;
use crate::table::SsbTable;
use crate::words::SEGMENTS;
use arrow_array::{RecordBatch, StringArray};
use std::ops::Range;
use std::sync::Arc;

/// After the streams of [`Addresses`].
const SEGMENT_STREAM: u64 = 5;

/// The customers of `rows`, counted from zero.
pub(crate) fn batch(seed: u64, rows: Range<u64>) -> RecordBatch {
    let segment = Stream::new(seed, SsbTable::Customer, SEGMENT_STREAM);
    let mut columns = Addresses::new(seed, SsbTable::Customer).columns("Customer", rows.clone());
    columns.push(Arc::new(StringArray::from_iter_values(
        rows.map(|row| segment.pick(row, &SEGMENTS)),
    )));
    RecordBatch::try_new(SsbTable::Customer.schema(), columns)
        .expect("columns are built to the schema")
}
