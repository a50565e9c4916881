//! Definitions that change while rows are read and written: nothing lost, never a mix, memory given back.

use crate::common::{block_on, database, database_with, run, values};
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::StreamExt;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Runs a test with one AEU, and with eight on four nodes.
fn on_topologies<F: Future<Output = ()>>(test: impl Fn(Database) -> F) {
    for (nodes, cores) in [(1, 1), (4, 2)] {
        block_on(test(database(nodes, cores)));
    }
}

async fn ok(session: &Session, sql: &str) {
    if let Err(error) = run(session, sql).await {
        panic!("{sql}: {error}");
    }
}

async fn count(session: &Session, sql: &str) -> Result<u64, SqlError> {
    match session.execute(sql).await? {
        Outcome::Count { rows, .. } => Ok(rows),
        other => panic!("{sql}: {other:?}"),
    }
}

async fn numbers(session: &Session, sql: &str) -> Result<Vec<u64>, SqlError> {
    let rows = values(session, sql).await?;
    Ok(rows[0].iter().map(|value| value.parse().unwrap()).collect())
}

async fn number(session: &Session, sql: &str) -> u64 {
    numbers(session, sql).await.unwrap()[0]
}

/// Rows that an INSERT of the tests below adds.
const BATCH: u64 = 1000;
const INSERT: &str = "INSERT INTO t (a) SELECT i FROM generate_series(1, 1000) AS g(i)";

/// Bytes of all data objects.
fn bytes(database: &Database) -> u64 {
    let usage = database.home().usage();
    usage.iter().map(|usage| usage.bytes).sum()
}

/// Waits until the memory of what was dropped is back; tasks that held it may end a little after their statements.
async fn until_empty(database: &Database) {
    let began = Instant::now();
    while bytes(database) > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{} bytes are left",
            bytes(database)
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn rows_that_are_inserted_while_the_table_is_altered_are_there() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(
            &session,
            "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'b')",
        )
        .await;
        let inserted = Cell::new(0);
        let writers = Cell::new(2);
        let write = || async {
            let session = database.session();
            for _ in 0..30 {
                let rows = count(&session, INSERT).await.unwrap();
                inserted.set(inserted.get() + rows);
            }
            writers.set(writers.get() - 1);
        };
        let alter = async {
            let session = database.session();
            let mut rounds = 0;
            while writers.get() > 0 || rounds == 0 {
                for sql in [
                    "ALTER TABLE t ADD COLUMN c INTEGER NOT NULL DEFAULT 3",
                    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT, DROP COLUMN b",
                    "ALTER TABLE t RENAME COLUMN c TO d",
                    "ALTER TABLE t ADD CHECK (d = 3 AND a > 0)",
                    "ALTER TABLE t DROP CONSTRAINT t_check, DROP COLUMN d",
                    "ALTER TABLE t ADD COLUMN b VARCHAR DEFAULT 'b', ALTER COLUMN a TYPE INTEGER",
                ] {
                    ok(&session, sql).await;
                }
                rounds += 1;
            }
        };
        let read = async {
            let session = database.session();
            let mut seen = 0;
            while writers.get() > 0 {
                let sql = "SELECT count(*), count(a), coalesce(sum(a), 0) FROM t";
                let found = numbers(&session, sql).await.unwrap();
                assert_eq!(found[0] % BATCH, 0, "all rows of a statement or none");
                assert_eq!(found[0], found[1]);
                assert_eq!(found[2], found[0] / BATCH * (BATCH * (BATCH + 1) / 2));
                assert!(found[0] >= seen, "{} after {seen}", found[0]);
                seen = found[0];
            }
        };
        tokio::join!(write(), write(), alter, read);
        assert_eq!(inserted.get(), 60 * BATCH);
        assert_eq!(number(&session, "SELECT count(*) FROM t").await, 60 * BATCH);
        let ends = "SELECT count(*) FROM t WHERE b = 'b'";
        assert_eq!(number(&session, ends).await, 60 * BATCH);
        ok(&session, "DROP TABLE t").await;
        until_empty(&database).await;
    });
}

