//! Subqueries in the condition of a join.
//!
//! ```text
//!  a JOIN b ON c AND EXISTS (… a.x … b.y …)       Filter: EXISTS (… a.x … b.y …)
//!                                                    a JOIN b ON c
//!
//!  a LEFT JOIN b ON c AND EXISTS (… a.x …)         (SELECT a.*, EXISTS (… a.x …) AS found FROM a)
//!                                                    LEFT JOIN b ON c AND found
//! ```
//!
//! An outer join keeps rows for which the condition does not hold. So there each subquery becomes a column of the side
//! that it refers to. One that refers to both sides is rejected. The rules behind make joins of these subqueries, as of
//! others.
//!
//! **Stands for** DataFusion's plans, in which such subqueries stay where they are, and then cannot be executed.

use crate::walk::rewrite_nodes;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::Arc;

/// The rule. Comes before all others that know subqueries.
#[derive(Debug)]
pub(crate) struct SubqueriesInOn;

impl AnalyzerRule for SubqueriesInOn {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut count = 0;
        rewrite_nodes(plan, &mut |node| {
            let join = match node {
                LogicalPlan::Join(join) => join,
                other => return Ok(Transformed::no(other)),
            };
            match &join.filter {
                Some(condition) if has_subquery(condition)? => {}
                _ => return Ok(Transformed::no(LogicalPlan::Join(join))),
            }
            Ok(Transformed::yes(match join.join_type {
                JoinType::Inner => as_filter(join)?,
                _ => as_columns(join, &mut count)?,
            }))
        })
    }

    fn name(&self) -> &str {
        "subqueries_in_on"
    }
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)
    )
}

fn has_subquery(expr: &Expr) -> Result<bool> {
    expr.exists(|part| Ok(is_subquery(part)))
}

fn as_filter(mut join: Join) -> Result<LogicalPlan> {
    let mut above = Vec::new();
    let mut kept = Vec::new();
    for condition in split_conjunction_owned(join.filter.take().expect("it has one")) {
        match has_subquery(&condition)? {
            true => above.push(condition),
            false => kept.push(condition),
        }
    }
    join.filter = conjunction(kept);
    let above = conjunction(above).expect("one of them has a subquery");
    let filter = Filter::try_new(above, Arc::new(LogicalPlan::Join(join)))?;
    Ok(LogicalPlan::Filter(filter))
}

fn as_columns(join: Join, count: &mut usize) -> Result<LogicalPlan> {
    let columns = join.schema.columns();
    let mut sides = [
        Side::of(Arc::clone(&join.left)),
        Side::of(Arc::clone(&join.right)),
    ];
    let condition = join.filter.clone().expect("it has one");
    let condition = condition.transform_down(|part| {
        if !is_subquery(&part) {
            return Ok(Transformed::no(part));
        }
        let mut used = used_columns(&part)?;
        // Others belong to queries further out, or within.
        used.retain(|column| sides.iter().any(|side| side.has(column)));
        let mut both = sides.iter_mut();
        let Some(side) = both.find(|side| used.iter().all(|column| side.has(column))) else {
            return plan_err!(
                "Unsupported subquery in ON that refers to both sides of an outer join"
            );
        };
        *count += 1;
        let name = format!("__condition_{count}");
        side.columns.push(part.alias(&name));
        let column = Expr::Column(Column::new_unqualified(name));
        Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
    })?;
    let [left, right] = sides.map(Side::plan);
    let whole = Join::try_new(
        left?,
        right?,
        join.on,
        Some(condition.data),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(whole))
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

/// The columns around it that an expression with a subquery refers to.
fn used_columns(expr: &Expr) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|part| {
        let plan = match part {
            Expr::ScalarSubquery(subquery) => subquery,
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(membership) => &membership.subquery,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(columns_around(&plan.subquery)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

/// The columns around a query that it, or one in it, refers to.
fn columns_around(query: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    query.apply(|node| {
        let own = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            let mut used = used_columns(expr)?;
            // The nearest one of a name is meant: what is here is not around.
            used.retain(|column| !own.has_column(column));
            columns.extend(used);
            expr.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

/// A side of a join, and subqueries that are to be columns of it.
struct Side {
    input: Arc<LogicalPlan>,
    columns: Vec<Expr>,
}

impl Side {
    fn of(input: Arc<LogicalPlan>) -> Self {
        Side {
            input,
            columns: Vec::new(),
        }
    }

    fn has(&self, column: &Column) -> bool {
        self.input.schema().has_column(column)
    }

    fn plan(self) -> Result<Arc<LogicalPlan>> {
        if self.columns.is_empty() {
            return Ok(self.input);
        }
        let own = self.input.schema().columns().into_iter();
        let columns = own.map(Expr::Column).chain(self.columns).collect();
        let projection = Projection::try_new(columns, self.input)?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    }
}
