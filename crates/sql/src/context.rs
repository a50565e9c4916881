//! What a statement works with, put together when it begins and passed on as a value.
//!
//! ```text
//! database  home of the rows · catalogue · re-codings · services (balancer, temporary files, running statements …)
//! session   number · variables as they were when the statement began · prepared statements · current schema
//! statement its entry among the running ones
//! ```
//!
//! It does nothing: what plans, writes or answers takes it as an argument, and lies above it.

mod frames;
mod lookup;
mod macros;
mod opening;
mod services;
mod session_data;
mod variables;

pub use frames::Frames;
pub(crate) use lookup::no_schema_hint;
pub(crate) use opening::Opening;
pub(crate) use services::Services;
pub(crate) use session_data::{NamedStatement, SessionData};
pub(crate) use variables::{NULL_ORDERS, NUMA_STRATEGIES, Variables};

use crate::catalog::{Catalog, SCHEMA, Table};
use crate::error::SqlError;
use crate::maintenance::recoding::Recodings;
use crate::running::queries::Query;
use datafusion::execution::context::SessionState;
use eris_fragment::ScanOptions;
use eris_home::{HeldSnapshot, Home, Newest};
use std::fmt;
use std::sync::Arc;

/// What a statement works with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct StatementContext {
    /// Who holds the tables.
    pub home: Arc<dyn Home>,
    pub catalog: Arc<Catalog>,
    pub recodings: Arc<Recodings>,
    pub services: Arc<Services>,
    pub session: Arc<SessionData>,
    /// The session's variables as they were when the statement began.
    variables: Arc<Variables>,
    /// The statement itself, unless it is being prepared.
    query: Option<Arc<Query>>,
    /// The schema of unqualified names: the session's.
    pub current_schema: Arc<str>,
    /// Which rows it finds: a statement that changes tables builds on what is not visible yet.
    pub newest: Newest,
    /// What a definition has from before, if the database is being opened.
    opening: Option<Arc<Opening>>,
    /// What the calling program has beside the catalogue.
    frames: Option<Arc<dyn Frames>>,
}

impl StatementContext {
    /// For statements of no session, with an empty catalogue.
    pub fn new(home: Arc<dyn Home>, services: Services) -> Self {
        let variables = Variables::new(home.worker_count());
        StatementContext {
            recodings: Arc::new(Recodings::new(Arc::clone(&home))),
            home,
            catalog: Arc::default(),
            services: Arc::new(services),
            session: Arc::new(SessionData::new(0, variables.clone())),
            variables: Arc::new(variables),
            query: None,
            current_schema: SCHEMA.into(),
            newest: Newest::Visible,
            opening: None,
            frames: None,
        }
    }

    /// A new session's memory.
    pub fn new_session(&self) -> SessionData {
        SessionData::new(self.services.next_session(), self.default_variables())
    }

    /// For a statement of this session that begins now.
    pub fn of_session(&self, session: &Arc<SessionData>) -> Self {
        let variables = session.variables();
        // Named one by one: what all sessions share is counted by all of them.
        StatementContext {
            home: Arc::clone(&self.home),
            catalog: Arc::clone(&self.catalog),
            services: Arc::clone(&self.services),
            recodings: Arc::clone(&self.recodings),
            session: Arc::clone(session),
            current_schema: variables.schema.as_str().into(),
            variables,
            query: None,
            newest: self.newest,
            opening: self.opening.clone(),
            frames: None,
        }
    }

    /// For this statement.
    pub fn of_query(self, query: &Arc<Query>) -> Self {
        StatementContext {
            query: Some(Arc::clone(query)),
            ..self
        }
    }

    /// For a statement that may also name what the calling program has.
    pub fn with_frames(self, frames: Option<Arc<dyn Frames>>) -> Self {
        StatementContext { frames, ..self }
    }

    /// What the calling program has beside the catalogue.
    pub fn frames(&self) -> Option<&Arc<dyn Frames>> {
        self.frames.as_ref()
    }

