//! The domain of a subquery, and the host that its body is joined to.

use super::body::Body;
use super::{matched, outer_columns, same};
use crate::walk::rewrite_parts;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, Result, plan_err};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    Aggregate, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, lit,
};
use std::sync::Arc;

/// The outer columns that a subquery refers to, each combination of their values once.
pub(super) struct Domain {
    plan: Arc<LogicalPlan>,
    /// As the subquery names them.
    pub(super) columns: Vec<Column>,
    name: String,
    used: usize,
}

impl Domain {
    /// The domain of a subquery over the rows of `outer`. A column that is none of theirs belongs to a row further out.
    pub(super) fn of(outer: &LogicalPlan, subquery: &LogicalPlan, name: String) -> Result<Domain> {
        let mut columns = outer_columns(subquery)?;
        columns.retain(|column| outer.schema().has_column(column));
        if !columns.is_empty() {
            steady(outer)?;
        }
        let named = |(place, column): (usize, &Column)| {
            Expr::Column(column.clone()).alias(format!("{name}_{place}"))
        };
        let plan = LogicalPlanBuilder::from(outer.clone())
            .project(columns.iter().enumerate().map(named))?
            .distinct()?
            .build()?;
        Ok(Domain {
            plan: Arc::new(plan),
            columns,
            name,
            used: 0,
        })
    }

    /// A name that no other plan has.
    pub(super) fn next_name(&mut self) -> String {
        self.used += 1;
        format!("{}_copy_{}", self.name, self.used)
    }

    /// The domain once more, and what its columns are called there.
    pub(super) fn again(&mut self) -> Result<(LogicalPlan, Vec<Column>)> {
        let plan = SubqueryAlias::try_new(Arc::clone(&self.plan), self.next_name())?;
        let plan = LogicalPlan::SubqueryAlias(plan);
        let columns = plan.schema().columns();
        Ok((plan, columns))
    }
}

/// Rejects rows that would be others when they are read a second time.
fn steady(outer: &LogicalPlan) -> Result<()> {
    let mut volatile = None;
    outer.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            if expr.is_volatile() {
                volatile = Some(expr.to_string());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match volatile {
        None => Ok(()),
        Some(volatile) => plan_err!(
            "a subquery that is not a plain aggregate reads the rows around it a second time, and {volatile} would be \
             another value then; write these rows into a table first"
        ),
    }
}

/// The input of a node, to which the bodies of its subqueries are joined.
pub(super) struct Host<'a> {
    input: LogicalPlan,
    joined: LogicalPlan,
    count: &'a mut usize,
}

impl<'a> Host<'a> {
    pub(super) fn of(input: LogicalPlan, count: &'a mut usize) -> Host<'a> {
        Host {
            joined: input.clone(),
            input,
            count,
        }
    }

    pub(super) fn plan(self) -> LogicalPlan {
        self.joined
    }

    /// An expression over the host's columns, as a subquery sees it.
    pub(super) fn outer(&self, expr: Expr) -> Result<Expr> {
        rewrite_parts(expr, &mut |part| match part {
            Expr::Column(column) => {
                let field = Arc::clone(self.input.schema().field_from_column(&column)?);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    /// The one value of a subquery: NULL if it has no row, an error if it has two.
    pub(super) fn value(&mut self, subquery: &LogicalPlan) -> Result<Expr> {
        let is_single = subquery.max_rows().is_some_and(|rows| rows <= 1);
        let value = subquery.schema().columns().swap_remove(0);
        self.join(subquery, |body| {
            let value = Expr::Column(value);
            if is_single {
                return Ok((body.plan, value));
            }
            let group = body.outer.iter().cloned().map(Expr::Column).collect();
            let values = vec![
                first_value(value, Vec::new()).alias("value"),
                count(lit(1_i64)).alias("rows"),
            ];
            let plan = Aggregate::try_new(Arc::new(body.plan), group, values)?;
            let column = |name: &str| Expr::Column(Column::new_unqualified(name));
            let single = super::single_row::single_row(column("value"), column("rows"));
            Ok((LogicalPlan::Aggregate(plan), single))
        })
    }

    /// Whether a subquery has a row.
    pub(super) fn exists(&mut self, subquery: &LogicalPlan) -> Result<Expr> {
        let found = self.join(subquery, |body| {
            let group: Vec<Expr> = body.outer.iter().cloned().map(Expr::Column).collect();
            let plan = match group.is_empty() {
                true => LogicalPlanBuilder::from(body.plan)
                    .limit(0, Some(1))?
                    .build()?,
                false => LogicalPlanBuilder::from(body.plan)
                    .project(group)?
                    .distinct()?
                    .build()?,
            };
            Ok((plan, matched()))
        })?;
        Ok(found.is_not_null())
    }

    /// Joins a body, of which `finish` makes at most one row per row of the domain, and names its value.
    fn join(
        &mut self,
        subquery: &LogicalPlan,
        finish: impl FnOnce(Body) -> Result<(LogicalPlan, Expr)>,
    ) -> Result<Expr> {
        *self.count += 1;
        let alias = format!("__subquery_{}", self.count);
        let mut domain = Domain::of(&self.input, subquery, format!("__domain_{}", self.count))?;
        let body = Body::of(subquery, &mut domain)?;
        let outer = body.outer.clone();
        let (plan, value) = finish(body)?;
        let key = |place: usize| Column::new(Some(alias.clone()), format!("outer_{place}"));
        let mut columns: Vec<Expr> = Vec::new();
        for (place, column) in outer.iter().enumerate() {
            let key = key(place);
            columns.push(Expr::Column(column.clone()).alias_qualified(key.relation, key.name));
        }
        columns.push(value.alias_qualified(Some(alias.clone()), "value"));
        let body = Projection::try_new(columns, Arc::new(plan))?;
        let body = LogicalPlan::Projection(body);
        let host = LogicalPlanBuilder::from(self.joined.clone());
        let joined = match outer.is_empty() {
            true => host.join_on(body, JoinType::Left, [lit(true)])?,
            false => {
                let keys: Vec<Column> = (0..outer.len()).map(key).collect();
                host.join_on(body, JoinType::Left, same(&domain.columns, &keys))?
            }
        };
        self.joined = joined.build()?;
        Ok(Expr::Column(Column::new(Some(alias), "value")))
    }
}
