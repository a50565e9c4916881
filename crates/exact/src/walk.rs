//! The walks over plans and their expressions, which most analyzer rules are.
//!
//! What is done at a node is called through a pointer, so that DataFusion's walks are compiled once: they take a type
//! parameter, and each one is some thousand lines of machine code for every rule otherwise.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Union};
use std::sync::Arc;

/// Rewrites all nodes of a plan and of its subqueries, inputs first. What is rewritten may have other types.
pub(crate) fn rewrite_nodes(
    plan: LogicalPlan,
    rewrite: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let mut any_changed = false;
    let mut rewrite = |node| {
        // An input may have other types now.
        let node = if any_changed { retyped(node)? } else { node };
        let rewritten = rewrite(node)?;
        any_changed |= rewritten.transformed;
        match rewritten.transformed {
            true => rewritten.map_data(retyped),
            false => Ok(rewritten),
        }
    };
    let rewrite: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>> = &mut rewrite;
    plan.transform_up_with_subqueries(rewrite).data()
}

/// A node with the types that its inputs and expressions have.
fn retyped(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::Union(union) => {
            let union = Union::try_new_with_loose_types(union.inputs)?;
            Ok(LogicalPlan::Union(union))
        }
        // Its columns have the types of the first rows.
        LogicalPlan::RecursiveQuery(mut query) => {
            let (first, step) = (query.static_term.schema(), query.recursive_term.schema());
            let mut both = first.fields().iter().zip(step.fields());
            if both.any(|(first, step)| first.data_type() != step.data_type()) {
                let step = Arc::unwrap_or_clone(query.recursive_term);
                query.recursive_term = Arc::new(coerce_plan_expr_for_schema(step, first)?);
            }
            Ok(LogicalPlan::RecursiveQuery(query))
        }
        other => other.recompute_schema(),
    }
}

/// Rewrites all parts of an expression, operands first.
pub(crate) fn rewrite_parts(
    expr: Expr,
    rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Expr> {
    expr.transform_up(rewrite).data()
}

/// Rewrites all expressions of a plan and of its subqueries, operands first. Columns keep their names.
pub(crate) fn rewrite_all(
    plan: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    rewrite_nodes(plan, &mut |node| rewrite_expressions(node, rewrite))
}

/// Rewrites the expressions of one node. `rewrite` is told what columns they may name. A column alone stays as it is.
pub(crate) fn rewrite_expressions(
    node: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    // Most nodes have one input. Its schema need not be copied for each rule.
    let schema = match (&node, &node.inputs()[..]) {
        (LogicalPlan::TableScan(scan), _) => Arc::clone(&scan.projected_schema),
        (_, [input]) => Arc::clone(input.schema()),
        (_, inputs) => Arc::new(merge_schema(inputs)),
    };
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        if matches!(expr, Expr::Column(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let mut rewrite = |expr| rewrite(expr, &schema);
        let rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>> = &mut rewrite;
        let rewritten = expr.transform_up(rewrite)?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })
}
