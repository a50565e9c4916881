//! Statements of several sessions that change, write, read and drop the same tables, and are stopped anywhere.

use eris_engine::Settings;
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlErrorKind};
use std::time::Duration;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

async fn run(session: &Session, sql: &str) -> Result<u64, eris_sql::SqlError> {
    match session.execute(sql).await? {
        Outcome::Rows(rows) => Ok(rows.collect().await?.iter().map(|b| b.num_rows() as u64).sum()),
        Outcome::Count { rows, .. } => Ok(rows),
        Outcome::Done { .. } => Ok(0),
    }
}

const STATEMENTS: [&str; 30] = [
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
];

#[test]
fn sessions_that_change_the_same_tables_get_on() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    for (nodes, cores) in [(1, 1), (4, 2)] {
        let settings = Settings {
            topology: Topology::fake(nodes, cores),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
        };
        let database = Database::open(settings).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        runtime.block_on(async {
            let mut tasks = Vec::new();
            for worker in 0..6 {
                let session = database.session();
                let mut random = Random(seed ^ (worker * 7919 + 1));
                tasks.push(tokio::spawn(async move {
                    for _ in 0..250 {
                        let sql = STATEMENTS[random.below(STATEMENTS.len() as u64) as usize];
                        let result = match random.below(4) {
                            0 => {
                                let wait = Duration::from_micros(random.below(6000));
                                match tokio::time::timeout(wait, run(&session, sql)).await {
                                    Ok(result) => result,
                                    Err(_) => continue,
                                }
                            }
                            1 => {
                                let id = random.below(2500);
                                let _ = run(&session, &format!("KILL {id}")).await;
                                let newest = "SELECT max(id) AS i FROM eris.queries WHERE state = 'running'";
                                let _ = run(&session, newest).await;
                                run(&session, sql).await
                            }
                            _ => run(&session, sql).await,
                        };
                        if let Err(error) = result {
                            assert!(!matches!(error.kind(), SqlErrorKind::Internal(_)), "{sql}: {error}");
                            let text = error.to_string();
                            let known = ["does not exist", "no column", "exists already", "columns, but", "cannot be", "occurs twice", "cancelled", "is a view", "would be", "not a table", "killed", "ended by", "stopped by", "last column", "No field", "convert", "Cannot cast", "out of memory", "DEFAULT", "cast"];
                            if !known.iter().any(|k| text.contains(k)) {
                                println!("ERROR {sql}: {text}");
                            }
                        }
                    }
                }));
            }
            let all = async { for task in tasks { task.await.unwrap(); } };
            tokio::time::timeout(Duration::from_secs(100), all).await.expect("nobody waits in a circle");
            let session = database.session();
            for sql in ["DROP VIEW IF EXISTS v CASCADE", "DROP VIEW IF EXISTS w CASCADE", "DROP TABLE IF EXISTS a CASCADE", "DROP TABLE IF EXISTS b CASCADE", "DROP TABLE IF EXISTS d CASCADE", "DROP SCHEMA IF EXISTS s CASCADE"] {
                run(&session, sql).await.unwrap();
            }
            let mut left = u64::MAX;
            for _ in 0..200 {
                left = database.engine().memory().budget().used();
                if left < (4 << 20) { break; }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            println!("{nodes}x{cores}: left {left}");
        });
    }
}
