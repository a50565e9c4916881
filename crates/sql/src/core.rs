//! The way of a statement: parse, look at what it is, plan, begin.

use crate::cancel;
use crate::catalog::{
    CATALOG, Catalog, Contents, Relation, RelationName, SCHEMA, Table, is_reserved, most_similar,
};
use crate::error::SqlError;
use crate::functions::FunctionRow;
use crate::names::Headers;
use crate::parse::{parse, place_of, planning_error};
use crate::queries::{MeteredPool, Queries, Query};
use crate::resolve::Names;
use crate::rewrite::rewrite;
use crate::session::SessionData;
use crate::settings::Variables;
use crate::spill::Spill;
use crate::statement::Statement;
use crate::system::described;
use crate::{
    ddl, dml, explain, files, functions, insert, plan_cache, planner, prepare, progress, settings,
    show, transaction,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, visit_relations};
use eris_engine::Engine;
use eris_numa::HugePages;
use futures::future::BoxFuture;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a statement works with: what all sessions share, and what its own session has set. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Core {
    pub engine: Engine,
    pub catalog: Arc<Catalog>,
    pub spill: Spill,
    pub queries: Arc<Queries>,
    pub huge_pages: HugePages,
    /// The memory limit at the start.
    pub first_memory_limit: u64,
    pub session: Arc<SessionData>,
    /// The session's variables as they were when the statement began.
    variables: Arc<Variables>,
    /// The statement itself, unless it is being prepared.
    query: Option<Arc<Query>>,
    sessions: Arc<AtomicU64>,
    /// The schema of unqualified names: the session's.
    pub current_schema: Arc<str>,
    /// The state without tables; statements run on copies of it.
    state: Arc<SessionState>,
}

/// A statement that has begun, or is done already.
pub(crate) enum Begun {
    Rows(SendableRecordBatchStream),
    Count { rows: u64, tag: &'static str },
    Done { tag: &'static str },
}

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

    /// The columns as a table of this query's rows has them.
    pub fn columns(&self) -> SchemaRef {
        self.headers.name_uniquely(&self.physical.schema())
    }
}

impl Core {
    pub fn new(engine: Engine, huge_pages: HugePages) -> Result<Self, SqlError> {
        let spill = Spill::new();
        let state = Arc::new(planner::state(&engine, &spill)?);
        let variables = Arc::new(Variables::new(engine.topology().aeus().len()));
        Ok(Core {
            first_memory_limit: engine.memory().budget().limit(),
            engine,
            catalog: Arc::default(),
            spill,
            queries: Arc::default(),
            huge_pages,
            session: Arc::new(SessionData::new(0, Variables::clone(&variables))),
            variables,
            query: None,
            sessions: Arc::default(),
            current_schema: SCHEMA.into(),
            state,
        })
    }

    /// A new session's memory.
    pub fn new_session(&self) -> SessionData {
        let id = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        SessionData::new(id, self.default_variables())
    }

    /// For a statement of this session that begins now.
    pub fn of_session(&self, session: &Arc<SessionData>) -> Core {
        let variables = session.variables();
        Core {
            session: Arc::clone(session),
            current_schema: variables.schema.as_str().into(),
            variables,
            ..self.clone()
        }
    }

    /// For this statement.
    pub fn of_query(self, query: &Arc<Query>) -> Core {
        Core {
            query: Some(Arc::clone(query)),
            ..self
        }
    }

    /// With another schema for unqualified names.
    pub fn in_schema(self, schema: &str) -> Core {
        Core {
            current_schema: schema.into(),
            ..self
        }
    }

    /// For a query whose rows are to come in their own order.
    pub fn in_one_stream(&self) -> Core {
        let variables = Variables {
            parallel_streams: 1,
            ..Variables::clone(&self.variables)
        };
        Core {
            variables: Arc::new(variables),
            ..self.clone()
        }
    }

    /// The session's variables as they were when the statement began.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// What a new session begins with.
    pub fn default_variables(&self) -> Variables {
        Variables::new(self.engine.topology().aeus().len())
    }

    /// Refuses names of schemas that do not exist.
    pub fn check_schema(&self, name: &str) -> Result<(), SqlError> {
        let schemas = described::schemas(self);
        if schemas.iter().any(|schema| schema == name) {
            return Ok(());
        }
        let similar = most_similar(name, schemas.iter().map(String::as_str));
        let hint = similar.map_or_else(
            || "SHOW SCHEMAS lists all schemas".to_owned(),
            |similar| format!("did you mean \"{similar}\"?"),
        );
        Err(SqlError::invalid(format!("schema \"{name}\" does not exist")).with_hint(Some(hint)))
    }

