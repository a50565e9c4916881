//! A database that is open for reading only: everything is there, nothing that would outlive the process can be
//! written, and the directory stays as it is.

use crate::common::{block_on_threads, copy, kept_in, must, try_open, values};
use crate::keeping_home::dump::{assert_same, dump};
use crate::reopened::SCHEMA;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use eris_engine::DatabaseSettings;
use eris_sql::{Database, Parameter, Session, SqlError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn open(directory: &Path, cores: u16, read_only: bool) -> Result<Database, SqlError> {
    let database = DatabaseSettings {
        read_only,
        ..kept_in(directory)
    };
    try_open((1, cores), database)
}

/// The bytes of all files below a directory.
fn bytes_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(bytes_of(&path)),
            false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    found
}

fn assert_denied(what: &str, error: &SqlError) {
    assert_eq!(error.sqlstate().to_string(), "25006", "{what}: {error}");
    let text = error.to_string();
    assert!(text.contains("open for reading only"), "{what}: {text}");
    assert!(text.contains("without --read-only"), "{what}: {text}");
}

fn without_sequences(lines: &[String]) -> Vec<String> {
    let is_of_one = |line: &&String| line.starts_with("SELECT * FROM eris.sequences");
    let others = lines.iter().filter(|line| !is_of_one(line));
    others.cloned().collect()
}

async fn denied(session: &Session, sql: &str) {
    match values(session, sql).await {
        Ok(rows) => panic!("{sql}: succeeds with {rows:?}"),
        Err(error) => assert_denied(sql, &error),
    }
}

/// Statements that would change what outlives the process: rows, definitions, positions of sequences, files.
const WRITES: [&str; 55] = [
    "INSERT INTO p VALUES (5000, 5000, 'new')",
    "INSERT INTO p SELECT k + 10000, a + 10000, b || 'new' FROM p",
    "INSERT INTO p VALUES (1, 1, 'b1') ON CONFLICT (k) DO UPDATE SET b = 'x'",
    "INSERT INTO p VALUES (1, 1, 'b1') ON CONFLICT DO NOTHING",
    "INSERT INTO ranged SELECT * FROM ranged",
    "INSERT INTO one VALUES (2, NULL) RETURNING k",
    "WITH w AS (SELECT 3 AS k) INSERT INTO one SELECT k, NULL FROM w",
    "UPDATE one SET other = NULL WHERE k = 1",
    "UPDATE p SET a = a + 1",
    "UPDATE copied SET b = 'x' WHERE k = 3",
    "DELETE FROM p WHERE k = 500",
    "DELETE FROM copied WHERE k < 10",
    "DELETE FROM copied",
    "TRUNCATE copied",
    "MERGE INTO copied USING p ON copied.k = p.k WHEN MATCHED THEN DELETE",
    "CREATE TABLE new (i INTEGER)",
    "CREATE TABLE new AS SELECT * FROM p",
    "CREATE OR REPLACE TABLE copied (i INTEGER)",
    "DROP TABLE copied",
    "DROP TABLE c, copied CASCADE",
    "ALTER TABLE copied ADD COLUMN z INTEGER",
    "ALTER TABLE copied ADD COLUMN z INTEGER DEFAULT 7",
    "ALTER TABLE copied DROP COLUMN b",
    "ALTER TABLE copied RENAME TO other",
    "ALTER TABLE copied RENAME COLUMN b TO c",
    "ALTER TABLE copied ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE copied ADD PRIMARY KEY (k)",
    "ALTER TABLE c DROP CONSTRAINT later",
    "CREATE INDEX late ON p (b)",
    "CREATE UNIQUE INDEX late ON copied (k)",
    "DROP INDEX \"by both\"",
    "CREATE VIEW new AS SELECT 1",
    "CREATE OR REPLACE VIEW constant AS SELECT 2 AS one",
    "DROP VIEW constant",
    "CREATE SCHEMA new",
    "DROP SCHEMA \"Odd schema\" CASCADE",
    "CREATE SEQUENCE new",
    "DROP SEQUENCE down",
    "CREATE MACRO new(x) AS x",
    "CREATE OR REPLACE MACRO abs(x) AS x",
    "DROP MACRO abs",
    "COMMENT ON TABLE p IS 'other'",
    "COMMENT ON COLUMN p.a IS NULL",
    "COMMENT ON SCHEMA s IS 'other'",
    "COMMENT ON VIEW v IS 'other'",
    "COMMENT ON MACRO doubled IS 'other'",
    "SELECT nextval('s.numbers')",
    "SELECT nextval('down') FROM range(100)",
    "SELECT setval('down', -9)",
    "INSERT INTO note SELECT nextval('down')",
    "CALL eris.balance('p', 'off')",
    "CHECKPOINT",
    "COPY copied FROM '{}/copied.csv'",
    "COPY c (p) FROM '{}/copied.csv'",
    "IMPORT DATABASE '{}/import'",
];

