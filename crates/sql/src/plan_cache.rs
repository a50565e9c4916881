//! Plans of queries that differ only in the constants that their conditions compare columns with.
//!
//! ```text
//! SELECT sum(v) FROM t WHERE k = 17 AND d < DATE '2024-01-01' LIMIT 5
//!    │ mask
//!    ▼
//! SELECT sum(v) FROM t WHERE k = #n AND d < DATE #s LIMIT #n       + 17, '2024-01-01', 5
//!    │ look up                                                                 │
//!    ▼                                                                         │
//! template: LIMIT is 5; a fragment with k = $1, d < $2  ◄── bind: 17, 2024-01-01 as values of k's and d's types
//!    │ at the newest snapshot
//!    ▼
//! the query's own plan
//! ```
//!
//! Planning takes longer than reading a million rows. What is kept is a physical plan, never an answer. A template is
//! made of queries over one table, or inner joins of several that become lookups of one fragment. Their conditions end up in fragments, as all
//! comparisons of a column with a constant do. It is part of the catalogue's contents and ends with them, and holds as long as the session's variables are what they were, and the
//! tables are as large that they are read over as many streams. A constant that is no exact value of its column's type is left to the planner.
//!
//! A template for the row of one key is a lookup ([`point`]), and a write of single rows by key is kept as what it computes ([`mod@write`]).

mod conditions;
mod constant;
mod constants;
mod given;
mod hopeless;
mod mask;
mod point;
mod prepared;
mod steps;
mod template;
#[cfg(test)]
mod tests;
mod texts;
mod write;

pub(crate) use prepared::PreparedPlan;

use crate::cancel::CancelToken;
use crate::catalog::Attached;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use constants::Constants;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use eris_fragment::Scalar;
use hopeless::Hopeless;
use mask::Masked;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use template::Template;
use texts::{TEXTS, TextPlan, Texts};
use write::{Given, Operand, Origin, Write};

/// The templates of all sessions for one state of the catalogue.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    queries: Texts<TextTemplate>,
    constants: Texts<Constants>,
    writes: Texts<Arc<Write>>,
    /// The newest plans of prepared statements, which themselves only know where these are.
    prepared: Mutex<VecDeque<Arc<dyn Any + Send + Sync>>>,
}

/// A template of a text.
#[derive(Debug)]
struct TextTemplate {
    template: Template,
    /// Where the parameters come from.
    sources: Vec<conditions::Source>,
}

impl TextTemplate {
    fn parameters(&self, masked: &Masked<'_>) -> Option<Vec<Scalar>> {
        let types = self.template.parameters().iter();
        let values = self.sources.iter().zip(types);
        values
            .map(|(source, to)| constant::read(masked.literal(source.literal), source, to))
            .collect()
    }
}

/// Begins the query by a template, if there is one.
pub(crate) fn recall(
    context: &StatementContext,
    statement: &Statement,
) -> Option<SendableRecordBatchStream> {
    recall_if(context, statement, |_| true)
}

/// The same, if its plan does next to nothing above the fragment.
pub(crate) fn recall_light(
    context: &StatementContext,
    statement: &Statement,
) -> Option<SendableRecordBatchStream> {
    recall_if(context, statement, Template::is_light)
}

fn recall_if(
    context: &StatementContext,
    statement: &Statement,
    is_wanted: impl Fn(&Template) -> bool,
) -> Option<SendableRecordBatchStream> {
    let masked = Masked::new(statement.text())?;
    let contents = context.catalog.contents();
    if let Some(constants) = contents.attached::<PlanCache>().constants.find(&masked) {
        return constants.plan.run(context, &masked);
    }
    let found = contents.attached::<PlanCache>().queries.find(&masked)?;
    let found = &found.plan;
    is_wanted(&found.template).then_some(())?;
    found.template.run(context, found.parameters(&masked)?)
}

