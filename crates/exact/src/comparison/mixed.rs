//! What is compared or becomes one value, but has two types: the wider one is meant.
//!
//! ```text
//! DECIMAL beside DOUBLE      DOUBLE, as arithmetic on them is done
//! DATE beside TIMESTAMP      TIMESTAMP: the midnight with which the day begins
//! ```
//!
//! So it is in comparisons, CASE, COALESCE and the like, lists, UNION, and where columns are compared by a join:
//! USING, INTERSECT, EXCEPT, IN of a subquery. Lists and structs with such types in them are of the wider one, too.
//!
//! **Stands for** DataFusion's type coercion. It compares DECIMAL with DOUBLE as DECIMAL(30, 15), which fails for
//! large numbers, and a DATE with a TIMESTAMP in nanoseconds, which end in 2262. At a bare column it also keeps the
//! comparison from being made on the stored values. Numbers that are written with a point are DECIMAL, so `x > 0.5` is
//! such a case.

use super::{ONE_OF, of_one_type};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, InSubquery};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, Union, cast,
};
use std::mem::take;
use std::sync::Arc;

/// The operands as values of one type.
pub(crate) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::InSubquery(membership) = expr {
        return in_subquery(membership, schema);
    }
    let mut changed = false;
    for operands in operands(&mut expr, schema) {
        // What has no type, such as a parameter, gets one later.
        let types = operands.iter().map(|operand| operand.get_type(schema));
        let types: Vec<DataType> = types.flatten().collect();
        let Some(wider) = wider(types.iter()) else {
            continue;
        };
        for operand in operands {
            *operand = widened(take(operand), &wider, schema);
        }
        changed = true;
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// Functions that take values of one type, beside those whose value is one of them.
const OF_ONE_TYPE: [&str; 7] = [
    "make_array",
    "array_concat",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_except",
    "array_union",
];

/// The operands of an expression that are to be of one type.
fn operands<'a>(expr: &'a mut Expr, schema: &DFSchema) -> Vec<Vec<&'a mut Expr>> {
    let is_operator = |binary: &BinaryExpr| {
        is_comparison(binary.op)
            || binary.op == Operator::StringConcat && is_list(&binary.left, schema)
    };
    of_one_type(expr, &is_operator, &|name| {
        ONE_OF.contains(&name) || OF_ONE_TYPE.contains(&name)
    })
}

fn is_list(expr: &Expr, schema: &DFSchema) -> bool {
    let of = expr.get_type(schema);
    of.is_ok_and(|of| matches!(of, DataType::List(_)))
}

fn in_subquery(mut membership: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let types = member_types(&membership.expr, &membership.subquery, schema);
    let Some(wider) = wider(types.iter()) else {
        return Ok(Transformed::no(Expr::InSubquery(membership)));
    };
    let member = &mut *membership.expr;
    *member = widened(take(member), &wider, schema);
    let subquery = &mut membership.subquery;
    subquery.subquery = column_widened(Arc::clone(&subquery.subquery), &wider)?;
    Ok(Transformed::yes(Expr::InSubquery(membership)))
}

/// The types of what is looked for and of where.
fn member_types(expr: &Expr, subquery: &Subquery, schema: &DFSchema) -> Vec<DataType> {
    let inside = subquery.subquery.schema().fields().iter();
    let inside = inside.map(|field| field.data_type().clone());
    inside.chain(expr.get_type(schema)).collect()
}

/// The rows of a subquery of one column, with the wider type.
fn column_widened(subquery: Arc<LogicalPlan>, wider: &DataType) -> Result<Arc<LogicalPlan>> {
    let (table, field) = subquery.schema().qualified_field(0);
    let column = Expr::from((table, field));
    let value = widened(column, wider, subquery.schema());
    let value = value.alias_qualified(table.cloned(), field.name());
    let plan = LogicalPlanBuilder::from(subquery).project([value])?;
    Ok(Arc::new(plan.build()?))
}

/// A join whose pairs of columns have one type.
pub(crate) fn join(mut join: Join) -> Transformed<LogicalPlan> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let types = [
            left.get_type(join.left.schema()),
            right.get_type(join.right.schema()),
        ];
        if let Some(wider) = wider(types.iter().flatten()) {
            *left = widened(take(left), &wider, join.left.schema());
            *right = widened(take(right), &wider, join.right.schema());
            changed = true;
        }
    }
    Transformed::new_transformed(LogicalPlan::Join(join), changed)
}

/// A UNION whose inputs have the wider type wherever one of them has it.
pub(crate) fn union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let types = |column: usize| {
        let inputs = union.inputs.iter();
        inputs.filter_map(move |input| Some(input.schema().fields().get(column)?.data_type()))
    };
    let columns = 0..union.schema.fields().len();
    let wider: Vec<Option<DataType>> = columns.map(|column| wider(types(column))).collect();
    if wider.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let columns = input.schema().iter().zip(&wider).map(|(column, wider)| {
            let (table, field) = column;
            let expr = Expr::from(column);
            match wider {
                Some(wider) => widened(expr, wider, input.schema())
                    .alias_qualified(table.cloned(), field.name()),
                None => expr,
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

/// The type that is meant; `None` if there are not both types of such a pair.
pub(super) fn wider<'a>(types: impl Iterator<Item = &'a DataType>) -> Option<DataType> {
    let mut found: Option<DataType> = None;
    let mut known: Vec<&DataType> = Vec::new();
    for data_type in types {
        let with = |other: &DataType| wider_of(other, data_type);
        let wider = match &found {
            Some(found) => with(found),
            None => known.iter().find_map(|other| with(other)),
        };
        found = wider.or(found);
        if !known.contains(&data_type) {
            known.push(data_type);
        }
    }
    found
}

/// The wider of two types; `None` if they are no such pair, and have no such pair in them.
fn wider_of(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Date32, Float64, List, Struct, Timestamp};
    let is_pair = |narrow: fn(&DataType) -> bool, wide: fn(&DataType) -> bool| {
        narrow(one) && wide(other) || wide(one) && narrow(other)
    };
    match (one, other) {
        _ if is_pair(is_decimal, DataType::is_floating) => Some(Float64),
        (Date32, timestamp @ Timestamp(..)) | (timestamp @ Timestamp(..), Date32) => {
            Some(timestamp.clone())
        }
        (List(one), List(other)) => {
            let wider = wider_of(one.data_type(), other.data_type())?;
            let element = Field::clone(one).with_data_type(wider).with_nullable(true);
            Some(List(Arc::new(element)))
        }
        (Struct(one), Struct(other)) if one.len() == other.len() => {
            let mut changed = false;
            let fields = one.iter().zip(other).map(|(one, other)| {
                let wider = wider_of(one.data_type(), other.data_type());
                changed |= wider.is_some();
                let of = wider.unwrap_or_else(|| one.data_type().clone());
                Field::clone(one).with_data_type(of).with_nullable(true)
            });
            let fields: Vec<Field> = fields.collect();
            changed.then(|| Struct(fields.into()))
        }
        _ => None,
    }
}

/// A value of a narrower type as one of the wider.
fn widened(expr: Expr, wider: &DataType, schema: &DFSchema) -> Expr {
    match (wider, expr.get_type(schema)) {
        (DataType::Float64, _) => to_double(expr, schema),
        (_, Ok(of)) if wider_of(&of, wider).is_some() => cast(expr, wider.clone()),
        _ => expr,
    }
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
