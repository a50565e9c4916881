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
//! made of queries over one table, or inner joins of several that become lookups of one fragment. Their conditions end
//! up in fragments, as all comparisons of a column with a constant do. A template is part of the catalogue's contents
//! and ends with them. It holds as long as the session's variables are what they were, and the tables are so large that
//! they are read over as many streams. A constant that is no exact value of its column's type is left to the planner.
//!
//! A template for the row of one key is a lookup ([`point`]), and a write of single rows by key is kept as what it
//! computes ([`mod@write`]). What cannot be kept has a reason, [`NotShort`].

mod conditions;
mod constant;
mod constants;
mod given;
mod literal;
mod mask;
mod not_short;
mod point;
mod prepared;
mod steps;
mod template;
#[cfg(test)]
mod tests;
mod texts;
mod uncacheable;
mod write;

pub(crate) use mask::{Mask, Masked};
pub(crate) use not_short::NotShort;
pub(crate) use prepared::PreparedPlan;

use crate::cancel::CancelToken;
use crate::catalog::Attached;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::text::parameter::Parameter;
use crate::text::statement::Statement;
use constants::Constants;
use datafusion::common::ScalarValue;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use eris_atomics::Lock;
use eris_fragment::Scalar;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use template::Template;
use texts::{TEXTS, TextPlan, Texts};
use uncacheable::Uncacheable;
use write::{Operand, Write, compile};

/// The templates of all sessions for one state of the catalogue.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    queries: Texts<TextTemplate>,
    constants: Texts<Constants>,
    writes: Texts<Arc<Write>>,
    /// The newest plans of prepared statements, which themselves only know where these are.
    prepared: Lock<VecDeque<Arc<dyn Any + Send + Sync>>>,
}

impl Attached for PlanCache {}

/// A statement whose plan is asked for, with the values that change from one execution to the next.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// They are the constants of its text.
    Text(Masked<'a>),
    /// They are given for the parameters with these names.
    Prepared {
        plan: &'a PreparedPlan,
        names: &'a [String],
        values: &'a [Parameter],
    },
}

/// A plan that is ready to be executed with its values.
pub(crate) enum Short {
    /// A row of constants.
    Row(SendableRecordBatchStream),
    Query(Arc<Template>, Vec<Scalar>),
    Write(ReadyWrite),
}

/// A write and the values that it is to be executed with.
pub(crate) struct ReadyWrite {
    write: Arc<Write>,
    values: Arc<[ScalarValue]>,
}

/// What became of a statement on the short way, unless it failed. `NotShort`: nothing has happened yet.
pub(crate) type Attempt = Result<Begun, NotShort>;

impl Short {
    /// Whether it is executed best where it is asked for: there is hardly anything to do above its fragment, or its
    /// row.
    pub fn is_light(&self) -> bool {
        match self {
            Short::Query(template, _) => template.is_light(),
            Short::Row(_) | Short::Write(_) => true,
        }
    }

    /// Executes it, a query at the newest snapshot.
    pub async fn run(
        self,
        context: &StatementContext,
        token: &CancelToken,
    ) -> Result<Attempt, SqlError> {
        match self {
            Short::Row(rows) => Ok(Ok(Begun::Rows(rows))),
            Short::Query(template, values) => Ok(template.run(context, values).map(Begun::Rows)),
            Short::Write(ReadyWrite { write, values }) => write.run(context, &values, token).await,
        }
    }

    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Short::Query(template, _) if template.is_lookup() => "a lookup by key",
            Short::Row(_) | Short::Query(..) => "a plan that is kept",
            Short::Write(_) => "a write of single rows",
        }
    }
}

/// The plan that is kept for a statement.
///
/// # Errors
/// There is none, or not for these values.
pub(crate) fn lookup(context: &StatementContext, asked: Asked<'_>) -> Result<Short, NotShort> {
    let masked = match asked {
        Asked::Text(masked) => masked,
        Asked::Prepared { plan, values, .. } => return plan.lookup(context, asked, values),
    };
    let contents = context.catalog.look();
    let plans = contents.attached::<PlanCache>();
    if !masked.is_query() {
        let found = plans.writes.find(context, &masked)?;
        return ready(&found.plan, asked);
    }
    if let Ok(constants) = plans.constants.find(context, &masked) {
        return constants.plan.run(context, &masked).map(Short::Row);
    }
    let found = plans.queries.find(context, &masked)?;
    found.plan.bind(&masked)
}

