//! `.tbl` files: text as the original generator writes it, every field ended by `|`.

use crate::generator::Generator;
use crate::load::{FileFormat, TBL_SEPARATOR};
use crate::pipeline;
use crate::write::{Progress, Units, WriteError, Written, write_all};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use std::io::Write;
use std::path::Path;

/// Writes `<table>.tbl` for all five tables into `directory`, replacing files of that name. The bytes do not depend on
/// `threads`.
///
/// # Errors
/// If the file system fails; tables completed before stay.
pub fn write_tbl(
    generator: &Generator,
    directory: &Path,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Written>, WriteError> {
    write_all(
        generator,
        directory,
        FileFormat::Tbl,
        progress,
        |units, path, mut file, report| {
            pipeline::in_order(
                units.count(),
                threads,
                |unit| Ok(text(units, unit)),
                |(text, rows)| {
                    file.write_all(&text).map_err(WriteError::io(path))?;
                    report(rows);
                    Ok(())
                },
            )
        },
    )
}

/// The lines of one unit, and how many they are.
fn text(units: &Units, unit: usize) -> (Vec<u8>, u64) {
    let mut text = Vec::new();
    let mut rows = 0;
    for batch in units.batches(unit) {
        rows += batch.num_rows() as u64;
        append(&batch, &mut text);
    }
    (text, rows)
}

/// A column, its type resolved once per batch instead of once per value.
enum Column<'a> {
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Text(&'a StringArray),
}

fn append(batch: &RecordBatch, out: &mut Vec<u8>) {
    let columns: Vec<Column<'_>> = batch
        .columns()
        .iter()
        .map(|array| match array.data_type() {
            DataType::Int32 => Column::Int32(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Column::Int64(array.as_primitive::<Int64Type>()),
            DataType::Utf8 => Column::Text(array.as_string()),
            other => unreachable!("the benchmark has no column of type {other}"),
        })
        .collect();
    for row in 0..batch.num_rows() {
        for column in &columns {
            match column {
                Column::Int32(array) => append_number(array.value(row).into(), out),
                Column::Int64(array) => append_number(array.value(row), out),
                Column::Text(array) => out.extend_from_slice(array.value(row).as_bytes()),
            }
            out.push(TBL_SEPARATOR);
        }
        out.push(b'\n');
    }
}

/// Decimal digits; the benchmark has no negative numbers.
fn append_number(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    debug_assert!(number >= 0, "{number}");
    out.extend_from_slice(&digits[at..]);
}
