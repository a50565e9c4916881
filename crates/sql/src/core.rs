//! The way of a statement: parse, look at what it is, plan, begin.

use crate::cancel;
use crate::catalog::{
    CATALOG, Catalog, Contents, Relation, RelationName, SCHEMA, Table, is_reserved,
};
use crate::error::SqlError;
use crate::parse::{parse, place_of, planning_error};
use crate::resolve::Names;
use crate::statement::Statement;
use crate::{ddl, explain, insert, planner, show};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName, visit_relations};
use eris_engine::Engine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What all sessions share, and where the statement's session looks up names. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Core {
    pub engine: Engine,
    pub catalog: Arc<Catalog>,
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
            current_schema: SCHEMA.into(),
            state,
        })
    }

    /// Begins a statement.
    pub async fn begin(&self, statement: &Statement) -> Result<Begun, SqlError> {
        let tree = parse(statement)?;
        match tree {
            ast::Statement::Query(query) => {
                Ok(Begun::Rows(self.plan(*query, statement).await?.run()?))
            }
            ast::Statement::Insert(insert) => insert::insert(self, insert, statement).await,
            ast::Statement::Explain { .. } => explain::explain(self, tree, statement).await,
            ast::Statement::ExplainTable { table_name, .. } => {
                show::describe(&self.relation(&table_name, statement)?)
            }
            ast::Statement::ShowTables { .. } => show::tables(self),
            ast::Statement::ShowCreate { obj_type, obj_name } => {
                show::create_statement(self, &obj_type, &obj_name, statement)
            }
            tree => match ddl::run(self, tree, statement).await? {
                Some(begun) => Ok(begun),
                None => Err(SqlError::not_supported(keywords(statement.text()))),
            },
        }
    }

    /// Plans a query at the newest snapshot.
    pub async fn plan(&self, query: ast::Query, statement: &Statement) -> Result<Plan, SqlError> {
        if !query.locks.is_empty() {
            return Err(SqlError::not_supported("SELECT … FOR UPDATE or FOR SHARE"));
        }
        let tree = PlannedStatement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let names = self.names();
        let mut state = names.state();
        state.mark_start_execution();
        self.check_names(&tree, &state, &names, statement)?;
        let logical = state.statement_to_plan(tree).await;
        let logical = logical.map_err(|error| planning_error(error, statement))?;
        self.plan_logical(logical, &state, statement).await
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
            context: state.task_ctx(),
        })
    }

    /// All names as they are now.
    pub fn names(&self) -> Names {
        Names::now(
            &self.catalog,
            &self.engine,
            &self.state,
            &self.current_schema,
        )
    }

    /// The names of a catalogue as it is about to be.
    pub fn names_on(&self, contents: &Contents) -> Names {
        Names::on(
            Arc::new(contents.clone()),
            &self.engine,
            self.engine.snapshot(),
            &self.state,
            &self.current_schema,
        )
    }

    /// A state that knows functions, but no tables.
    pub fn bare_state(&self) -> SessionState {
        let mut state = SessionState::clone(&self.state);
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
