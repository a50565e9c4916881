//! The `supplier` table.

use crate::place::Addresses;
use crate::table::SsbTable;
use arrow_array::RecordBatch;
use std::ops::Range;

/// The suppliers of `rows`, counted from zero.
pub(crate) fn batch(seed: u64, rows: Range<u64>) -> RecordBatch {
    let columns = Addresses::new(seed, SsbTable::Supplier).columns("Supplier", rows);
    RecordBatch::try_new(SsbTable::Supplier.schema(), columns)
        .expect("columns are built to the schema")
}
