//! What files there are, and what Parquet files say of themselves: `glob`, `parquet_schema`, `parquet_metadata`. Their
//! columns are called as DuckDB's.

use crate::blocking::blocking;
use crate::error::{FileError, FileFaultKind};
use crate::expand::{expand, expand_one};
use crate::format::Format;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::{
    ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType,
};
use datafusion::parquet::errors::Result as ParquetResult;
use datafusion::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::schema::types::Type;
use eris_exact::text::{VALUE_FORMAT, formatter};
use eris_exact::types::sql_name;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use Kind::{Number, Text, Truth};

/// The types of columns.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Truth,
}

/// A value of a row.
enum Cell {
    Text(Option<String>),
    Number(Option<i64>),
    Truth(Option<bool>),
}

type Columns = [(&'static str, Kind)];

const FILES: [(&str, Kind); 1] = [("file", Text)];

const SCHEMA: [(&str, Kind); 13] = [
    ("file_name", Text),
    ("name", Text),
    ("type", Text),
    ("type_length", Text),
    ("repetition_type", Text),
    ("num_children", Number),
    ("converted_type", Text),
    ("scale", Number),
    ("precision", Number),
    ("field_id", Number),
    ("logical_type", Text),
    ("duckdb_type", Text),
    ("column_id", Number),
];

const METADATA: [(&str, Kind); 28] = [
    ("file_name", Text),
    ("row_group_id", Number),
    ("row_group_num_rows", Number),
    ("row_group_num_columns", Number),
    ("row_group_bytes", Number),
    ("column_id", Number),
    ("file_offset", Number),
    ("num_values", Number),
    ("path_in_schema", Text),
    ("type", Text),
    ("stats_min", Text),
    ("stats_max", Text),
    ("stats_null_count", Number),
    ("stats_distinct_count", Number),
    ("stats_min_value", Text),
    ("stats_max_value", Text),
    ("compression", Text),
    ("encodings", Text),
    ("index_page_offset", Number),
    ("dictionary_page_offset", Number),
    ("data_page_offset", Number),
    ("total_compressed_size", Number),
    ("total_uncompressed_size", Number),
    ("bloom_filter_offset", Number),
    ("bloom_filter_length", Number),
    ("min_is_exact", Truth),
    ("max_is_exact", Truth),
    ("row_group_compressed_bytes", Number),
];

/// The files that names and patterns mean, as rows; none if nothing matches.
///
/// # Errors
/// A pattern that is wrong, a directory that cannot be read.
pub async fn files_named(names: Vec<String>) -> Result<RecordBatch, FileError> {
    blocking(move || {
        let mut rows = Vec::new();
        for name in names.iter().filter(|name| !Path::new(name).is_dir()) {
            let files = expand_one(name, None)?.into_iter();
            rows.extend(files.map(|file| vec![text(file.to_string_lossy())]));
        }
        Ok(table(&FILES, &rows))
    })
    .await
}

/// The columns of Parquet files as their schemas have them, groups included: a row for each.
///
/// # Errors
/// There are no files, or one is no Parquet file.
pub async fn parquet_schema(names: Vec<String>) -> Result<RecordBatch, FileError> {
    of_files(names, &SCHEMA, |file, metadata, rows| {
        let about = metadata.file_metadata();
        let schema = about.schema_descr();
        let arrow = parquet_to_arrow_schema(schema, about.key_value_metadata())?;
        let mut leaves = Vec::new();
        arrow
            .fields()
            .iter()
            .for_each(|field| leaves_of(field, &mut leaves));
        nodes(file, schema.root_schema(), 0, &mut leaves.into_iter(), rows);
        Ok(())
    })
    .await
}

/// The column chunks of Parquet files: a row for each.
///
/// # Errors
/// There are no files, or one is no Parquet file.
pub async fn parquet_metadata(names: Vec<String>) -> Result<RecordBatch, FileError> {
    of_files(names, &METADATA, chunks).await
}

/// The rows that are made of the metadata of all files.
async fn of_files(
    names: Vec<String>,
    columns: &'static Columns,
    add: impl Fn(&str, &ParquetMetaData, &mut Vec<Vec<Cell>>) -> ParquetResult<()> + Send + 'static,
) -> Result<RecordBatch, FileError> {
    blocking(move || {
        let (files, _) = expand(&names, Some(Format::Parquet))?;
        let mut rows = Vec::new();
        for file in &files {
            let unreadable = |error| FileError::new(file, FileFaultKind::unreadable(error));
            let damaged = |_| FileError::new(file, FileFaultKind::Damaged("Parquet file"));
            let opened = File::open(file).map_err(unreadable)?;
            let reader = SerializedFileReader::new(opened).map_err(damaged)?;
            let shown = file.to_string_lossy();
            add(&shown, reader.metadata(), &mut rows).map_err(damaged)?;
        }
        Ok(table(columns, &rows))
    })
    .await
}

/// The types of the columns that hold a field's values, in the order of Parquet.
fn leaves_of(field: &Field, leaves: &mut Vec<DataType>) {
    match field.data_type() {
        DataType::List(inner) | DataType::LargeList(inner) | DataType::Map(inner, _) => {
            leaves_of(inner, leaves);
        }
        DataType::Struct(fields) => fields.iter().for_each(|field| leaves_of(field, leaves)),
        other => leaves.push(other.clone()),
    }
}

/// A node of a schema, and all below it; the number behind the last one.
fn nodes(
    file: &str,
    node: &Type,
    number: i64,
    leaves: &mut std::vec::IntoIter<DataType>,
    rows: &mut Vec<Vec<Cell>>,
) -> i64 {
    let info = node.get_basic_info();
    let data_type = match node.is_primitive() {
        true => leaves.next(),
        false => None,
    };
    let (mut length, mut digits) = (None, None);
    if let Type::PrimitiveType {
        physical_type,
        type_length,
        scale,
        precision,
        ..
    } = node
    {
        let is_fixed = *physical_type == PhysicalType::FIXED_LEN_BYTE_ARRAY;
        length = is_fixed.then(|| type_length.to_string());
        let is_decimal = info.converted_type() == ConvertedType::DECIMAL
            || matches!(info.logical_type_ref(), Some(LogicalType::Decimal(_)));
        digits = is_decimal.then_some((i64::from(*scale), i64::from(*precision)));
    }
    let repetition = match info.has_repetition() {
        true => info.repetition(),
        // The root does not say it.
        false => Repetition::REQUIRED,
    };
    let converted = Some(info.converted_type());
    let converted = converted.filter(|converted| *converted != ConvertedType::NONE);
    let physical = node.is_primitive().then(|| node.get_physical_type());
    rows.push(vec![
        text(file),
        text(info.name()),
        Cell::Text(physical.map(|physical| physical.to_string())),
        Cell::Text(length),
        text(repetition.to_string()),
        Cell::Number(node.is_group().then(|| node.get_fields().len() as i64)),
        Cell::Text(converted.map(|converted| converted.to_string())),
        Cell::Number(digits.map(|(scale, _)| scale)),
        Cell::Number(digits.map(|(_, precision)| precision)),
        Cell::Number(info.has_id().then(|| info.id().into())),
        Cell::Text(info.logical_type_ref().map(logical)),
        Cell::Text(data_type.map(|data_type| sql_name(&data_type, None))),
        Cell::Number(Some(number)),
    ]);
    let mut next = number + 1;
    if node.is_group() {
        for child in node.get_fields() {
            next = nodes(file, child, next, leaves, rows);
        }
    }
    next
}

/// A logical type as DuckDB writes it.
fn logical(of: &LogicalType) -> String {
    match of {
        LogicalType::Decimal(decimal) => format!(
            "DecimalType(scale={}, precision={})",
            decimal.scale, decimal.precision
        ),
        LogicalType::Timestamp(timestamp) => {
            let unit = |unit: TimeUnit, name: &str| match unit == timestamp.unit {
                true => format!("{name}()"),
                false => "<null>".to_owned(),
            };
            format!(
                "TimestampType(isAdjustedToUTC={}, unit=TimeUnit(MILLIS={}, MICROS={}, NANOS={}))",
                u8::from(timestamp.is_adjusted_to_u_t_c),
                unit(TimeUnit::MILLIS, "MilliSeconds"),
                unit(TimeUnit::MICROS, "MicroSeconds"),
                unit(TimeUnit::NANOS, "NanoSeconds"),
            )
        }
        other => {
            let name = format!("{other:?}");
            let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
            format!("{name}Type()")
        }
    }
}

fn chunks(file: &str, metadata: &ParquetMetaData, rows: &mut Vec<Vec<Cell>>) -> ParquetResult<()> {
    let about = metadata.file_metadata();
    let arrow = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata())?;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        for (column, chunk) in group.columns().iter().enumerate() {
            let path = chunk.column_path().parts();
            let (least, greatest) = match path {
                [name] => ends(name, &arrow, metadata, group)?,
                // Values within others are not written as those of a column.
                _ => (None, None),
            };
            let known = chunk.statistics();
            let count = |count: Option<u64>| Cell::Number(count.map(|count| count as i64));
            let encodings = chunk.encodings().map(|encoding| format!("{encoding:?}"));
            let compression = format!("{:?}", chunk.compression());
            // Not the level, which a file does not know.
            let compression = compression.split('(').next().unwrap_or_default();
            rows.push(vec![
                text(file),
                Cell::Number(Some(number as i64)),
                Cell::Number(Some(group.num_rows())),
                Cell::Number(Some(group.num_columns() as i64)),
                Cell::Number(Some(group.total_byte_size())),
                Cell::Number(Some(column as i64)),
                Cell::Number(Some(chunk.file_offset())),
                Cell::Number(Some(chunk.num_values())),
                text(path.join(", ")),
                text(chunk.column_type().to_string()),
                Cell::Text(least.clone()),
                Cell::Text(greatest.clone()),
                count(known.and_then(|known| known.null_count_opt())),
                count(known.and_then(|known| known.distinct_count_opt())),
                Cell::Text(least),
                Cell::Text(greatest),
                text(compression),
                text(encodings.collect::<Vec<_>>().join(", ")),
                Cell::Number(chunk.index_page_offset()),
                Cell::Number(chunk.dictionary_page_offset()),
                Cell::Number(Some(chunk.data_page_offset())),
                Cell::Number(Some(chunk.compressed_size())),
                Cell::Number(Some(chunk.uncompressed_size())),
                Cell::Number(chunk.bloom_filter_offset()),
                Cell::Number(chunk.bloom_filter_length().map(i64::from)),
                Cell::Truth(known.map(|known| known.min_is_exact())),
                Cell::Truth(known.map(|known| known.max_is_exact())),
                Cell::Number(Some(group.compressed_size())),
            ]);
        }
    }
    Ok(())
}

