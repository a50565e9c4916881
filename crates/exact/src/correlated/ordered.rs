//! ORDER BY a subquery that refers to a column which is not selected.
//!
//! ```text
//!  SELECT a FROM t ORDER BY (SELECT … WHERE … = t.b)
//!
//!  Sort: (subquery of t.b)               Projection: a
//!    Projection: a             ──►         Sort: (subquery of t.b)
//!      t                                     Projection: a, t.b
//!                                              t
//! ```

use super::outer_columns;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Sort};
use std::sync::Arc;

/// The sort over a projection that has these columns, too, and what it selected before; `None` if it lacks none.
pub(super) fn with_outer_columns(sort: &Sort) -> Result<Option<(Sort, Vec<Column>)>> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else {
        return Ok(None);
    };
    let (selected, below) = (sort.input.schema(), projection.input.schema());
    let mut missing = Vec::new();
    for key in &sort.expr {
        key.expr.apply(|part| {
            if let Expr::ScalarSubquery(subquery) = part {
                for column in outer_columns(&subquery.subquery)? {
                    let is_missing = !selected.has_column(&column) && below.has_column(&column);
                    if is_missing && !missing.contains(&column) {
                        missing.push(column);
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let mut columns = projection.expr.clone();
    columns.extend(missing.into_iter().map(Expr::Column));
    let projection = Projection::try_new(columns, Arc::clone(&projection.input))?;
    let sort = Sort {
        expr: sort.expr.clone(),
        input: Arc::new(LogicalPlan::Projection(projection)),
        fetch: sort.fetch,
    };
    Ok(Some((sort, selected.columns())))
}

/// The columns that were selected.
pub(super) fn without_others(sorted: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    let columns = columns.into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new(columns, Arc::new(sorted))?;
    Ok(LogicalPlan::Projection(projection))
}
