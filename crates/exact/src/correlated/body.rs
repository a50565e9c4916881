//! The body: a subquery for all rows of its domain at once.
//!
//! The domain goes down to the lowest nodes that refer to it, and its columns come up again through all others. A node
//! that works on all rows of its input then does so for each row of the domain:
//!
//! ```text
//!  filter, projection       the domain's columns in the place of the outer ones
//!  aggregate, DISTINCT      grouped by the domain's columns, too
//!  aggregate without keys   also a row of the domain without input has its row: count is 0 there
//!  window                   partitioned by the domain's columns, too
//!  LIMIT                    row_number() of the rows of one row of the domain
//!  what refers to nothing   each row beside each row of the domain
//! ```

use super::body_join::join;
use super::domain::Domain;
use super::{matched, outer_columns, same};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue, not_impl_err};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, FetchType, Filter, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Projection, SkipType, Sort, SortExpr, Union, Unnest, Values,
    Window, lit, when,
};
use std::sync::Arc;

/// A plan for all rows of the domain.
pub(super) struct Body {
    pub(super) plan: LogicalPlan,
    /// What the domain's columns are called in it. The plan's own columns have kept their names.
    pub(super) outer: Vec<Column>,
}

impl Body {
    /// # Errors
    /// If the domain is needed in a node that it cannot pass.
    pub(super) fn of(plan: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
        if domain.columns.is_empty() {
            return Ok(Body {
                plan: plan.clone(),
                outer: Vec::new(),
            });
        }
        if !refers(plan, domain)? {
            return beside(plan, domain);
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                let body = Body::of(&filter.input, domain)?;
                let predicate = bound(filter.predicate.clone(), domain, &body.outer)?;
                let filter = Filter::try_new(predicate, Arc::new(body.plan))?;
                body.outer.over(LogicalPlan::Filter(filter))
            }
            LogicalPlan::Projection(projection) => {
                let body = Body::of(&projection.input, domain)?;
                project(body, &projection.expr, plan, domain)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let body = Body::of(&alias.input, domain)?;
                let columns = columns_of(&alias.input);
                project(body, &columns, plan, domain)
            }
            LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
                [] => one_group(aggregate, plan, domain),
                [Expr::GroupingSet(_)] => cannot("GROUPING SETS"),
                _ => {
                    let body = Body::of(&aggregate.input, domain)?;
                    let group = &aggregate.group_expr;
                    let keys = with_outer(&body.outer, renamed(group, 0, plan, domain, &body)?);
                    let values = &aggregate.aggr_expr;
                    let values = renamed(values, group.len(), plan, domain, &body)?;
                    let aggregate = Aggregate::try_new(Arc::new(body.plan), keys, values)?;
                    body.outer.over(LogicalPlan::Aggregate(aggregate))
                }
            },
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let body = Body::of(input, domain)?;
                let distinct = Distinct::All(Arc::new(body.plan));
                body.outer.over(LogicalPlan::Distinct(distinct))
            }
            LogicalPlan::Distinct(Distinct::On(on)) => distinct_on(on, plan, domain),
            LogicalPlan::Window(window) => {
                let body = Body::of(&window.input, domain)?;
                let place = plan.schema().fields().len() - window.window_expr.len();
                let windows = window.window_expr.iter().cloned();
                let windows = windows.map(|expr| partitioned(expr, &body.outer));
                let windows: Vec<Expr> = windows.collect::<Result<_>>()?;
                let windows = renamed(&windows, place, plan, domain, &body)?;
                let window = Window::try_new(windows, Arc::new(body.plan))?;
                body.outer.over(LogicalPlan::Window(window))
            }
            LogicalPlan::Sort(sort) => match sort.fetch {
                Some(fetch) => cut(&sort.input, &sort.expr, 0, Some(fetch), domain),
                None => {
                    let body = Body::of(&sort.input, domain)?;
                    let sort = Sort {
                        expr: sort_keys(&sort.expr, domain, &body.outer)?,
                        input: Arc::new(body.plan),
                        fetch: None,
                    };
                    body.outer.over(LogicalPlan::Sort(sort))
                }
            },
            LogicalPlan::Limit(limit) => cut_below(limit, domain),
            LogicalPlan::Union(union) => all_inputs(union, plan, domain),
            LogicalPlan::Values(values) => rows(values, plan, domain),
            LogicalPlan::Unnest(unnest) => {
                let body = Body::of(&unnest.input, domain)?;
                let columns = unnest.exec_columns.clone();
                let options = unnest.options.clone();
                let unnest = Unnest::try_new(Arc::new(body.plan), columns, options)?;
                body.outer.over(LogicalPlan::Unnest(unnest))
            }
            LogicalPlan::Subquery(subquery) => Body::of(&subquery.subquery, domain),
            LogicalPlan::Join(operands) => join(operands, domain),
            other => cannot(&other.display().to_string()),
        }
    }
}

