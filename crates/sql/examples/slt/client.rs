//! A fresh database and its sessions, driven from this thread.

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlError, SqlErrorKind, VALUE_FORMAT, formatter};
use std::collections::HashMap;
use std::time::Duration;

/// The rows of a statement as text; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// What a statement came to.
pub enum Ran {
    Rows { rows: Rows, columns: usize },
    Count(u64),
    Failed(SqlError),
    TimedOut,
}

pub struct Client {
    database: Database,
    sessions: HashMap<String, Session>,
    runtime: tokio::runtime::Runtime,
}

/// Memory of a file's database.
const MEMORY: u64 = 4 << 30;

impl Client {
    pub fn open() -> Result<Self, String> {
        let topology = Topology::detect().map_err(|error| error.to_string())?;
        let settings = Settings {
            topology,
            huge_pages: HugePages::Never,
            memory_limit: Some(MEMORY),
            database: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| error.to_string())?;
        let home = Engine::home(settings).map_err(|error| error.to_string())?;
        Ok(Client {
            database: Database::open(home).map_err(|error| error.to_string())?,
            sessions: HashMap::new(),
            runtime,
        })
    }

    /// Runs a text, which may be several statements; the last one's outcome counts.
    pub fn run(&mut self, connection: &str, sql: &str, limit: Duration) -> Ran {
        let session = self
            .sessions
            .entry(connection.to_owned())
            .or_insert_with(|| self.database.session());
        let work = async {
            let mut outcome = Ran::Count(0);
            for statement in Session::split(sql)? {
                outcome = match session.execute(&statement).await? {
                    Outcome::Rows(stream) => {
                        let columns = stream.schema().fields().len();
                        let rows = stream.collect().await?.iter().flat_map(text).collect();
                        Ran::Rows { rows, columns }
                    }
                    Outcome::Count { rows, .. } => Ran::Count(rows),
                    Outcome::Done { .. } => Ran::Count(0),
                };
            }
            Ok::<_, SqlError>(outcome)
        };
        // The timer has to be made within the runtime.
        match self
            .runtime
            .block_on(async { tokio::time::timeout(limit, work).await })
        {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Ran::Failed(error),
            Err(_) => Ran::TimedOut,
        }
    }

    /// Whether a database that has let a statement run out of time still answers.
    pub fn answers(&mut self) -> bool {
        matches!(
            self.run("probe", "SELECT 1", Duration::from_secs(5)),
            Ran::Rows { .. }
        )
    }
}

/// Whether a failure is an error that tells what is wrong: no answer, but no wrong one.
pub fn is_rejection(error: &SqlError) -> bool {
    !is_internal(error)
}

/// Whether a failure means that Eris lacks something, and says so.
pub fn is_unsupported(error: &SqlError) -> bool {
    matches!(error.kind(), SqlErrorKind::NotSupported(_))
}

fn text(batch: &RecordBatch) -> Rows {
    let columns = batch
        .columns()
        .iter()
        .map(|column| (column.logical_nulls(), formatter(column, &VALUE_FORMAT)));
    let columns: Vec<_> = columns.collect();
    let rows = 0..batch.num_rows();
    rows.map(|row| {
        let values = columns.iter().map(|(nulls, formatter)| {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let shown = || match formatter {
                Ok(formatter) => formatter.value(row).to_string(),
                // As the shell would fail.
                Err(error) => error.to_string(),
            };
            (!is_null).then(shown)
        });
        values.collect()
    })
    .collect()
}

/// Whether a failure is a bug of Eris, a panic for instance.
pub fn is_internal(error: &SqlError) -> bool {
    matches!(error.kind(), SqlErrorKind::Internal(_))
}
