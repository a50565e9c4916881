//! CREATE INDEX that fails on the way, or is given up: nothing is left of it, and the table is as before.

use crate::common::{TOPOLOGIES, block_on_threads, count, database, must};
use eris_sql::{Amount, Database, Outcome, Session, SqlErrorKind};
use std::time::{Duration, Instant};

const ROWS: u64 = 300_000;

const COLUMNS: [&str; 6] = [
    "n",
    "s",
    "USING hash (n)",
    "s, n",
    "USING blink (n)",
    "USING blink (s, n)",
];

/// A table `t` of numbers and texts.
async fn filled((nodes, cores): (u16, u16)) -> Database {
    let database = database(nodes, cores);
    let session = database.session();
    must(&session, "CREATE TABLE t (k INTEGER, n BIGINT, s VARCHAR)").await;
    let fill = format!(
        "INSERT INTO t SELECT i, i * 7919 % 100003, 'text ' || (i * 31 % 5003) FROM range({ROWS}) r(i)"
    );
    must(&session, &fill).await;
    database
}

fn create(columns: &str) -> String {
    match columns.starts_with("USING") {
        true => format!("CREATE INDEX i ON t {columns}"),
        false => format!("CREATE INDEX i ON t ({columns})"),
    }
}

/// Waits until as much memory is in use as before.
async fn until(database: &Database, bytes: u64) {
    let began = Instant::now();
    while database.home().budget().used() != bytes {
        let used = database.home().budget().used();
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{used} bytes are in use, {bytes} were"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The table is as if there had never been an index: it can be written, and the name is free.
async fn leaves_nothing(database: &Database) {
    let session = database.session();
    assert_eq!(must(&session, "SELECT * FROM eris.indexes").await, 0);
    must(&session, "INSERT INTO t VALUES (-1, -77, 'new')").await;
    assert_eq!(must(&session, "SELECT k FROM t WHERE n = -77").await, 1);
    assert_eq!(must(&session, "DELETE FROM t WHERE n = -77").await, 1);
    assert_eq!(must(&session, "SELECT k FROM t WHERE n = 7919").await, 3);
}

#[test]
fn an_index_for_which_memory_does_not_suffice_leaves_nothing() {
    for topology in TOPOLOGIES {
        block_on_threads(async {
            let database = filled(topology).await;
            let session = database.session();
            let budget = database.home().budget().clone();
            let (limit, before) = (budget.limit(), budget.used());
            for columns in COLUMNS {
                // Nothing is left; or enough to begin with.
                for left in [0, 1 << 20] {
                    budget.set_limit(before + left);
                    let error = count(&session, &create(columns)).await.unwrap_err();
                    assert!(error.to_string().contains("memory"), "{error}");
                    until(&database, before).await;
                    budget.set_limit(limit);
                }
                let sql = "SELECT * FROM eris.indexes";
                assert_eq!(must(&session, sql).await, 0);
            }
            leaves_nothing(&database).await;
            for columns in COLUMNS {
                must(&session, &create(columns)).await;
                assert_eq!(must(&session, "SELECT k FROM t WHERE n = 7919").await, 3);
                must(&session, "DROP INDEX i").await;
            }
        });
    }
}

#[test]
fn rows_for_which_an_index_has_no_memory_are_not_inserted() {
    for topology in TOPOLOGIES {
        block_on_threads(async {
            let database = filled(topology).await;
            let session = database.session();
            for columns in ["n", "s, n", "USING blink (n)", "USING blink (s, n)"] {
                must(&session, &create(columns)).await;
                let budget = database.home().budget().clone();
                let limit = budget.limit();
                let insert = "INSERT INTO t SELECT k, -5, 'far ' || k FROM t";
                let mut rejected = 0;
                for left in [64 << 10, 1 << 20, 4 << 20] {
                    budget.set_limit(budget.used() + left);
                    let error = count(&session, insert).await.unwrap_err();
                    assert!(error.to_string().contains("memory"), "{error}");
                    rejected += 1;
                }
                budget.set_limit(limit);
                assert_eq!(rejected, 3);
                let none = "SELECT k FROM t WHERE n = -5 OR s LIKE 'far%'";
                assert_eq!(must(&session, none).await, 0);
                let sql = "SELECT k FROM t WHERE n = 7919 AND s = 'text 31'";
                assert_eq!(must(&session, sql).await, 1);
                must(&session, "INSERT INTO t VALUES (1, -5, 'far 1')").await;
                let one = "SELECT k FROM t WHERE n = -5 AND s = 'far 1'";
                assert_eq!(must(&session, one).await, 1);
                must(&session, "DELETE FROM t WHERE n = -5").await;
                must(&session, "DROP INDEX i").await;
            }
        });
    }
}

#[test]
fn an_index_that_is_given_up_leaves_nothing() {
    for topology in TOPOLOGIES {
        block_on_threads(async {
            let database = filled(topology).await;
            let session = database.session();
            let before = database.home().budget().used();
            let (mut given_up, mut killed) = (0, 0);
            for round in 0..24 {
                let sql = create(COLUMNS[round % COLUMNS.len()]);
                let pause = Duration::from_micros(150 * round as u64);
                let other = database.session();
                if round % 2 == 0 {
                    let done = tokio::time::timeout(pause, must(&other, &sql)).await;
                    given_up += u64::from(done.is_err());
                } else {
                    let running = tokio::spawn(async move { count(&other, &sql).await });
                    tokio::time::sleep(pause).await;
                    let find = "SELECT id FROM eris.queries WHERE statement LIKE 'CREATE INDEX%' AND state = 'running'";
                    for id in cells(&session, find).await {
                        // It may be done by now.
                        let _ = count(&session, &format!("KILL {id}")).await;
                    }
                    match running.await.unwrap() {
                        Ok(_) => {}
                        Err(error) => {
                            assert!(matches!(error.kind(), SqlErrorKind::Killed(_)), "{error}");
                            killed += 1;
                        }
                    }
                }
                must(&session, "DROP INDEX IF EXISTS i").await;
                until(&database, before).await;
            }
            assert!(given_up > 2 && killed > 2, "{given_up}, {killed}");
            leaves_nothing(&database).await;
        });
    }
}

async fn number(session: &Session, sql: &str) -> u64 {
    cells(session, sql).await[0].parse().unwrap()
}

/// The first column of a query's rows.
async fn cells(session: &Session, sql: &str) -> Vec<String> {
    use datafusion::arrow::util::display::array_value_to_string;
    let Outcome::Rows(rows) = session.execute(sql).await.unwrap() else {
        panic!("{sql} has no rows");
    };
    let batches = rows.collect().await.unwrap();
    let all = batches.iter().flat_map(|batch| {
        let rows = 0..batch.num_rows();
        rows.map(|row| array_value_to_string(batch.column(0), row).unwrap())
    });
    all.collect()
}

#[test]
fn it_is_told_how_far_an_index_is() {
    for topology in TOPOLOGIES {
        block_on_threads(async {
            let database = filled(topology).await;
            let session = database.session();
            let running = session.execute("CREATE INDEX i ON t (n)");
            let progress = running.progress().clone();
            running.await.unwrap();
            let all = Amount {
                done: ROWS,
                total: ROWS,
            };
            assert_eq!(progress.rows(), all);
        });
    }
}

#[test]
fn rows_that_are_gone_do_not_stay_at_the_beginning_of_an_order() {
    for topology in TOPOLOGIES {
        block_on_threads(async {
            for columns in ["n", "USING blink (n)"] {
                let database = filled(topology).await;
                let session = database.session();
                must(&session, &create(columns)).await;
                // Too few for their chunks to be rewritten.
                let gone = must(&session, "DELETE FROM t WHERE n < 5000").await;
                for _ in 0..20 {
                    assert_eq!(number(&session, "SELECT min(n) FROM t").await, 5_000);
                }
                let entries = number(&session, "SELECT entries FROM eris.indexes").await;
                assert!(
                    entries < ROWS - gone + 500,
                    "{entries} entries, {gone} rows are gone"
                );
                let lookups = number(&session, "SELECT lookups FROM eris.indexes").await;
                assert_eq!(number(&session, "SELECT min(n) FROM t").await, 5_000);
                assert_eq!(
                    number(&session, "SELECT lookups FROM eris.indexes").await,
                    lookups + 1
                );
                assert_eq!(
                    number(&session, "SELECT count(*) FROM t WHERE n = 5000").await,
                    3
                );
            }
        });
    }
}
