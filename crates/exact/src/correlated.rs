//! Subqueries that refer to the rows around them: every one of them becomes a join.
//!
//! **Stands for** DataFusion's decorrelation, which pulls equalities up to the join, and nothing else: a subquery that
//! is no aggregate, that is tied by an inequality, has LIMIT, UNION or a window, or stands in ORDER BY, is an error
//! there. What DataFusion can do stays with it. All else is unnested as in Neumann and Kemper, "Unnesting arbitrary
//! queries" (BTW 2015):
//!
//! ```text
//!   SELECT id, (SELECT max(a) FROM m WHERE m.b > p.id) FROM p
//!
//!   domain    the outer columns that the subquery refers to, each combination once    SELECT DISTINCT id FROM p
//!   body      the subquery for all of the domain at once, with the domain's columns   d.id, max(a)
//!                 domain d JOIN m ON m.b > d.id GROUP BY d.id
//!   host      p LEFT JOIN body ON p.id IS NOT DISTINCT FROM d.id                       its value is the body's column
//! ```
//!
//! [`domain`] makes domain and host, [`body`] carries the domain down through the subquery, [`single_row`] is the
//! function that rejects a second row of a value. Before all this, [`join_condition`] takes subqueries out of ON.

mod body;
mod body_join;
mod domain;
pub(crate) mod join_condition;
mod lateral;
mod ordered;
mod pull_up;
mod single_row;

pub(crate) use pull_up::is_pulled_up;

use crate::walk::rewrite_nodes;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use datafusion::optimizer::analyzer::AnalyzerRule;
use domain::Host;
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct UnnestSubqueries;

impl AnalyzerRule for UnnestSubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_subqueries(&plan)? {
            return Ok(plan);
        }
        let mut count = 0;
        rewrite_nodes(plan, &mut |node| match node {
            LogicalPlan::Join(join) => lateral::unnest(join, &mut count),
            LogicalPlan::Sort(sort) => match ordered::with_outer_columns(&sort)? {
                Some((sort, columns)) => {
                    let sorted = unnest(LogicalPlan::Sort(sort), &mut count)?;
                    sorted.map_data(|sorted| ordered::without_others(sorted, columns))
                }
                None => unnest(LogicalPlan::Sort(sort), &mut count),
            },
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_) => unnest(node, &mut count),
            other => Ok(Transformed::no(other)),
        })
    }

    fn name(&self) -> &str {
        "unnest_subqueries"
    }
}

/// Whether anything refers to a row around its query, or stands where DataFusion plans no subquery.
fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.contains_outer();
            found |= is_place_of_values(node)
                && expr.exists(|part| Ok(matches!(part, Expr::InSubquery(_))))?;
            Ok(until(found))
        })?;
        Ok(until(found))
    })?;
    Ok(found)
}

/// Whether DataFusion plans a subquery here only if it is a value.
fn is_place_of_values(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
}

fn until(found: bool) -> TreeNodeRecursion {
    match found {
        true => TreeNodeRecursion::Stop,
        false => TreeNodeRecursion::Continue,
    }
}

/// The outer columns that a subquery refers to itself, in their order. Subqueries inside have been unnested before, so
/// what is left in them refers to this subquery.
fn outer_columns(subquery: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    collect_outer_columns(subquery, &mut columns)?;
    Ok(columns)
}

fn collect_outer_columns(plan: &LogicalPlan, columns: &mut Vec<Column>) -> Result<()> {
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(_, column) = part
                && !columns.contains(column)
            {
                columns.push(column.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match plan {
        // What is left on the right side refers to the left one.
        LogicalPlan::Join(join) if lateral::subquery(&join.right).is_some() => {
            collect_outer_columns(&join.left, columns)
        }
        other => {
            let mut inputs = other.inputs().into_iter();
            inputs.try_for_each(|input| collect_outer_columns(input, columns))
        }
    }
}

/// A node whose subqueries have become columns of its input.
fn unnest(node: LogicalPlan, count: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            found |= is_ours(part, &node)?;
            Ok(until(found))
        })
    })?;
    if !found {
        return Ok(Transformed::no(node));
    }
    let input = node.inputs()[0].clone();
    let mut host = Host::of(input, count);
    let names = NamePreserver::new(&node);
    let original = node.clone();
    let rewritten = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|part| match is_ours(&part, &original)? {
            true => value_of(part, &mut host).map(Transformed::yes),
            false => Ok(Transformed::no(part)),
        })?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    let columns = original.schema().columns();
    let keeps_columns = matches!(
        original,
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)
    );
    let expressions = rewritten.data.expressions();
    let plan = rewritten
        .data
        .with_new_exprs(expressions, vec![host.plan()])?;
    let plan = match keeps_columns {
        true => plan,
        false => LogicalPlanBuilder::from(plan)
            .project(columns.into_iter().map(Expr::Column))?
            .build()?,
    };
    Ok(Transformed::yes(plan))
}

/// Whether it is a subquery that DataFusion cannot join to this node's input.
fn is_ours(expr: &Expr, node: &LogicalPlan) -> Result<bool> {
    let subquery = match expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::Exists(exists) => &exists.subquery,
        Expr::InSubquery(membership) => &membership.subquery,
        _ => return Ok(false),
    };
    let columns = outer_columns(&subquery.subquery)?;
    if columns.is_empty() {
        return Ok(is_place_of_values(node) && matches!(expr, Expr::InSubquery(_)));
    }
    let input = node.inputs()[0].schema();
    let is_near = columns.iter().all(|column| input.has_column(column));
    Ok(!is_near || !is_pulled_up(expr, node)?)
}

/// The conditions under which a row belongs to one of the domain: NULL is equal to NULL.
fn same<'a>(
    of_row: impl IntoIterator<Item = &'a Column>,
    of_domain: impl IntoIterator<Item = &'a Column>,
) -> Vec<Expr> {
    let pairs = of_row.into_iter().zip(of_domain);
    let same = pairs.map(|(left, right)| {
        let (left, right) = (Expr::from(left.clone()), Expr::from(right.clone()));
        let operator = Operator::IsNotDistinctFrom;
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
    });
    same.collect()
}

/// A column with what the subquery gives.
fn value_of(expr: Expr, host: &mut Host<'_>) -> Result<Expr> {
    match expr {
        Expr::ScalarSubquery(subquery) => host.value(&subquery.subquery),
        Expr::Exists(Exists { subquery, negated }) => {
            let found = host.exists(&subquery.subquery)?;
            Ok(if negated { !found } else { found })
        }
        // What remains of IN is TRUE or FALSE: its NULL is written beside it.
        Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        }) => {
            let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
            let inside = Expr::Column(Column::from((qualifier, field)));
            let outside = host.outer(*expr)?;
            let equal = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery))
                .filter(inside.eq(outside))?
                .build()?;
            let found = host.exists(&equal)?;
            Ok(if negated { !found } else { found })
        }
        other => Ok(other),
    }
}

/// TRUE for a row that was joined.
fn matched() -> Expr {
    lit(true)
}