/// Makes a template of a query that has none, and begins the query by it. `None`: it has to be planned as it is.
pub(crate) async fn learn(
    context: &StatementContext,
    query: &ast::Query,
    statement: &Statement,
) -> Option<SendableRecordBatchStream> {
    let masked = Masked::new(statement.text())?;
    let contents = context.catalog.contents();
    if contents
        .attached::<PlanCache>()
        .queries
        .is_hopeless(context, &masked)
    {
        return None;
    }
    if contents
        .attached::<PlanCache>()
        .constants
        .find(&masked)
        .is_none()
        && let Some(plan) = Constants::plan(context, query, &masked, statement).await
    {
        let plan = Arc::new(TextPlan::new(plan, &masked, |_| true));
        contents
            .attached::<PlanCache>()
            .constants
            .remember(&masked, &plan);
        return plan.plan.run(context, &masked);
    }
    // There is one, but not for such constants.
    if let Some(known) = contents.attached::<PlanCache>().queries.find(&masked)
        && known.plan.parameters(&masked).is_none()
    {
        return None;
    }
    let template = text_template(context, query, &masked, statement).await;
    let template = match template.map(Arc::new) {
        Ok(template) => template,
        Err(hopeless) => {
            contents
                .attached::<PlanCache>()
                .queries
                .give_up(&masked, hopeless);
            return None;
        }
    };
    let planned = &template.plan;
    // The contents that it was planned with, which may be newer.
    if let Some(contents) = planned.template.contents() {
        contents
            .attached::<PlanCache>()
            .queries
            .remember(&masked, &template);
    }
    let values = planned.parameters(&masked)?;
    planned.template.run(context, values)
}

/// A write and the values that it is to be executed with.
pub(crate) struct ReadyWrite {
    write: Arc<Write>,
    values: Arc<[ScalarValue]>,
}

impl ReadyWrite {
    /// Executes it. `None`: nothing was written, and the statement has to go its own way.
    pub async fn run(
        &self,
        context: &StatementContext,
        token: &CancelToken,
    ) -> Result<Option<Begun>, SqlError> {
        self.write.run(context, &self.values, token).await
    }
}

/// The write that a text is, if it is known.
pub(crate) fn recall_write(
    context: &StatementContext,
    statement: &Statement,
) -> Option<ReadyWrite> {
    let masked = Masked::new(statement.text())?;
    let contents = context.catalog.contents();
    let found = contents.attached::<PlanCache>().writes.find(&masked)?;
    ready(&found.plan, &Given::Text(&masked))
}

/// Finds out whether a statement is a write of single rows, and keeps it if it is.
pub(crate) async fn learn_write(
    context: &StatementContext,
    tree: &ast::Statement,
    statement: &Statement,
) -> Option<ReadyWrite> {
    if !is_write(tree) {
        return None;
    }
    let masked = Masked::new(statement.text())?;
    let contents = context.catalog.contents();
    let writes = &contents.attached::<PlanCache>().writes;
    // There may be one, but not for such constants.
    if writes.is_hopeless(context, &masked) || writes.find(&masked).is_some() {
        return None;
    }
    let Some(write) = write::compile(context, tree, Origin::Text(&masked), statement).await else {
        writes.give_up(&masked, Hopeless::now(context, &[]));
        return None;
    };
    let write = Arc::new(write);
    let is_operand = |literal: usize| {
        let mut operands = write.operands().iter();
        operands
            .any(|operand| matches!(operand, Operand::Literal(source) if source.literal == literal))
    };
    let plan = TextPlan::new(Arc::clone(&write), &masked, is_operand);
    if let Some(contents) = write.contents() {
        contents
            .attached::<PlanCache>()
            .writes
            .remember(&masked, &Arc::new(plan));
    }
    ready(&write, &Given::Text(&masked))
}

fn ready(write: &Arc<Write>, given: &Given<'_>) -> Option<ReadyWrite> {
    Some(ReadyWrite {
        values: given.values(write.operands())?,
        write: Arc::clone(write),
    })
}

fn is_write(tree: &ast::Statement) -> bool {
    use ast::Statement::{Delete, Insert, Update};
    matches!(tree, Insert(_) | Update(_) | Delete(_))
}

async fn text_template(
    context: &StatementContext,
    query: &ast::Query,
    masked: &Masked<'_>,
    statement: &Statement,
) -> Result<TextPlan<TextTemplate>, Hopeless> {
    let mut query = query.clone();
    let found = conditions::parameterize(context, &mut query, masked);
    let (tables, sources) = found.ok_or_else(|| Hopeless::now(context, &[]))?;
    let types = sources.iter().map(|source| source.data_type.clone());
    let template = Template::plan(context, query, &tables, types.collect(), statement).await;
    let template = template.ok_or_else(|| Hopeless::now(context, &tables))?;
    let is_parameter: Vec<usize> = sources.iter().map(|source| source.literal).collect();
    let plan = TextTemplate { template, sources };
    Ok(TextPlan::new(plan, masked, |literal| {
        is_parameter.contains(&literal)
    }))
}

impl Attached for PlanCache {}

impl PlanCache {
    /// Keeps the plan of a prepared statement.
    fn keep(&self, plan: Arc<dyn Any + Send + Sync>) {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if prepared.len() == TEXTS {
            prepared.pop_front();
        }
        prepared.push_back(plan);
    }
}
