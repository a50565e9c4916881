//! From a syntax tree to a plan that can be run.

use super::Core;
use crate::cancel;
use crate::error::SqlError;
use crate::files;
use crate::plan::resolve::Names;
use crate::progress;
use crate::running::queries::{MeteredPool, Query};
use crate::text::names::Headers;
use crate::text::parse::{parse, planning_error};
use crate::text::rewrite::rewrite;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast;
use std::collections::HashMap;
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
        self.run_in(files::context_of_load(&self.physical, &self.context))
    }

    fn run_in(&self, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream, SqlError> {
        files::tell_progress(&self.physical, &progress::current())
            .and_then(|()| execute_stream(Arc::clone(&self.physical), context))
            .map_err(SqlError::from_datafusion)
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

impl Core {
    /// Looks up the names of a query, at the newest snapshot, and finds the types of its expressions; also what its
    /// columns are called.
    pub async fn logical(
        &self,
        mut query: ast::Query,
        statement: &Statement,
    ) -> Result<(SessionState, LogicalPlan, Headers), SqlError> {
        let files = files::open_functions(&mut query, &self.state, statement).await?;
        let names = self.names().with_files(files);
        self.logical_at(query, &names, statement).await
    }

    /// The same with these names.
    pub async fn logical_at(
        &self,
        mut query: ast::Query,
        names: &Names,
        statement: &Statement,
    ) -> Result<(SessionState, LogicalPlan, Headers), SqlError> {
        if !query.locks.is_empty() {
            return Err(SqlError::not_supported("SELECT … FOR UPDATE or FOR SHARE"));
        }
        let headers = rewrite(&mut query)?;
        let tree = PlannedStatement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let mut state = names.state();
        state.mark_start_execution();
        self.check_names(&tree, &state, names, statement)?;
        let logical = state.statement_to_plan(tree).await;
        let logical = logical.map_err(|error| planning_error(error, statement))?;
        Ok((state, logical, headers))
    }

    /// Plans a query at the newest snapshot.
    pub async fn plan(&self, query: ast::Query, statement: &Statement) -> Result<Plan, SqlError> {
        let (state, logical, headers) = self.logical(query, statement).await?;
        let plan = self.plan_logical(logical, &state, statement).await?;
        Ok(Plan { headers, ..plan })
    }

    /// Plans a query with these names.
    pub async fn plan_at(
        &self,
        query: ast::Query,
        names: &Names,
        statement: &Statement,
    ) -> Result<Plan, SqlError> {
        let (state, logical, headers) = self.logical_at(query, names, statement).await?;
        let plan = self.plan_logical(logical, &state, statement).await?;
        Ok(Plan { headers, ..plan })
    }

    /// Plans a query that the engine itself asks, with these files as tables.
    pub async fn plan_text(&self, query: &str, files: files::Files) -> Result<Plan, SqlError> {
        let statement = Statement::from(query);
        let names = self.names().with_files(files);
        match parse(&statement)? {
            ast::Statement::Query(query) => self.plan_at(*query, &names, &statement).await,
            _ => unreachable!("it is a query"),
        }
    }

    /// Optimises and plans a query for execution.
    pub async fn plan_logical(
        &self,
        logical: LogicalPlan,
        state: &SessionState,
        statement: &Statement,
    ) -> Result<Plan, SqlError> {
        let failed = |error| planning_error(error, statement);
        let logical = state.optimize(&logical).map_err(failed)?;
        let physical = state
            .query_planner()
            .create_physical_plan(&logical, state)
            .await
            .and_then(cancel::heed)
            .map_err(failed)?;
        Ok(Plan {
            logical,
            physical,
            context: self.task_context(state),
            headers: Headers::default(),
        })
    }

    /// What operators run in: the state's surroundings, with the statement's memory counted.
    fn task_context(&self, state: &SessionState) -> Arc<TaskContext> {
        let Some(query) = &self.query else {
            return state.task_ctx();
        };
        Arc::new(TaskContext::from(state).with_runtime(self.metered(query)))
    }

    /// The same for operators that look up no function by its name.
    pub fn context_with(&self, config: &SessionConfig) -> Arc<TaskContext> {
        let runtime = match &self.query {
            Some(query) => self.metered(query),
            None => Arc::clone(self.state.runtime_env()),
        };
        let session = self.state.session_id().to_owned();
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
    fn metered(&self, query: &Arc<Query>) -> Arc<RuntimeEnv> {
        let shared = self.state.runtime_env();
        let pool = MeteredPool {
            pool: Arc::clone(&shared.memory_pool),
            query: Arc::clone(query),
        };
        Arc::new(RuntimeEnv {
            memory_pool: Arc::new(pool),
            ..RuntimeEnv::clone(shared)
        })
    }
}
