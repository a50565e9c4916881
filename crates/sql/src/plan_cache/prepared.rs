//! The plan of a prepared statement.

use super::conditions::parameter_types;
use super::hopeless::Hopeless;
use super::template::Template;
use super::write::{Given, Origin, Write, compile};
use super::{PlanCache, ReadyWrite, is_write, ready};
use crate::context::StatementContext;
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a prepared statement knows of its plan.
#[derive(Debug, Default)]
pub(crate) struct PreparedPlan {
    query: Place<Template>,
    write: Place<Write>,
}

/// Where a plan is that can be used again.
#[derive(Debug)]
struct Place<T>(Mutex<Known<T>>);

#[derive(Debug)]
enum Known<T> {
    Nothing,
    /// As long as it is there.
    Plan(Weak<T>),
    /// There is none.
    None(Hopeless),
}

impl<T> Place<T> {
    /// The plan, if it is there.
    fn plan(&self) -> Option<Arc<T>> {
        match &*self.known() {
            Known::Plan(plan) => plan.upgrade(),
            _ => None,
        }
    }

    fn is_hopeless(&self, context: &StatementContext) -> bool {
        match &*self.known() {
            Known::None(hopeless) => hopeless.is_so(context),
            _ => false,
        }
    }

    /// Notes a plan, or that there is none, and gives it back.
    fn learn(&self, plan: Result<Arc<T>, Hopeless>) -> Option<Arc<T>> {
        let (known, plan) = match plan {
            Ok(plan) => (Known::Plan(Arc::downgrade(&plan)), Some(plan)),
            Err(hopeless) => (Known::None(hopeless), None),
        };
        *self.known() = known;
        plan
    }

    fn known(&self) -> MutexGuard<'_, Known<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Place(Mutex::new(Known::Nothing))
    }
}

impl PreparedPlan {
    /// Begins the query by its template, if that is there and light.
    pub fn recall_light(
        &self,
        context: &StatementContext,
        values: &[Parameter],
    ) -> Option<SendableRecordBatchStream> {
        let template = self.query.plan().filter(|template| template.is_light())?;
        template.run(context, template.bind(values)?)
    }

    /// Begins the query with these values for its parameters. `None`: it has to be planned with them.
    pub async fn begin(
        &self,
        context: &StatementContext,
        tree: &ast::Statement,
        values: &[Parameter],
        statement: &Statement,
    ) -> Option<SendableRecordBatchStream> {
        let ast::Statement::Query(query) = tree else {
            return None;
        };
        if self.query.is_hopeless(context) {
            return None;
        }
        if let Some(template) = self.query.plan() {
            let values = template.bind(values)?;
            if let Some(rows) = template.run(context, values) {
                return Some(rows);
            }
        }
        // The first time, or what it depends on has changed.
        let template = plan(context, query, values.len(), statement).await;
        let template = self.query.learn(template)?;
        if let Some(contents) = template.contents() {
            contents
                .attached::<PlanCache>()
                .keep(Arc::clone(&template) as _);
        }
        template.run(context, template.bind(values)?)
    }

    /// The write that it is, with these values, if that is known.
    pub fn recall_write(&self, values: &[Parameter]) -> Option<ReadyWrite> {
        ready(&self.write.plan()?, &Given::Parameters(values))
    }

    /// Finds out whether it is a write of single rows. `names` are those of its parameters.
    pub async fn learn_write(
        &self,
        context: &StatementContext,
        tree: &ast::Statement,
        names: &[&str],
        values: &[Parameter],
        statement: &Statement,
    ) -> Option<ReadyWrite> {
        if !is_write(tree) || self.write.is_hopeless(context) {
            return None;
        }
        let is_current = |write: &Arc<Write>| {
            write
                .contents()
                .is_some_and(|contents| Arc::ptr_eq(&contents, &context.catalog.contents()))
        };
        // There may be one, but not for such values.
        if self.write.plan().as_ref().is_some_and(is_current) {
            return None;
        }
        let origin = Origin::Parameters(names, values);
        let write = compile(context, tree, origin, statement)
            .await
            .map(Arc::new);
        let write = write.ok_or_else(|| Hopeless::now(context, &[]));
        let write = self.write.learn(write)?;
        if let Some(contents) = write.contents() {
            contents
                .attached::<PlanCache>()
                .keep(Arc::clone(&write) as _);
        }
        ready(&write, &Given::Parameters(values))
    }
}

async fn plan(
    context: &StatementContext,
    query: &ast::Query,
    parameters: usize,
    statement: &Statement,
) -> Result<Arc<Template>, Hopeless> {
    let mut query = query.clone();
    let found = parameter_types(context, &mut query, parameters);
    let found = found.filter(|(_, types)| !types.is_empty());
    let (tables, types) = found.ok_or_else(|| Hopeless::now(context, &[]))?;
    let template = Template::plan(context, query, &tables, types, statement).await;
    let template = template.ok_or_else(|| Hopeless::now(context, &tables))?;
    Ok(Arc::new(template))
}
