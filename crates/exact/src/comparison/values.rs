//! The types of VALUES, when those of their cells have become others.
//!
//! **Stands for** DataFusion's types of VALUES, which are found when they are parsed and stay. Beside a number with a
//! point, which is DECIMAL, a DOUBLE is cast to DECIMAL(30, 15) there: large numbers fail, and small ones become 0.
//! Here such a column is DOUBLE. Timestamps beside dates are of nanoseconds there, which end in 2262. Here they stay
//! what they are.

use super::mixed::{is_decimal, to_double, wider};
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Values, cast};
use std::sync::Arc;

/// VALUES with the types that their cells have. Comes when these have been rewritten.
pub(crate) fn retype(mut values: Values) -> Result<Transformed<LogicalPlan>> {
    let mut fields = values.schema.fields().to_vec();
    let mut changed = false;
    for (column, field) in fields.iter_mut().enumerate() {
        let known = field.data_type();
        let cells = values.values.iter().map(|row| &row[column]);
        let Some(data_type) = column_type(cells, known, &values.schema) else {
            continue;
        };
        for row in &mut values.values {
            let cell = uncast(std::mem::take(&mut row[column]), known, &values.schema);
            let cell = match data_type {
                DataType::Float64 => to_double(cell, &values.schema),
                _ => cell,
            };
            row[column] = match cell.get_type(&values.schema)? {
                own if own == data_type => cell,
                _ => cast(cell, data_type.clone()),
            };
        }
        *field = Arc::new(Field::new(field.name(), data_type, field.is_nullable()));
        changed = true;
    }
    if changed {
        let schema = DFSchema::from_unqualified_fields(fields.into(), Default::default())?;
        values.schema = Arc::new(schema);
    }
    let values = LogicalPlan::Values(values);
    Ok(Transformed::new_transformed(values, changed))
}

/// The type that a column has to have; `None` if it is the one that is known.
fn column_type<'a>(
    cells: impl Iterator<Item = &'a Expr>,
    known: &DataType,
    schema: &DFSchema,
) -> Option<DataType> {
    let types = cells.filter_map(|cell| within(cell, known, schema).get_type(schema).ok());
    let types: Vec<DataType> = types.collect();
    let is_other = |own: &&DataType| *own != known && !own.is_null();
    let other = types.iter().find(is_other)?;
    let is_number = |own: &DataType| own.is_numeric() || own.is_null();
    match other {
        _ if types.iter().all(is_number) && types.iter().any(DataType::is_floating) => {
            (!known.is_floating()).then_some(DataType::Float64)
        }
        // A date with an interval.
        DataType::Timestamp(..) if *known == DataType::Date32 => Some(other.clone()),
        _ if known.is_nested() => wider(types.iter()),
        _ if is_fine_timestamp(known) => {
            let mut timestamps = types.iter();
            let timestamp = timestamps.find(|own| matches!(own, DataType::Timestamp(..)));
            timestamp.filter(|own| *own != known).cloned()
        }
        _ => None,
    }
}

/// A cell without the cast to DECIMAL that a DOUBLE got beside a DECIMAL, or to nanoseconds that a date or timestamp
/// got.
fn within<'a>(cell: &'a Expr, known: &DataType, schema: &DFSchema) -> &'a Expr {
    match cell {
        Expr::Cast(Cast { expr, field }) if field.data_type() == known => {
            let is_widened = |own: DataType| match own {
                DataType::Date32 | DataType::Timestamp(..) => is_fine_timestamp(known),
                own if own.is_nested() => true,
                own => own.is_floating() && is_decimal(known),
            };
            match expr.get_type(schema).is_ok_and(is_widened) {
                true => expr,
                false => cell,
            }
        }
        _ => cell,
    }
}

fn is_fine_timestamp(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Nanosecond, _))
}

fn uncast(cell: Expr, known: &DataType, schema: &DFSchema) -> Expr {
    within(&cell, known, schema).clone()
}
