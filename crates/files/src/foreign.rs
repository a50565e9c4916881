//! What columns of Parquet and Arrow files are to SQL.
//!
//! A column of 16 bytes is a UUID if it says so. Else it is a BLOB, as one of any other size.

use crate::error::{FileError, FileFaultKind};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowSchemaConverter;
use datafusion::parquet::basic::{LogicalType, Type as PhysicalType};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::schema::types::{Type, TypePtr};
use eris_exact::types::UUID_BYTES;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// How a field says what it is.
const EXTENSION: &str = "ARROW:extension:name";
const UUID: &str = "arrow.uuid";

/// The field that says that it has UUIDs.
pub fn uuid_field(name: &str, nullable: bool) -> Field {
    let field = Field::new(name, DataType::FixedSizeBinary(UUID_BYTES), nullable);
    field.with_metadata([(EXTENSION.to_owned(), UUID.to_owned())].into())
}

/// The columns, without what they say for other programs.
pub(crate) fn columns(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| {
        let is_uuid = field
            .metadata()
            .get(EXTENSION)
            .is_some_and(|name| name == UUID);
        let data_type = match field.data_type() {
            DataType::FixedSizeBinary(UUID_BYTES) if is_uuid => {
                DataType::FixedSizeBinary(UUID_BYTES)
            }
            DataType::FixedSizeBinary(_) => DataType::BinaryView,
            other => other.clone(),
        };
        Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// A column whose dictionary has no NULLs: Arrow's casts take such an entry for a value. The rows with it are NULL
/// themselves instead.
///
/// # Errors
/// The column contradicts itself.
pub(crate) fn without_null_entries(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        return Ok(Arc::clone(column));
    };
    if dictionary.values().null_count() == 0 {
        return Ok(Arc::clone(column));
    }
    let rows = column
        .to_data()
        .into_builder()
        .nulls(column.logical_nulls());
    Ok(make_array(rows.build()?))
}

/// The schema of a Parquet file, whose columns of UUIDs do not say what they are to Arrow.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn with_uuids(path: &Path, schema: &Schema) -> Result<Schema, ParquetError> {
    let is_like_uuid = |of: &DataType| *of == DataType::FixedSizeBinary(UUID_BYTES);
    if !schema
        .fields()
        .iter()
        .any(|field| is_like_uuid(field.data_type()))
    {
        return Ok(schema.clone());
    }
    let file = SerializedFileReader::new(File::open(path)?)?;
    let root = file.metadata().file_metadata().schema();
    let is_uuid = |name: &str| {
        let mut columns = root.get_fields().iter();
        columns
            .any(|column| column.name() == name && logical_type(column) == Some(LogicalType::Uuid))
    };
    let fields = schema
        .fields()
        .iter()
        .map(|field| match is_uuid(field.name()) {
            true => Arc::new(uuid_field(field.name(), field.is_nullable())),
            false => Arc::clone(field),
        });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of a Parquet file as it is written, with those of UUIDs called so.
///
/// # Errors
/// Arrow's columns have no counterpart.
pub(crate) fn parquet_columns(schema: &Schema) -> Result<TypePtr, ParquetError> {
    let descriptor = ArrowSchemaConverter::new().convert(schema)?;
    let root = descriptor.root_schema_ptr();
    let columns = root.get_fields().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| match field.data_type() {
        DataType::FixedSizeBinary(UUID_BYTES) => {
            let column =
                Type::primitive_type_builder(field.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
                    .with_length(UUID_BYTES)
                    .with_repetition(column.get_basic_info().repetition())
                    .with_logical_type(Some(LogicalType::Uuid));
            Ok(Arc::new(column.build()?))
        }
        _ => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<_>, ParquetError>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns);
    Ok(Arc::new(root.build()?))
}

fn logical_type(column: &Type) -> Option<LogicalType> {
    column.get_basic_info().logical_type_ref().cloned()
}

/// Rejects columns of a Parquet file that the reader would cut short: it takes an INTERVAL for days and milliseconds.
pub(crate) fn reject_intervals(path: &Path, schema: &Schema) -> Result<(), FileError> {
    let mut fields = schema.fields().iter();
    match fields.find(|field| matches!(field.data_type(), DataType::Interval(_))) {
        None => Ok(()),
        Some(field) => Err(FileError::new(
            path,
            FileFaultKind::Interval(field.name().clone()),
        )),
    }
}
