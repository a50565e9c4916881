//! The way of a statement: parse, look at what it is, plan ([`plan`]), begin; its names are looked up on the way ([`lookup`]).

mod bandwidth;
mod lookup;
mod plan;

pub(crate) use lookup::{last_name, no_schema_hint, normalize};
pub(crate) use plan::Plan;

use crate::cancel;
use crate::catalog::{Catalog, Contents, SCHEMA, Table};
use crate::error::SqlError;
use crate::files;
use crate::maintenance::balance::Balance;
use crate::maintenance::recoding::Recodings;
use crate::plan::functions;
use crate::plan::functions::FunctionRow;
use crate::plan::planner;
use crate::plan::resolve::Names;
use crate::plan_cache;
use crate::running::queries::{Queries, Query};
use crate::running::spill::Spill;
use crate::session::SessionData;
use crate::settings;
use crate::settings::Variables;
use crate::statements::ddl;
use crate::statements::dml;
use crate::statements::explain;
use crate::statements::insert;
use crate::statements::prepare;
use crate::statements::show;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use crate::text::transaction;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast;
use eris_engine::Engine;
use eris_numa::HugePages;
use eris_numa::measure::ReadBandwidth;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OnceCell;

/// What a statement works with: what all sessions share, and what its own session has set. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Core {
    pub engine: Engine,
    pub catalog: Arc<Catalog>,
    pub spill: Spill,
    pub queries: Arc<Queries>,
    pub recodings: Arc<Recodings>,
    pub balance: Arc<Balance>,
    /// What memory delivers, once that has been measured.
    pub bandwidth: Arc<OnceCell<ReadBandwidth>>,
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

impl Core {
    pub fn new(engine: Engine, huge_pages: HugePages) -> Result<Self, SqlError> {
        let spill = Spill::new();
        let state = Arc::new(planner::state(&engine, &spill)?);
        let variables = Arc::new(Variables::new(engine.topology().aeus().len()));
        Ok(Core {
            first_memory_limit: engine.memory().budget().limit(),
            recodings: Arc::new(Recodings::new(engine.clone())),
            balance: Arc::new(Balance::start(&engine)?),
            bandwidth: Arc::default(),
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
        if let Some(write) = plan_cache::learn_write(self, &tree, statement).await
            && let Some(begun) = write.run(self, &cancel::current()).await?
        {
            return Ok(begun);
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
                    let (prepared, values) = prepare::executed(self, explained, statement).await?;
                    **explained = prepared.bind(&values)?;
                }
                match show::described_query(&tree)? {
                    Some(query) => show::describe_query(self, query, statement).await,
                    None => explain::explain(self, tree, statement).await,
                }
            }
            ast::Statement::ExplainTable { table_name, .. } => {
                show::describe(self, &table_name, statement).await
            }
            tree @ ast::Statement::Execute { .. } => self.execute(&tree, statement).await,
            ast::Statement::Deallocate { name, .. } => prepare::deallocate(self, &name),
            ast::Statement::Set(set) => settings::set(self, &set),
            ast::Statement::Reset(which) => settings::reset(self, &which.reset),
            ast::Statement::Use(which) => settings::use_schema(self, &which),
            ast::Statement::ShowVariable { variable } => settings::show(self, &variable),
            ast::Statement::Kill { id, .. } => show::kill(self, id),
            ast::Statement::Call(call) => show::call(self, &call, statement).await,
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

    /// Rows of a table have come or gone: what is stored by the order of others, or others by its order, may have to be stored anew.
    pub fn wrote(&self, table: &Arc<Table>) {
        if self.variables.key_recoding {
            self.recodings.wrote(table, &self.catalog.contents());
        }
    }

    /// All functions: name, kind, and how it is called.
    pub fn functions(&self) -> Vec<FunctionRow> {
        functions::list(&self.bare_state())
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
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({:?})", self.catalog)
    }
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
