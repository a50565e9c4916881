//! A physical plan over one table, or the joins of several, whose fragments have parameters.

use super::NotShort;
use super::point::Point;
use crate::catalog::{Contents, Table};
use crate::context::StatementContext;
use crate::context::Variables;
use crate::plan::dictionary_exec::DictionaryExec;
use crate::plan::fragment_exec::{FragmentExec, over_scans};
use crate::plan::parameter;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::plan::scan::Scan;
use crate::text::names::Headers;
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, execute_stream,
};
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast;
use eris_fragment::{Scalar, Type};
use std::sync::{Arc, Weak};

/// Operators that begin anew when they get new inputs, and hold nothing that depends on a snapshot.
const OPERATORS: [&str; 10] = [
    "AggregateExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "MergeGroupsExec",
    "ProjectionExec",
    "RepartitionExec",
    "SortExec",
    "SortPreservingMergeExec",
];

/// Those that only pass rows on.
const LIGHT: [&str; 4] = [
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "ProjectionExec",
];

/// A plan with parameters, and what it depends on.
#[derive(Debug)]
pub(crate) struct Template {
    /// The contents of the catalogue that own it.
    contents: Weak<Contents>,
    variables: Variables,
    /// Each with the number of streams over which it is read.
    tables: Vec<(Arc<Table>, usize)>,
    parameters: Vec<Type>,
    plan: Arc<dyn ExecutionPlan>,
    config: SessionConfig,
    headers: Headers,
    /// Whether the operators above the fragment do next to nothing, and that in the thread that asks for the rows.
    is_light: bool,
    /// If it is a query for the row of one key.
    point: Option<Point>,
}

impl Template {
    /// Plans a query with parameters of these types.
    ///
    /// # Errors
    /// Its plan can be no template, or it has an error, which planning it with its constants tells better.
    pub async fn plan(
        context: &StatementContext,
        query: ast::Query,
        tables: &[Arc<Table>],
        parameters: Vec<Type>,
        statement: &Statement,
    ) -> Result<Template, NotShort> {
        let names = NameScope::now(context);
        let contents = Arc::downgrade(names.contents());
        let scans = tables.iter().map(|table| {
            let scan = names.scan(Arc::clone(table), &parameters).ok()?;
            let streams = scan.streams;
            let scan = Scan {
                snapshot: None,
                ..scan
            };
            Some((Arc::new(scan), (Arc::clone(table), streams)))
        });
        let scans = scans.collect::<Option<Vec<_>>>().ok_or(NotShort::Fails)?;
        let (scans, tables): (Vec<_>, Vec<_>) = scans.into_iter().unzip();
        let names = names.with_parameters(&parameters);
        let planned = planning::logical_at(context, query, &names, statement).await;
        let (state, logical, headers) = planned.map_err(|_| NotShort::Fails)?;
        if !is_immutable(&logical) {
            return Err(NotShort::Volatile);
        }
        let logical = parameter::put_in(logical, &parameters).map_err(|_| NotShort::Fails)?;
        let plan = planning::plan_logical(context, logical, &state, statement).await;
        let plan = plan.map_err(|_| NotShort::Fails)?.physical;
        if !only_fragments(&plan) {
            return Err(NotShort::Operators);
        }
        let point = Point::of(&plan);
        let plan = over_scans(&plan, &scans).ok_or(NotShort::Operators)?;
        Ok(Template {
            contents,
            variables: context.variables().clone(),
            tables,
            parameters,
            is_light: is_light(&plan) || point.is_some(),
            point,
            plan,
            config: state.config().clone(),
            headers,
        })
    }

    /// The contents of the catalogue that it was planned with, if they are still there.
    pub fn contents(&self) -> Option<Arc<Contents>> {
        self.contents.upgrade()
    }

    /// Whether whoever reads the rows can do without threads that work for him.
    pub fn is_light(&self) -> bool {
        self.is_light
    }

    /// The types of its parameters.
    pub fn parameters(&self) -> &[Type] {
        &self.parameters
    }

    /// Whether it reads the row of one key.
    pub fn is_lookup(&self) -> bool {
        self.point.is_some()
    }

    /// The values as its parameters.
    ///
    /// # Errors
    /// One does not fit.
    pub fn bind(&self, values: &[Parameter]) -> Result<Vec<Scalar>, NotShort> {
        let values = values.iter().zip(&self.parameters);
        let values = values.map(|(value, to)| super::constant::convert(value.value(), to));
        values.collect::<Option<_>>().ok_or(NotShort::Value)
    }

    /// Begins the query at the newest snapshot.
    ///
    /// # Errors
    /// What it depends on has changed.
    pub fn run(
        &self,
        context: &StatementContext,
        values: Vec<Scalar>,
    ) -> Result<SendableRecordBatchStream, NotShort> {
        if !context.catalog.is_at(&self.contents) || *context.variables() != self.variables {
            return Err(NotShort::Outdated);
        }
        if let Some(point) = &self.point {
            let rows = point.run(context, &values).ok_or(NotShort::Fails)?;
            return Ok(self.headers.head(rows));
        }
        let names = NameScope::now(context);
        if !std::ptr::eq(Arc::as_ptr(names.contents()), self.contents.as_ptr()) {
            return Err(NotShort::Outdated);
        }
        let mut scans = Vec::with_capacity(self.tables.len());
        for (table, streams) in &self.tables {
            let scan = names.scan(Arc::clone(table), &self.parameters);
            let scan = scan.map_err(|_| NotShort::Fails)?;
            if scan.streams != *streams {
                return Err(NotShort::Outdated);
            }
            let values = values.clone();
            scans.push(Arc::new(Scan { values, ..scan }));
        }
        let plan = over_scans(&self.plan, &scans).ok_or(NotShort::Operators)?;
        let task = planning::context_with(context, &self.config);
        let rows = execute_stream(plan, task).map_err(|_| NotShort::Fails)?;
        Ok(self.headers.head(rows))
    }
}

/// Whether the same query means the same at any time and in any session.
pub(super) fn is_immutable(plan: &LogicalPlan) -> bool {
    let mut immutable = true;
    let visited = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                immutable &= match expr {
                    Expr::ScalarFunction(function) => {
                        function.func.signature().volatility == Volatility::Immutable
                    }
                    Expr::ScalarVariable(..) => false,
                    _ => true,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    immutable && visited.is_ok()
}

/// Whether a plan consists of fragments whose filters are known before they run, and operators that may be executed
/// again.
fn only_fragments(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return fragment.has_constant_filters() && children.into_iter().all(only_fragments);
    }
    if plan.is::<DictionaryExec>() {
        return true;
    }
    // A sort with a limit remembers what it need not look at.
    let begins_anew =
        OPERATORS.contains(&plan.name()) && !(plan.is::<SortExec>() && plan.fetch().is_some());
    // Other leaves would not be at the newest snapshot.
    begins_anew && !children.is_empty() && children.into_iter().all(only_fragments)
}

/// Whether a plan is a fragment of one stream, and operators that neither begin threads nor hold rows.
fn is_light(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes_on = match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) => aggregate.group_expr().is_empty(),
        None => LIGHT.contains(&plan.name()),
    };
    match plan.children().as_slice() {
        [] => plan.output_partitioning().partition_count() == 1,
        [input] => passes_on && is_light(input),
        _ => false,
    }
}
