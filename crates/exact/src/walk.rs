//! The walks over plans and their expressions, which most analyzer rules are.
//!
//! What is done at a node is called through a pointer, so that DataFusion's walks are compiled once: they take a type
//! parameter, and each one is some thousand lines of machine code for every rule otherwise.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Rewrites all nodes of a plan and of its subqueries, inputs first.
pub(crate) fn rewrite_nodes(
    plan: LogicalPlan,
    rewrite: &mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(rewrite).data()
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

/// Rewrites the expressions of one node. `rewrite` is told what columns they may name.
pub(crate) fn rewrite_expressions(
    node: LogicalPlan,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&scan.projected_schema);
    }
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let mut rewrite = |expr| rewrite(expr, &schema);
        let rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>> = &mut rewrite;
        let rewritten = expr.transform_up(rewrite)?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })
}
