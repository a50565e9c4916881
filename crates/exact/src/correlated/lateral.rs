//! LATERAL: a join whose right side refers to the rows of its left side.

use super::body::Body;
use super::domain::Domain;
use super::pull_up::{can_pull_up, has_inner_group};
use super::{outer_columns, same};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;
use std::sync::Arc;

/// The join with a right side that does not, if DataFusion makes none.
pub(super) fn unnest(join: Join, count: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let Some(subquery) = subquery(&join.right).cloned() else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let columns = outer_columns(&subquery)?;
    let is_kind = matches!(join.join_type, JoinType::Inner | JoinType::Left);
    if columns.is_empty() || !is_kind || is_pulled_up(&join, &subquery, &columns)? {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    *count += 1;
    let mut domain = Domain::of(&join.left, &subquery, format!("__domain_{count}"))?;
    let body = Body::of(&subquery, &mut domain)?;
    let mut columns: Vec<Expr> = body.outer.iter().cloned().map(Expr::Column).collect();
    for (inside, outside) in subquery
        .schema()
        .columns()
        .into_iter()
        .zip(join.right.schema().columns())
    {
        columns.push(Expr::Column(inside).alias_qualified(outside.relation, outside.name));
    }
    let right = Projection::try_new(columns, Arc::new(body.plan))?;
    let mut conditions = same(&domain.columns, &body.outer);
    for (left, right) in &join.on {
        conditions.push(left.clone().eq(right.clone()));
    }
    conditions.extend(join.filter.clone());
    let columns = join.schema.columns();
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.left))
        .join_on(LogicalPlan::Projection(right), join.join_type, conditions)?
        .project(columns.into_iter().map(Expr::Column))?
        .build()?;
    Ok(Transformed::yes(plan))
}

/// The subquery that a side of a join is.
pub(super) fn subquery(side: &LogicalPlan) -> Option<&Arc<LogicalPlan>> {
    match side {
        LogicalPlan::Subquery(subquery) => Some(&subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => subquery(&alias.input),
        _ => None,
    }
}

/// Whether DataFusion makes a join of it. It takes no HAVING, and no references further out.
fn is_pulled_up(join: &Join, subquery: &LogicalPlan, columns: &[Column]) -> Result<bool> {
    let left = join.left.schema();
    if !columns.iter().all(|column| left.has_column(column)) {
        return Ok(false);
    }
    if has_inner_group(subquery)? {
        return Ok(false);
    }
    let pull_up = PullUpCorrelatedExpr::new().with_need_handle_count_bug(true);
    let pulled = can_pull_up(subquery, pull_up)?;
    Ok(pulled.is_some_and(|pulled| pulled.pull_up_having_expr.is_none()))
}
