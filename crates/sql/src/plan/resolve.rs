//! Names of tables and views, for one statement: it sees one state of the catalogue, and all its scans one snapshot.

use crate::catalog::{CATALOG, Contents, RelationName, Table, TableOrView, View};
use crate::context::{Frames, StatementContext};
use crate::error::{Mistake, SqlError};
use crate::plan::answers::{self, MayRead};
use crate::plan::files::{self, StatementTables};
use crate::plan::group_keys;
use crate::plan::scan::{Scan, ScannedTable};
use crate::plan::statistics::TableStatistics;
use crate::progress::{self, Progress};
use crate::system;
use crate::system::functions::session_state;
use crate::text::rewrite::rewrite;
use crate::text::statement::Statement;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Column;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};
use datafusion::sql::parser::Statement as PlannedStatement;
use datafusion::sql::sqlparser::ast;
use eris_files::is_file_name;
use eris_fragment::{Executor, Type};
use eris_home::HeldSnapshot;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The column with the rows' ids.
pub(crate) const ROW: &str = "row(";

/// Rows for which a further stream is worth its tasks.
const ROWS_PER_STREAM: u64 = 65_536;

/// In the place of a schema's name: where names without a schema are looked up, if there may be temporary tables.
const SEARCHED: &str = "temp, then the current one";

/// Views may lie above each other this deep: planning them needs stack.
const VIEWS_DEEP: usize = 32;

/// The names that one statement, or one view in it, can see.
#[derive(Clone)]
pub(crate) struct NameScope(Arc<ScopeState>);

#[derive(Clone)]
struct ScopeState {
    contents: Arc<Contents>,
    context: StatementContext,
    snapshot: HeldSnapshot,
    progress: Progress,
    current_schema: String,
    /// The schema of temporary tables, which hide others, if the session has one.
    temporary: Option<Arc<str>>,
    /// The views in which the names occur, the outermost first.
    within: Vec<Arc<View>>,
    /// The files that this statement has opened already, by the names it gave them.
    files: StatementTables,
    /// The types of the plan's parameters.
    parameters: Vec<Type>,
    /// What the calling program has, unless this is what will be kept.
    frames: Option<Arc<dyn Frames>>,
}

impl NameScope {
    /// The names and the snapshot as they are now.
    pub fn now(context: &StatementContext) -> Self {
        // A table that is emptied or rewritten gets new contents: its old rows must not be seen together with what
        // other tables got after that.
        let mut contents = context.catalog.contents();
        loop {
            let snapshot = context.hold();
            if Arc::ptr_eq(&contents, &context.catalog.look()) {
                return NameScope::on(contents, snapshot, context);
            }
            contents = context.catalog.contents();
        }
    }

    /// The names of a catalogue as it is about to be.
    pub fn of(contents: &Contents, context: &StatementContext) -> Self {
        // What is defined with these names outlives the statement.
        let context = context.clone().with_frames(None);
        NameScope::on(Arc::new(contents.clone()), context.hold(), &context)
    }

    /// The names of these contents.
    fn on(contents: Arc<Contents>, snapshot: HeldSnapshot, context: &StatementContext) -> Self {
        NameScope(Arc::new(ScopeState {
            contents,
            context: context.clone(),
            snapshot,
            progress: progress::current(),
            current_schema: context.current_schema.to_string(),
            temporary: context.variables().temporary.clone(),
            within: Vec::new(),
            files: StatementTables::new(),
            parameters: Vec::new(),
            frames: context.frames().cloned(),
        }))
    }

    /// These files, too.
    pub fn with_files(self, files: StatementTables) -> Self {
        if files.is_empty() {
            return self;
        }
        NameScope(Arc::new(ScopeState {
            files,
            ..ScopeState::clone(&self.0)
        }))
    }

    /// The same for a plan with parameters of these types.
    pub fn with_parameters(self, parameters: &[Type]) -> Self {
        NameScope(Arc::new(ScopeState {
            parameters: parameters.to_vec(),
            ..ScopeState::clone(&self.0)
        }))
    }

    /// The names that a view's query can see.
    fn within(
        &self,
        view: &Arc<View>,
        files: StatementTables,
    ) -> std::result::Result<Self, SqlError> {
        let mut within = self.0.within.clone();
        within.push(Arc::clone(view));
        if within.len() > VIEWS_DEEP {
            return Err(SqlError::invalid(
                Mistake::TooComplex,
                format!(
                    "view \"{}\" lies above more than {VIEWS_DEEP} others",
                    within[0].name
                ),
            ));
        }
        Ok(NameScope(Arc::new(ScopeState {
            contents: Arc::clone(&self.0.contents),
            context: self.0.context.clone(),
            snapshot: self.0.snapshot.clone(),
            progress: self.0.progress.clone(),
            current_schema: view.current_schema.clone(),
            temporary: self
                .0
                .temporary
                .clone()
                .filter(|_| view.name.is_temporary()),
            within,
            files,
            parameters: Vec::new(),
            frames: None,
        })))
    }

