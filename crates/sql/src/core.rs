//! The way of a statement: parse, look at what it is, plan, begin.

use crate::cancel;
use crate::catalog::{CATALOG, Catalog, SCHEMA, Table};
use crate::error::SqlError;
use crate::parse::{parse, place_of, planning_error};
use crate::resolve::Names;
use crate::statement::Statement;
use crate::{ddl, explain, files, insert, planner, show};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, visit_relations};
use eris_engine::Engine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What all sessions share.
pub(crate) struct Core {
    pub engine: Engine,
    pub catalog: Arc<Catalog>,
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
}

impl Plan {
    /// Opens all partitions as one stream. Work begins when it is polled.
    pub fn run(&self) -> Result<SendableRecordBatchStream, SqlError> {
        execute_stream(Arc::clone(&self.physical), Arc::clone(&self.context))
            .map_err(SqlError::from_datafusion)
    }
}

impl Core {
    pub fn new(engine: Engine) -> Result<Self, SqlError> {
        let state = Arc::new(planner::state(&engine)?);
        Ok(Core {
            engine,
            catalog: Arc::default(),
            state,
        })
    }

    /// The state without tables: settings and functions.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Begins a statement.
    pub async fn begin(&self, statement: &Statement) -> Result<Begun, SqlError> {
        if let Some(file_statement) = files::parse(statement)? {
            return files::run(self, file_statement, statement).await;
        }
        let tree = parse(statement)?;
        match tree {
            ast::Statement::Query(query) => {
                Ok(Begun::Rows(self.plan(*query, statement).await?.run()?))
            }
            ast::Statement::Insert(insert) => insert::insert(self, insert, statement).await,
            ast::Statement::CreateTable(create) => ddl::create(self, create, statement).await,
            ast::Statement::Drop { .. } => ddl::drop(self, &tree, statement).await,
            ast::Statement::Explain { .. } => explain::explain(self, tree, statement).await,
            ast::Statement::ExplainTable { table_name, .. } => {
                show::describe(&*self.table(&table_name, statement)?)
            }
            ast::Statement::ShowTables { .. } => show::tables(self),
            _ => Err(SqlError::not_supported(keywords(statement.text()))),
        }
    }

    /// Plans a query at the newest snapshot.
    pub async fn plan(
        &self,
        mut query: ast::Query,
        statement: &Statement,
    ) -> Result<Plan, SqlError> {
        let files = files::open_functions(&mut query, &self.state, statement).await?;
        self.plan_at(query, &self.names(files), statement).await
    }

    /// Plans a query that the engine itself asks, with these files as tables.
    pub async fn plan_text(&self, query: &str, files: files::Files) -> Result<Plan, SqlError> {
        let statement = Statement::from(query);
        match parse(&statement)? {
            ast::Statement::Query(query) => {
                self.plan_at(*query, &self.names(files), &statement).await
            }
            _ => unreachable!("it is a query"),
        }
    }

    /// The names as they are now, and the newest snapshot, for one query or several.
    pub fn names(&self, files: files::Files) -> Names {
        Names::now(&self.catalog, &self.engine, &self.state, files)
    }

    /// For reading files.
    pub fn files_state(&self) -> &SessionState {
        &self.state
    }

    /// Plans a query with these names.
    pub async fn plan_at(
        &self,
        query: ast::Query,
        names: &Names,
        statement: &Statement,
    ) -> Result<Plan, SqlError> {
        if !query.locks.is_empty() {
            return Err(SqlError::not_supported("SELECT … FOR UPDATE or FOR SHARE"));
        }
        let tree = PlannedStatement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let mut state = SessionState::clone(&self.state);
        state.register_catalog_list(Arc::new(names.clone()));
        state.mark_start_execution();
        self.check_names(&tree, names, &state, statement)?;
        let failed = |error| planning_error(error, statement);
        let logical = state.statement_to_plan(tree).await.map_err(failed)?;
        let logical = state.optimize(&logical).map_err(failed)?;
        let physical = state
            .query_planner()
            .create_physical_plan(&logical, &state)
            .await
            .and_then(cancel::heed)
            .map_err(failed)?;
        Ok(Plan {
            logical,
            physical,
            context: state.task_ctx(),
        })
    }

    /// Refuses unknown tables, at their place and with the name that was probably meant.
    fn check_names(
        &self,
        tree: &PlannedStatement,
        names: &Names,
        state: &SessionState,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let references = state
            .resolve_table_references(tree)
            .map_err(|error| planning_error(error, statement))?;
        for reference in references {
            let name = reference.table();
            let known = reference.catalog().is_none_or(|catalog| catalog == CATALOG)
                && reference.schema().is_none_or(|schema| schema == SCHEMA)
                && (self.catalog.get(name).is_some()
                    || names.has_file(name)
                    || files::is_file_name(name)
                    || state.table_functions().contains_key(name));
            if known {
                continue;
            }
            let PlannedStatement::Statement(tree) = tree else {
                continue;
            };
            let found = visit_relations(tree, |relation| match last_name(relation) {
                Some(last) if last == name => ControlFlow::Break(relation.clone()),
                _ => ControlFlow::Continue(()),
            });
            return Err(self.no_table(
                &reference.to_string(),
                name,
                found.break_value().as_ref(),
                statement,
            ));
        }
        Ok(())
    }

    fn no_table(
        &self,
        shown: &str,
        name: &str,
        place: Option<&ObjectName>,
        statement: &Statement,
    ) -> SqlError {
        let similar = self.catalog.similar(name);
        SqlError::invalid(format!("table \"{shown}\" does not exist"))
            .at(place
                .and_then(place_of)
                .map(|place| statement.excerpt(place)))
            .with_hint(similar.map(|similar| format!("did you mean \"{similar}\"?")))
    }

    /// The table of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn table(&self, name: &ObjectName, statement: &Statement) -> Result<Arc<Table>, SqlError> {
        let plain = table_name(name)?;
        let found = self.catalog.get(&plain);
        found.ok_or_else(|| self.missing(name, statement))
    }

    /// The error of a name without a table.
    pub fn missing(&self, name: &ObjectName, statement: &Statement) -> SqlError {
        let plain = last_name(name).unwrap_or_default();
        self.no_table(&plain, &plain, Some(name), statement)
    }
}

/// A table's name without catalogue and schema, which may be given but must be the only ones.
pub(crate) fn table_name(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| part.as_ident().map(normalize))
        .collect();
    match parts.as_deref() {
        Some([table]) => Ok(table.clone()),
        Some([schema, table]) if schema == SCHEMA => Ok(table.clone()),
        Some([catalog, schema, table]) if catalog == CATALOG && schema == SCHEMA => {
            Ok(table.clone())
        }
        _ => Err(SqlError::invalid(format!(
            "\"{name}\": the only schema is {CATALOG}.{SCHEMA}"
        ))),
    }
}

/// The name that an identifier means: lower case, unless quoted.
pub(crate) fn normalize(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

fn last_name(name: &ObjectName) -> Option<String> {
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
