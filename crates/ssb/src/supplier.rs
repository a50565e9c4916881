//! The `supplier` table.

use crate::place::Places;
use crate::table::Table;
use arrow_array::RecordBatch;
use std::ops::Range;

/// The suppliers of `rows`, counted from zero.
pub(crate) fn batch(seed: u64, rows: Range<u64>) -> RecordBatch {
    let columns = Places::new(seed, Table::Supplier).columns("Supplier", rows);
    RecordBatch::try_new(Table::Supplier.schema(), columns)
        .expect("columns are built to the schema")
}
