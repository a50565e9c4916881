//! Which subqueries stay with DataFusion: those whose conditions it can pull up into a join.

use super::{outer_columns, until};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, check_subquery_expr};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;

/// Whether DataFusion makes a join of the subquery of an expression of this node.
pub(crate) fn is_pulled_up(expr: &Expr, node: &LogicalPlan) -> Result<bool> {
    let is_filter = matches!(node, LogicalPlan::Filter(_));
    let is_value = matches!(expr, Expr::ScalarSubquery(_));
    let is_place = is_filter || is_value && matches!(node, LogicalPlan::Projection(_));
    if !is_place {
        return Ok(false);
    }
    let (subquery, pull_up) = match expr {
        Expr::ScalarSubquery(subquery) => {
            let is_sound = check_subquery_expr(node, &subquery.subquery, expr).is_ok();
            if !is_sound || has_inner_group(&subquery.subquery)? {
                return Ok(false);
            }
            let pull_up = PullUpCorrelatedExpr::new().with_need_handle_count_bug(true);
            (subquery, pull_up)
        }
        Expr::Exists(exists) => {
            if has_one_group(&exists.subquery.subquery)? {
                return Ok(false);
            }
            let pull_up = PullUpCorrelatedExpr::new().with_exists_sub_query(true);
            (&exists.subquery, pull_up)
        }
        Expr::InSubquery(membership) => {
            // Below NOT, and so wherever the optimizer may make NOT IN of it, it would become a join that takes one
            // pair of columns, while what ties the subquery is another.
            let is_condition = match node {
                LogicalPlan::Filter(filter) => split_conjunction(&filter.predicate).contains(&expr),
                _ => false,
            };
            let rows = &membership.subquery.subquery;
            if membership.negated || !is_condition || has_one_group(rows)? {
                return Ok(false);
            }
            let Some(inside) = membership.subquery.subquery.head_output_expr()? else {
                return Ok(false);
            };
            let equal = membership.expr.as_ref().clone().eq(inside);
            let pull_up = PullUpCorrelatedExpr::new().with_in_predicate_opt(Some(equal));
            (&membership.subquery, pull_up)
        }
        _ => return Ok(false),
    };
    can_pull_up(&subquery.subquery, pull_up).map(|pulled| pulled.is_some())
}

/// What DataFusion has pulled up, unless it cannot.
pub(super) fn can_pull_up(
    subquery: &LogicalPlan,
    mut pull_up: PullUpCorrelatedExpr,
) -> Result<Option<PullUpCorrelatedExpr>> {
    if is_below_outer_join(subquery)? {
        return Ok(None);
    }
    let Ok(pulled) = subquery.clone().rewrite(&mut pull_up) else {
        return Ok(None);
    };
    // What is unnested is not looked at.
    let is_whole = pull_up.can_pull_up && outer_columns(&pulled.data)?.is_empty();
    Ok(is_whole.then_some(pull_up))
}

/// Whether there is such a group with more above it than a list. DataFusion forgets there that it exists for no rows.
pub(super) fn has_inner_group(subquery: &LogicalPlan) -> Result<bool> {
    let mut top = subquery;
    while let LogicalPlan::Projection(list) = top {
        top = &list.input;
    }
    match top {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            has_one_group(&aggregate.input)
        }
        other => has_one_group(other),
    }
}

/// Whether rows that outer columns choose are one group, which is there for no rows, too.
fn has_one_group(subquery: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    subquery.apply(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            let is_one = aggregate.group_expr.is_empty();
            found |= is_one && !outer_columns(&aggregate.input)?.is_empty();
        }
        Ok(until(found))
    })?;
    Ok(found)
}

/// Whether a side of a join refers to outer columns whose rows are not all in the result as they are: what is pulled up
/// from there would take other rows away, too.
fn is_below_outer_join(subquery: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    subquery.apply(|node| {
        if let LogicalPlan::Join(join) = node {
            use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi};
            let (by_left, by_right) = match join.join_type {
                Inner => (false, false),
                Full => (true, true),
                Left | LeftSemi | LeftAnti | LeftMark => (false, true),
                _ => (true, false),
            };
            found |= by_left && !outer_columns(&join.left)?.is_empty()
                || by_right && !outer_columns(&join.right)?.is_empty();
        }
        Ok(until(found))
    })?;
    Ok(found)
}