/// The columns of a domain below a node, from which the node's body is made.
trait Over {
    fn over(self, plan: LogicalPlan) -> Result<Body>;
}

impl Over for Vec<Column> {
    fn over(self, plan: LogicalPlan) -> Result<Body> {
        Ok(Body { plan, outer: self })
    }
}

pub(super) fn cannot<T>(what: &str) -> Result<T> {
    not_impl_err!("{what} in a subquery that refers to columns outside of it")
}

/// Whether a plan refers to the domain.
pub(super) fn refers(plan: &LogicalPlan, domain: &Domain) -> Result<bool> {
    let columns = outer_columns(plan)?;
    Ok(columns.iter().any(|column| domain.columns.contains(column)))
}

/// Each row of a plan beside each row of the domain.
fn beside(plan: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let (again, outer) = domain.again()?;
    let plan = LogicalPlanBuilder::from(again)
        .cross_join(plan.clone())?
        .build()?;
    outer.over(plan)
}

/// An expression with the domain's columns in the place of the outer ones.
pub(super) fn bound(expr: Expr, domain: &Domain, outer: &[Column]) -> Result<Expr> {
    crate::walk::rewrite_parts(expr, &mut |part| match &part {
        Expr::OuterReferenceColumn(_, column) => {
            let place = domain.columns.iter().position(|known| known == column);
            Ok(match place {
                Some(place) => Transformed::yes(Expr::Column(outer[place].clone())),
                None => Transformed::no(part),
            })
        }
        _ => Ok(Transformed::no(part)),
    })
}

/// Expressions over a body, with the names that the node gives them from `place` on.
fn renamed(
    exprs: &[Expr],
    place: usize,
    node: &LogicalPlan,
    domain: &Domain,
    body: &Body,
) -> Result<Vec<Expr>> {
    let rename = |(at, expr): (usize, &Expr)| {
        let expr = bound(expr.clone(), domain, &body.outer)?;
        let (qualifier, field) = node.schema().qualified_field(place + at);
        Ok(
            match expr.qualified_name() == (qualifier.cloned(), field.name().clone()) {
                true => expr,
                false => expr.alias_qualified(qualifier.cloned(), field.name()),
            },
        )
    };
    exprs.iter().enumerate().map(rename).collect()
}

fn project(body: Body, exprs: &[Expr], node: &LogicalPlan, domain: &Domain) -> Result<Body> {
    let exprs = with_outer(&body.outer, renamed(exprs, 0, node, domain, &body)?);
    let projection = Projection::try_new(exprs, Arc::new(body.plan))?;
    body.outer.over(LogicalPlan::Projection(projection))
}

fn with_outer(outer: &[Column], others: Vec<Expr>) -> Vec<Expr> {
    let outer = outer.iter().cloned().map(Expr::Column);
    outer.chain(others).collect()
}

pub(super) fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect()
}

