//! Files whose columns differ, or to whose rows their names add columns, as one table.
//!
//! ```text
//! year=2024/a.csv   a BIGINT                   SELECT a::DOUBLE AS a, NULL AS b, 2024 AS year FROM …
//! year=2025/b.csv   a DOUBLE, b VARCHAR        UNION ALL SELECT a, b, 2025 AS year FROM …
//! ```
//!
//! Neighbours to which the same is added are read by one scan, unless columns are found by name. Filters are pushed
//! into the parts: where a filter is false for what is added, no file is opened.

use crate::added::AddedColumns;
use crate::column::ColumnRef;
use crate::error::{FileError, FileFaultKind};
use crate::format::Format;
use crate::progress::ReadProgress;
use crate::read::{ReadOptions, open_alike};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union, cast, lit};
use eris_exact::common_type;
use eris_exact::types::sql_name;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What a part is called within the plan.
const PART: &str = "files";

/// Files that are read by one scan.
struct FilePart {
    files: Vec<PathBuf>,
    added: Vec<ScalarValue>,
    table: Arc<dyn TableProvider>,
}

/// A column of all files.
struct UnitedColumn {
    name: String,
    data_type: DataType,
    /// The first file that has it.
    file: PathBuf,
}

/// Opens the files.
pub(crate) async fn open(
    files: Vec<PathBuf>,
    format: Format,
    options: &ReadOptions,
    added: AddedColumns,
    state: &SessionState,
    progress: &ReadProgress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    let mut parts: Vec<FilePart> = Vec::new();
    for (files, values) in groups(files, added.values, options.by_name) {
        let table = open_alike(
            files.clone(),
            format,
            options.clone(),
            None,
            state,
            progress,
        );
        parts.push(FilePart {
            table: table.await?,
            files,
            added: values,
        });
    }
    let columns = united_columns(&parts, format, options)?;
    if format == Format::Csv {
        // What becomes a string is read as it is written.
        for part in &mut parts {
            let mut options = options.clone();
            let given = options.csv.types.len();
            for field in part.table.schema().fields() {
                let column = columns
                    .iter()
                    .find(|column| is_same(&column.name, field.name()));
                let is_string = column.is_some_and(|column| column.data_type == DataType::Utf8View);
                if is_string && *field.data_type() != DataType::Utf8View {
                    let name = ColumnRef::Name(field.name().clone());
                    options.csv.types.push((name, DataType::Utf8View));
                }
            }
            if options.csv.types.len() > given {
                let files = part.files.clone();
                part.table = open_alike(files, format, options, None, state, progress).await?;
            }
        }
    }
    let path = parts[0].files[0].clone();
    let plan = union(&parts, &columns, &added.names)
        .map_err(|error| FileError::new(path, FileFaultKind::unreadable(error)))?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Files in groups that are scanned together, with what is added to their rows.
fn groups(
    files: Vec<PathBuf>,
    added: Vec<Vec<ScalarValue>>,
    by_name: bool,
) -> Vec<(Vec<PathBuf>, Vec<ScalarValue>)> {
    let repeated = repeated(&files);
    let mut groups: Vec<(Vec<PathBuf>, Vec<ScalarValue>)> = Vec::new();
    for (file, values) in files.into_iter().zip(added) {
        let alone = by_name || repeated.contains(&file);
        match groups.last_mut() {
            Some((files, known)) if !alone && *known == values => files.push(file),
            _ => groups.push((vec![file], values)),
        }
    }
    groups
}

/// Files that are named more than once, by whatever names. One scan of Parquet files reads each of them once.
pub(crate) fn repeated(files: &[PathBuf]) -> HashSet<PathBuf> {
    let real = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
    let mut met = HashSet::new();
    let again = files.iter().filter(|file| !met.insert(real(file)));
    again.cloned().collect()
}

/// SQL's names are the same in capitals.
fn is_same(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// The columns of all parts, in the order in which they are met, each with a type that has all its values.
fn united_columns(
    parts: &[FilePart],
    format: Format,
    options: &ReadOptions,
) -> Result<Vec<UnitedColumn>, FileError> {
    let mut columns: Vec<UnitedColumn> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let file = &part.files[0];
        let schema = part.table.schema();
        if number > 0 && !options.by_name && !has_all(&schema, &columns) {
            let first = parts[0].files[0].clone();
            return Err(FileError::new(file, FileFaultKind::OtherColumns { first }));
        }
        for field in schema.fields() {
            let found = columns
                .iter_mut()
                .find(|column| is_same(&column.name, field.name()));
            let Some(column) = found else {
                columns.push(UnitedColumn {
                    name: field.name().clone(),
                    data_type: field.data_type().clone(),
                    file: file.clone(),
                });
                continue;
            };
            let common = common_type(&column.data_type, field.data_type());
            column.data_type = match common {
                Some(common) => common,
                None if format == Format::Csv => DataType::Utf8View,
                None => {
                    let kind = FileFaultKind::OtherType {
                        column: column.name.clone(),
                        found: sql_name(field.data_type(), None),
                        wanted: sql_name(&column.data_type, None),
                        first: column.file.clone(),
                    };
                    return Err(FileError::new(file, kind));
                }
            };
        }
    }
    Ok(columns)
}

fn has_all(schema: &SchemaRef, columns: &[UnitedColumn]) -> bool {
    let known = |column: &UnitedColumn| {
        let mut fields = schema.fields().iter();
        fields.any(|field| is_same(field.name(), &column.name))
    };
    schema.fields().len() == columns.len() && columns.iter().all(known)
}

fn union(parts: &[FilePart], columns: &[UnitedColumn], added: &[String]) -> Result<LogicalPlan> {
    let mut inputs = Vec::with_capacity(parts.len());
    for part in parts {
        let schema = part.table.schema();
        let mut values = Vec::new();
        for column in columns {
            if added.iter().any(|name| is_same(name, &column.name)) {
                continue;
            }
            let field = (schema.fields().iter()).find(|field| is_same(field.name(), &column.name));
            let value = match field {
                Some(field) => Expr::Column(Column::new(Some(PART), field.name())),
                None => lit(ScalarValue::Null),
            };
            let value = match field {
                Some(field) if *field.data_type() == column.data_type => value,
                _ => cast(value, column.data_type.clone()),
            };
            values.push(value.alias(&column.name));
        }
        let constants = added.iter().zip(&part.added);
        values.extend(constants.map(|(name, value)| lit(value.clone()).alias(name)));
        let source = provider_as_source(Arc::clone(&part.table));
        let plan = LogicalPlanBuilder::scan(PART, source, None)?.project(values)?;
        inputs.push(Arc::new(plan.build()?));
    }
    match inputs.len() {
        1 => Ok(Arc::unwrap_or_clone(inputs.remove(0))),
        _ => Ok(LogicalPlan::Union(Union::try_new(inputs)?)),
    }
}
