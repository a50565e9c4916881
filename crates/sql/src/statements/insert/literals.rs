//! VALUES of literals need no plan: their rows are arrays as soon as they are parsed.
//!
//! A script of INSERTs has megabytes of them, and each rule of a planner looks at each cell.

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Int64Builder, NullArray, RecordBatchOptions, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{Expr, Parens, Query, SetExpr, UnaryOperator, Value};
use std::sync::Arc;

/// Rows of a batch.
const ROWS: usize = 8_192;

/// A cell that says its value.
enum Literal<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    String(&'a str),
}

/// The rows of a query that is nothing but VALUES of literals, each column of one type; takes them out of it. None if
/// it is anything else.
pub(super) fn take(source: &mut Query) -> Option<SendableRecordBatchStream> {
    let is_plain = source.with.is_none()
        && source.order_by.is_none()
        && source.limit_clause.is_none()
        && source.fetch.is_none()
        && source.locks.is_empty();
    let SetExpr::Values(values) = source.body.as_mut() else {
        return None;
    };
    let width = values.rows.first()?.content.len();
    if !is_plain || values.rows.iter().any(|row| row.content.len() != width) {
        return None;
    }
    let schema = schema(&values.rows, width)?;
    let batch_schema = Arc::clone(&schema);
    let mut rows = std::mem::take(&mut values.rows).into_iter();
    let batches = std::iter::from_fn(move || {
        let rows: Vec<_> = rows.by_ref().take(ROWS).collect();
        let batch = batch(&batch_schema, &rows);
        (!rows.is_empty()).then(|| batch.map_err(DataFusionError::from))
    });
    let batches = futures::stream::iter(batches);
    Some(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

/// The columns of these rows, if all cells are literals and each column has one type.
fn schema(rows: &[Parens<Vec<Expr>>], width: usize) -> Option<SchemaRef> {
    let mut types = vec![DataType::Null; width];
    for row in rows {
        for (known, cell) in types.iter_mut().zip(&row.content) {
            let data_type = match literal(cell)? {
                Literal::Null => continue,
                Literal::Boolean(_) => DataType::Boolean,
                Literal::Integer(_) => DataType::Int64,
                Literal::String(_) => DataType::Utf8,
            };
            if *known == DataType::Null {
                *known = data_type;
            } else if *known != data_type {
                return None;
            }
        }
    }
    let fields = types.into_iter().enumerate().map(|(column, data_type)| {
        // As the planner calls them.
        Field::new(format!("column{}", column + 1), data_type, true)
    });
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// What a cell says; none if it is an expression, or a number that is no BIGINT.
fn literal(cell: &Expr) -> Option<Literal<'_>> {
    match cell {
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Literal::Null),
            Value::Boolean(flag) => Some(Literal::Boolean(*flag)),
            Value::Number(digits, _) => digits.parse().ok().map(Literal::Integer),
            Value::SingleQuotedString(text) => Some(Literal::String(text)),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match literal(expr)? {
            Literal::Integer(value) => value.checked_neg().map(Literal::Integer),
            _ => None,
        },
        _ => None,
    }
}

fn batch(schema: &SchemaRef, rows: &[Parens<Vec<Expr>>]) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        let cells = rows.iter().map(|row| literal(&row.content[place]));
        column(field.data_type(), cells.flatten(), rows.len())
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect(), &options)
}

/// The cells of one column, of this type or NULL.
fn column<'a>(
    data_type: &DataType,
    cells: impl Iterator<Item = Literal<'a>>,
    rows: usize,
) -> ArrayRef {
    match data_type {
        DataType::Boolean => {
            let mut values = BooleanBuilder::with_capacity(rows);
            for cell in cells {
                values.append_option(match cell {
                    Literal::Boolean(flag) => Some(flag),
                    _ => None,
                });
            }
            Arc::new(values.finish())
        }
        DataType::Int64 => {
            let mut values = Int64Builder::with_capacity(rows);
            for cell in cells {
                values.append_option(match cell {
                    Literal::Integer(value) => Some(value),
                    _ => None,
                });
            }
            Arc::new(values.finish())
        }
        DataType::Utf8 => {
            let mut values = StringBuilder::with_capacity(rows, 0);
            for cell in cells {
                values.append_option(match cell {
                    Literal::String(text) => Some(text),
                    _ => None,
                });
            }
            Arc::new(values.finish())
        }
        _ => Arc::new(NullArray::new(rows)),
    }
}
