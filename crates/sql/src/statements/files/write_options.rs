//! What a statement says about the file it writes.

use crate::error::{Mistake, SqlError};
use crate::plan::files::options::{GivenOption, GivenOptions};
use crate::plan::files::read_options::{compression_of, format_of, pattern};
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use eris_files::{
    Compression, CsvStyle, Format, WriteOptions, ZSTD_LEVEL, shortened, without_ending,
};

/// Rows of a row group where nothing else is said.
const ROW_GROUP: usize = 122_880;
/// Rows of a piece of text.
const TEXT_ROWS: usize = 32_768;

/// The options' names, for the hint of an unknown one.
const KNOWN: [&str; 12] = [
    "format",
    "header",
    "delimiter",
    "quote",
    "escape",
    "null",
    "compression",
    "compression_level",
    "row_group_size",
    "dateformat",
    "timestampformat",
    "partition_by",
];

/// How a file is written, and the columns whose values are directories.
///
/// # Errors
/// An unknown option, or one that the format does not have.
pub(super) fn write_options(
    mut options: GivenOptions,
    file: &str,
) -> Result<(WriteOptions, Vec<String>), SqlError> {
    let said = options.take(&["format"])?;
    let keys = options.take(&["partition_by"])?;
    let keys = keys.map_or(Ok(Vec::new()), |given| given.texts())?;
    let format = match &said {
        Some(given) => format_of(given)?,
        None if !keys.is_empty() && !file.contains('.') => {
            let message = "COPY to a directory needs a FORMAT, such as (FORMAT parquet)".to_owned();
            return Err(SqlError::invalid(Mistake::InvalidParameterValue, message));
        }
        None => Format::of_target(file)?,
    };
    let usual = file.to_ascii_lowercase();
    let mut csv = CsvStyle::default();
    if without_ending(&usual).ends_with(".tsv") {
        csv.delimiter = "\t".to_owned();
    }
    let mut compression = Compression::of_name(file);
    let mut parquet = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("eris ", env!("CARGO_PKG_VERSION")).to_owned());
    let mut piece_rows = TEXT_ROWS;
    match format {
        Format::Csv => {
            style(&mut options, &mut csv)?;
            if let Some(given) = options.take(&["compression"])? {
                compression = compression_of(&given)?.unwrap_or(compression);
            }
        }
        Format::Json => {
            if let Some(given) = options.take(&["compression"])? {
                compression = compression_of(&given)?.unwrap_or(compression);
            }
        }
        Format::Parquet => {
            let level = options.take(&["compression_level"])?;
            let codec = options.take(&["compression", "codec"])?;
            parquet = parquet.set_compression(codec_of(codec.as_ref(), level.as_ref())?);
            piece_rows = ROW_GROUP;
            if let Some(given) = options.take(&["row_group_size", "chunk_size"])? {
                let rows = usize::try_from(given.number()?)
                    .ok()
                    .filter(|rows| *rows > 0);
                piece_rows = rows.ok_or_else(|| given.reject("a number of rows"))?;
            }
        }
        Format::Arrow => {}
    }
    let what = format!("COPY '{}' TO a {} file", shortened(file), format.name());
    options.finish(&what, &KNOWN)?;
    let written = WriteOptions {
        format,
        csv,
        compression,
        parquet: parquet.build(),
        piece_rows,
    };
    Ok((written, keys))
}

fn style(options: &mut GivenOptions, csv: &mut CsvStyle) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["header"])? {
        csv.header = given.flag()?;
    }
    if let Some(given) = options.take(&["delimiter", "delim", "sep"])? {
        csv.delimiter = given.delimiter()?.to_string();
    }
    if let Some(given) = options.take(&["quote"])? {
        csv.quote = given.byte()?;
        csv.escape = csv.quote.unwrap_or(csv.escape);
    }
    if let Some(given) = options.take(&["escape"])? {
        csv.escape = given.byte()?.unwrap_or(csv.escape);
    }
    if let Some(given) = options.take(&["null", "nullstr"])? {
        csv.null = given.text()?.to_owned();
    }
    if let Some(given) = options.take(&["dateformat", "date_format"])? {
        csv.date_format = Some(pattern(&given)?);
    }
    if let Some(given) = options.take(&["timestampformat", "timestamp_format"])? {
        csv.timestamp_format = Some(pattern(&given)?);
    }
    Ok(())
}

/// The codec of Parquet's pages.
fn codec_of(codec: Option<&GivenOption>, level: Option<&GivenOption>) -> Result<Codec, SqlError> {
    let number = level.map(GivenOption::number).transpose()?;
    let name = codec
        .map_or(Ok("zstd"), GivenOption::text)?
        .to_ascii_lowercase();
    let rejected = |wanted: &str| match codec.or(level) {
        Some(given) => given.reject(wanted),
        None => SqlError::invalid(Mistake::InvalidParameterValue, wanted.to_owned()),
    };
    match name.as_str() {
        "zstd" => {
            let level = i32::try_from(number.unwrap_or(ZSTD_LEVEL.into())).unwrap_or(i32::MAX);
            let level =
                ZstdLevel::try_new(level).map_err(|_| rejected("a level of zstd from 1 to 22"))?;
            Ok(Codec::ZSTD(level))
        }
        "gzip" => {
            let level = u32::try_from(number.unwrap_or(6)).unwrap_or(u32::MAX);
            let level =
                GzipLevel::try_new(level).map_err(|_| rejected("a level of gzip from 0 to 9"))?;
            Ok(Codec::GZIP(level))
        }
        "snappy" => Ok(Codec::SNAPPY),
        "lz4" | "lz4_raw" => Ok(Codec::LZ4_RAW),
        "none" | "uncompressed" => Ok(Codec::UNCOMPRESSED),
        _ => Err(rejected("zstd, snappy, gzip, lz4 or none")),
    }
}
