//! Any bytes as SQL, and as files of CSV, JSON, Parquet and Arrow: there is an answer or an error in the user's terms,
//! never a panic or an internal error. `crates/sql/fuzz` chooses bytes by coverage; the test beside this changes its
//! seeds at random.

use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlError, SqlErrorKind};
use futures::executor::block_on;
use std::fmt::Debug;
use std::path::PathBuf;
use tempfile::TempDir;

/// Statements of one input that are looked at.
const STATEMENTS: usize = 4;

/// Dialects of CSV, of which the first byte of an input chooses one.
const DIALECTS: [&str; 6] = [
    "",
    ", header => false",
    ", all_varchar => true",
    ", delim => ';', quote => '''', escape => '\\'",
    ", comment => '#', skip => 1, ignore_errors => true",
    ", quote => '', sample_size => 2",
];

/// A small database that inputs are given to, and a directory for those that are files.
pub struct Inputs {
    database: Database,
    directory: TempDir,
}

impl Inputs {
    pub fn new() -> Self {
        let settings = Settings {
            topology: Topology::fake(1, 1),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
            database: None,
        };
        let database =
            Database::open(Engine::home(settings).expect("an engine")).expect("a database");
        let tables = "
            CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR, c DECIMAL(4, 1), d TIMESTAMP, e DOUBLE CHECK (e > 0));
            INSERT INTO t VALUES (1, 'x', 1.5, '2020-01-01 08:30:00', 1.0), (2, 'y', NULL, NULL, NULL);
            CREATE TABLE keyed (a INTEGER, b VARCHAR UNIQUE, n BIGINT DEFAULT 3, PRIMARY KEY (a))";
        let session = database.session();
        for statement in Session::split(tables).expect("a script") {
            block_on(session.execute(statement)).expect("a table");
        }
        Inputs {
            database,
            directory: TempDir::new().expect("a directory"),
        }
    }

    /// Cut into statements, which are prepared: parsed, resolved and planned, but not run.
    pub fn sql(&self, input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        let mut end = 0;
        for lexeme in eris_sql::lexemes(&text) {
            assert!(end <= lexeme.span.start, "{text:?}");
            end = lexeme.span.end;
        }
        let Some(statements) = seen(&text, Session::split(&text)) else {
            return;
        };
        let session = self.database.session();
        for statement in statements.into_iter().take(STATEMENTS) {
            assert!(text.contains(statement.text()), "{text:?}");
            seen(&text, block_on(session.prepare(statement)));
        }
    }

    /// The first byte is the dialect, all others are the file.
    pub fn csv(&self, input: &[u8]) {
        if let Some((dialect, text)) = input.split_first() {
            let dialect = DIALECTS[usize::from(*dialect) % DIALECTS.len()];
            self.file("input.csv", text, |path| {
                format!("read_csv('{path}'{dialect})")
            });
        }
    }

    /// All of it is the file.
    pub fn json(&self, input: &[u8]) {
        self.file("input.json", input, |path| format!("read_json('{path}')"));
    }

    /// All of it is the file.
    pub fn parquet(&self, input: &[u8]) {
        self.file("input.parquet", input, |path| {
            format!("read_parquet('{path}')")
        });
    }

    /// All of it is the file.
    pub fn arrow(&self, input: &[u8]) {
        self.file("input.arrow", input, |path| format!("'{path}'"));
    }

    /// Reads a file whole, and counts its rows without looking at them: the same number, unless a row is wrong.
    fn file(&self, name: &str, text: &[u8], function: impl Fn(&str) -> String) {
        let path: PathBuf = self.directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let table = function(path.to_str().expect("a name that is text"));
        let session = self.database.session();
        let rows = |query: String| {
            let batches = block_on(async {
                match session.execute(query.as_str()).await? {
                    Outcome::Rows(rows) => rows.collect().await,
                    other => panic!("{query}: {other:?}"),
                }
            });
            let shown = String::from_utf8_lossy(text);
            let batches = seen(&shown, batches)?;
            Some(batches.iter().map(|batch| batch.num_rows()).sum::<usize>())
        };
        let all = rows(format!("SELECT * FROM {table}"));
        let counted = rows(format!("SELECT 1 FROM {table}"));
        if let (Some(all), Some(counted)) = (all, counted) {
            assert_eq!(
                all,
                counted,
                "{table} of {:?}",
                String::from_utf8_lossy(text)
            );
        }
    }
}

/// What there is, or none if an error says why, which may not be ours.
fn seen<T>(input: &str, result: Result<T, SqlError>) -> Option<T> {
    if let Err(error) = &result {
        let ours = matches!(error.kind(), SqlErrorKind::Internal(_));
        assert!(!ours, "{input:?}: {error}");
        assert!(
            !error.to_string().is_empty(),
            "{input:?}: {:?}",
            error as &dyn Debug
        );
    }
    result.ok()
}
