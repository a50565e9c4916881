//! Tables in memory, for tests that look at all of their rows.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use eris_ssb::{Generator, SsbTable};

/// All rows of `table`, made in `partitions` pieces.
pub fn collect(generator: &Generator, table: SsbTable, partitions: usize) -> RecordBatch {
    let table = generator.table(table);
    let batches: Vec<RecordBatch> = (0..partitions)
        .flat_map(|index| table.partition(index, partitions))
        .collect();
    concat_batches(&table.schema(), &batches).expect("all batches have the table's schema")
}

pub fn numbers<'a>(batch: &'a RecordBatch, name: &str) -> &'a [i32] {
    let column = batch.column_by_name(name).expect("the column exists");
    column.as_primitive::<Int32Type>().values()
}

pub fn texts<'a>(batch: &'a RecordBatch, name: &str) -> &'a StringArray {
    batch
        .column_by_name(name)
        .expect("the column exists")
        .as_string()
}

pub fn text<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> &'a str {
    texts(batch, name).value(row)
}
