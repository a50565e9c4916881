//! -0.0 and 0.0 are one value, also where rows are sorted, where distinct values are counted, in `CASE x WHEN`,
//! `nullif`, IN of constants, `arg_min` and `arg_max`, and in lists and structs that are compared or searched.
//!
//! **Stands for** DataFusion's sorts and its sets of distinct values, which go by the bits of a number: -0.0 comes
//! before 0.0 there, whatever the next sort key says. Here the keys get their zeros without a sign. Groups and joins
//! need no repair.

use super::{in_list, nested};
use crate::columns::ColumnFunction;
use crate::walk::{rewrite_expressions, rewrite_nodes};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{BinaryExpr, Case, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::mem::take;
use std::sync::{Arc, LazyLock};

/// The rule. Runs after DataFusion has found out the types of all operands.
#[derive(Debug)]
pub(crate) struct OneZero;

impl AnalyzerRule for OneZero {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |node| match node {
            LogicalPlan::Sort(mut sort) => {
                let schema = merge_schema(&[&sort.input]);
                let keys = sort.expr.iter_mut().map(|key| &mut key.expr);
                let changed = one_zero(keys, &schema);
                Ok(Transformed::new_transformed(
                    LogicalPlan::Sort(sort),
                    changed,
                ))
            }
            LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
                let schema = Arc::clone(distinct.input.schema());
                let changed = one_zero(distinct.on_expr.iter_mut(), &schema);
                let keys = distinct.sort_expr.iter_mut().flatten();
                let changed = one_zero(keys.map(|key| &mut key.expr), &schema) | changed;
                let node = LogicalPlan::Distinct(Distinct::On(distinct));
                Ok(Transformed::new_transformed(node, changed))
            }
            other => rewrite_expressions(other, &|expr, schema| Ok(rewrite(expr, schema))),
        })
    }

    fn name(&self) -> &str {
        "one_zero"
    }
}

fn rewrite(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let changed = match &mut expr {
        Expr::WindowFunction(function) => {
            let params = &mut function.params;
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let sorted = one_zero(keys, schema);
            let distinct = params.args.iter_mut().filter(|_| params.distinct);
            let parts = params.partition_by.iter_mut().chain(distinct);
            one_zero(parts, schema) | sorted
        }
        Expr::AggregateFunction(function) => {
            let params = &mut function.params;
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let sorted = one_zero(keys, schema);
            let is_by_key = BY_KEY.contains(&function.func.name());
            let by_key = params.args.iter_mut().skip(1).filter(|_| is_by_key);
            let sorted = one_zero(by_key, schema) | sorted;
            let distinct = params.args.iter_mut().filter(|_| params.distinct);
            one_zero(distinct, schema) | sorted
        }
        Expr::Case(Case {
            expr: Some(operand),
            when_then_expr,
            ..
        }) => {
            let whens = when_then_expr.iter_mut().map(|(when, _)| &mut **when);
            one_zero(whens.chain([&mut **operand]), schema)
        }
        Expr::ScalarFunction(function) if function.func.name() == "nullif" => {
            one_zero(function.args.iter_mut(), schema)
        }
        Expr::ScalarFunction(function) if SEARCHES.contains(&function.func.name()) => {
            one_zero(function.args.iter_mut(), schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() && is_nested(left, schema) =>
        {
            one_zero([&mut **left, &mut **right].into_iter(), schema)
        }
        // Of a column, IN compares as `=` does.
        Expr::InList(InList { expr, list, .. }) if expr.column_refs().is_empty() => {
            one_zero(list.iter_mut().chain([&mut **expr]), schema)
        }
        _ => false,
    };
    // Two other repairs share this walk, for they come when types are known, too.
    if let Some(written) = in_list::written_out(&expr) {
        return Transformed::yes(written);
    }
    match nested::compared(&expr, schema) {
        Some(compared) => Transformed::yes(compared),
        None => Transformed::new_transformed(expr, changed),
    }
}

/// Aggregates whose second argument is compared.
const BY_KEY: [&str; 2] = ["max_by", "min_by"];

/// Functions that compare elements of lists.
const SEARCHES: [&str; 7] = [
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_position",
    "array_positions",
    "array_intersect",
    "array_remove_all",
];

fn is_nested(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of.is_nested())
}

/// Whether there are floating-point numbers in values of the type.
fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(element) => has_floats(element.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        other => other.is_floating(),
    }
}

/// Takes the sign from the zeros of floating-point keys. Whether there are such keys.
fn one_zero<'a>(keys: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys {
        let is_float = key.get_type(schema).is_ok_and(|of| has_floats(&of));
        match key {
            Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 => *zero = 0.0,
            Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 => *zero = 0.0,
            Expr::Literal(number, _) if !number.data_type().is_nested() => {}
            _ if is_float && !is_unsigned(key) => {
                *key = FUNCTION.call(vec![take(key)]);
                changed = true;
            }
            _ => {}
        }
    }
    changed
}

fn is_unsigned(key: &Expr) -> bool {
    matches!(key, Expr::ScalarFunction(function) if function.func.name() == UNSIGNED_ZERO)
}

/// The name of the function: the same number, and 0.0 for -0.0.
pub(crate) const UNSIGNED_ZERO: &str = "unsigned_zero";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let values = |column: &ArrayRef| Ok(without_sign(column));
    Arc::new(ColumnFunction::scalar(
        UNSIGNED_ZERO,
        DataType::clone,
        values,
    ))
});

fn without_sign(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        // -0.0 + 0.0 is 0.0.
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            Arc::new(numbers.unary::<_, Float32Type>(|number| number + 0.0))
        }
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            Arc::new(numbers.unary::<_, Float64Type>(|number| number + 0.0))
        }
        DataType::List(element) if has_floats(element.data_type()) => {
            let (_, offsets, elements, nulls) = array.as_list::<i32>().clone().into_parts();
            let element = Arc::clone(element);
            Arc::new(ListArray::new(
                element,
                offsets,
                without_sign(&elements),
                nulls,
            ))
        }
        DataType::Struct(fields) if has_floats(array.data_type()) => {
            let (_, columns, nulls) = array.as_struct().clone().into_parts();
            let columns = columns.iter().map(without_sign).collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        _ => Arc::clone(array),
    }
}