    /// The catalogue as this statement sees it.
    pub fn contents(&self) -> &Arc<Contents> {
        &self.0.contents
    }

    /// A state in which a statement is planned with these names.
    pub fn state(&self) -> SessionState {
        let ScopeState {
            context,
            current_schema,
            ..
        } = &*self.0;
        let mut state = session_state(context);
        let searched = match &self.0.temporary {
            Some(_) => SEARCHED,
            None => current_schema,
        };
        if state.config_options().catalog.default_schema != *searched {
            let options = state.config_mut().options_mut();
            options.catalog.default_schema = searched.to_owned();
        }
        state.register_catalog_list(Arc::new(system::SystemNames::new(self.clone(), context)));
        state
    }

    /// The plan of a view's query, its columns called as the view's.
    ///
    /// # Errors
    /// They name the view.
    pub async fn plan_view(&self, view: &Arc<View>) -> std::result::Result<LogicalPlan, SqlError> {
        let mut query = view.query.clone();
        let text = Statement::from(view.text.as_str());
        let files = files::open_functions(&mut query, self.0.context.state(), &text).await;
        let files = files.map_err(|error| error.within(&format!("view \"{}\"", view.name)))?;
        let names = self.within(view, files)?;
        let within = |error: SqlError| error.within(&format!("view \"{}\"", view.name));
        let written =
            answers::write_out(&self.0.context, &mut query, &names, MayRead::Columns, &text);
        written.await.map_err(within)?;
        let state = names.state();
        rewrite(&mut query)?;
        group_keys::complete(&mut query, &|name| names.relation(name));
        let query = ast::Statement::Query(Box::new(query));
        let tree = PlannedStatement::Statement(Box::new(query));
        let plan = eris_exact::plan_statement(&state, tree).await;
        plan.and_then(|plan| rename(plan, view)).map_err(|error| {
            SqlError::from_datafusion(error).within(&format!("view \"{}\"", view.name))
        })
    }

    /// The table or view of this name.
    pub fn relation(&self, name: &ast::ObjectName) -> Option<TableOrView> {
        let full = self.0.context.full_name(name)?;
        let schema = (name.0.len() > 1).then_some(full.schema.as_str());
        self.0.contents.get(&self.name(schema, &full.name)).cloned()
    }

    /// The full name of a table or view as a query writes it.
    pub fn name(&self, schema: Option<&str>, name: &str) -> RelationName {
        let ScopeState {
            contents,
            context,
            current_schema,
            temporary,
            within,
            ..
        } = &*self.0;
        if let Some(schema) = schema {
            return RelationName::new(context.schema_meant(schema), name);
        }
        let hiding = temporary
            .as_deref()
            .map(|schema| RelationName::new(schema, name));
        // A view means what it meant when it was created.
        let hides = |hiding: &RelationName| match within.last() {
            Some(view) => view.reads(hiding),
            None => contents.get(hiding).is_some(),
        };
        match hiding {
            Some(hiding) if hides(&hiding) => hiding,
            _ => RelationName::new(current_schema.as_str(), name),
        }
    }

    /// Whether something has this name, or it is a file's.
    pub fn knows(&self, name: &RelationName) -> bool {
        self.0.contents.get(name).is_some()
            || self.0.files.contains_key(&name.name)
            || is_file_name(&name.name)
            || system::has(&name.schema, &name.name)
    }

    /// What the calling program has under this name.
    ///
    /// # Errors
    /// It is no relation, or looking for it failed.
    pub async fn frame(
        &self,
        name: &str,
    ) -> std::result::Result<Option<Arc<dyn TableProvider>>, SqlError> {
        match &self.0.frames {
            Some(frames) => files::open_frame(name, frames, &self.0.progress).await,
            None => Ok(None),
        }
    }

