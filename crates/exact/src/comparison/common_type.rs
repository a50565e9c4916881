//! Values that become one column, but whose types have nothing in common, are rejected.
//!
//! **Stands for** DataFusion's type coercion, which takes the number in them for a count: beside a DATE, 1 becomes
//! 1970-01-02. That happens in CASE, UNION, INTERSECT, joins, `IN (SELECT …)`, and functions whose value is one of
//! their arguments. Operators, BETWEEN and lists are [`timestamp`](super::timestamp)'s.

use super::{ONE_OF, results};
use crate::types::{UUID_BYTES, sql_name};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result, not_impl_err, plan_err};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

/// Types that have nothing in common stand where one type is needed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} takes values of one type, not {left} and {right}")]
pub struct MixedTypes {
    /// What they stand in, such as `CASE`.
    pub place: String,
    /// SQL's name of one of the types.
    pub left: String,
    /// SQL's name of the other.
    pub right: String,
}

/// Rejects a UNION or a join of such types.
pub(crate) fn check_node(node: &LogicalPlan) -> Result<()> {
    match node {
        LogicalPlan::Union(union) => {
            for column in 0..union.schema.fields().len() {
                let fields = union.inputs.iter();
                let fields = fields.filter_map(|input| input.schema().fields().get(column));
                let types = fields.map(|field| field.data_type().clone());
                check("UNION", types)?;
            }
        }
        LogicalPlan::Join(join) => {
            for (left, right) in &join.on {
                let left = left.get_type(join.left.schema());
                let right = right.get_type(join.right.schema());
                check("JOIN", [left, right].into_iter().flatten())?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Rejects an expression over such types.
pub(crate) fn check_expr(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let types = |operands: Vec<&Expr>| {
        let types = operands.into_iter().map(|operand| operand.get_type(schema));
        // What has no type, such as a parameter, gets one later.
        types.flatten().collect::<Vec<_>>()
    };
    match expr {
        Expr::Case(case) => {
            check("CASE", types(results(case).collect()))?;
            if let Some(operand) = &case.expr {
                let whens = case.when_then_expr.iter().map(|(when, _)| &**when);
                check("CASE", types(whens.chain([&**operand]).collect()))?;
            }
            Ok(())
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op:
                op @ (Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq),
            right,
        }) => {
            let types = types(vec![left, right]);
            match types.iter().all(DataType::is_nested) {
                true => check(&op.to_string(), types),
                false => Ok(()),
            }
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let inside = subquery.subquery.schema().field(0).data_type().clone();
            check("IN", types(vec![expr]).into_iter().chain([inside]))
        }
        // DataFusion counts rows without a NULL in any, and panics in groups.
        Expr::AggregateFunction(function)
            if function.func.name() == "count" && function.params.args.len() > 1 =>
        {
            plan_err!(
                "count takes one expression, not {}",
                function.params.args.len()
            )
        }
        // It is one of the query around, as SQL has it. DataFusion counts the rows of the subquery.
        Expr::AggregateFunction(function)
            if function.params.args.iter().any(Expr::contains_outer)
                && !function.params.args.iter().any(Expr::any_column_refs) =>
        {
            not_impl_err!("an aggregate of the query around in a subquery")
        }
        Expr::WindowFunction(function) if ["lag", "lead"].contains(&function.fun.name()) => {
            let args = &function.params.args;
            let values = args.first().into_iter().chain(args.get(2));
            check(function.fun.name(), types(values.collect()))
        }
        Expr::ScalarFunction(function) if ONE_OF.contains(&function.func.name()) => {
            check(function.func.name(), types(function.args.iter().collect()))
        }
        _ => Ok(()),
    }
}

/// What values of different types may be in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Number,
    Date,
    Time,
    Interval,
    Uuid,
    Blob,
    List,
}

/// `None` for types that become those of others.
fn family(data_type: &DataType) -> Option<Family> {
    match data_type {
        DataType::Boolean => Some(Family::Number),
        number if number.is_numeric() => Some(Family::Number),
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Some(Family::Date),
        DataType::Time32(_) | DataType::Time64(_) => Some(Family::Time),
        DataType::Interval(_) | DataType::Duration(_) => Some(Family::Interval),
        DataType::FixedSizeBinary(UUID_BYTES) => Some(Family::Uuid),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Some(Family::Blob),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            Some(Family::List)
        }
        _ => None,
    }
}

fn check(place: &str, types: impl IntoIterator<Item = DataType>) -> Result<()> {
    let mut known: Vec<DataType> = Vec::new();
    for data_type in types {
        let mut pairs = known.iter();
        if let Some((left, right)) = pairs.find_map(|other| differing(other, &data_type)) {
            return Err(DataFusionError::External(Box::new(MixedTypes {
                place: place.to_owned(),
                left: sql_name(left, None),
                right: sql_name(right, None),
            })));
        }
        if !known.contains(&data_type) {
            known.push(data_type);
        }
    }
    Ok(())
}

/// The type that has the values of both; none if they have nothing in common.
pub fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right {
        return Some(left.clone());
    }
    if differing(left, right).is_some() {
        return None;
    }
    type_union_coercion(left, right)
}

/// These types, or those of parts of them, if they have nothing in common.
fn differing<'a>(left: &'a DataType, right: &'a DataType) -> Option<(&'a DataType, &'a DataType)> {
    if let (Some(left), Some(right)) = (element(left), element(right)) {
        return differing(left, right);
    }
    if let (DataType::Struct(left), DataType::Struct(right)) = (left, right) {
        let mut both = left.iter().zip(right);
        return both.find_map(|(left, right)| differing(left.data_type(), right.data_type()));
    }
    // A string that is not written as a constant is no value of these.
    let needs_cast = |of: &DataType| matches!(family(of), Some(Family::Uuid | Family::Blob));
    if needs_cast(left) && right.is_string() || left.is_string() && needs_cast(right) {
        return Some((left, right));
    }
    let families = (family(left), family(right));
    matches!(families, (Some(one), Some(other)) if one != other).then_some((left, right))
}

/// The type of a list's elements.
fn element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}