/// The least and the greatest value of a column in a row group, as people see them.
fn ends(
    name: &str,
    arrow: &Schema,
    metadata: &ParquetMetaData,
    group: &RowGroupMetaData,
) -> ParquetResult<(Option<String>, Option<String>)> {
    let schema = metadata.file_metadata().schema_descr();
    let converter = StatisticsConverter::try_new(name, arrow, schema)?;
    let shown = |values: ArrayRef| -> ParquetResult<Option<String>> {
        if values.is_null(0) || *values.data_type() == DataType::Null {
            return Ok(None);
        }
        let formatter = formatter(&values, &VALUE_FORMAT)?;
        Ok(Some(formatter.value(0).try_to_string()?))
    };
    Ok((
        shown(converter.row_group_mins([group])?)?,
        shown(converter.row_group_maxes([group])?)?,
    ))
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(Some(text.into()))
}

/// Rows with a cell for each column.
fn table(columns: &Columns, rows: &[Vec<Cell>]) -> RecordBatch {
    let columns = columns.iter().enumerate().map(|(place, (name, kind))| {
        let cells = rows.iter().map(|row| &row[place]);
        let values: ArrayRef = match kind {
            Text => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
                Cell::Text(text) => text.as_deref(),
                _ => None,
            }))),
            Number => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Cell::Number(number) => *number,
                _ => None,
            }))),
            Truth => Arc::new(BooleanArray::from_iter(cells.map(|cell| match cell {
                Cell::Truth(truth) => *truth,
                _ => None,
            }))),
        };
        (*name, values, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of equal length")
}