/// Statements that change nothing that outlives the process.
const OTHERS: [&str; 29] = [
    "INSERT INTO note VALUES (1), (2)",
    "INSERT INTO note SELECT k FROM p",
    "UPDATE note SET i = 3 WHERE i = 1",
    "DELETE FROM note WHERE i = 2",
    "CREATE TEMP TABLE keyed (k INTEGER PRIMARY KEY, v INTEGER UNIQUE)",
    "CREATE INDEX on_note ON note (i)",
    "INSERT INTO keyed VALUES (1, 1), (2, 2)",
    "INSERT INTO keyed VALUES (1, 5) ON CONFLICT (k) DO UPDATE SET v = 6",
    "UPDATE keyed SET v = v + 1 WHERE k = 1",
    "DELETE FROM keyed WHERE k = 2",
    "ALTER TABLE keyed ADD COLUMN z INTEGER DEFAULT 4",
    "TRUNCATE keyed",
    "COPY note FROM '{}/numbers.csv'",
    "CREATE TEMP TABLE taken AS SELECT * FROM p JOIN copied USING (k)",
    "CREATE TEMP VIEW seen AS SELECT * FROM taken",
    "DROP VIEW seen",
    "DROP TABLE taken",
    "EXPLAIN INSERT INTO copied SELECT k, b FROM p",
    "EXPLAIN ANALYZE SELECT * FROM p WHERE a > 5",
    "COPY p TO '{}/p.csv'",
    "EXPORT DATABASE '{}/exported'",
    "SET memory_limit = '900MB'",
    "SET balancing = 'off'",
    "RESET balancing",
    "CALL eris.balance('p')",
    "CALL eris.recode('c')",
    "CALL eris.reorganize('p')",
    "CREATE TABLE IF NOT EXISTS p (i INTEGER)",
    "DROP TABLE IF EXISTS nothing",
];

