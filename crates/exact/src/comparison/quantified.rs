//! `x > ANY (SELECT …)`, `x <= ALL (SELECT …)` and the like.
//!
//! **Stands for** DataFusion's rule, which looks for a row that makes the comparison TRUE, FALSE or NULL. It comes too
//! late for lists of expressions, and no join is made for a comparison that is not of equality. The extremes of the
//! subquery tell as much, and are asked for once:
//!
//! ```text
//!  x = ANY (S)    x IN (S)              x <> ALL (S)    x NOT IN (S)
//!
//!  x > ANY (S)    CASE WHEN no row in S THEN FALSE        x > ALL (S)    CASE WHEN no row in S THEN TRUE
//!                      WHEN x > min(S) THEN TRUE                              WHEN NOT x > max(S) THEN FALSE
//!                      WHEN x or one of S is NULL THEN NULL                   WHEN x or one of S is NULL THEN NULL
//!                      ELSE FALSE END                                         ELSE TRUE END
//! ```

use datafusion::common::{Column, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::expr::{BinaryExpr, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, Operator, Subquery, lit, not, when};
use std::sync::Arc;

/// Such a comparison without ANY and ALL.
pub(crate) fn by_extremes(comparison: SetComparison) -> Result<Expr> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let SetComparison {
        expr,
        subquery,
        op,
        quantifier,
    } = comparison;
    let is_all = quantifier == SetQuantifier::All;
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let inside = Expr::Column(Column::from((qualifier, field)));
    let value = |aggregate: Expr| of_subquery(&subquery, aggregate);
    let compared = |op, extreme: Expr| -> Result<Expr> {
        let right = Box::new(value(extreme)?);
        Ok(Expr::BinaryExpr(BinaryExpr::new(expr.clone(), op, right)))
    };
    let least = || min(inside.clone());
    let greatest = || max(inside.clone());
    // What decides the whole, without NULL: it is TRUE of ANY, or FALSE of ALL.
    let decided = match (op, is_all) {
        (Eq, false) | (NotEq, true) => {
            return Ok(Expr::InSubquery(InSubquery {
                expr,
                subquery,
                negated: is_all,
            }));
        }
        (Gt | GtEq, false) => compared(op, least())?,
        (Lt | LtEq, false) => compared(op, greatest())?,
        (Gt | GtEq, true) => not(compared(op, greatest())?),
        (Lt | LtEq, true) => not(compared(op, least())?),
        // Of two different values, one is not the same as x.
        _ => compared(NotEq, least())?.or(compared(NotEq, greatest())?),
    };
    let rows = value(count(lit(1_i64)))?;
    let has_null = value(count(inside))?.not_eq(rows.clone());
    let null = Expr::Literal(ScalarValue::Boolean(None), None);
    when(rows.eq(lit(0_i64)), lit(is_all))
        .when(decided, lit(!is_all))
        .when(expr.is_null().or(has_null), null)
        .otherwise(lit(is_all))
}

/// An aggregate over all rows of a subquery.
fn of_subquery(subquery: &Subquery, aggregate: Expr) -> Result<Expr> {
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    // Its own name might be that of an aggregate outside.
    let plan = plan.aggregate(Vec::<Expr>::new(), vec![aggregate.alias("of all rows")])?;
    let subquery = subquery.with_plan(Arc::new(plan.build()?));
    Ok(Expr::ScalarSubquery(subquery))
}
