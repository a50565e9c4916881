//! Parquet files, one per table, encoded by many threads.

use crate::generator::Generator;
use crate::load::FileFormat;
use crate::pipeline;
use crate::table::SsbTable;
use crate::write::{Progress, Units, WriteError, Written, write_all};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// How the pages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy: the fastest to read.
    #[default]
    Snappy,
    /// Zstandard at its lowest level: the smallest file.
    Zstd,
}

/// Columns of the fact table with so many values that a dictionary only costs time.
const NO_DICTIONARY: [&str; 7] = [
    "lo_orderkey",
    "lo_custkey",
    "lo_partkey",
    "lo_extendedprice",
    "lo_ordtotalprice",
    "lo_revenue",
    "lo_supplycost",
];

/// Writes `<table>.parquet` for all five tables into `directory`, replacing files of that name; row groups of about
/// 262,144 rows. The bytes do not depend on `threads`.
///
/// # Errors
/// If the file system or the Parquet library fails; tables completed before stay.
pub fn write_parquet(
    generator: &Generator,
    directory: &Path,
    compression: Compression,
    threads: usize,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Written>, WriteError> {
    write_all(
        generator,
        directory,
        FileFormat::Parquet,
        progress,
        |units, path, file, report| {
            write_table(units, compression, threads, file, report)
                .map_err(WriteError::parquet(path))
        },
    )
}

fn write_table(
    units: &Units,
    compression: Compression,
    threads: usize,
    file: File,
    report: &mut dyn FnMut(u64),
) -> Result<(), ParquetError> {
    let table = units.table();
    let writer = ArrowWriter::try_new(
        BufWriter::new(file),
        table.schema(),
        Some(properties(table, compression)),
    )?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    pipeline::in_order(
        units.count(),
        threads,
        |unit| encode(units, unit, &factory),
        |(chunks, rows)| {
            let mut group = writer.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group)?;
            }
            group.close()?;
            report(rows);
            Ok(())
        },
    )?;
    writer.close()?;
    Ok(())
}

/// One row group, encoded and compressed, and its rows.
fn encode(
    units: &Units,
    unit: usize,
    factory: &ArrowRowGroupWriterFactory,
) -> Result<(Vec<ArrowColumnChunk>, u64), ParquetError> {
    let mut rows = 0;
    let mut writers = factory.create_column_writers(unit)?;
    for batch in units.batches(unit) {
        rows += batch.num_rows() as u64;
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns());
        for ((field, column), writer) in columns.zip(&mut writers) {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
        }
    }
    let chunks = writers.into_iter().map(|writer| writer.close());
    Ok((chunks.collect::<Result<_, _>>()?, rows))
}

fn properties(table: SsbTable, compression: Compression) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(match compression {
            Compression::None => Codec::UNCOMPRESSED,
            Compression::Snappy => Codec::SNAPPY,
            Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
        });
    if table == SsbTable::Lineorder {
        for name in NO_DICTIONARY {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
        }
        // Rising in small steps: two bits a row instead of 64.
        properties = properties.set_column_encoding(
            ColumnPath::from("lo_orderkey"),
            Encoding::DELTA_BINARY_PACKED,
        );
    }
    properties.build()
}