    /// A table's rows at this statement's snapshot, for a plan with parameters of these types.
    pub fn scan(
        &self,
        table: Arc<Table>,
        parameters: &[Type],
    ) -> std::result::Result<Scan, SqlError> {
        let ScopeState {
            context,
            snapshot,
            progress,
            ..
        } = &*self.0;
        let home = &context.home;
        let recodings = Arc::clone(&context.recodings);
        let statistics = TableStatistics::new(home.statistics(table.object)?, snapshot.at())
            .sampled(home, table.object);
        let most = home.worker_count().max(1);
        let streams = statistics
            .rows()
            .div_ceil(ROWS_PER_STREAM)
            .clamp(1, most as u64) as usize;
        let executor: Arc<dyn Executor> = Arc::clone(home) as _;
        let types = table.types.iter().chain(parameters).cloned().collect();
        Ok(Scan {
            schema: Arc::clone(&table.schema),
            types,
            values: Vec::new(),
            table,
            snapshot: Some(snapshot.clone()),
            statistics,
            executor,
            streams,
            options: context.scan_options(),
            progress: progress.clone(),
            recodings: context.variables().key_recoding.then_some(recodings),
        })
    }

    /// A table's rows at this statement's snapshot.
    pub fn table_provider(
        &self,
        table: &Arc<Table>,
    ) -> std::result::Result<Arc<dyn TableSource>, SqlError> {
        let scan = self.scan(Arc::clone(table), &[])?;
        Ok(provider_as_source(Arc::new(ScannedTable(Arc::new(scan)))))
    }

    /// The same, with a last column for the rows' ids.
    pub fn table_with_row_ids(
        &self,
        table: &Arc<Table>,
        row_id: &str,
    ) -> std::result::Result<Arc<dyn TableProvider>, SqlError> {
        let scan = self.scan(Arc::clone(table), &[])?;
        Ok(Arc::new(ScannedTable(Arc::new(scan.with_row_ids(row_id)))))
    }

    async fn provider(&self, relation: &TableOrView) -> Result<Arc<dyn TableProvider>> {
        let provider: Arc<dyn TableProvider> = match relation {
            TableOrView::Table(table) => {
                let scan = self
                    .scan(Arc::clone(table), &self.0.parameters)
                    .map_err(SqlError::into_datafusion)?;
                Arc::new(ScannedTable(Arc::new(scan)))
            }
            TableOrView::View(view) => {
                let plan = self
                    .plan_view(view)
                    .await
                    .map_err(SqlError::into_datafusion)?;
                Arc::new(ViewTable::new(plan, Some(view.text.clone())))
            }
        };
        match self.0.within.last() {
            Some(view) => as_created(provider, relation.name(), view),
            None => Ok(provider),
        }
    }
}

/// The columns that there were when the view was created: `*` in it stands for these.
fn as_created(
    provider: Arc<dyn TableProvider>,
    name: &RelationName,
    view: &View,
) -> Result<Arc<dyn TableProvider>> {
    let Some(read) = view.reads.iter().find(|read| read.name == *name) else {
        return Ok(provider);
    };
    let schema = provider.schema();
    let known: HashSet<&str> = read.columns.iter().map(String::as_str).collect();
    if schema
        .fields()
        .iter()
        .all(|field| known.contains(field.name().as_str()))
    {
        return Ok(provider);
    }
    let columns = schema.fields().iter().map(|field| field.name());
    let columns = columns.filter(|column| known.contains(column.as_str()));
    let columns: Vec<_> = columns
        .map(|column| Expr::Column(Column::new_unqualified(column)))
        .collect();
    let plan = LogicalPlanBuilder::scan(name.name.as_str(), provider_as_source(provider), None)?
        .project(columns)?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Calls the columns of a view's query as CREATE VIEW did.
fn rename(plan: LogicalPlan, view: &View) -> Result<LogicalPlan> {
    let called = plan.schema().fields().iter().map(|field| field.name());
    if called.eq(view.schema.fields().iter().map(|field| field.name())) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(view.column_names());
    let columns: Vec<_> = columns
        .map(|(column, name)| Expr::Column(column).alias(name))
        .collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// One schema of [`NameScope`].
#[derive(Debug)]
struct SchemaNames {
    names: NameScope,
    /// `None`: where names without a schema are looked up.
    schema: Option<String>,
}

impl SchemaNames {
    fn name(&self, name: &str) -> RelationName {
        self.names.name(self.schema.as_deref(), name)
    }
}

#[async_trait]
impl SchemaProvider for SchemaNames {
    fn table_names(&self) -> Vec<String> {
        let current = &self.names.0.current_schema;
        let schema = self.schema.as_ref().unwrap_or(current);
        let relations = self.names.contents().relations_in(schema);
        relations
            .map(|relation| relation.name().name.clone())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(files) = self.names.0.files.get(name) {
            return Ok(Some(Arc::clone(files)));
        }
        match self.names.contents().get(&self.name(name)) {
            Some(relation) => self.names.provider(relation).await.map(Some),
            None if is_file_name(name) => {
                let ScopeState {
                    context, progress, ..
                } = &*self.names.0;
                let opened = files::open(name, context.state(), progress).await;
                Ok(Some(opened?))
            }
            None if self
                .schema
                .as_deref()
                .is_none_or(|schema| schema == self.names.0.current_schema) =>
            {
                let found = self.names.frame(name).await;
                found.map_err(SqlError::into_datafusion)
            }
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.names.contents().get(&self.name(name)).is_some()
    }
}

/// Both the only catalogue and the list of catalogues.
impl CatalogProvider for NameScope {
    fn schema_names(&self) -> Vec<String> {
        let names = self.0.contents.schema_names();
        names.map(str::to_owned).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let is_searched = name == SEARCHED;
        let meant = || self.0.context.schema_meant(name);
        (is_searched || self.0.contents.has_schema(&meant())).then(|| {
            Arc::new(SchemaNames {
                names: self.clone(),
                schema: (!is_searched).then(|| name.to_owned()),
            }) as _
        })
    }
}

impl CatalogProviderList for NameScope {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(self.clone()) as _)
    }
}

impl fmt::Debug for NameScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names(at {})", self.0.snapshot.at())
    }
}

