//! The database of a case, and what sessions do to its table.

use super::CommitBenchError;
use super::disk::Directory;
use super::sessions::Act;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use eris_engine::{DatabaseSettings, Engine, Settings, Synchronous};
use eris_sql::{Database, Outcome, SqlError};
use futures::executor::block_on;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Rows of the table.
const KEYS: i64 = 100_000;
/// Keys follow each other in such steps. It has no divisor in common with a session's number of keys.
const STEP: i64 = 7_919;

/// Where the database of a case is: in memory, or in a directory that goes with this.
pub struct Scratch {
    settings: Settings,
    directory: Option<TempDir>,
}

impl Scratch {
    /// In memory alone.
    pub fn in_memory(settings: &Settings) -> Self {
        Scratch {
            settings: settings.clone(),
            directory: None,
        }
    }

    /// In a new directory below another one.
    pub fn below(
        directory: &Path,
        settings: &Settings,
        synchronous: Synchronous,
    ) -> Result<Self, CommitBenchError> {
        let made = tempfile::Builder::new()
            .prefix("eris-commit-")
            .tempdir_in(directory)
            .map_err(|error| CommitBenchError::disk(directory, error))?;
        let database = DatabaseSettings {
            directory: made.path().to_owned(),
            synchronous: Some(synchronous),
            read_only: false,
        };
        Ok(Scratch {
            settings: Settings {
                database: Some(database),
                ..settings.clone()
            },
            directory: Some(made),
        })
    }

    /// Opens the database, which is new or was closed.
    pub fn open(&self) -> Result<Database, CommitBenchError> {
        let home = Engine::home(self.settings.clone()).map_err(SqlError::from)?;
        Ok(Database::open(home)?)
    }

    /// Opens a new database with a table of keys whose values are 0. It is closed once before, so that its files are as
    /// long as what is in them. Also the bytes of its log.
    pub fn with_table(&self) -> Result<(Database, u64), CommitBenchError> {
        let database = self.open()?;
        for sql in [
            "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, a INTEGER, b DOUBLE)".to_owned(),
            format!("INSERT INTO t SELECT i, 0, 1, 0.5 FROM range({KEYS}) AS r(i)"),
        ] {
            block_on(database.session().execute(sql.as_str()))?;
        }
        if self.directory.is_none() {
            return Ok((database, 0));
        }
        close(database)?;
        let bytes = self.log_bytes()?;
        Ok((self.open()?, bytes))
    }

    /// Bytes of the log's files. They say something only while the database is closed, for room is allocated ahead.
    pub fn log_bytes(&self) -> Result<u64, CommitBenchError> {
        self.bytes_below("log")
    }

    /// Bytes of all files of the database, while it is closed.
    pub fn bytes(&self) -> Result<u64, CommitBenchError> {
        self.bytes_below("")
    }

    fn bytes_below(&self, name: &str) -> Result<u64, CommitBenchError> {
        match &self.directory {
            Some(directory) => Directory(&directory.path().join(name)).bytes(),
            None => Ok(0),
        }
    }
}

/// Closes a database, and waits until its memory and its directory are free.
pub fn close(database: Database) -> Result<(), CommitBenchError> {
    Ok(database.close()?)
}

/// The answer to a query of one number, compared with the right one.
pub fn check(
    database: &Database,
    what: &'static str,
    sql: &str,
    expected: usize,
) -> Result<(), CommitBenchError> {
    let got = match block_on(database.session().execute(sql))? {
        Outcome::Rows(rows) => block_on(rows.collect())?,
        Outcome::Count { .. } | Outcome::Done { .. } => Vec::new(),
    };
    let got = got.iter().find(|batch| batch.num_rows() == 1);
    let got = got.map_or(0, |batch| {
        batch.column(0).as_primitive::<Int64Type>().value(0)
    });
    CommitBenchError::unless_equal(what, got, expected as i64)
}

/// Keys of one of several sessions, which share none.
struct Keys {
    session: i64,
    sessions: i64,
    /// How many were given.
    given: i64,
}

impl Keys {
    fn new(session: usize, sessions: usize) -> Self {
        Keys {
            session: session as i64,
            sessions: sessions as i64,
            given: 0,
        }
    }

    fn next(&mut self) -> i64 {
        self.given += 1;
        let own = self.given * STEP % (KEYS / self.sessions);
        own * self.sessions + self.session
    }
}

fn column(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

/// One-row upserts by a session's own keys. The value is how many there were.
pub fn upserts(
    database: &Database,
    session: usize,
    sessions: usize,
) -> Result<Act, CommitBenchError> {
    let mut keys = Keys::new(session, sessions);
    upserts_of(database, move || keys.next())
}

/// One-row upserts of one key.
pub fn upserts_of_one(database: &Database, key: i64) -> Result<Act, CommitBenchError> {
    upserts_of(database, move || key)
}

fn upserts_of(
    database: &Database,
    mut key: impl FnMut() -> i64 + Send + 'static,
) -> Result<Act, CommitBenchError> {
    let mut rows = database.session().rows("t")?;
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, false),
        Field::new("v", DataType::Int64, true),
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Float64, true),
    ]));
    let mut number = 0;
    Ok(Box::new(move || {
        number += 1;
        let columns = vec![
            column(key()),
            column(number),
            Arc::new(Int32Array::from(vec![1])) as ArrayRef,
            Arc::new(Float64Array::from(vec![0.5])) as ArrayRef,
        ];
        let row = RecordBatch::try_new(Arc::clone(&schema), columns);
        block_on(rows.put(&row.expect("the columns of the table")))?;
        Ok(())
    }))
}

/// How an update gets to its row.
#[derive(Clone, Copy)]
pub enum UpdateWay {
    /// Prepared, on the short path.
    ByKey,
    /// By a query that finds the row: a comment keeps the text off the short path.
    ByQuery,
}

/// `UPDATE t SET v = v + 1` of one row, by a session's own keys.
pub fn updates(
    database: &Database,
    way: UpdateWay,
    session: usize,
    sessions: usize,
) -> Result<Act, CommitBenchError> {
    let mut keys = Keys::new(session, sessions);
    let session = database.session();
    let prepared = block_on(session.prepare("UPDATE t SET v = v + 1 WHERE k = $1"))?;
    Ok(Box::new(move || {
        let key = keys.next();
        let outcome = match way {
            UpdateWay::ByKey => block_on(prepared.execute(&[key.into()]))?,
            UpdateWay::ByQuery => {
                let text = format!("UPDATE t SET v = v + 1 WHERE k = {key} -- planned");
                block_on(session.execute(text.as_str()))?
            }
        };
        let changed = match outcome {
            Outcome::Count { rows, .. } => rows as i64,
            Outcome::Rows(_) | Outcome::Done { .. } => 0,
        };
        CommitBenchError::unless_equal("the number of rows that an update changes", changed, 1)
    }))
}

/// Lookups of one key.
pub fn lookups(database: &Database, key: i64) -> Result<Act, CommitBenchError> {
    let mut rows = database.session().rows("t")?;
    Ok(Box::new(move || {
        let found = block_on(rows.get(&[column(key)], &["v"]))?.rows.num_rows();
        CommitBenchError::unless_equal("the number of rows that a lookup finds", found as i64, 1)
    }))
}