#[test]
fn all_is_there_and_nothing_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let (db, copied) = (directory.path().join("db"), directory.path().join("copy"));
    let place = directory.path().to_str().unwrap();
    std::fs::write(directory.path().join("copied.csv"), "k,b\n70,x\n").unwrap();
    std::fs::write(directory.path().join("numbers.csv"), "i\n70\n71\n").unwrap();
    std::fs::create_dir(directory.path().join("import")).unwrap();
    std::fs::write(
        directory.path().join("import/schema.sql"),
        "CREATE TABLE z (i INTEGER);\n",
    )
    .unwrap();
    std::fs::write(directory.path().join("import/load.sql"), "").unwrap();
    let (before, after_next) = block_on_threads(async {
        let database = open(&db, 2, false).unwrap();
        let session = database.session();
        for (at, sql) in SCHEMA.iter().enumerate() {
            must(&session, sql).await;
            // The rest is in the log.
            if at == SCHEMA.len() / 2 {
                must(&session, "CHECKPOINT").await;
            }
        }
        let session = database.session();
        let before = dump(&session).await;
        // As a machine that stops leaves it: the log is not closed.
        copy(&db, &copied);
        let next = values(&session, "SELECT nextval('down')").await.unwrap();
        database.close().unwrap();
        (before, next)
    });
    assert_eq!(after_next, [["-8"]]);
    let unclosed = bytes_of(&copied);
    let mut seen: Option<Vec<String>> = None;
    let databases = [1, 2].map(|cores| open(&copied, cores, true).unwrap());
    for database in &databases {
        block_on_threads(async {
            let session = database.session();
            let now = dump(&session).await;
            // As after every crash, sequences go on behind the numbers that they have noted.
            let all = [&before, &now].map(|lines| without_sequences(lines));
            assert_same(&all[0], &all[1], "for reading");
            let first = seen.get_or_insert(now);
            assert_same(first, &dump(&session).await, "for reading, with sequences");
            must(&session, "CREATE TEMP TABLE note (i BIGINT)").await;
            for sql in WRITES {
                let sql = sql.replace("{}", place);
                denied(&session, &sql).await;
                // Once more, as a text whose plan may be kept.
                denied(&session, &sql).await;
            }
            prepared_and_by_key(database).await;
            for sql in OTHERS {
                must(&session, &sql.replace("{}", place)).await;
            }
            std::fs::remove_dir_all(directory.path().join("exported")).unwrap();
            assert_same(first, &dump(&database.session()).await, "after all that");
            let state = "SELECT synchronous IS NULL, durable_commit > 0, groups IS NULL, error IS NULL FROM eris.log";
            assert_eq!(values(&session, state).await.unwrap(), [["true"; 4]]);
            let files = "SELECT count(*) FROM eris.files WHERE live_bytes IS NULL";
            let count = unclosed.len() - 1;
            assert_eq!(
                values(&session, files).await.unwrap(),
                [[count.to_string()]],
                "without the lock"
            );
            let snapshot = values(&session, "SELECT state FROM eris.snapshots").await;
            assert_eq!(snapshot.unwrap(), [["in place"]]);
        });
    }
    // Whoever would write is told.
    let error = open(&copied, 1, false).unwrap_err().to_string();
    assert!(error.contains("open for reading"), "{error}");
    let [first, second] = databases;
    first.close().unwrap();
    drop((first, second));
    assert_eq!(
        bytes_of(&copied),
        unclosed,
        "nothing has changed on the disk"
    );
    block_on_threads(async {
        let database = open(&copied, 2, false).unwrap();
        let session = database.session();
        assert_same(&seen.unwrap(), &dump(&session).await, "for writing");
        must(&session, "INSERT INTO p VALUES (5000, 5000, 'new')").await;
        let error = open(&copied, 1, true).unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
    });
}

/// Writes that do not come as the text of a statement.
async fn prepared_and_by_key(database: &Database) {
    let session = database.session();
    must(&session, "PREPARE put AS INSERT INTO one VALUES ($1, NULL)").await;
    denied(&session, "EXECUTE put(7)").await;
    let prepared = session
        .prepare("UPDATE one SET other = NULL WHERE k = $1")
        .await
        .unwrap();
    for _ in 0..3 {
        let error = match prepared.execute(&[Parameter::from(1i64)]).await {
            Ok(_) => panic!("it is written"),
            Err(error) => error,
        };
        assert_denied("a prepared statement", &error);
    }
    let numbers = |numbers: &[i64]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
    for table in ["p", "one", "self"] {
        let mut rows = session.rows(table).unwrap();
        let key = rows.schema().field(0).name().clone();
        let batch = RecordBatch::try_from_iter([(key.as_str(), numbers(&[1, 77]))]).unwrap();
        let found = rows.get(&[numbers(&[1])], &[&key]).await.unwrap();
        assert_eq!(found.rows.num_rows(), usize::from(table != "self"));
        assert_denied(table, &rows.put(&batch).await.unwrap_err());
        assert_denied(table, &rows.remove(&[numbers(&[1])]).await.unwrap_err());
    }
}
