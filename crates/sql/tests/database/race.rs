//! Sessions that write, change, read and drop the same tables and views, and are stopped anywhere: all get on, none
//! panics, and no memory stays.

use crate::common::{Random, block_on_threads, count, database_with, seed};
use eris_sql::{Session, SqlError, SqlErrorKind};
use std::time::Duration;

const SESSIONS: u64 = 6;
const STATEMENTS_EACH: usize = 120;

const STATEMENTS: [&str; 42] = [
    "INSERT INTO a SELECT i, i FROM generate_series(1, 3000) AS g(i)",
    "INSERT INTO b SELECT i, i FROM generate_series(1, 3000) AS g(i)",
    "INSERT INTO a SELECT * FROM a LIMIT 5000",
    "INSERT INTO a SELECT * FROM b LIMIT 5000",
    "INSERT INTO b SELECT * FROM a LIMIT 5000",
    "TRUNCATE a, b",
    "TRUNCATE b, a",
    "DELETE FROM a",
    "ALTER TABLE a ADD COLUMN c INTEGER DEFAULT 5",
    "ALTER TABLE a DROP COLUMN c",
    "ALTER TABLE b ALTER COLUMN y TYPE VARCHAR",
    "ALTER TABLE b ALTER COLUMN y TYPE INTEGER USING y::INTEGER",
    "ALTER TABLE a RENAME TO d",
    "ALTER TABLE d RENAME TO a",
    "DROP TABLE IF EXISTS a, b CASCADE",
    "DROP TABLE IF EXISTS b, a",
    "CREATE TABLE IF NOT EXISTS a (x INTEGER, y INTEGER)",
    "CREATE TABLE IF NOT EXISTS b (x INTEGER, y INTEGER)",
    "CREATE OR REPLACE TABLE a AS SELECT i AS x, i AS y FROM generate_series(1, 2000) AS g(i)",
    "CREATE OR REPLACE TABLE b AS SELECT x, y FROM a",
    "CREATE OR REPLACE VIEW v AS SELECT x FROM a",
    "CREATE OR REPLACE VIEW w AS SELECT * FROM v JOIN b USING (x)",
    "DROP VIEW IF EXISTS v CASCADE",
    "SELECT count(*) FROM w",
    "SELECT * FROM a ORDER BY x",
    "CREATE SCHEMA IF NOT EXISTS s",
    "DROP SCHEMA IF EXISTS s CASCADE",
    "CREATE TABLE s.t AS SELECT * FROM a",
    "INSERT INTO s.t SELECT * FROM s.t",
    "SELECT * FROM eris.tables, eris.columns",
    "UPDATE a SET x = x + 1 WHERE x % 3 = 0",
    "UPDATE b SET x = a.x FROM (SELECT DISTINCT x FROM a) AS a WHERE a.x = b.x + 1",
    "DELETE FROM a WHERE x % 2 = 0",
    "DELETE FROM b USING a WHERE a.x = b.x",
    "MERGE INTO a USING (SELECT DISTINCT x FROM b) AS b ON a.x = b.x WHEN MATCHED THEN DELETE",
    "CREATE OR REPLACE TABLE a (x INTEGER PRIMARY KEY, y INTEGER)",
    "CREATE INDEX IF NOT EXISTS one ON a (x)",
    "CREATE INDEX IF NOT EXISTS two ON b USING hash (y)",
    "CREATE INDEX three ON b (x, y)",
    "DROP INDEX IF EXISTS one, three",
    "SELECT * FROM b WHERE x IN (17, 1234) OR x > 2990",
    "SELECT min(x), max(x) FROM b",
];

/// Runs a statement that somebody may stop: its client, or another session.
async fn run_perhaps(session: &Session, sql: &str, random: &mut Random) -> Result<u64, SqlError> {
    match random.below(4) {
        0 => {
            let patience = Duration::from_micros(random.below(6000));
            let given_up = tokio::time::timeout(patience, count(session, sql)).await;
            given_up.unwrap_or(Ok(0))
        }
        1 => {
            // Mostly nobody's number any more.
            let victim = random.below(2 * SESSIONS * STATEMENTS_EACH as u64);
            let _ = count(session, &format!("KILL {victim}")).await;
            count(session, sql).await
        }
        _ => count(session, sql).await,
    }
}

async fn statements(session: Session, mut random: Random) {
    for _ in 0..STATEMENTS_EACH {
        let sql = STATEMENTS[random.below(STATEMENTS.len() as u64) as usize];
        if let Err(error) = run_perhaps(&session, sql, &mut random).await {
            let is_fault = matches!(error.kind(), SqlErrorKind::Internal(_));
            assert!(!is_fault, "{sql}: {error}");
        }
    }
}

#[test]
fn sessions_that_change_the_same_tables_get_on() {
    let seed = seed();
    for (nodes, cores) in [(1, 1), (4, 2)] {
        let database = database_with(nodes, cores, 256 << 20);
        block_on_threads(async {
            let tasks = (0..SESSIONS).map(|number| {
                let random = Random::seeded(seed ^ (7919 * number + 1));
                tokio::spawn(statements(database.session(), random))
            });
            // A circle of statements that wait for each other would never end.
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            let session = database.session();
            for sql in [
                "DROP VIEW IF EXISTS v, w CASCADE",
                "DROP TABLE IF EXISTS a, b, d CASCADE",
                "DROP SCHEMA IF EXISTS s CASCADE",
            ] {
                count(&session, sql).await.unwrap();
            }
            let budget = database.home().budget();
            // Statements that were given up may end a little later.
            while budget.used() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}
