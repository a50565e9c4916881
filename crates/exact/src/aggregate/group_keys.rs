//! Groups by a key that was unique before a join.
//!
//! **Stands for** DataFusion's functional dependencies: behind a join it still takes such a key for one that determines
//! whole rows, and then leaves out DISTINCT, and other columns that are grouped or sorted by.
//!
//! ```text
//! GROUP BY o.k, x  over  (… GROUP BY k) AS o JOIN p        k determines m of o, but not x of p
//!
//! Aggregate: [o.k, x]          Projection: [group_0 AS o.k, group_1 AS x]
//!                       ──►      Aggregate: [o.k AS group_0, x AS group_1]       only both determine rows
//! ```
//!
//! DISTINCT below the join makes such a key only later, when the optimizer writes it as groups. So groups above both
//! have keys of their own as well.

use crate::walk::rewrite_nodes;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct SeparateGroups;

impl AnalyzerRule for SeparateGroups {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut changed = false;
        rewrite_nodes(plan, &mut |plan| {
            // What a node says of its rows may have come from one below that has been replaced.
            let plan = match changed {
                true => plan.recompute_schema()?,
                false => plan,
            };
            let separated = match &plan {
                LogicalPlan::Aggregate(aggregate) => separated(aggregate)?,
                LogicalPlan::Distinct(Distinct::All(input)) => {
                    let columns = input.schema().columns().into_iter();
                    let columns: Vec<Expr> = columns.map(Expr::Column).collect();
                    match is_mistaken(input, &columns) {
                        true => {
                            let groups = Aggregate::try_new(Arc::clone(input), columns, vec![])?;
                            separated(&groups)?
                        }
                        false => None,
                    }
                }
                _ => None,
            };
            changed |= separated.is_some();
            Ok(match separated {
                Some(separated) => Transformed::yes(separated),
                None if changed => Transformed::yes(plan),
                None => Transformed::no(plan),
            })
        })
    }

    fn name(&self) -> &str {
        "separate_groups"
    }
}

/// Whether a part of the keys would be taken for all of them, though it does not tell the others.
fn is_mistaken(input: &LogicalPlan, keys: &[Expr]) -> bool {
    if has_distinct(input, false) {
        return true;
    }
    let schema = input.schema();
    let place = |key: &Expr| match key {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    };
    let places: Vec<Option<usize>> = keys.iter().map(place).collect();
    schema.functional_dependencies().iter().any(|dependency| {
        let sources = &dependency.source_indices;
        let tells = |place: &Option<usize>| {
            place.is_some_and(|place| dependency.target_indices.contains(&place))
        };
        sources.iter().all(|source| places.contains(&Some(*source))) && !places.iter().all(tells)
    })
}

/// Whether DISTINCT lies below a join.
fn has_distinct(plan: &LogicalPlan, below_join: bool) -> bool {
    let below_join = match plan {
        LogicalPlan::Distinct(_) if below_join => return true,
        LogicalPlan::Join(_) => true,
        _ => below_join,
    };
    let mut inputs = plan.inputs().into_iter();
    inputs.any(|input| has_distinct(input, below_join))
}

/// The same groups by keys under names of their own; `None` if nothing is mistaken.
fn separated(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let keys = &aggregate.group_expr;
    if keys.is_empty() || matches!(keys[..], [Expr::GroupingSet(_)]) {
        return Ok(None);
    }
    if !is_mistaken(&aggregate.input, keys) {
        return Ok(None);
    }
    // One that is named twice is one column of the groups.
    let mut keys: Vec<Expr> = Vec::with_capacity(aggregate.group_expr.len());
    for key in &aggregate.group_expr {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    let keys = keys.into_iter().enumerate();
    let keys: Vec<Expr> = keys
        .map(|(number, key)| key.alias(format!("group_{number}")))
        .collect();
    let groups = Aggregate::try_new(
        Arc::clone(&aggregate.input),
        keys,
        aggregate.aggr_expr.clone(),
    )?;
    let columns = groups.schema.columns().into_iter();
    let columns: Vec<Expr> = columns
        .zip(aggregate.schema.iter())
        .map(|(column, (qualifier, field))| {
            Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    Ok(Some(LogicalPlan::Projection(Projection::try_new(
        columns, groups,
    )?)))
}
