//! `x IN (SELECT …)` where it matters whether the answer is FALSE or NULL.
//!
//! **Stands for** DataFusion's decorrelation: it makes a join that marks the rows with a match and takes all others for
//! FALSE. That is right where only TRUE lets a row pass, and wrong below NOT, in CASE and the like:
//!
//! ```text
//!  x IN (SELECT c …)   is  TRUE   if a c equals x
//!                          NULL   otherwise, if x is NULL and there is a row, or a c is NULL
//!                          FALSE  otherwise
//!
//!  written as   x IN (SELECT c …)
//!               OR (x IS NULL AND EXISTS (SELECT c …) OR EXISTS (SELECT c … WHERE c IS NULL)) AND NULL
//! ```
//!
//! There every IN and EXISTS is TRUE or FALSE, as the join has it. `x NOT IN` alone, between ANDs, has a join of its
//! own, which is exact.
//!
//! Such joins are made for conditions only. In a list of expressions, EXISTS is written as a count instead, which is a
//! scalar subquery: `(SELECT count(*) FROM …) > 0`.

use crate::correlated::is_pulled_up;
use crate::walk::{rewrite_expressions, rewrite_nodes, rewrite_parts};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct ExactMembership;

impl AnalyzerRule for ExactMembership {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |plan| {
            let filter = match plan {
                LogicalPlan::Filter(filter) => filter,
                LogicalPlan::Projection(_) => return in_list(plan),
                _ => return Ok(Transformed::no(plan)),
            };
            if !has_membership(&filter.predicate)? {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            }
            let schema = merge_schema(&[&filter.input]);
            let node = LogicalPlan::Filter(filter.clone());
            let conjuncts = split_conjunction_owned(filter.predicate)
                .into_iter()
                .map(|conjunct| match has_own_join(&conjunct, &node)? {
                    true => Ok(conjunct),
                    false => exact(conjunct, true, &schema),
                });
            let predicate = conjunction(conjuncts.collect::<Result<Vec<_>>>()?);
            let predicate = predicate.unwrap_or_else(|| lit(true));
            let filter = Filter::try_new(predicate, filter.input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        })
    }

    fn name(&self) -> &str {
        "exact_membership"
    }
}

/// Whether a condition is IN or NOT IN alone, of which DataFusion makes a join that knows NULL.
fn has_own_join(conjunct: &Expr, node: &LogicalPlan) -> Result<bool> {
    let membership = match conjunct {
        Expr::Not(inner) => inner,
        other => other,
    };
    match membership {
        Expr::InSubquery(inside) if inside.subquery.outer_ref_columns.is_empty() => Ok(true),
        Expr::InSubquery(_) => is_pulled_up(conjunct, node),
        _ => Ok(false),
    }
}

/// A list of expressions whose IN and EXISTS are counts.
fn in_list(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    rewrite_expressions(plan, &|expr, schema| match expr {
        Expr::InSubquery(membership) => {
            let whole = three_valued(membership, schema)?;
            rewrite_parts(whole, &mut |expr| counted(expr, schema)).map(Transformed::yes)
        }
        other => counted(other, schema),
    })
}

/// IN and EXISTS as comparisons of counts.
fn counted(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (mut subquery, condition, negated) = match expr {
        Expr::Exists(Exists { subquery, negated }) => (subquery, None, negated),
        Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        }) => (subquery, Some(*expr), negated),
        other => return Ok(Transformed::no(other)),
    };
    let mut plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery));
    if let Some(outside) = condition {
        let mut references = Vec::new();
        let outside = rewrite_parts(outside, &mut |expr| match expr {
            Expr::Column(column) => {
                let field = Arc::clone(schema.field_from_column(&column)?);
                let reference = Expr::OuterReferenceColumn(field, column);
                references.push(reference.clone());
                Ok(Transformed::yes(reference))
            }
            other => Ok(Transformed::no(other)),
        })?;
        let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
        let inside = Expr::Column(Column::from((qualifier, field)));
        plan = plan.filter(inside.eq(outside))?;
        subquery.outer_ref_columns.extend(references);
    }
    let plan = plan.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?;
    let count = Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan.build()?)));
    Ok(Transformed::yes(match negated {
        true => count.eq(lit(0_i64)),
        false => count.gt(lit(0_i64)),
    }))
}

fn has_membership(expr: &Expr) -> Result<bool> {
    let mut found = false;
    expr.apply(|expr| {
        found |= matches!(expr, Expr::InSubquery(_));
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// The expression with every IN made exact, except where FALSE does as well as NULL (`only_true`).
fn exact(expr: Expr, only_true: bool, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => Ok(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(exact(*left, only_true, schema)?),
            op,
            right: Box::new(exact(*right, only_true, schema)?),
        })),
        Expr::InSubquery(membership) => match only_true && !membership.negated {
            true => Ok(Expr::InSubquery(membership)),
            false => three_valued(membership, schema),
        },
        other => other
            .map_children(|child| exact(child, false, schema).map(Transformed::yes))
            .data(),
    }
}

fn three_valued(membership: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let InSubquery {
        expr,
        subquery,
        negated,
    } = membership;
    let exists = |subquery: Subquery| {
        Expr::Exists(Exists {
            subquery,
            negated: false,
        })
    };
    let mut unknown = Vec::new();
    if expr.nullable(schema)? {
        unknown.push(expr.clone().is_null().and(exists(subquery.clone())));
    }
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    if field.is_nullable() {
        let column = Expr::Column(Column::from((qualifier, field)));
        let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery))
            .filter(column.is_null())?
            .build()?;
        unknown.push(exists(subquery.with_plan(Arc::new(plan))));
    }
    let found = Expr::InSubquery(InSubquery {
        expr,
        subquery,
        negated: false,
    });
    let whole = match unknown.into_iter().reduce(Expr::or) {
        None => found,
        Some(unknown) => {
            let null = Expr::Literal(ScalarValue::Boolean(None), None);
            found.or(unknown.and(null))
        }
    };
    Ok(if negated {
        Expr::Not(Box::new(whole))
    } else {
        whole
    })
}