#[test]
fn what_is_deleted_and_what_is_left_is_what_was_inserted() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE TABLE t (a INTEGER)").await;
        let (inserted, deleted, writers) = (Cell::new(0), Cell::new(0), Cell::new(2));
        let write = || async {
            let session = database.session();
            for _ in 0..60 {
                let rows = count(&session, INSERT).await.unwrap();
                inserted.set(inserted.get() + rows);
            }
            writers.set(writers.get() - 1);
        };
        let delete = async {
            let session = database.session();
            while writers.get() > 0 {
                let rows = count(&session, "DELETE FROM t").await.unwrap();
                deleted.set(deleted.get() + rows);
            }
        };
        let read = async {
            let session = database.session();
            while writers.get() > 0 {
                let rows = number(&session, "SELECT count(a) FROM t").await;
                assert_eq!(rows % BATCH, 0, "all rows of a statement or none");
            }
        };
        tokio::join!(write(), write(), delete, read);
        let left = number(&session, "SELECT count(*) FROM t").await;
        assert_eq!(inserted.get(), 120 * BATCH);
        assert_eq!(deleted.get() + left, inserted.get());
        ok(&session, "TRUNCATE t").await;
        until_empty(&database).await;
    });
}

#[test]
fn tables_that_are_truncated_together_are_seen_together() {
    on_topologies(|database| async move {
        let session = database.session();
        for sql in [
            "CREATE TABLE t (a INTEGER)",
            "CREATE TABLE u (a INTEGER)",
            "CREATE VIEW both_tables AS SELECT (SELECT count(a) FROM t), (SELECT count(a) FROM u) AS n",
        ] {
            ok(&session, sql).await;
        }
        let running = Cell::new(true);
        let write = async {
            let session = database.session();
            for _ in 0..40 {
                ok(&session, INSERT).await;
                ok(&session, &INSERT.replace("INTO t", "INTO u")).await;
                if number(&session, "SELECT count(*) FROM u").await > 5 * BATCH {
                    ok(&session, "TRUNCATE t, u").await;
                }
            }
            running.set(false);
        };
        let read = async {
            let session = database.session();
            while running.get() {
                let found = numbers(&session, "SELECT * FROM both_tables")
                    .await
                    .unwrap();
                let ahead = found[0].checked_sub(found[1]);
                assert!(ahead == Some(0) || ahead == Some(BATCH), "{found:?}");
            }
        };
        tokio::join!(write, read);
    });
}

#[test]
fn a_table_that_is_dropped_and_made_anew_is_one_or_the_other() {
    on_topologies(|database| async move {
        let running = Cell::new(true);
        let replace = async {
            let session = database.session();
            for round in 1..60 {
                let sql = format!(
                    "CREATE OR REPLACE TABLE t AS SELECT {round} AS a FROM generate_series(1, {round}000) AS g(i)"
                );
                ok(&session, &sql).await;
                if round % 3 == 0 {
                    ok(&session, "DROP TABLE t").await;
                }
            }
            running.set(false);
        };
        let read = async {
            let session = database.session();
            while running.get() {
                let sql = "SELECT count(*), count(a), min(a), max(a) FROM t";
                match numbers(&session, sql).await {
                    Ok(found) => {
                        let round = found[2];
                        assert_eq!(found, [round * 1000, round * 1000, round, round]);
                    }
                    Err(error) => {
                        let error = error.to_string();
                        assert!(error.contains("table \"t\" does not exist"), "{error}");
                    }
                }
            }
        };
        tokio::join!(replace, read);
        until_empty(&database).await;
    });
}

#[test]
fn statements_that_are_given_up_leave_all_of_their_rows_or_none() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE TABLE t (a INTEGER)").await;
        let running = Cell::new(true);
        let write = async {
            let session = database.session();
            for round in 0..60 {
                let patience = Duration::from_micros(round * 100);
                let _ = tokio::time::timeout(patience, count(&session, INSERT)).await;
            }
            running.set(false);
        };
        let alter = async {
            let session = database.session();
            let mut round = 0;
            while running.get() {
                round += 1;
                let patience = Duration::from_micros(round * 200 % 10_000);
                let add = run(&session, "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INTEGER");
                let _ = tokio::time::timeout(patience, add).await;
                ok(&session, "ALTER TABLE t DROP COLUMN IF EXISTS b").await;
            }
        };
        let seen = RefCell::new(0);
        let read = async {
            let session = database.session();
            while running.get() {
                let rows = number(&session, "SELECT count(a) FROM t").await;
                assert_eq!(rows % BATCH, 0);
                assert!(rows >= *seen.borrow(), "what was seen once stays");
                *seen.borrow_mut() = rows;
            }
        };
        tokio::join!(write, alter, read);
        ok(&session, "DROP TABLE t").await;
        until_empty(&database).await;
    });
}

