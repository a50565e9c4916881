//! Expressions of one column, which can be computed once for each of its values.

use crate::plan::parameter::PlanParameter;
use datafusion::arrow::array::{ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExprRef, ScalarFunctionExpr};
use std::sync::Arc;

/// The only column that an expression depends on, if it always says the same of it.
pub(crate) fn only_column(expr: &PhysicalExprRef) -> Result<Option<usize>> {
    let (mut only, mut fits) = (None, true);
    expr.apply(|part| {
        if let Some(column) = part.downcast_ref::<Column>() {
            fits &= *only.get_or_insert(column.index()) == column.index();
        }
        let function = part.downcast_ref::<ScalarFunctionExpr>();
        fits &= function.is_none_or(|of| !of.fun().inner().is::<PlanParameter>());
        fits &= !part.is_volatile_node();
        Ok(match fits {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })?;
    Ok(only.filter(|_| fits))
}

/// The expression of its only column at another place.
pub(crate) fn on_column(
    expr: &PhysicalExprRef,
    name: &str,
    place: usize,
) -> Result<PhysicalExprRef> {
    let moved = Arc::clone(expr).transform_up(|part| {
        Ok(match part.is::<Column>() {
            true => Transformed::yes(Arc::new(Column::new(name, place)) as _),
            false => Transformed::no(part),
        })
    });
    moved.data()
}

/// What the expression of its only column, which is at a place of a schema, says of NULL; `None` if it fails.
pub(crate) fn of_null(
    expr: &PhysicalExprRef,
    place: usize,
    schema: &Schema,
) -> Result<Option<ArrayRef>> {
    let data_type = schema.field(place).data_type();
    let schema = Schema::new(vec![Field::new("value", data_type.clone(), true)]);
    let rows = RecordBatch::try_new(Arc::new(schema), vec![new_null_array(data_type, 1)])?;
    let result = on_column(expr, "value", 0)?.evaluate(&rows);
    Ok(result.and_then(|value| value.into_array(1)).ok())
}
