//! The same data, however it is cut, however many threads write it, and in either file format.

use crate::tables::collect;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use eris_ssb::load::FileFormat;
use eris_ssb::{BATCH_ROWS, Compression, Generator, Scale, SsbTable, write_parquet, write_tbl};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};

fn generator(scale: f64) -> Generator {
    Generator::new(Scale::new(scale).unwrap())
}

#[test]
fn partitions_concatenate_to_the_same_rows() {
    let generator = generator(0.02);
    for table in SsbTable::ALL {
        let whole = collect(&generator, table, 1);
        assert_eq!(whole.num_rows() as u64, generator.rows(table));
        for partitions in [2, 3, 7, 64] {
            let pieces = collect(&generator, table, partitions);
            assert_eq!(whole, pieces, "{table} in {partitions}");
        }
    }
}

#[test]
fn batches_are_full_but_the_last() {
    let table = generator(0.05).table(SsbTable::Lineorder);
    let sizes: Vec<usize> = table
        .partition(0, 1)
        .map(|batch| batch.num_rows())
        .collect();
    let (last, full) = sizes.split_last().unwrap();
    assert!(full.len() > 3 && full.iter().all(|rows| *rows == BATCH_ROWS));
    assert!(*last > 0 && *last <= BATCH_ROWS);
    // More partitions than suppliers: some are empty, and yield nothing.
    let suppliers = generator(0.001).table(SsbTable::Supplier);
    let batches = (0..5).flat_map(|index| suppliers.partition(index, 5));
    assert_eq!(
        batches.map(|batch| batch.num_rows()).collect::<Vec<_>>(),
        [1, 1]
    );
}

#[test]
fn a_seed_changes_values_but_not_shapes() {
    let generator = generator(0.01);
    let other = generator.with_seed(42);
    assert_eq!(generator.rows(SsbTable::Part), other.rows(SsbTable::Part));
    assert_ne!(
        collect(&generator, SsbTable::Part, 1),
        collect(&other, SsbTable::Part, 1)
    );
}

#[test]
fn files_hold_the_generated_rows_whatever_the_threads() {
    // Two row groups and more in the fact table.
    let generator = generator(0.1);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);

    let mut reports = Vec::new();
    for (name, threads) in [("one", 1), ("three", 3)] {
        let mut report = |progress: eris_ssb::Progress| reports.push(progress);
        write_parquet(
            &generator,
            &at(name),
            Compression::Snappy,
            threads,
            &mut report,
        )
        .unwrap();
        write_tbl(&generator, &at(name), threads, &mut report).unwrap();
    }
    let last = reports.last().unwrap();
    assert_eq!(last.rows_done, last.rows_total);
    assert!(
        reports
            .iter()
            .all(|report| report.rows_done <= report.rows_total)
    );

    for table in SsbTable::ALL {
        for format in [FileFormat::Parquet, FileFormat::Tbl] {
            let name = format.file_name(table);
            let one = fs::read(at("one").join(&name)).unwrap();
            assert!(one == fs::read(at("three").join(&name)).unwrap(), "{name}");
        }
        let rows = collect(&generator, table, 1);
        let parquet = read_parquet(&at("one").join(FileFormat::Parquet.file_name(table)));
        assert_eq!(rows, parquet, "{table}");
        let text = fs::read_to_string(at("one").join(FileFormat::Tbl.file_name(table))).unwrap();
        assert!(
            text.lines()
                .eq((0..rows.num_rows()).map(|row| line(&rows, row))),
            "{table}"
        );
    }
    assert_eq!(
        fs::read_dir(at("one")).unwrap().count(),
        10,
        "no partial file stays"
    );
}

#[test]
fn a_failed_write_names_the_file_and_leaves_none() {
    let directory = tempfile::tempdir().unwrap();
    let obstacle = directory.path().join("date.parquet");
    fs::create_dir(&obstacle).unwrap();
    let result = write_parquet(
        &generator(0.001),
        directory.path(),
        Compression::Zstd,
        2,
        &mut |_| (),
    );
    let message = result.unwrap_err().to_string();
    assert!(message.contains("date.parquet"), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

fn read_parquet(path: &std::path::Path) -> RecordBatch {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = builder.schema().clone();
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// A row as the `.tbl` format has it.
fn line(batch: &RecordBatch, row: usize) -> String {
    let mut line = String::new();
    for column in batch.columns() {
        let field = if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
            numbers.value(row).to_string()
        } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
            numbers.value(row).to_string()
        } else {
            assert_eq!(column.null_count(), 0);
            column.as_string::<i32>().value(row).to_owned()
        };
        line.push_str(&field);
        line.push('|');
    }
    line
}
