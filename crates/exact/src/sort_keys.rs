//! Sort keys that are more than a column and a function of it are columns of their own.
//!
//! **Stands for** DataFusion's tests of orders: it asks an expression how it keeps the order of its operands. Some
//! cannot answer when an operand is a function, CASE or `%`, which tell no range of their values. Then rows that have
//! just been sorted by the expression do not count as sorted, and the statement is rejected.
//!
//! ```text
//! Sort: abs(a * b), c          Projection: a, b, c                    also in windows, aggregates and DISTINCT ON,
//!   input                ──►     Sort: "sort key 0", c                which keep the names of their columns
//!                                  Projection: a, b, c, abs(a * b) AS "sort key 0"
//!                                    input
//! ```
//!
//! Aggregates that come to the same in any order, such as `count`, lose theirs. DataFusion counts rows by the key then.
//! The others lose keys that order nothing.

use crate::columns::unused_prefix;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, LogicalPlan, Projection, Sort, SortExpr, Window,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::mem::take;
use std::sync::Arc;

/// The rule. Runs when keys that are constants can be told: a column that is one is forgotten by joins above.
#[derive(Debug)]
pub(crate) struct SortKeys;

impl OptimizerRule for SortKeys {
    fn name(&self) -> &str {
        "sort_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(sort) => sorted(sort),
            LogicalPlan::Window(window) => windowed(window),
            LogicalPlan::Aggregate(aggregate) => aggregated(aggregate),
            LogicalPlan::Distinct(Distinct::On(distinct)) => distinct_on(distinct),
            other => Ok(Transformed::no(other)),
        }
    }
}

fn sorted(mut sort: Sort) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::new(sort.input.schema());
    for key in &mut sort.expr {
        keys.take_if_nested(&mut key.expr)?;
    }
    if keys.taken.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Sort(sort)));
    }
    let columns = columns_of(sort.input.schema());
    sort.input = keys.over(sort.input)?;
    let sort = Arc::new(LogicalPlan::Sort(sort));
    let plan = Projection::try_new(columns, sort)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

fn windowed(mut window: Window) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::new(window.input.schema());
    for expr in &mut window.window_expr {
        with_name(expr, |called| match called {
            Expr::WindowFunction(function) => keys.take_from_window(function),
            _ => Ok(false),
        })?;
    }
    if keys.taken.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let columns = columns_of(&window.schema);
    let window = Window::try_new(window.window_expr, keys.over(window.input)?)?;
    let window = Arc::new(LogicalPlan::Window(window));
    let plan = Projection::try_new(columns, window)?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