fn sort_keys(keys: &[SortExpr], domain: &Domain, outer: &[Column]) -> Result<Vec<SortExpr>> {
    let bind = |key: &SortExpr| Ok(key.with_expr(bound(key.expr.clone(), domain, outer)?));
    keys.iter().map(bind).collect()
}

/// An aggregate without keys has one row for each row of the domain, also for one without input.
fn one_group(aggregate: &Aggregate, node: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let body = Body::of(&aggregate.input, domain)?;
    let keys = with_outer(&body.outer, Vec::new());
    let values = renamed(&aggregate.aggr_expr, 0, node, domain, &body)?;
    let groups = Aggregate::try_new(Arc::new(body.plan), keys, values)?;
    let groups = LogicalPlan::Aggregate(groups);
    let mut columns = columns_of(&groups);
    columns.push(matched().alias("__matched"));
    let groups = Projection::try_new(columns, Arc::new(groups))?;
    let (all, outer) = domain.again()?;
    let joined = LogicalPlanBuilder::from(all)
        .join_on(
            LogicalPlan::Projection(groups),
            JoinType::Left,
            same(&outer, &body.outer),
        )?
        .build()?;
    let is_missing = Expr::Column(Column::new_unqualified("__matched")).is_null();
    let mut values = with_outer(&outer, Vec::new());
    for (place, expr) in aggregate.aggr_expr.iter().enumerate() {
        let (qualifier, field) = node.schema().qualified_field(place);
        let value = Expr::Column(Column::from((qualifier, field)));
        let empty = match expr.clone().unalias() {
            Expr::AggregateFunction(AggregateFunction { func, .. }) => {
                func.default_value(field.data_type())?
            }
            _ => ScalarValue::Null,
        };
        values.push(match empty.is_null() {
            true => value,
            false => when(is_missing.clone(), lit(empty))
                .otherwise(value)?
                .alias_qualified(qualifier.cloned(), field.name()),
        });
    }
    let projection = Projection::try_new(values, Arc::new(joined))?;
    outer.over(LogicalPlan::Projection(projection))
}

fn distinct_on(on: &DistinctOn, node: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let body = Body::of(&on.input, domain)?;
    let bind = |exprs: &[Expr]| {
        let exprs = exprs.iter().cloned();
        exprs
            .map(|expr| bound(expr, domain, &body.outer))
            .collect::<Result<Vec<_>>>()
    };
    let keys = with_outer(&body.outer, bind(&on.on_expr)?);
    let select = with_outer(
        &body.outer,
        renamed(&on.select_expr, 0, node, domain, &body)?,
    );
    let order = match &on.sort_expr {
        None => None,
        Some(order) => {
            let outer = body.outer.iter().cloned();
            let first = outer.map(|column| Expr::Column(column).sort(true, false));
            let order = sort_keys(order, domain, &body.outer)?;
            Some(first.chain(order).collect())
        }
    };
    let on = DistinctOn::try_new(keys, select, order, Arc::new(body.plan))?;
    body.outer.over(LogicalPlan::Distinct(Distinct::On(on)))
}

