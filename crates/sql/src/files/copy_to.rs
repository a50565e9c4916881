//! COPY table or query TO a file.

use super::Files;
use super::copy_from::quoted;
use super::options::{Given, Options};
use super::read_options::{compression_of, format_of, pattern};
use super::statement::{CopySource, CopyTo};
use crate::cancel::begin_commit;
use crate::catalog::SCHEMA;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::progress;
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use crate::write::targets::columns;
use datafusion::parquet::basic::{Compression as Codec, GzipLevel, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::sql::sqlparser::ast::ObjectName;
use eris_files::{
    Compression, CsvStyle, FileUnderWay, Format, WriteOptions, ZSTD_LEVEL, shortened,
    without_ending,
};
use std::path::PathBuf;

/// Rows of a row group where nothing else is said.
const ROW_GROUP: usize = 122_880;
/// Rows of a piece of text.
const TEXT_ROWS: usize = 32_768;

/// The options' names, for the hint of an unknown one.
const KNOWN: [&str; 11] = [
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
];

/// Runs the statement.
pub(super) async fn run(
    context: &StatementContext,
    copy: CopyTo,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if copy.file.is_empty() {
        return Err(super::failed(&copy.file, "the name is empty"));
    }
    let options = options(copy.options, &copy.file)?;
    let plan = match copy.source {
        CopySource::Query(query) => planning::plan(context, *query, statement).await?,
        CopySource::Table(name, names) => {
            let table = context.table(&name, statement)?;
            let names: Vec<_> = names
                .into_iter()
                .map(|name| ObjectName::from(vec![name]))
                .collect();
            let columns = columns(&table, &names)?;
            let columns: Vec<_> = columns
                .iter()
                .map(|&at| quoted(table.schema.field(at).name()))
                .collect();
            let query = format!("SELECT {} FROM {}", columns.join(", "), table.name.sql());
            // The name is that of the table, whatever schema is current.
            let context = context.clone().in_schema(SCHEMA);
            planning::plan_text(&context, &query, Files::new()).await?
        }
    };
    let (rows, file) = write(&plan, copy.file.into(), options).await?;
    begin_commit()?;
    file.finish().await?;
    Ok(Begun::Count { rows, tag: "COPY" })
}

/// Writes all rows of a plan into a file, which has its name once it is finished; until then what had it is as it was.
pub(super) async fn write(
    plan: &Plan,
    path: PathBuf,
    options: WriteOptions,
) -> Result<(u64, FileUnderWay), SqlError> {
    let workers = plan.context.session_config().target_partitions();
    let progress = progress::current();
    let wrote = |rows| progress.wrote(rows);
    Ok(eris_files::write(plan.run()?, path, options, workers, wrote).await?)
}

/// # Errors
/// An unknown option, or one that the format does not have.
pub(super) fn options(mut options: Options, file: &str) -> Result<WriteOptions, SqlError> {
    let said = options.take(&["format"])?;
    let format = match &said {
        Some(given) => format_of(given)?,
        None => Format::of_name(file).unwrap_or(Format::Csv),
    };
    let usual = file.to_ascii_lowercase();
    let mut csv = CsvStyle::default();
    if without_ending(&usual).ends_with(".tsv") {
        csv.delimiter = b'\t';
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
                piece_rows = rows.ok_or_else(|| given.refuse("a number of rows"))?;
            }
        }
        Format::Arrow => {}
    }
    let what = format!("COPY '{}' TO a {} file", shortened(file), format.name());
    options.finish(&what, &KNOWN)?;
    Ok(WriteOptions {
        format,
        csv,
        compression,
        parquet: parquet.build(),
        piece_rows,
    })
}

fn style(options: &mut Options, csv: &mut CsvStyle) -> Result<(), SqlError> {
    if let Some(given) = options.take(&["header"])? {
        csv.header = given.flag()?;
    }
    if let Some(given) = options.take(&["delimiter", "delim", "sep"])? {
        csv.delimiter = given.byte()?.ok_or_else(|| given.refuse("a character"))?;
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
fn codec_of(codec: Option<&Given>, level: Option<&Given>) -> Result<Codec, SqlError> {
    let number = level.map(Given::number).transpose()?;
    let name = codec.map_or(Ok("zstd"), Given::text)?.to_ascii_lowercase();
    let refused = |wanted: &str| match codec.or(level) {
        Some(given) => given.refuse(wanted),
        None => SqlError::invalid(wanted.to_owned()),
    };
    match name.as_str() {
        "zstd" => {
            let level = i32::try_from(number.unwrap_or(ZSTD_LEVEL.into())).unwrap_or(i32::MAX);
            let level =
                ZstdLevel::try_new(level).map_err(|_| refused("a level of zstd from 1 to 22"))?;
            Ok(Codec::ZSTD(level))
        }
        "gzip" => {
            let level = u32::try_from(number.unwrap_or(6)).unwrap_or(u32::MAX);
            let level =
                GzipLevel::try_new(level).map_err(|_| refused("a level of gzip from 0 to 9"))?;
            Ok(Codec::GZIP(level))
        }
        "snappy" => Ok(Codec::SNAPPY),
        "lz4" | "lz4_raw" => Ok(Codec::LZ4_RAW),
        "none" | "uncompressed" => Ok(Codec::UNCOMPRESSED),
        _ => Err(refused("zstd, snappy, gzip, lz4 or none")),
    }
}