#[cfg(test)]
mod tests {
    use crate::Database;
    use crate::context::StatementContext;
    use crate::running::outcome::Begun;
    use datafusion::arrow::util::display::array_value_to_string;
    use eris_engine::{Engine, Settings};
    use eris_numa::{HugePages, Topology};
    use futures::StreamExt;

    /// The first value of a statement's rows, if it has any.
    async fn run(context: &StatementContext, sql: &str) -> Option<String> {
        let begun = crate::session::pipeline::begin_text(context, sql).await;
        let Begun::Rows(mut rows) = begun.unwrap_or_else(|error| panic!("{sql}: {error}")) else {
            return None;
        };
        let batch = rows.next().await?.unwrap();
        let last = batch.columns().last().unwrap();
        Some(array_value_to_string(last, 0).unwrap())
    }

    #[tokio::test]
    async fn names_are_looked_up_in_the_current_schema() {
        let settings = Settings {
            topology: Topology::fake(1, 1),
            huge_pages: HugePages::Never,
            memory_limit: Some(64 << 20),
            database: None,
        };
        let database = Database::open(Engine::home(settings).unwrap()).unwrap();
        let public = StatementContext::clone(database.context());
        let mut there = public.clone();
        there.current_schema = "s".into();
        let failed =
            crate::session::pipeline::begin_text(&there, "CREATE TABLE t (a INTEGER)").await;
        let error = failed.err().unwrap().to_string();
        assert!(error.contains("schema \"s\" does not exist"), "{error}");

        run(&public, "CREATE SCHEMA s").await;
        for (context, value) in [(&public, 1), (&there, 2)] {
            run(context, "CREATE TABLE t (a INTEGER CHECK (t.a > 0))").await;
            run(context, &format!("INSERT INTO t VALUES ({value})")).await;
            run(
                context,
                "CREATE VIEW v AS SELECT t.a FROM t WHERE a IN (SELECT a FROM t)",
            )
            .await;
        }
        for (context, sql, value) in [
            (&public, "SELECT a FROM t", "1"),
            (&there, "SELECT a FROM t", "2"),
            (&there, "SELECT a FROM public.t", "1"),
            (&there, "WITH t AS (SELECT 7 AS a) SELECT a FROM t", "7"),
            // A view means what it meant where it was created.
            (&public, "SELECT a FROM s.v", "2"),
            (&there, "SELECT a FROM public.v", "1"),
        ] {
            assert_eq!(run(context, sql).await.as_deref(), Some(value), "{sql}");
        }
        // So does its text, in a session whose schema is public.
        let made = run(&there, "SHOW CREATE VIEW v").await.unwrap();
        run(&there, "DROP VIEW v").await;
        run(&public, &made).await;
        assert_eq!(run(&there, "SELECT a FROM v").await.unwrap(), "2");
        run(&public, "DROP SCHEMA s CASCADE").await;
        let error = crate::session::pipeline::begin_text(&there, "SELECT a FROM t")
            .await
            .err()
            .unwrap();
        assert!(error.hint().unwrap().contains("no schema \"s\""), "{error}");
    }
}