fn aggregated(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::new(aggregate.input.schema());
    let mut changed = false;
    for expr in &mut aggregate.aggr_expr {
        changed |= with_name(expr, |called| match called {
            Expr::AggregateFunction(function) => keys.take_from_aggregate(function),
            _ => Ok(false),
        })?;
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    if !keys.taken.is_empty() {
        aggregate.input = keys.over(aggregate.input)?;
    }
    let aggregate = Aggregate::try_new(aggregate.input, aggregate.group_expr, aggregate.aggr_expr)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

/// Its rows are grouped by the first keys and sorted by all, so they become columns if any is more than that.
fn distinct_on(mut distinct: DistinctOn) -> Result<Transformed<LogicalPlan>> {
    let mut keys = Keys::new(distinct.input.schema());
    let sorted = distinct.sort_expr.iter_mut().flatten();
    let sorted = sorted.map(|key| &mut key.expr);
    for key in distinct.on_expr.iter_mut().chain(sorted) {
        if !matches!(key, Expr::Column(_) | Expr::Literal(..)) {
            keys.take(key);
        }
    }
    if keys.taken.is_empty() {
        let node = LogicalPlan::Distinct(Distinct::On(distinct));
        return Ok(Transformed::no(node));
    }
    distinct.input = keys.over(distinct.input)?;
    let distinct = DistinctOn::try_new(
        distinct.on_expr,
        distinct.select_expr,
        distinct.sort_expr,
        distinct.input,
    )?;
    let node = LogicalPlan::Distinct(Distinct::On(distinct));
    Ok(Transformed::yes(node))
}

fn columns_of(schema: &DFSchema) -> Vec<Expr> {
    schema.columns().into_iter().map(Expr::Column).collect()
}

/// Changes a window function or aggregate, which keeps its name. Whether it was changed.
fn with_name(expr: &mut Expr, change: impl FnOnce(&mut Expr) -> Result<bool>) -> Result<bool> {
    if let Expr::Alias(alias) = expr {
        return change(&mut alias.expr);
    }
    let (qualifier, name) = expr.qualified_name();
    let changed = change(expr)?;
    if changed {
        *expr = take(expr).alias_qualified(qualifier, name);
    }
    Ok(changed)
}

/// The keys that become columns.
struct Keys {
    taken: Vec<Expr>,
    /// What their names begin with.
    prefix: String,
}

impl Keys {
    fn new(input: &DFSchema) -> Self {
        Keys {
            taken: Vec::new(),
            prefix: unused_prefix("sort key", input),
        }
    }

    /// Whether there were such keys.
    fn take_from_window(&mut self, function: &mut WindowFunction) -> Result<bool> {
        let params = &mut function.params;
        let sorted = params.order_by.iter_mut().map(|key| &mut key.expr);
        let mut any = false;
        for key in params.partition_by.iter_mut().chain(sorted) {
            any |= self.take_if_nested(key)?;
        }
        Ok(any)
    }

    /// Whether there were such keys, or an order that does not matter.
    fn take_from_aggregate(&mut self, function: &mut AggregateFunction) -> Result<bool> {
        let AggregateFunction { func, params } = function;
        if params.order_by.is_empty() {
            return Ok(false);
        }
        if !func.supports_within_group_clause() && !is_by_order(func.name()) {
            params.order_by.clear();
            return Ok(true);
        }
        let mut any = is_by_order(func.name()) && drop_needless(&mut params.order_by);
        for key in &mut params.order_by {
            let written = key.expr.clone();
            if self.take_if_nested(&mut key.expr)? {
                any = true;
                // DISTINCT sorts by its argument only.
                for arg in params.args.iter_mut().filter(|arg| **arg == written) {
                    *arg = key.expr.clone();
                }
            }
        }
        Ok(any)
    }

    /// Takes a key if it may not be able to tell its order. Whether it was taken.
    fn take_if_nested(&mut self, key: &mut Expr) -> Result<bool> {
        let is_nested = is_nested(key)?;
        if is_nested {
            self.take(key);
        }
        Ok(is_nested)
    }

    fn take(&mut self, key: &mut Expr) {
        let number = self.taken.iter().position(|taken| taken == key);
        let number = number.unwrap_or_else(|| {
            self.taken.push(key.clone());
            self.taken.len() - 1
        });
        *key = Expr::Column(Column::new_unqualified(self.name_of(number)));
    }

    fn name_of(&self, number: usize) -> String {
        format!("{} {number}", self.prefix)
    }

    /// The input with the keys as columns.
    fn over(&self, input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        let keys = self.taken.iter().cloned().enumerate();
        let keys = keys.map(|(number, key)| key.alias(self.name_of(number)));
        let columns = columns_of(input.schema()).into_iter().chain(keys).collect();
        let projection = Projection::try_new(columns, input)?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    }
}

/// Aggregates to which the order of rows matters.
const BY_ORDER: [&str; 9] = [
    "any_value",
    "array_agg",
    "first_value",
    "last_value",
    "max_by",
    "min_by",
    "mode",
    "nth_value",
    "string_agg",
];

fn is_by_order(name: &str) -> bool {
    BY_ORDER.contains(&name)
}

/// Drops keys that are the same for all rows, and keys that are there already. Whether there were any.
///
/// DataFusion drops them, too, but an aggregate has declared its states with them by then.
fn drop_needless(keys: &mut Vec<SortExpr>) -> bool {
    let count = keys.len();
    let mut kept: Vec<SortExpr> = Vec::with_capacity(count);
    for key in take(keys) {
        // Constants that are no literals fail when they are computed, or differ by row.
        let is_literal = matches!(key.expr, Expr::Literal(..));
        if !is_literal && kept.iter().all(|kept| kept.expr != key.expr) {
            kept.push(key);
        }
    }
    *keys = kept;
    keys.len() < count
}

/// Whether it is a subquery, or an operand is one or has operands itself.
fn is_nested(key: &Expr) -> Result<bool> {
    let mut found = matches!(key, Expr::ScalarSubquery(_));
    key.apply_children(|operand| {
        found |= matches!(operand, Expr::ScalarSubquery(_));
        operand.apply_children(|_| {
            found = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