    /// Begins a statement.
    pub async fn begin(&self, statement: &Statement) -> Result<Begun, SqlError> {
        if let Some(rows) = plan_cache::recall(self, statement) {
            return Ok(Begun::Rows(rows));
        }
        if let Some(summary) = show::summarize(self, statement).await? {
            return Ok(summary);
        }
        if let Some(file_statement) = files::parse(statement)? {
            return files::run(self, file_statement, statement).await;
        }
        let tree = parse(statement)?;
        if let ast::Statement::Query(query) = &tree
            && let Some(rows) = plan_cache::learn(self, query, statement).await
        {
            return Ok(Begun::Rows(rows));
        }
        self.begin_tree(tree, statement).await
    }

    /// Begins a statement that has been parsed.
    pub fn begin_tree<'a>(
        &'a self,
        tree: ast::Statement,
        statement: &'a Statement,
    ) -> BoxFuture<'a, Result<Begun, SqlError>> {
        Box::pin(self.dispatch(tree, statement))
    }

    async fn dispatch(
        &self,
        mut tree: ast::Statement,
        statement: &Statement,
    ) -> Result<Begun, SqlError> {
        if let ast::Statement::Prepare {
            name,
            data_types,
            statement: prepared,
        } = tree
        {
            return prepare::prepare(self, &name, &data_types, *prepared, statement).await;
        }
        prepare::refuse_parameters(&tree)?;
        transaction::refuse(&tree)?;
        match tree {
            ast::Statement::Query(query) => dml::run_query(self, query, statement).await,
            ast::Statement::Insert(insert) => insert::insert(self, insert, statement).await,
            ast::Statement::Delete(delete) if !ddl::is_delete_of_all(&delete) => {
                dml::run(self, ast::Statement::Delete(delete), None, statement).await
            }
            tree @ (ast::Statement::Update(_) | ast::Statement::Merge(_)) => {
                dml::run(self, tree, None, statement).await
            }
            ast::Statement::Explain {
                statement: ref mut explained,
                ..
            } => {
                if let ast::Statement::Execute { .. } = **explained {
                    **explained = prepare::executed(self, explained, statement).await?.0;
                }
                match show::described_query(&tree)? {
                    Some(query) => show::describe_query(self, query, statement).await,
                    None => explain::explain(self, tree, statement).await,
                }
            }
            ast::Statement::ExplainTable { table_name, .. } => {
                show::describe(self, &table_name, statement).await
            }
            ast::Statement::Execute { .. } => {
                let (tree, prepared) = prepare::executed(self, &tree, statement).await?;
                self.begin_tree(tree, &prepared).await
            }
            ast::Statement::Deallocate { name, .. } => prepare::deallocate(self, &name),
            ast::Statement::Set(set) => settings::set(self, &set),
            ast::Statement::Reset(which) => settings::reset(self, &which.reset),
            ast::Statement::Use(which) => settings::use_schema(self, &which),
            ast::Statement::ShowVariable { variable } => settings::show(self, &variable),
            ast::Statement::Kill { id, .. } => show::kill(self, id),
            ast::Statement::Call(call) => show::call(self, &call),
            ast::Statement::ShowCreate { obj_type, obj_name } => {
                show::create_statement(self, &obj_type, &obj_name, statement)
            }
            tree => match show::list(self, &tree, statement).await? {
                Some(shown) => Ok(shown),
                None => match ddl::run(self, tree, statement).await? {
                    Some(begun) => Ok(begun),
                    None => Err(SqlError::not_supported(keywords(statement.text()))),
                },
            },
        }
    }

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

    /// All functions: name, kind, and how it is called.
    pub fn functions(&self) -> Vec<FunctionRow> {
        functions::list(&self.bare_state())
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

    /// All names as they are now.
    pub fn names(&self) -> Names {
        Names::now(self)
    }

    /// The names of a catalogue as it is about to be.
    pub fn names_on(&self, contents: &Contents) -> Names {
        Names::on(Arc::new(contents.clone()), self.engine.hold(), self)
    }

    /// For reading files: a state without tables or a session's variables.
    pub fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// A state that knows functions and the session's variables, but no tables.
    pub fn bare_state(&self) -> SessionState {
        let mut state = SessionState::clone(&self.state);
        functions::register_for(self, &mut state);
        if *self.variables != self.default_variables() {
            self.variables.apply(state.config_mut());
        }
        state.mark_start_execution();
        state
    }

    /// The tables, views and files that a query names.
    ///
    /// # Errors
    /// A name leads to nothing: its place, and the name that was probably meant.
    pub fn check_names(
        &self,
        tree: &PlannedStatement,
        state: &SessionState,
        names: &Names,
        statement: &Statement,
    ) -> Result<Vec<RelationName>, SqlError> {
        let references = state
            .resolve_table_references(tree)
            .map_err(|error| planning_error(error, statement))?;
        let mut found = Vec::with_capacity(references.len());
        for reference in references {
            let schema = reference.schema().unwrap_or(&self.current_schema);
            let name = RelationName::new(schema, reference.table());
            let known = reference.catalog().is_none_or(|catalog| catalog == CATALOG)
                && (names.knows(&name) || state.table_functions().contains_key(name.name.as_str()));
            if known {
                found.push(name);
                continue;
            }
            let PlannedStatement::Statement(tree) = tree else {
                continue;
            };
            let place = visit_relations(tree, |relation| match last_name(relation) {
                Some(last) if last == name.name => ControlFlow::Break(relation.clone()),
                _ => ControlFlow::Continue(()),
            });
            return Err(self.no_relation(
                "table",
                &name,
                &reference.to_string(),
                place.break_value().as_ref(),
                statement,
            ));
        }
        Ok(found)
    }

    fn no_relation(
        &self,
        kind: &str,
        name: &RelationName,
        shown: &str,
        place: Option<&ObjectName>,
        statement: &Statement,
    ) -> SqlError {
        let contents = self.catalog.contents();
        let hint = match contents.has_schema(&name.schema) {
            false if !is_reserved(&name.schema) => Some(no_schema_hint(&contents, &name.schema)),
            _ => (contents.similar(name, &self.current_schema))
                .map(|similar| format!("did you mean \"{similar}\"?")),
        };
        SqlError::invalid(format!("{kind} \"{shown}\" does not exist"))
            .at(place
                .and_then(place_of)
                .map(|place| statement.excerpt(place)))
            .with_hint(hint)
    }

    /// The table or view of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn relation(&self, name: &ObjectName, statement: &Statement) -> Result<Relation, SqlError> {
        let full = self.resolve(name, statement)?;
        let found = self.catalog.contents().get(&full).cloned();
        found.ok_or_else(|| self.missing("table", &full, name, statement))
    }

    /// The table of this name.
    ///
    /// # Errors
    /// There is none, or it is a view.
    pub fn table(&self, name: &ObjectName, statement: &Statement) -> Result<Arc<Table>, SqlError> {
        let full = self.resolve(name, statement)?;
        match self.catalog.contents().get(&full) {
            Some(Relation::Table(table)) => Ok(Arc::clone(table)),
            Some(Relation::View(_)) => Err(SqlError::invalid(format!(
                "\"{full}\" is a view, not a table"
            ))
            .at(place_of(name).map(|place| statement.excerpt(place)))),
            None => Err(self.missing("table", &full, name, statement)),
        }
    }

    /// The error of a name without a relation of this kind.
    pub fn missing(
        &self,
        kind: &str,
        full: &RelationName,
        name: &ObjectName,
        statement: &Statement,
    ) -> SqlError {
        self.no_relation(kind, full, &full.to_string(), Some(name), statement)
    }

    /// The full name that a name means in this session.
    ///
    /// # Errors
    /// Too many parts, or another catalogue.
    pub fn resolve(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<RelationName, SqlError> {
        let parts: Option<Vec<String>> = name
            .0
            .iter()
            .map(|part| part.as_ident().map(normalize))
            .collect();
        match parts.as_deref() {
            Some([name]) => Ok(RelationName::new(&*self.current_schema, name.as_str())),
            Some([schema, name]) => Ok(RelationName::new(schema.as_str(), name.as_str())),
            Some([catalog, schema, name]) if catalog == CATALOG => {
                Ok(RelationName::new(schema.as_str(), name.as_str()))
            }
            _ => Err(
                SqlError::invalid(format!("\"{name}\": the only catalogue is {CATALOG}"))
                    .at(place_of(name).map(|place| statement.excerpt(place)))
                    .with_hint(Some(format!(
                        "names have the form table, schema.table or {CATALOG}.schema.table"
                    ))),
            ),
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({:?})", self.catalog)
    }
}

/// What to do about the name of a schema that does not exist.
pub(crate) fn no_schema_hint(contents: &Contents, schema: &str) -> String {
    match crate::catalog::most_similar(schema, contents.schema_names()) {
        _ if schema == "main" => format!("the default schema is \"{SCHEMA}\""),
        Some(similar) => format!("there is no schema \"{schema}\"; did you mean \"{similar}\"?"),
        None => format!("there is no schema \"{schema}\"; CREATE SCHEMA makes one"),
    }
}

/// The name that an identifier means: lower case, unless quoted.
pub(crate) fn normalize(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

pub(crate) fn last_name(name: &ObjectName) -> Option<String> {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map(normalize)
}

/// The words by which a statement is known, such as `UPDATE` or `ALTER TABLE`.
fn keywords(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty());
    let mut words = words.map(str::to_uppercase);
    let first = words.next().unwrap_or_default();
    match first.as_str() {
        "CREATE" | "DROP" | "ALTER" | "SHOW" | "START" | "SET" => match words.next() {
            Some(second) => format!("{first} {second}"),
            None => first,
        },
        _ => first,
    }
}