/// A window function whose partitions are parts of one row of the domain.
fn partitioned(expr: Expr, outer: &[Column]) -> Result<Expr> {
    crate::walk::rewrite_parts(expr, &mut |part| match part {
        Expr::WindowFunction(mut function) => {
            let WindowFunction { params, .. } = function.as_mut();
            let domain = outer.iter().cloned().map(Expr::Column);
            params.partition_by.extend(domain);
            Ok(Transformed::yes(Expr::WindowFunction(function)))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// LIMIT below what computes row by row, next to the order that it cuts.
fn cut_below(limit: &Limit, domain: &mut Domain) -> Result<Body> {
    let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
        (limit.get_skip_type()?, limit.get_fetch_type()?)
    else {
        return cannot("LIMIT with an expression");
    };
    let below = |input: &Arc<LogicalPlan>| {
        let limit = Limit {
            input: Arc::clone(input),
            ..limit.clone()
        };
        Arc::new(LogicalPlan::Limit(limit))
    };
    match limit.input.as_ref() {
        LogicalPlan::Projection(projection) => {
            let body = Body::of(&below(&projection.input), domain)?;
            project(body, &projection.expr, &limit.input, domain)
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let body = Body::of(&below(&alias.input), domain)?;
            project(body, &columns_of(&alias.input), &limit.input, domain)
        }
        LogicalPlan::Sort(sort) => cut(&sort.input, &sort.expr, skip, fetch, domain),
        _ => cut(&limit.input, &[], skip, fetch, domain),
    }
}

/// The rows from `skip` on, `fetch` of them, for each row of the domain.
fn cut(
    input: &LogicalPlan,
    order: &[SortExpr],
    skip: usize,
    fetch: Option<usize>,
    domain: &mut Domain,
) -> Result<Body> {
    const ROW: &str = "__row";
    let body = Body::of(input, domain)?;
    let columns = columns_of(&body.plan);
    let number = row_number()
        .partition_by(with_outer(&body.outer, Vec::new()))
        .order_by(sort_keys(order, domain, &body.outer)?)
        .build()?
        .alias(ROW);
    let window = Window::try_new(vec![number], Arc::new(body.plan))?;
    let row = Expr::Column(Column::new_unqualified(ROW));
    let rows = |count: usize| lit(u64::try_from(count).unwrap_or(u64::MAX));
    let mut kept = row.clone().gt(rows(skip));
    if let Some(fetch) = fetch {
        kept = kept.and(row.lt_eq(rows(skip.saturating_add(fetch))));
    }
    let filter = Filter::try_new(kept, Arc::new(LogicalPlan::Window(window)))?;
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Filter(filter)))?;
    body.outer.over(LogicalPlan::Projection(projection))
}

/// A union: the domain's columns come first in all inputs.
fn all_inputs(union: &Union, node: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let mut inputs = Vec::new();
    for input in &union.inputs {
        let body = Body::of(input, domain)?;
        let columns = with_outer(&body.outer, columns_of(input));
        let projection = Projection::try_new(columns, Arc::new(body.plan))?;
        inputs.push(LogicalPlan::Projection(projection));
    }
    united(inputs, node, domain)
}

/// VALUES with outer columns: each row is a projection of the domain.
fn rows(values: &Values, node: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let mut inputs = Vec::new();
    for row in &values.values {
        let (again, outer) = domain.again()?;
        let body = project(outer.over(again)?, row, node, domain)?;
        inputs.push(body.plan);
    }
    united(inputs, node, domain)
}

/// The union of plans that have the domain's columns, then the node's.
fn united(inputs: Vec<LogicalPlan>, node: &LogicalPlan, domain: &mut Domain) -> Result<Body> {
    let mut named = Vec::new();
    for input in inputs {
        let columns = columns_of(&input).into_iter().enumerate();
        let columns = columns.map(|(place, column)| column.alias(format!("column_{place}")));
        let projection = Projection::try_new(columns.collect(), Arc::new(input))?;
        named.push(Arc::new(LogicalPlan::Projection(projection)));
    }
    let union = match named.len() {
        1 => named.swap_remove(0),
        _ => Arc::new(LogicalPlan::Union(Union::try_new_with_loose_types(named)?)),
    };
    let name = domain.next_name();
    let mut outer = Vec::new();
    let mut columns = Vec::new();
    for (place, column) in union.schema().columns().into_iter().enumerate() {
        let column = Expr::Column(column);
        columns.push(match place.checked_sub(domain.columns.len()) {
            None => {
                outer.push(Column::new(Some(name.clone()), format!("{name}_{place}")));
                column.alias_qualified(Some(name.clone()), format!("{name}_{place}"))
            }
            Some(place) => {
                let (qualifier, field) = node.schema().qualified_field(place);
                column.alias_qualified(qualifier.cloned(), field.name())
            }
        });
    }
    let projection = Projection::try_new(columns, union)?;
    outer.over(LogicalPlan::Projection(projection))
}
