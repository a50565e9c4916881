//! Where a column of a plan comes from.

use crate::plan::fragment_exec::FragmentExec;
use crate::plan::scan::Scan;
use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use eris_fragment::Expr;
use std::sync::Arc;

/// The scan that a column of a plan comes from as it is, and which of its columns it is.
pub(super) fn origin(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Option<(Arc<Scan>, usize)> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return match fragment.open_rows()?.get(column)? {
            Expr::Column(column) if *column < fragment.scan().table.types.len() => {
                Some((Arc::clone(fragment.scan()), *column))
            }
            _ => None,
        };
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column = projection
            .expr()
            .get(column)?
            .expr
            .downcast_ref::<Column>()?;
        return origin(projection.input(), column.index());
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let column = match &join.projection {
        Some(projection) => *projection.get(column)?,
        None => column,
    };
    if !matches!(join.join_type(), JoinType::Inner | JoinType::LeftSemi) {
        return None;
    }
    let left = join.left().schema().fields().len();
    match column.checked_sub(left) {
        None => origin(join.left(), column),
        Some(column) => origin(join.right(), column),
    }
}

/// The same of a key of a plan.
pub(super) fn origin_of(
    key: &PhysicalExprRef,
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(Arc<Scan>, usize)> {
    origin(plan, key.downcast_ref::<Column>()?.index())
}