#[test]
fn readers_finish_with_the_rows_they_have_found() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE TABLE t (a INTEGER, b VARCHAR)").await;
        // More than may wait for a reader.
        let fill = "INSERT INTO t SELECT i, 'text ' || i FROM generate_series(1, 1500000) AS g(i)";
        for change in [
            "TRUNCATE t",
            "DROP TABLE t",
            "CREATE OR REPLACE TABLE t (z DATE)",
            "ALTER TABLE t DROP COLUMN b",
        ] {
            ok(&session, "CREATE OR REPLACE TABLE t (a INTEGER, b VARCHAR)").await;
            ok(&session, fill).await;
            let Ok(Outcome::Rows(mut rows)) = session.execute("SELECT a, b FROM t").await else {
                panic!("a query yields rows");
            };
            let mut found = rows.next().await.unwrap().unwrap().num_rows();
            ok(&session, change).await;
            assert!(bytes(&database) > 0, "{change}: still read");
            while let Some(batch) = rows.next().await {
                found += batch.unwrap().num_rows();
            }
            assert_eq!(found, 1_500_000, "{change}");
            drop(rows);
            ok(&session, "DROP TABLE IF EXISTS t").await;
            until_empty(&database).await;
        }
    });
}

#[test]
fn a_change_waits_for_writers_and_can_be_given_up() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE TABLE t (a BIGINT)").await;
        let endless = database.session();
        let endless = endless
            .execute("INSERT INTO t SELECT i FROM generate_series(1, 1000000000000) AS g(i)");
        let mut endless = Box::pin(endless);
        let patience = Duration::from_millis(50);
        assert!(tokio::time::timeout(patience, &mut endless).await.is_err());
        for change in [
            "ALTER TABLE t ADD COLUMN b INTEGER",
            "TRUNCATE t",
            "DROP TABLE t",
        ] {
            let change = run(&session, change);
            let waiting = tokio::time::timeout(patience, change).await;
            assert!(waiting.is_err(), "the writer is not done");
        }
        // Readers and other tables do not mind.
        assert_eq!(number(&session, "SELECT count(*) FROM t").await, 0);
        ok(&session, "CREATE TABLE u (a INTEGER)").await;
        drop(endless);
        ok(&session, "ALTER TABLE t ADD COLUMN b INTEGER").await;
        assert_eq!(number(&session, "SELECT count(*) FROM t").await, 0);
        ok(&session, "DROP TABLE t, u").await;
        until_empty(&database).await;
    });
}

