//! From a syntax tree to a plan that can be run.

use crate::cancel;
use crate::catalog::{CATALOG, RelationName};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::answers::{self, MayRead};
use crate::plan::files;
use crate::plan::group_keys;
use crate::plan::resolve::NameScope;
use crate::progress;
use crate::running::queries::{MeteredPool, Query};
use crate::text::identifier::last_name;
use crate::text::names::Headers;
use crate::text::parse::{parse, planning_error};
use crate::text::rewrite::rewrite;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{self};
use eris_files::context_of_load;
use eris_syntax::relations;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A query that is ready to run.
pub(crate) struct Plan {
    pub logical: LogicalPlan,
    pub physical: Arc<dyn ExecutionPlan>,
    pub context: Arc<TaskContext>,
    headers: Headers,
}

impl Plan {
    /// Opens all partitions as one stream. Work begins when it is polled.
    pub fn run(&self) -> Result<SendableRecordBatchStream, SqlError> {
        self.run_in(Arc::clone(&self.context))
    }

    /// The same, for rows that go into a table.
    pub fn run_into_table(&self) -> Result<SendableRecordBatchStream, SqlError> {
        self.run_in(context_of_load(&self.physical, &self.context))
    }

    fn run_in(&self, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream, SqlError> {
        files::tell_progress(&self.physical, &progress::current())
            .and_then(|()| execute_stream(Arc::clone(&self.physical), context))
            .map_err(SqlError::from_datafusion)
    }

    /// The same plan, as if nothing of it had been executed.
    pub fn reset(mut self) -> Result<Self, SqlError> {
        let reset = reset_plan_states(self.physical);
        self.physical = reset.map_err(SqlError::from_datafusion)?;
        Ok(self)
    }

    /// The same, with the columns named as the user is to see them.
    pub fn answer(&self) -> Result<SendableRecordBatchStream, SqlError> {
        Ok(self.headers.head(self.run()?))
    }

    /// The columns as the user is to see them.
    pub fn shown(&self) -> SchemaRef {
        self.headers.name(&self.physical.schema())
    }

    /// The columns as a table of this query's rows has them.
    pub fn columns(&self) -> SchemaRef {
        self.headers.name_uniquely(&self.physical.schema())
    }
}

/// Looks up the names of a query, at the newest snapshot, and finds the types of its expressions; also what its
/// columns are called.
pub(crate) async fn logical(
    context: &StatementContext,
    mut query: ast::Query,
    statement: &Statement,
) -> Result<(SessionState, LogicalPlan, Headers), SqlError> {
    let files = files::open_functions(&mut query, context.state(), statement).await?;
    let names = NameScope::now(context).with_files(files);
    logical_at(context, query, &names, statement).await
}

/// The same with these names.
pub(crate) async fn logical_at(
    context: &StatementContext,
    mut query: ast::Query,
    names: &NameScope,
    statement: &Statement,
) -> Result<(SessionState, LogicalPlan, Headers), SqlError> {
    if !query.locks.is_empty() {
        return Err(SqlError::not_supported("SELECT … FOR UPDATE or FOR SHARE"));
    }
    answers::write_out(context, &mut query, names, MayRead::Rows, statement).await?;
    let headers = rewrite(&mut query)?;
    group_keys::complete(&mut query, &|name| names.relation(name));
    let tree = PlannedStatement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
    let mut state = names.state();
    state.mark_start_execution();
    check_names(context, &tree, &state, names, statement).await?;
    let logical = eris_exact::plan_statement(&state, tree).await;
    let logical = logical.map_err(|error| planning_error(error, statement, &state))?;
    Ok((state, logical, headers))
}

/// Plans a query at the newest snapshot.
pub(crate) async fn plan(
    context: &StatementContext,
    query: ast::Query,
    statement: &Statement,
) -> Result<Plan, SqlError> {
    let (state, logical, headers) = logical(context, query, statement).await?;
    let plan = plan_logical(context, logical, &state, statement).await?;
    Ok(Plan { headers, ..plan })
}

/// Plans a query with these names.
pub(crate) async fn plan_at(
    context: &StatementContext,
    query: ast::Query,
    names: &NameScope,
    statement: &Statement,
) -> Result<Plan, SqlError> {
    let (state, logical, headers) = logical_at(context, query, names, statement).await?;
    let plan = plan_logical(context, logical, &state, statement).await?;
    Ok(Plan { headers, ..plan })
}

/// Plans a query that the engine itself asks, with these files as tables.
pub(crate) async fn plan_text(
    context: &StatementContext,
    query: &str,
    files: files::StatementTables,
) -> Result<Plan, SqlError> {
    let statement = Statement::from(query);
    let names = NameScope::now(context).with_files(files);
    match parse(&statement)? {
        ast::Statement::Query(query) => plan_at(context, *query, &names, &statement).await,
        _ => unreachable!("it is a query"),
    }
}

/// Optimises and plans a query for execution.
pub(crate) async fn plan_logical(
    context: &StatementContext,
    logical: LogicalPlan,
    state: &SessionState,
    statement: &Statement,
) -> Result<Plan, SqlError> {
    let failed = |error| planning_error(error, statement, state);
    let logical = state.optimize(&logical).map_err(failed)?;
    let physical = state
        .query_planner()
        .create_physical_plan(&logical, state)
        .await
        .and_then(cancel::heed)
        .map_err(failed)?;
    let usual = state.config().batch_size();
    let rows = eris_exact::batch_rows(&physical, usual);
    let mut task = task_context(context, state);
    if rows < usual {
        task = eris_exact::with_batch_rows(&task, rows);
    }
    Ok(Plan {
        logical,
        physical,
        context: task,
        headers: Headers::default(),
    })
}

/// What operators run in: the state's surroundings, with the statement's memory counted.
fn task_context(context: &StatementContext, state: &SessionState) -> Arc<TaskContext> {
    let Some(query) = context.query() else {
        return state.task_ctx();
    };
    Arc::new(TaskContext::from(state).with_runtime(metered(context, query)))
}

/// The same for operators that look up no function by its name.
pub(crate) fn context_with(context: &StatementContext, config: &SessionConfig) -> Arc<TaskContext> {
    let runtime = match context.query() {
        Some(query) => metered(context, query),
        None => Arc::clone(context.state().runtime_env()),
    };
    let session = context.state().session_id().to_owned();
    Arc::new(TaskContext::new(
        None,
        session,
        config.clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        runtime,
    ))
}

/// The surroundings in which a statement's memory is counted.
fn metered(context: &StatementContext, query: &Arc<Query>) -> Arc<RuntimeEnv> {
    let shared = context.state().runtime_env();
    let pool = MeteredPool {
        pool: Arc::clone(&shared.memory_pool),
        query: Arc::clone(query),
    };
    Arc::new(RuntimeEnv {
        memory_pool: Arc::new(pool),
        ..RuntimeEnv::clone(shared)
    })
}

/// For who defines something by a frame, which will not be there any more.
const KEEP_FRAME: &str =
    "what only the program has ends with the statement: CREATE TABLE … AS keeps its rows";

/// The tables, views and files that a query names.
///
/// # Errors
/// A name leads to nothing: its place, and the name that was probably meant.
pub(crate) async fn check_names(
    context: &StatementContext,
    tree: &PlannedStatement,
    state: &SessionState,
    names: &NameScope,
    statement: &Statement,
) -> Result<Vec<RelationName>, SqlError> {
    let references = state
        .resolve_table_references(tree)
        .map_err(|error| planning_error(error, statement, state))?;
    let mut found = Vec::with_capacity(references.len());
    for reference in references {
        let name = names.name(reference.schema(), reference.table());
        let known = reference.catalog().is_none_or(|catalog| catalog == CATALOG)
            && (names.knows(&name) || state.table_functions().contains_key(name.name.as_str()));
        if known {
            found.push(name);
            continue;
        }
        if reference.schema().is_none() && names.frame(reference.table()).await?.is_some() {
            continue;
        }
        let PlannedStatement::Statement(tree) = tree else {
            continue;
        };
        let place = relations(tree.as_ref(), |relation| match last_name(relation) {
            Some(last) if last == name.name => ControlFlow::Break(relation.clone()),
            _ => ControlFlow::Continue(()),
        });
        let error = context.no_relation(
            "table",
            &name,
            &reference.to_string(),
            place.break_value().as_ref(),
            statement,
        );
        let is_frame = match context.frames().filter(|_| reference.schema().is_none()) {
            Some(frames) => {
                let progress = progress::current();
                let opened = files::open_frame(reference.table(), frames, &progress).await;
                opened.is_ok_and(|frame| frame.is_some())
            }
            None => false,
        };
        return Err(match is_frame {
            true => error.with_hint(Some(KEEP_FRAME)),
            false => error,
        });
    }
    Ok(found)
}
