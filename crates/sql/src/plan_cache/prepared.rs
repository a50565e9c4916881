//! The plan of a prepared statement.

use super::conditions::parameter_types;
use super::template::Template;
use super::uncacheable::Uncacheable;
use super::write::{Write, compile};
use super::{Asked, NotShort, PlanCache, Short, ready};
use crate::context::StatementContext;
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use arc_swap::ArcSwap;
use datafusion::sql::sqlparser::ast;
use std::sync::{Arc, Weak};

/// What a prepared statement knows of its plan.
#[derive(Debug, Default)]
pub(crate) struct PreparedPlan {
    query: PlanPlace<Template>,
    write: PlanPlace<Write>,
}

/// Where a plan is that can be used again.
#[derive(Debug)]
struct PlanPlace<T>(ArcSwap<PreparedEntry<T>>);

#[derive(Debug)]
enum PreparedEntry<T> {
    Nothing,
    /// As long as it is there.
    Plan(Weak<T>),
    /// There is none.
    None(Uncacheable),
}

impl<T> PlanPlace<T> {
    /// The plan.
    ///
    /// # Errors
    /// There is none, perhaps not yet.
    fn plan(&self, context: &StatementContext) -> Result<Arc<T>, NotShort> {
        match &**self.0.load() {
            PreparedEntry::Plan(plan) => plan.upgrade().ok_or(NotShort::Outdated),
            PreparedEntry::None(why) => Err(why.reason(context).unwrap_or(NotShort::Outdated)),
            PreparedEntry::Nothing => Err(NotShort::NotPlanned),
        }
    }

    /// Notes a plan, or that there is none, and gives it back.
    fn note(&self, plan: Result<Arc<T>, Uncacheable>) -> Result<Arc<T>, NotShort> {
        match plan {
            Ok(plan) => {
                let entry = PreparedEntry::Plan(Arc::downgrade(&plan));
                self.0.store(Arc::new(entry));
                Ok(plan)
            }
            Err(why) => {
                let reason = why.why();
                self.0.store(Arc::new(PreparedEntry::None(why)));
                Err(reason)
            }
        }
    }
}

impl<T> Default for PlanPlace<T> {
    fn default() -> Self {
        PlanPlace(ArcSwap::from_pointee(PreparedEntry::Nothing))
    }
}

impl PreparedPlan {
    /// The plan that is kept, with these values for its parameters.
    pub(super) fn lookup(
        &self,
        context: &StatementContext,
        asked: Asked<'_>,
        values: &[Parameter],
    ) -> Result<Short, NotShort> {
        match self.query.plan(context) {
            Ok(template) => bound(template, values),
            // It is one or the other.
            Err(NotShort::NotPlanned) => ready(&self.write.plan(context)?, asked),
            Err(reason) => Err(reason),
        }
    }

    /// Plans it for all values, and keeps the plan.
    pub(super) async fn admit(
        &self,
        context: &StatementContext,
        tree: &ast::Statement,
        asked: Asked<'_>,
        values: &[Parameter],
        statement: &Statement,
    ) -> Result<Short, NotShort> {
        if let ast::Statement::Query(query) = tree {
            let template = template(context, query, values.len(), statement).await;
            let template = self.query.note(template)?;
            if let Some(contents) = template.contents() {
                let plans = contents.attached::<PlanCache>();
                plans.keep(Arc::clone(&template) as _);
            }
            return bound(template, values);
        }
        let write = compile(context, tree, asked, statement).await;
        let write = write.map_err(|reason| Uncacheable::now(context, reason, &[]));
        let write = self.write.note(write.map(Arc::new))?;
        if let Some(contents) = write.contents() {
            let plans = contents.attached::<PlanCache>();
            plans.keep(Arc::clone(&write) as _);
        }
        ready(&write, asked)
    }
}

fn bound(template: Arc<Template>, values: &[Parameter]) -> Result<Short, NotShort> {
    let values = template.bind(values)?;
    Ok(Short::Query(template, values))
}

async fn template(
    context: &StatementContext,
    query: &ast::Query,
    parameters: usize,
    statement: &Statement,
) -> Result<Arc<Template>, Uncacheable> {
    let mut query = query.clone();
    let found = parameter_types(context, &mut query, parameters);
    let (tables, types) = found.map_err(|reason| Uncacheable::now(context, reason, &[]))?;
    let template = Template::plan(context, query, &tables, types, statement).await;
    let template = template.map_err(|reason| Uncacheable::now(context, reason, &tables))?;
    Ok(Arc::new(template))
}
