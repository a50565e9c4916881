//! A physical plan over one table whose fragment has parameters.

use super::parameter;
use super::point::Point;
use crate::catalog::{Contents, Table};
use crate::core::Core;
use crate::fragment_exec::FragmentExec;
use crate::names::Headers;
use crate::parameter::Parameter;
use crate::scan::Scan;
use crate::settings::Variables;
use crate::statement::Statement;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, execute_stream,
};
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast;
use eris_fragment::{Scalar, Type};
use std::sync::{Arc, Weak};

/// Operators that begin anew when they get new inputs, and hold nothing that depends on a snapshot.
const OPERATORS: [&str; 9] = [
    "AggregateExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
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
pub(super) struct Template {
    /// The contents of the catalogue that own it.
    contents: Weak<Contents>,
    variables: Variables,
    table: Arc<Table>,
    lanes: usize,
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
    /// Plans a query with parameters of these types; `None` if its plan can be no template, or it has an error, which
    /// planning it with its constants tells better.
    pub async fn plan(
        core: &Core,
        query: ast::Query,
        table: &Arc<Table>,
        parameters: Vec<Type>,
        statement: &Statement,
    ) -> Option<Template> {
        let names = core.names();
        let contents = Arc::downgrade(names.contents());
        let scan = names.scan(Arc::clone(table), &parameters).ok()?;
        let lanes = scan.lanes;
        let names = names.with_parameters(&parameters);
        let planned = core.logical_at(query, &names, statement).await;
        let (state, logical, headers) = planned.ok()?;
        if !is_immutable(&logical) {
            return None;
        }
        let logical = parameter::put_in(logical, &parameters, table.types.len()).ok()?;
        let plan = core.plan_logical(logical, &state, statement).await.ok()?;
        let plan = plan.physical;
        let fragment = only_fragment(&plan)?;
        if !Arc::ptr_eq(&fragment.scan().table, table) || !fragment.has_constant_filters() {
            return None;
        }
        let scan = Scan {
            snapshot: None,
            ..scan
        };
        let point = Point::of(&plan);
        let plan = over(&plan, &Arc::new(scan))?;
        Some(Template {
            contents,
            variables: core.variables().clone(),
            table: Arc::clone(table),
            lanes,
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

    /// The values as its parameters; `None` if one does not fit.
    pub fn bind(&self, values: &[Parameter]) -> Option<Vec<Scalar>> {
        let values = values.iter().zip(&self.parameters);
        values
            .map(|(value, to)| super::constant::convert(value.value(), to))
            .collect()
    }

    /// Begins the query at the newest snapshot. `None` if what it depends on has changed.
    pub fn run(&self, core: &Core, values: Vec<Scalar>) -> Option<SendableRecordBatchStream> {
        let is_current =
            |contents: &Arc<Contents>| std::ptr::eq(Arc::as_ptr(contents), self.contents.as_ptr());
        if !is_current(&core.catalog.contents()) || *core.variables() != self.variables {
            return None;
        }
        if let Some(point) = &self.point {
            return Some(self.headers.head(point.run(core, &values)?));
        }
        let names = core.names();
        if !is_current(names.contents()) {
            return None;
        }
        let scan = names.scan(Arc::clone(&self.table), &self.parameters).ok()?;
        if scan.lanes != self.lanes {
            return None;
        }
        let scan = Arc::new(Scan { values, ..scan });
        let plan = over(&self.plan, &scan)?;
        let context = core.context_with(&self.config);
        Some(self.headers.head(execute_stream(plan, context).ok()?))
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

/// The fragment of a plan that consists of it and known operators.
fn only_fragment(plan: &Arc<dyn ExecutionPlan>) -> Option<&FragmentExec> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return Some(fragment);
    }
    // A sort with a limit remembers what it need not look at.
    let begins_anew =
        OPERATORS.contains(&plan.name()) && !(plan.is::<SortExec>() && plan.fetch().is_some());
    match plan.children().as_slice() {
        [input] if begins_anew => only_fragment(input),
        _ => None,
    }
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

/// The same plan over another scan.
fn over(plan: &Arc<dyn ExecutionPlan>, scan: &Arc<Scan>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return Some(Arc::new(fragment.over(scan)));
    }
    let input = over(plan.children().first()?, scan)?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(vec![input], options).ok()
}
