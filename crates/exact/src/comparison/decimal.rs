//! DECIMAL against DOUBLE is compared as DOUBLE, as arithmetic on them is done. What is one of both is DOUBLE: in
//! CASE, in COALESCE and the like, and in UNION. So it is where columns are compared by a join: USING, INTERSECT,
//! EXCEPT, IN of a subquery.
//!
//! **Stands for** DataFusion's type coercion, which compares as DECIMAL(30, 15). That fails for large numbers. At a
//! bare column it also keeps the comparison from being made on the stored values. Numbers that are written with a
//! point are DECIMAL, so `x > 0.5` is such a case.

use super::{ONE_OF, results};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, InSubquery};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union, cast,
};
use std::sync::Arc;

/// DECIMAL beside DOUBLE as DOUBLE.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let double = |expr: Box<Expr>| Box::new(to_double(*expr, schema));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_comparison(op) && mixed([&*left, &*right], schema) =>
        {
            let (left, right) = (double(left), double(right));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) if mixed([&*expr, &*low, &*high], schema) => {
            let (expr, low, high) = (double(expr), double(low), double(high));
            Transformed::yes(Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }))
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) if mixed(std::iter::once(&*expr).chain(&list), schema) => {
            let list = list
                .into_iter()
                .map(|value| to_double(value, schema))
                .collect();
            let expr = double(expr);
            Transformed::yes(Expr::InList(InList {
                expr,
                list,
                negated,
            }))
        }
        Expr::Case(mut case) if mixed(results(&case), schema) => {
            for (_, then) in &mut case.when_then_expr {
                **then = to_double(std::mem::take(&mut **then), schema);
            }
            if let Some(otherwise) = &mut case.else_expr {
                **otherwise = to_double(std::mem::take(&mut **otherwise), schema);
            }
            Transformed::yes(Expr::Case(case))
        }
        Expr::ScalarFunction(mut function)
            if ONE_OF.contains(&function.func.name()) && mixed(&function.args, schema) =>
        {
            for argument in &mut function.args {
                *argument = to_double(std::mem::take(argument), schema);
            }
            Transformed::yes(Expr::ScalarFunction(function))
        }
        Expr::InSubquery(InSubquery {
            expr,
            mut subquery,
            negated,
        }) if mixed_types(member_types(&expr, &subquery, schema).iter()) => {
            let expr = double(expr);
            subquery.subquery = column_as_double(subquery.subquery)?;
            Transformed::yes(Expr::InSubquery(InSubquery {
                expr,
                subquery,
                negated,
            }))
        }
        other => Transformed::no(other),
    })
}

/// The types of what is looked for and of where.
fn member_types(expr: &Expr, subquery: &Subquery, schema: &DFSchema) -> Vec<DataType> {
    let inside = subquery.subquery.schema().fields().iter();
    let inside = inside.map(|field| field.data_type().clone());
    inside.chain(expr.get_type(schema)).collect()
}

/// The rows of a subquery of one column, with DOUBLE for DECIMAL.
fn column_as_double(subquery: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let (table, field) = subquery.schema().qualified_field(0);
    let column = Expr::from((table, field));
    let double = to_double(column, subquery.schema()).alias_qualified(table.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(subquery).project([double])?;
    Ok(Arc::new(plan.build()?))
}

/// A join whose pairs of columns are DOUBLE where one of both is.
pub(crate) fn join_as_double(mut join: Join) -> Transformed<LogicalPlan> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let types = [
            left.get_type(join.left.schema()),
            right.get_type(join.right.schema()),
        ];
        if mixed_types(types.iter().flatten()) {
            *left = to_double(std::mem::take(left), join.left.schema());
            *right = to_double(std::mem::take(right), join.right.schema());
            changed = true;
        }
    }
    Transformed::new_transformed(LogicalPlan::Join(join), changed)
}

/// A UNION whose inputs have DOUBLE wherever one of them has it beside DECIMAL.
pub(crate) fn union_as_double(union: Union) -> Result<Transformed<LogicalPlan>> {
    let types = |column: usize| {
        let inputs = union.inputs.iter();
        inputs.filter_map(move |input| Some(input.schema().fields().get(column)?.data_type()))
    };
    let columns = 0..union.schema.fields().len();
    let mixed: Vec<bool> = columns.map(|column| mixed_types(types(column))).collect();
    if !mixed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let columns = input.schema().iter().zip(&mixed).map(|(column, mixed)| {
            let (table, field) = column;
            let expr = Expr::from(column);
            match *mixed && is_decimal(field.data_type()) {
                true => cast(expr, DataType::Float64).alias_qualified(table.cloned(), field.name()),
                false => expr,
            }
        });
        let plan = LogicalPlanBuilder::from(Arc::clone(input)).project(columns)?;
        Ok(Arc::new(plan.build()?))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let union = Union::try_new_with_loose_types(inputs)?;
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Whether there are both DECIMAL and floating-point operands.
fn mixed<'a>(operands: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> bool {
    let types = operands
        .into_iter()
        .filter_map(|operand| operand.get_type(schema).ok());
    mixed_types(types.collect::<Vec<_>>().iter())
}

fn mixed_types<'a>(types: impl Iterator<Item = &'a DataType>) -> bool {
    let (mut decimal, mut float) = (false, false);
    for data_type in types {
        decimal |= is_decimal(data_type);
        float |= data_type.is_floating();
    }
    decimal && float
}

pub(crate) fn is_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

/// The number as DOUBLE if it is DECIMAL.
pub(crate) fn to_double(expr: Expr, schema: &DFSchema) -> Expr {
    // A constant is the number next to what was written; dividing digits by a power of ten would round twice.
    if let Expr::Literal(ScalarValue::Decimal128(Some(digits), _, scale), metadata) = &expr
        && let Ok(number) = format!("{digits}e{}", -i16::from(*scale)).parse::<f64>()
    {
        return Expr::Literal(ScalarValue::Float64(Some(number)), metadata.clone());
    }
    match expr.get_type(schema) {
        Ok(data_type) if is_decimal(&data_type) => cast(expr, DataType::Float64),
        _ => expr,
    }
}
