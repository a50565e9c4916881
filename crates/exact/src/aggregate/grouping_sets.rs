//! Keys of grouping sets are columns.
//!
//! ```text
//! GROUP BY ROLLUP (-a, b)      Projection: "group key 0" AS "(- a)", b
//!                                Aggregate: ROLLUP ("group key 0", b)
//!                                  Projection: a, b, -a AS "group key 0"
//! ```
//!
//! **Stands for** DataFusion's columns of grouping sets: they are called by their keys and can have no other name.
//! Where another repair changes a key, nobody finds its column any more.

use crate::columns::unused_prefix;
use crate::walk::rewrite_nodes;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::mem::take;
use std::sync::Arc;

/// The rule. Runs before any other changes keys.
#[derive(Debug)]
pub(crate) struct GroupingSets;

impl AnalyzerRule for GroupingSets {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |node| match node {
            LogicalPlan::Aggregate(aggregate) => by_columns(aggregate),
            other => Ok(Transformed::no(other)),
        })
    }

    fn name(&self) -> &str {
        "grouping_sets"
    }
}

fn by_columns(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys {
        computed: Vec::new(),
        prefix: unused_prefix("group key", aggregate.input.schema()),
    };
    for expr in &mut aggregate.group_expr {
        match expr {
            Expr::GroupingSet(GroupingSet::Rollup(parts) | GroupingSet::Cube(parts)) => {
                parts.iter_mut().for_each(|key| keys.take(key));
            }
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                sets.iter_mut().flatten().for_each(|key| keys.take(key));
            }
            _ => {}
        }
    }
    if keys.computed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    // `grouping(key)` asks for a key.
    for expr in &mut aggregate.aggr_expr {
        let (qualifier, name) = expr.qualified_name();
        let asked = take(expr).transform_down(|part| match part {
            Expr::AggregateFunction(mut function) if function.func.name() == "grouping" => {
                (function.params.args.iter_mut()).for_each(|arg| keys.replace(arg));
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        *expr = match asked.transformed && !matches!(asked.data, Expr::Alias(_)) {
            true => asked.data.alias_qualified(qualifier, name),
            false => asked.data,
        };
    }
    let columns = aggregate.input.schema().columns().into_iter();
    let columns = columns.map(Expr::Column).chain(keys.aliased()).collect();
    let input = LogicalPlan::Projection(Projection::try_new(columns, aggregate.input)?);
    let names = aggregate.schema;
    let aggregate = Aggregate::try_new(Arc::new(input), aggregate.group_expr, aggregate.aggr_expr)?;
    let columns = aggregate.schema.columns().into_iter().zip(names.iter());
    let columns = columns
        .filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID)
        .map(|(column, (qualifier, field))| {
            Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
        });
    let columns = columns.collect();
    let aggregate = Arc::new(LogicalPlan::Aggregate(aggregate));
    let plan = Projection::try_new(columns, aggregate)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

/// The keys that are computed below.
struct Keys {
    computed: Vec<Expr>,
    /// What their names begin with.
    prefix: String,
}

impl Keys {
    fn take(&mut self, key: &mut Expr) {
        if !matches!(key, Expr::Column(_)) && !self.computed.contains(key) {
            self.computed.push(key.clone());
        }
        self.replace(key);
    }

    /// Puts its column in the place of a key.
    fn replace(&self, key: &mut Expr) {
        if let Some(number) = self.computed.iter().position(|computed| computed == key) {
            *key = Expr::Column(Column::new_unqualified(self.name_of(number)));
        }
    }

    fn name_of(&self, number: usize) -> String {
        format!("{} {number}", self.prefix)
    }

    fn aliased(&self) -> impl Iterator<Item = Expr> {
        let keys = self.computed.iter().cloned().enumerate();
        keys.map(|(number, key)| key.alias(self.name_of(number)))
    }
}
