//! How wide rows may be, as far as a plan tells: `repeat('x', 200000)` makes each of its rows 200 kB wide.

use super::concatenation::CONCATENATION;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// Bytes of a value whose type does not say how wide it is.
const UNKNOWN: u64 = 32;

/// The bytes of each column of a node's rows, its children's given.
pub(super) fn of_node(node: &Arc<dyn ExecutionPlan>, children: &[Vec<u64>]) -> Vec<u64> {
    if let (Some(projection), [child]) = (node.downcast_ref::<ProjectionExec>(), children) {
        let schema = projection.input().schema();
        let exprs = projection.expr().iter();
        return exprs
            .map(|projected| of_expr(&projected.expr, &schema, child).value)
            .collect();
    }
    let schema = node.schema();
    if node.children().is_empty() {
        return of_leaf(node, &schema);
    }
    if let [child] = children
        && child.len() == schema.fields().len()
    {
        return child.clone();
    }
    // Columns of other nodes are known by their names.
    let fields = schema.fields().iter().map(|field| {
        let inputs = node.children().into_iter().zip(children);
        let widths = inputs.filter_map(|(input, widths)| {
            let place = input.schema().index_of(field.name()).ok()?;
            widths.get(place).copied()
        });
        widths.max().unwrap_or_else(|| of_type(field.data_type()))
    });
    fields.collect()
}

/// The most bytes that a row takes while a node evaluates its expressions over it.
pub(super) fn while_evaluated(node: &Arc<dyn ExecutionPlan>, child: &[u64]) -> Result<u64> {
    let [input] = node.children()[..] else {
        return Ok(0);
    };
    let schema = input.schema();
    let mut all = 0_u64;
    node.apply_expressions(&mut |expr| {
        all = all.saturating_add(of_expr(expr, &schema, child).most);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(all)
}

/// What a leaf's statistics say: its bytes, spread over the columns of which nothing else is known.
fn of_leaf(node: &Arc<dyn ExecutionPlan>, schema: &Schema) -> Vec<u64> {
    let mut widths: Vec<u64> = (schema.fields().iter())
        .map(|field| of_type(field.data_type()))
        .collect();
    let is_open =
        |field: &DataType| field.primitive_width().is_none() && *field != DataType::Boolean;
    let open = schema
        .fields()
        .iter()
        .filter(|field| is_open(field.data_type()))
        .count() as u64;
    if open == 0 {
        return widths;
    }
    let statistics = StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new());
    if let Ok(statistics) = statistics
        && let (Some(&bytes), Some(&rows)) = (
            known(&statistics.total_byte_size),
            known(&statistics.num_rows),
        )
        && rows > 0
    {
        let each = (bytes / rows) as u64 / open;
        for (width, field) in widths.iter_mut().zip(schema.fields()) {
            if is_open(field.data_type()) {
                *width = each.max(*width);
            }
        }
    }
    widths
}

fn known(statistic: &Precision<usize>) -> Option<&usize> {
    statistic.get_value()
}

fn of_type(data_type: &DataType) -> u64 {
    data_type
        .primitive_width()
        .map_or(UNKNOWN, |width| width as u64)
}

/// The bytes of an expression.
struct ExprWidth {
    /// Of its value.
    value: u64,
    /// Of its value or one within it, whichever takes most.
    most: u64,
}

fn of_expr(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, columns: &[u64]) -> ExprWidth {
    let parts: Vec<ExprWidth> = (expr.children().into_iter())
        .map(|part| of_expr(part, schema, columns))
        .collect();
    let parts_most = parts.iter().map(|part| part.most).max().unwrap_or(0);
    let value = own_width(expr, schema, columns, &parts);
    ExprWidth {
        value,
        most: parts_most.max(value),
    }
}

fn own_width(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    columns: &[u64],
    parts: &[ExprWidth],
) -> u64 {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return columns.get(column.index()).copied().unwrap_or(UNKNOWN);
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return of_constant(literal.value());
    }
    if let Ok(data_type) = expr.data_type(schema)
        && let Some(width) = data_type.primitive_width()
    {
        return width as u64;
    }
    let widest = parts.iter().map(|part| part.value).max().unwrap_or(UNKNOWN);
    let sum = || {
        parts
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.value))
    };
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::StringConcat => sum(),
            _ => widest,
        };
    }
    let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() else {
        return widest;
    };
    let number = |place: usize| constant(function, place).and_then(integer);
    let length = |place: usize| constant(function, place).map(of_constant);
    let first = parts.first().map_or(0, |part| part.value);
    let known = match function.name() {
        "repeat" => number(1).map(|times| first.saturating_mul(times)),
        "array_repeat" => number(1).map(|times| first.max(8).saturating_mul(times)),
        "lpad" | "rpad" => number(1),
        "concat" | "concat_ws" | CONCATENATION => Some(sum()),
        "replace" => length(1).zip(length(2)).map(|(from, to)| {
            let times = (to / from.max(1)).max(1);
            first.saturating_mul(times)
        }),
        "range" | "generate_series" => elements(function).map(|count| count.saturating_mul(8)),
        _ => None,
    };
    known.unwrap_or(widest)
}

fn constant(function: &ScalarFunctionExpr, place: usize) -> Option<&ScalarValue> {
    let literal = function.args().get(place)?.downcast_ref::<Literal>()?;
    Some(literal.value())
}

fn integer(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::Int64(Some(value)) => u64::try_from(*value).ok(),
        ScalarValue::Int32(Some(value)) => u64::try_from(*value).ok(),
        ScalarValue::UInt64(Some(value)) => Some(*value),
        _ => None,
    }
}

/// Elements of a series between constants.
fn elements(function: &ScalarFunctionExpr) -> Option<u64> {
    let bound = |place: usize| match constant(function, place)? {
        ScalarValue::Int64(value) => *value,
        _ => None,
    };
    let (from, to) = match function.args().len() {
        1 => (0, bound(0)?),
        _ => (bound(0)?, bound(1)?),
    };
    let step = match function.args().len() {
        3 => bound(2)?,
        _ => 1,
    };
    Some(from.abs_diff(to) / step.unsigned_abs().max(1))
}

fn of_constant(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, |text| text.len() as u64)
        }
        // A constant list is held once for each row, too.
        other => other.size() as u64,
    }
}