    /// On another catalogue.
    pub fn in_catalog(self, catalog: &Arc<Catalog>) -> Self {
        StatementContext {
            catalog: Arc::clone(catalog),
            ..self
        }
    }

    /// With another schema for unqualified names.
    pub fn in_schema(self, schema: &str) -> Self {
        StatementContext {
            current_schema: schema.into(),
            ..self
        }
    }

    /// Where names mean what they mean to all sessions: no temporary table hides another one.
    pub fn without_temporary(&self) -> Self {
        if self.variables.temporary.is_none() {
            return self.clone();
        }
        let variables = Variables {
            temporary: None,
            ..Variables::clone(&self.variables)
        };
        StatementContext {
            variables: Arc::new(variables),
            ..self.clone()
        }
    }

    /// For a query whose rows are to come in their own order.
    pub fn in_one_stream(&self) -> Self {
        let variables = Variables {
            parallel_streams: 1,
            ..Variables::clone(&self.variables)
        };
        StatementContext {
            variables: Arc::new(variables),
            ..self.clone()
        }
    }

    /// For a statement that changes tables, under locks of its own.
    pub fn for_change(&self) -> Self {
        StatementContext {
            newest: Newest::Applied,
            ..self.clone()
        }
    }

    /// The newest snapshot for this statement.
    pub fn hold(&self) -> HeldSnapshot {
        match self.newest {
            Newest::Visible => self.home.hold(),
            Newest::Applied => self.home.hold_applied(),
        }
    }

    /// A statement has changed nothing, and says so: it waits until everybody may see what it has found.
    ///
    /// # Errors
    /// The disk has failed, so that it will never be.
    pub async fn show_found(&self) -> Result<(), SqlError> {
        if self.home.hold().at() < self.home.hold_applied().at() {
            self.home.barrier().await?;
        }
        Ok(())
    }

    /// The session's variables as they were when the statement began.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// What a new session begins with.
    pub fn default_variables(&self) -> Variables {
        Variables::new(self.home.worker_count())
    }

    /// The statement's entry among the running ones, unless it is being prepared.
    pub fn query(&self) -> Option<&Arc<Query>> {
        self.query.as_ref()
    }

    /// How its fragments are executed.
    pub fn scan_options(&self) -> ScanOptions {
        let statement = self.query.as_ref().map_or(0, |query| query.id);
        self.variables.scan_options(statement)
    }

    /// The statement has taken numbers of a sequence: it [waits](Self::settle_numbers) before it shows them.
    pub fn took_numbers(&self) {
        if let Some(query) = &self.query {
            query.took_numbers();
        }
    }

    /// Before a client sees numbers of sequences that the statement has taken: they are given to nobody else any more,
    /// after a crash either. A client may see them without any commit.
    ///
    /// # Errors
    /// The disk has failed, so that they may be given again.
    pub async fn settle_numbers(&self) -> Result<(), SqlError> {
        if let Some(query) = &self.query
            && query.has_taken_numbers()
            && let Some(log) = self.catalog.log()
        {
            log.settle_notes().await?;
        }
        Ok(())
    }

    /// For reading files: a state without tables or a session's variables.
    pub fn state(&self) -> &Arc<SessionState> {
        &self.services.state
    }

    /// A few rows of a table have come or gone. [To look](Self::look_at) at the table each time would take longer than
    /// to write them. So this looks once in a thousand rows.
    pub fn wrote(&self, table: &Arc<Table>, rows: u64) {
        if self.variables.key_recoding && table.data.written.add(rows) {
            self.look_at(table);
        }
    }

    /// A table is no longer what it was: what is stored by the order of others, or others by its order, may have to be
    /// stored anew.
    pub fn look_at(&self, table: &Arc<Table>) {
        if self.variables.key_recoding {
            self.recodings.wrote(table, &self.catalog.contents());
        }
    }
}

impl fmt::Debug for StatementContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatementContext({:?})", self.catalog)
    }
}
