//! An INSERT of VALUES with many rows of parameters, as one statement.
//!
//! ```text
//! INSERT INTO t (a, b) VALUES ($1, lower($2))   rows of values, column by column: $1 BIGINT, $2 VARCHAR
//!                      └──────────┬─────────┘                    │
//! INSERT INTO t (a, b) SELECT "$1", lower("$2") FROM "parameters("
//! ```
//!
//! The values are a frame of one statement: nothing is written as text, and a million rows are no syntax tree.

use super::prepared::Prepared;
use crate::context::{Frames, StatementContext};
use crate::error::{Mistake, SqlError};
use crate::text::parameter::{Parameter, placeholder};
use crate::text::parse::parse;
use crate::text::statement::Statement;
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, Expr, Ident, SelectItem, SetExpr};
use eris_exact::types::UUID_BYTES;
use eris_files::{Condition, Frame, FrameBatches, FrameError, uuid_field};
use eris_syntax::expressions_mut;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What the values are called: no user's name has a parenthesis that is not closed.
const NAME: &str = "parameters(";

/// The INSERT over these values, a list of them for each row, and the context in which it finds them; `None` if there
/// are no rows.
///
/// # Errors
/// It is no such INSERT, or a value does not fit its parameter.
pub(super) fn tree(
    context: &StatementContext,
    prepared: &Prepared,
    rows: &[Vec<Parameter>],
) -> Result<Option<(StatementContext, ast::Statement)>, SqlError> {
    let mut tree = prepared.tree().clone();
    let Some(row) = values_of(&tree) else {
        return Err(SqlError::not_supported(
            "many rows of parameters for anything but an INSERT of VALUES with one row",
        ));
    };
    let Some(values) = batch(prepared, rows)? else {
        return Ok(None);
    };
    let query = select(row)?;
    if let ast::Statement::Insert(insert) = &mut tree
        && let Some(source) = &mut insert.source
    {
        source.body = query;
    }
    let frames = OwnFrames {
        values: Arc::new(values),
        others: context.frames().cloned(),
    };
    let context = context.clone().with_frames(Some(Arc::new(frames)));
    Ok(Some((context, tree)))
}

/// The one row of an INSERT of VALUES.
pub(super) fn values_of(tree: &ast::Statement) -> Option<Vec<Expr>> {
    let ast::Statement::Insert(insert) = tree else {
        return None;
    };
    let SetExpr::Values(values) = insert.source.as_ref()?.body.as_ref() else {
        return None;
    };
    match values.rows.as_slice() {
        [row] => Some(row.content.clone()),
        _ => None,
    }
}

/// The row as a query over the values.
fn select(row: Vec<Expr>) -> Result<Box<SetExpr>, SqlError> {
    let template = format!("SELECT 1 FROM \"{NAME}\"");
    let ast::Statement::Query(mut query) = parse(&Statement::from(template.as_str()))? else {
        unreachable!("it is a query");
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        unreachable!("it is a plain one");
    };
    let cells = row.into_iter().map(|mut cell| {
        let _ = expressions_mut(&mut cell, |expr| {
            if let Some(name) = placeholder(expr) {
                *expr = Expr::Identifier(Ident::with_quote('"', name));
            }
            ControlFlow::<()>::Continue(())
        });
        SelectItem::UnnamedExpr(cell)
    });
    select.projection = cells.collect();
    Ok(query.body)
}

/// The values by parameter; `None` if there are none.
fn batch(prepared: &Prepared, rows: &[Vec<Parameter>]) -> Result<Option<RecordBatch>, SqlError> {
    let names = prepared.parameter_names();
    if let Some((number, row)) = rows
        .iter()
        .enumerate()
        .find(|(_, row)| row.len() != names.len())
    {
        let message = format!(
            "row {}: the statement has {} parameters, but {} values were given",
            number + 1,
            names.len(),
            row.len()
        );
        return Err(SqlError::invalid(Mistake::Syntax, message));
    }
    if rows.is_empty() || names.is_empty() {
        return Ok(None);
    }
    let columns = names.iter().enumerate().map(|(position, name)| {
        let values = rows.iter().enumerate().map(|(number, row)| {
            let fitted = prepared.fitted(position, &row[position]);
            fitted.map_err(|error| error.within(&format!("row {}", number + 1)))
        });
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let column = column(prepared, position, &values)?;
        let field = match column.data_type() {
            DataType::FixedSizeBinary(UUID_BYTES) => uuid_field(name, true),
            other => Field::new(name, other.clone(), true),
        };
        Ok((field, column))
    });
    let columns = columns.collect::<Result<Vec<_>, SqlError>>()?;
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    Ok(Some(RecordBatch::try_new(schema, columns)?))
}

/// Values as a column: of the type that they have, or if they have several, of the parameter's.
fn column(
    prepared: &Prepared,
    position: usize,
    values: &[Parameter],
) -> Result<ArrayRef, SqlError> {
    let mut types: Vec<DataType> = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        if types.last().is_none_or(|known| *known != value.data_type()) {
            let data_type = value.data_type();
            if !types.contains(&data_type) {
                types.push(data_type);
            }
        }
    }
    let name = &prepared.parameter_names()[position];
    let data_type = match (types.as_slice(), prepared.parameter_type(position)) {
        ([], _) => return Ok(new_null_array(&DataType::Null, values.len())),
        ([one], _) => one.clone(),
        (_, Some(known)) => known.clone(),
        ([first, second, ..], None) => {
            let message = format!("parameter {name} has values of types {first} and {second}");
            return Err(SqlError::invalid(Mistake::DatatypeMismatch, message));
        }
    };
    let null = ScalarValue::try_from(&data_type).map_err(SqlError::from_datafusion)?;
    let scalars = values.iter().enumerate().map(|(number, value)| {
        if value.is_null() {
            return Ok(null.clone());
        }
        let cast = value.cast(&data_type, name);
        let cast = cast.map_err(|error| error.within(&format!("row {}", number + 1)))?;
        Ok(cast.value().clone())
    });
    let scalars = scalars.collect::<Result<Vec<_>, SqlError>>()?;
    eris_exact::scalar::to_column(scalars).map_err(SqlError::from_datafusion)
}

/// The values, and what else the statement may name.
#[derive(Debug)]
struct OwnFrames {
    values: Arc<RecordBatch>,
    others: Option<Arc<dyn Frames>>,
}

impl Frames for OwnFrames {
    fn frame(&self, name: &str) -> Result<Option<Arc<dyn Frame>>, FrameError> {
        match (name == NAME, &self.others) {
            (true, _) => Ok(Some(Arc::new(Values(Arc::clone(&self.values))))),
            (false, Some(others)) => others.frame(name),
            (false, None) => Ok(None),
        }
    }
}

#[derive(Debug)]
struct Values(Arc<RecordBatch>);

impl Frame for Values {
    fn kind(&self) -> &str {
        "parameters"
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.0.num_rows() as u64)
    }

    fn read(&self, columns: &[usize], _: &[Condition]) -> Result<FrameBatches, FrameError> {
        let projected = self.0.project(columns).map_err(FrameError::new);
        Ok(Box::new(std::iter::once(projected)))
    }
}