#[test]
fn a_failed_change_leaves_everything_as_it_was() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE TABLE t (a INTEGER, b VARCHAR)").await;
        ok(
            &session,
            "INSERT INTO t SELECT i, 'b' || i FROM generate_series(1, 70000) AS g(i)",
        )
        .await;
        let before = bytes(&database);
        for wrong in [
            "ALTER TABLE t ALTER COLUMN b TYPE INTEGER",
            "ALTER TABLE t ADD COLUMN c INTEGER NOT NULL",
            "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 1, ADD CHECK (a < 70000)",
            "ALTER TABLE t ADD COLUMN c INTEGER, RENAME COLUMN c TO a",
            "CREATE OR REPLACE TABLE t AS SELECT CAST(b AS INTEGER) AS c FROM t",
            "CREATE TABLE t AS SELECT * FROM t",
            "DROP TABLE t, nowhere",
            "TRUNCATE t, nowhere",
        ] {
            assert!(run(&session, wrong).await.is_err(), "{wrong}");
            let found = values(&session, "SELECT count(a), count(b) FROM t")
                .await
                .unwrap();
            assert_eq!(found, [["70000", "70000"]], "{wrong}");
        }
        let began = Instant::now();
        while bytes(&database) != before {
            assert!(began.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn what_show_create_says_makes_the_same_again() {
    on_topologies(|database| async move {
        let session = database.session();
        for sql in [
            "CREATE SCHEMA \"My Schema\"",
            "CREATE TABLE \"My Schema\".\"select\" (\"from\" INT2 NOT NULL DEFAULT -1 + 2 CHECK (\"from\" > 0), \
             name STRING DEFAULT 'it''s', price NUMERIC(8, 2) DEFAULT 9.99, at TIMESTAMP DEFAULT now(), \
             day DATE DEFAULT DATE '2020-01-31', \"Wei\"\"rd\" FLOAT DEFAULT 1e3, n UINTEGER, v VARCHAR(7), \
             CONSTRAINT \"a b\" CHECK (price >= 0 AND \"select\".name IS NOT NULL)) WITH (partition_by = 'from') ORDER BY (\"Wei\"\"rd\", Day, price)",
            "CREATE VIEW \"My Schema\".v (x, \"Y\") AS -- as it is\n SELECT s.\"from\", s.name FROM \"My Schema\".\"select\" AS s",
        ] {
            ok(&session, sql).await;
        }
        for (show, drop) in [
            (
                "SHOW CREATE VIEW \"My Schema\".v",
                "DROP VIEW \"My Schema\".v",
            ),
            (
                "SHOW CREATE TABLE \"My Schema\".\"select\"",
                "DROP TABLE \"My Schema\".\"select\" CASCADE",
            ),
        ] {
            let before = values(&session, show).await.unwrap();
            ok(&session, drop).await;
            ok(&session, &before[0][1]).await;
            assert_eq!(values(&session, show).await.unwrap(), before);
        }
        let shown = values(&session, "SHOW CREATE TABLE \"My Schema\".\"select\"")
            .await
            .unwrap();
        assert_eq!(
            shown[0][1],
            "CREATE TABLE \"My Schema\".\"select\" (
    \"from\" SMALLINT NOT NULL DEFAULT -1 + 2,
    name VARCHAR DEFAULT 'it''s',
    price DECIMAL(8,2) DEFAULT 9.99,
    at TIMESTAMP DEFAULT now(),
    day DATE DEFAULT DATE '2020-01-31',
    \"Wei\"\"rd\" DOUBLE DEFAULT CAST('1e3' AS FLOAT8),
    n UINTEGER,
    v VARCHAR(7),
    CONSTRAINT select_from_check CHECK (\"from\" > 0),
    CONSTRAINT \"a b\" CHECK (price >= 0 AND name IS NOT NULL)
) WITH (partition_by = 'from') ORDER BY (\"Wei\"\"rd\", day, price)"
        );
        // The order goes along with its columns.
        for sql in [
            "ALTER TABLE \"My Schema\".\"select\" RENAME day TO date",
            "ALTER TABLE \"My Schema\".\"select\" DROP COLUMN \"Wei\"\"rd\"",
        ] {
            ok(&session, sql).await;
        }
        let shown = values(&session, "SHOW CREATE TABLE \"My Schema\".\"select\"")
            .await
            .unwrap();
        assert!(
            shown[0][1].ends_with("ORDER BY (date, price)"),
            "{}",
            shown[0][1]
        );
    });
}

#[test]
fn views_lie_above_each_other_only_so_deep() {
    on_topologies(|database| async move {
        let session = database.session();
        ok(&session, "CREATE VIEW v0 AS SELECT 1 AS a").await;
        let mut deep = 0;
        let error = loop {
            let sql = format!("CREATE VIEW v{} AS SELECT a FROM v{deep}", deep + 1);
            match run(&session, &sql).await {
                Ok(_) => deep += 1,
                Err(error) => break error,
            }
            assert!(deep < 100);
        };
        assert!(
            error.to_string().contains("lies above more than"),
            "{error}"
        );
        let all = format!("SELECT a FROM v{deep}");
        assert_eq!(number(&session, &all).await, 1);
    });
}

#[test]
fn a_change_for_which_memory_does_not_suffice_fails_alone() {
    block_on(async {
        let database = database_with(1, 2, 48 << 20);
        let session = database.session();
        ok(&session, "CREATE TABLE t (a INTEGER, b DOUBLE)").await;
        let fill = "INSERT INTO t SELECT i, random() FROM generate_series(1, 3000000) AS g(i)";
        ok(&session, fill).await;
        let before = bytes(&database);
        let sql = "ALTER TABLE t ADD COLUMN c DOUBLE DEFAULT random()";
        let error = run(&session, sql).await.unwrap_err().to_string();
        assert!(error.contains("memory"), "{error}");
        let found = numbers(&session, "SELECT count(*), count(b), max(a) FROM t").await;
        assert_eq!(found.unwrap(), [3_000_000; 3]);
        let began = Instant::now();
        while bytes(&database) != before {
            assert!(began.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What costs no memory works, and what is given back is there for others.
        ok(&session, "ALTER TABLE t RENAME COLUMN b TO c").await;
        ok(&session, "TRUNCATE t").await;
        until_empty(&database).await;
        ok(&session, fill).await;
        assert_eq!(number(&session, "SELECT count(c) FROM t").await, 3_000_000);
    });
}