/// Plans a statement for all values that it may be executed with, and keeps the plan.
///
/// # Errors
/// There can be none, which is noted.
pub(crate) async fn admit(
    context: &StatementContext,
    tree: &ast::Statement,
    asked: Asked<'_>,
    statement: &Statement,
) -> Result<Short, NotShort> {
    let masked = match asked {
        Asked::Text(masked) => masked,
        Asked::Prepared { plan, values, .. } => {
            return plan.admit(context, tree, asked, values, statement).await;
        }
    };
    let contents = context.catalog.contents();
    let plans = contents.attached::<PlanCache>();
    match planned(context, tree, &masked, statement).await {
        Ok(Planned::Constants(plan)) => {
            plans.constants.remember(context, &masked, &plan);
            plan.plan.run(context, &masked).map(Short::Row)
        }
        Ok(Planned::Query(template)) => {
            // The contents that it was planned with, which may be newer.
            if let Some(contents) = template.plan.template.contents() {
                let plans = contents.attached::<PlanCache>();
                plans.queries.remember(context, &masked, &template);
            }
            template.plan.bind(&masked)
        }
        Ok(Planned::Write(write)) => {
            if let Some(contents) = write.plan.contents() {
                let plans = contents.attached::<PlanCache>();
                plans.writes.remember(context, &masked, &write);
            }
            ready(&write.plan, asked)
        }
        Err(why) => {
            let reason = why.why();
            match tree {
                ast::Statement::Query(_) => plans.queries.give_up(context, &masked, why),
                _ => plans.writes.give_up(context, &masked, why),
            }
            Err(reason)
        }
    }
}

/// What a statement would do on the short path, for EXPLAIN. The plan of a text is not kept. That of a prepared
/// statement is, as if it had been executed.
///
/// # Errors
/// Why it would go the general path.
pub(crate) async fn explain(
    context: &StatementContext,
    tree: &ast::Statement,
    asked: Asked<'_>,
    statement: &Statement,
) -> Result<&'static str, NotShort> {
    let short = match asked {
        Asked::Text(masked) => {
            let planned = planned(context, tree, &masked, statement).await;
            match planned.map_err(|why| why.why())? {
                Planned::Constants(plan) => plan.plan.run(context, &masked).map(Short::Row)?,
                Planned::Query(template) => template.plan.bind(&masked)?,
                Planned::Write(write) => ready(&write.plan, asked)?,
            }
        }
        Asked::Prepared { plan, values, .. } => {
            plan.admit(context, tree, asked, values, statement).await?
        }
    };
    Ok(short.kind())
}

/// A plan of a text.
enum Planned {
    Constants(Arc<TextPlan<Constants>>),
    Query(Arc<TextPlan<TextTemplate>>),
    Write(Arc<TextPlan<Arc<Write>>>),
}

async fn planned(
    context: &StatementContext,
    tree: &ast::Statement,
    masked: &Masked<'_>,
    statement: &Statement,
) -> Result<Planned, Uncacheable> {
    let ast::Statement::Query(query) = tree else {
        let write = compile(context, tree, Asked::Text(*masked), statement).await;
        let write = write.map_err(|reason| Uncacheable::now(context, reason, &[]))?;
        let write = Arc::new(write);
        let is_operand = |literal: usize| {
            let mut operands = write.operands().iter();
            operands.any(
                |operand| matches!(operand, Operand::Literal(source) if source.literal == literal),
            )
        };
        let plan = TextPlan::new(Arc::clone(&write), masked, is_operand);
        return Ok(Planned::Write(Arc::new(plan)));
    };
    if let Some(plan) = Constants::plan(context, query, masked, statement).await {
        return Ok(Planned::Constants(Arc::new(TextPlan::new(
            plan,
            masked,
            |_| true,
        ))));
    }
    let template = text_template(context, query, masked, statement).await?;
    Ok(Planned::Query(Arc::new(template)))
}

fn ready(write: &Arc<Write>, asked: Asked<'_>) -> Result<Short, NotShort> {
    Ok(Short::Write(ReadyWrite {
        values: write::values(asked, write.operands())?,
        write: Arc::clone(write),
    }))
}

/// A template of a text.
#[derive(Debug)]
struct TextTemplate {
    template: Arc<Template>,
    /// Where the parameters come from.
    sources: Vec<literal::LiteralSource>,
}

impl TextTemplate {
    fn bind(&self, masked: &Masked<'_>) -> Result<Short, NotShort> {
        let types = self.template.parameters().iter();
        let values = self.sources.iter().zip(types);
        let values = values
            .map(|(source, to)| constant::read(masked.literal(source.literal), source, to))
            .collect::<Option<_>>();
        let values = values.ok_or(NotShort::Value)?;
        Ok(Short::Query(Arc::clone(&self.template), values))
    }
}

async fn text_template(
    context: &StatementContext,
    query: &ast::Query,
    masked: &Masked<'_>,
    statement: &Statement,
) -> Result<TextPlan<TextTemplate>, Uncacheable> {
    let mut query = query.clone();
    let found = conditions::parameterize(context, &mut query, masked);
    let (tables, sources) = found.map_err(|reason| Uncacheable::now(context, reason, &[]))?;
    let types = sources.iter().map(|source| source.data_type.clone());
    let template = Template::plan(context, query, &tables, types.collect(), statement).await;
    let template = template.map_err(|reason| Uncacheable::now(context, reason, &tables))?;
    let is_parameter: Vec<usize> = sources.iter().map(|source| source.literal).collect();
    let template = Arc::new(template);
    let plan = TextTemplate { template, sources };
    Ok(TextPlan::new(plan, masked, |literal| {
        is_parameter.contains(&literal)
    }))
}

impl PlanCache {
    /// Keeps the plan of a prepared statement.
    fn keep(&self, plan: Arc<dyn Any + Send + Sync>) {
        let mut prepared = self.prepared.lock();
        if prepared.len() == TEXTS {
            prepared.pop_front();
        }
        prepared.push_back(plan);
    }
}
