//! Joins inside a subquery: the domain goes down one side, or both.

use super::body::{Body, bound, cannot, columns_of, refers};
use super::domain::Domain;
use super::same;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, JoinType, LogicalPlan, Projection};
use std::sync::Arc;

/// The body of a join.
pub(super) fn join(operands: &Join, domain: &mut Domain) -> Result<Body> {
    let left_refers = refers(&operands.left, domain)?;
    let right_refers = refers(&operands.right, domain)?;
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi};
    // The side of which every row is in the result, or none twice, carries the domain alone if it can.
    let (by_left, by_right) = match operands.join_type {
        Inner => (!right_refers, !left_refers),
        Full => return cannot("FULL JOIN"),
        Left | LeftSemi | LeftAnti | LeftMark => (!right_refers, false),
        _ => (false, !left_refers),
    };
    if by_left {
        let left = Body::of(&operands.left, domain)?;
        let right = operands.right.as_ref().clone();
        let plan = rebuilt(operands, domain, &left.outer, left.plan, right, &[])?;
        return Ok(Body {
            plan,
            outer: left.outer,
        });
    }
    if by_right {
        let right = Body::of(&operands.right, domain)?;
        let left = operands.left.as_ref().clone();
        let plan = rebuilt(operands, domain, &right.outer, left, right.plan, &[])?;
        return Ok(Body {
            plan,
            outer: right.outer,
        });
    }
    let left = Body::of(&operands.left, domain)?;
    let right = Body::of(&operands.right, domain)?;
    let is_of_left = matches!(
        operands.join_type,
        Inner | Left | LeftSemi | LeftAnti | LeftMark
    );
    let pairs = left.outer.iter().cloned().zip(right.outer.iter().cloned());
    let pairs: Vec<(Column, Column)> = pairs.collect();
    let outer = if is_of_left { left.outer } else { right.outer };
    let joined = rebuilt(operands, domain, &outer, left.plan, right.plan, &pairs)?;
    // The other side's copy of the domain goes.
    let mut columns: Vec<Expr> = outer.iter().cloned().map(Expr::Column).collect();
    columns.extend(columns_of(&LogicalPlan::Join(operands.clone())));
    let plan = Projection::try_new(columns, Arc::new(joined))?;
    Ok(Body {
        plan: LogicalPlan::Projection(plan),
        outer,
    })
}

/// The join over other inputs. `pairs` are equal columns of the domain; NULL equals NULL there.
fn rebuilt(
    operands: &Join,
    domain: &Domain,
    outer: &[Column],
    left: LogicalPlan,
    right: LogicalPlan,
    pairs: &[(Column, Column)],
) -> Result<LogicalPlan> {
    let bind = |expr: &Expr| bound(expr.clone(), domain, outer);
    let mut on = Vec::new();
    for (left, right) in &operands.on {
        on.push((bind(left)?, bind(right)?));
    }
    let filter = operands.filter.as_ref().map(bind).transpose()?;
    let mut conditions = Vec::from_iter(filter);
    for (of_left, of_right) in pairs {
        let (left_key, right_key) = (Expr::from(of_left.clone()), Expr::from(of_right.clone()));
        let has_null = left_key.nullable(left.schema())? || right_key.nullable(right.schema())?;
        match has_null {
            true => conditions.extend(same([of_left], [of_right])),
            false => on.push((left_key, right_key)),
        }
    }
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        conjunction(conditions),
        operands.join_type,
        operands.join_constraint,
        operands.null_equality,
        operands.null_aware,
    )?;
    Ok(LogicalPlan::Join(join))
}
