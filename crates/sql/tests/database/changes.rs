//! Statements that change rows, by several sessions at a time: every change counts, readers see all of a statement or
//! nothing, who gives up leaves no trace, and what nobody can see gives its memory back.

use crate::common::{TOPOLOGIES, block_on_threads, count, database, must};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use eris_sql::{Outcome, Session};
use futures::StreamExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The numbers of a query's only row; NULL is 0.
async fn numbers(session: &Session, sql: &str) -> Vec<i64> {
    let Ok(Outcome::Rows(rows)) = session.execute(sql).await else {
        panic!("{sql} has no rows");
    };
    let batches = rows.collect().await.unwrap();
    let row = batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
    let columns = row.columns().iter();
    columns
        .map(|column| {
            column
                .as_primitive::<Int64Type>()
                .iter()
                .next()
                .unwrap()
                .unwrap_or(0)
        })
        .collect()
}

#[test]
fn increments_of_several_sessions_all_count() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            must(&session, "CREATE TABLE t (k INTEGER, n BIGINT)").await;
            must(
                &session,
                "INSERT INTO t SELECT i, 0 FROM range(100000) AS r(i)",
            )
            .await;
            let sessions = (0..4).map(|number| {
                let session = database.session();
                tokio::spawn(async move {
                    for round in 0..40 {
                        // One row that all want, and rows of all partitions.
                        let changed = must(&session, "UPDATE t SET n = n + 1 WHERE k = 77").await;
                        assert_eq!(changed, 1);
                        if round % 10 == number {
                            let all = "UPDATE t SET n = n + 1000 WHERE k % 1000 = 77";
                            assert_eq!(must(&session, all).await, 100);
                        }
                    }
                })
            });
            for session in sessions.collect::<Vec<_>>() {
                session.await.unwrap();
            }
            let seen = numbers(
                &session,
                "SELECT count(*), count(DISTINCT k), sum(n), max(n) FROM t",
            )
            .await;
            let all = 4 * 4 * 1_000;
            assert_eq!(seen, [100_000, 100_000, 100 * all + 160, all + 160]);
        });
    }
}

#[test]
fn upserts_of_several_sessions_all_count() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            let create = "CREATE TABLE c (k INTEGER PRIMARY KEY, n BIGINT)";
            must(&session, create).await;
            must(
                &session,
                "INSERT INTO c SELECT i * 1000, 0 FROM range(1, 100) AS r(i)",
            )
            .await;
            let sessions = (0..4).map(|number| {
                let session = database.session();
                tokio::spawn(async move {
                    for round in 0..30 {
                        let sql = "INSERT INTO c VALUES (7, 1) \
                            ON CONFLICT (k) DO UPDATE SET n = c.n + 1";
                        assert_eq!(must(&session, sql).await, 1);
                        // Some are there, in all partitions, and some are not.
                        if round % 10 == number {
                            let sql = "INSERT INTO c SELECT i * 500, 1 FROM range(1, 200) AS r(i) \
                                ON CONFLICT (k) DO UPDATE SET n = c.n + 1";
                            assert_eq!(must(&session, sql).await, 199);
                        }
                        let sql = format!("INSERT INTO c VALUES ({}, 0)", -1 - round);
                        match count(&session, &sql).await {
                            Ok(_) => {}
                            Err(error) => assert!(error.to_string().contains("c_pkey"), "{error}"),
                        }
                    }
                })
            });
            for session in sessions.collect::<Vec<_>>() {
                session.await.unwrap();
            }
            let query = "SELECT count(*), count(DISTINCT k), sum(n) FROM c";
            let seen = numbers(&session, query).await;
            assert_eq!(seen, [230, 230, 4 * 30 + 12 * 199]);
            must(&session, "DROP TABLE c").await;
            assert_eq!(database.home().budget().used(), 0);
        });
    }
}

#[test]
fn readers_see_all_of_a_statement_or_nothing() {
    let database = database(4, 2);
    block_on_threads(async {
        let session = database.session();
        must(&session, "CREATE TABLE t (k INTEGER, n BIGINT)").await;
        must(
            &session,
            "INSERT INTO t SELECT i, 1000 FROM range(140000) AS r(i)",
        )
        .await;
        let stop = Arc::new(AtomicBool::new(false));
        let readers = (0..2).map(|_| {
            let (session, stop) = (database.session(), stop.clone());
            tokio::spawn(async move {
                let mut reads = 0;
                while !stop.load(Ordering::Relaxed) || reads < 3 {
                    let query = "SELECT count(*), sum(n), min(n) + max(n), count(n) FROM t";
                    let seen = numbers(&session, query).await;
                    // Rows are replaced by others, and moved from one to the other.
                    assert_eq!(seen[..2], [140_000, 140_000_000], "after {reads} reads");
                    assert_eq!(seen[2..], [2_000, 140_000]);
                    reads += 1;
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        for round in 0..8 {
            let step = if round % 2 == 0 { 1 } else { -1 };
            let sql = format!(
                "UPDATE t SET n = n + CASE WHEN k % 2 = 0 THEN {step} ELSE {} END",
                -step
            );
            must(&session, &sql).await;
            let sql = "MERGE INTO t USING (SELECT i AS k FROM range(140000) AS r(i)) AS s \
                ON t.k = s.k AND s.k < 1000 WHEN MATCHED THEN UPDATE SET k = s.k";
            must(&session, sql).await;
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.await.unwrap();
        }
    });
}

#[test]
fn a_statement_that_is_given_up_leaves_no_trace_and_no_lock() {
    let database = database(1, 2);
    block_on_threads(async {
        let session = database.session();
        must(&session, "CREATE TABLE t (k INTEGER, n BIGINT)").await;
        must(
            &session,
            "INSERT INTO t SELECT i, 0 FROM range(300000) AS r(i)",
        )
        .await;
        let before = numbers(&session, "SELECT sum(bytes) FROM eris.segments").await;
        let mut given_up = 0;
        for pause in (0..30).map(|round| Duration::from_micros(200 * round)) {
            for sql in [
                "UPDATE t SET n = n + 1",
                "DELETE FROM t WHERE k % 3 = 0",
                "MERGE INTO t USING (SELECT 5 AS k) AS s ON t.k > s.k WHEN MATCHED THEN DELETE",
            ] {
                let other = database.session();
                given_up += u64::from(
                    tokio::time::timeout(pause, must(&other, sql))
                        .await
                        .is_err(),
                );
            }
            if given_up > 60 {
                break;
            }
        }
        assert!(given_up > 10);
        // One that was too fast to be given up has changed something, and then all of it.
        let seen = numbers(&session, "SELECT count(*), min(n) - max(n) FROM t").await;
        if seen == [300_000, 0] {
            let after = numbers(&session, "SELECT sum(bytes) FROM eris.segments").await;
            assert!(after[0] <= 3 * before[0]);
        }
        let all = numbers(&session, "SELECT count(*) FROM t").await[0] as u64;
        assert_eq!(must(&session, "UPDATE t SET n = 5").await, all);
    });
}

#[test]
fn what_nobody_sees_gives_its_memory_back() {
    let database = database(1, 2);
    block_on_threads(async {
        let session = database.session();
        must(&session, "CREATE TABLE t (k INTEGER, n BIGINT, s VARCHAR)").await;
        let fill = "INSERT INTO t SELECT i, i * 7919 % 1000003, 'text ' || (i % 100) FROM range(400000) AS r(i)";
        must(&session, fill).await;
        let bytes = async || {
            let query = "SELECT sum(bytes), sum(deleted_rows), sum(rows) FROM eris.segments";
            numbers(&session, query).await
        };
        let full = bytes().await;
        // A reader that has begun sees the old rows to its end, however long that takes.
        let other = database.session();
        let Ok(Outcome::Rows(mut reader)) = other.execute("SELECT k FROM t").await else {
            panic!("no rows");
        };
        let mut read = reader.next().await.unwrap().unwrap().num_rows();
        // What it has not shown yet may all be on its way already, and then it needs its snapshot no more.
        let snapshot = database.home().hold();
        assert_eq!(
            must(&session, "DELETE FROM t WHERE k % 50 <> 7").await,
            392_000
        );
        let held = bytes().await;
        assert_eq!(held[1..], [392_000, 8_000]);
        assert!(held[0] >= full[0]);
        while let Some(batch) = reader.next().await {
            read += batch.unwrap().num_rows();
        }
        assert_eq!(read, 400_000);
        drop((reader, snapshot));
        // Owners collect between commands.
        let mut left = bytes().await;
        for _ in 0..500 {
            if left[1] == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            left = bytes().await;
        }
        assert_eq!(left[1..], [0, 8_000]);
        assert!(left[0] * 5 < full[0], "{left:?} bytes of {full:?}");
        let seen = numbers(
            &session,
            "SELECT count(*), sum(k), count(DISTINCT s) FROM t",
        )
        .await;
        assert_eq!(seen, [8_000, 8_000 * 7 + 50 * (7_999 * 8_000 / 2), 2]);

        // Single rows that are updated again and again do not pile up.
        for _ in 0..300 {
            must(&session, "UPDATE t SET n = n + 1 WHERE k = 7").await;
        }
        let again = bytes().await;
        assert!(again[1] < 100, "{again:?}");
        must(&session, "DELETE FROM t WHERE k >= 0").await;
        assert_eq!(numbers(&session, "SELECT count(*) FROM t").await, [0]);
        must(&session, "DROP TABLE t").await;
        assert_eq!(database.home().budget().used(), 0);
    });
}

/// Four sessions upsert one key ten thousand times each, prepared and as text, while statements over all rows come in
/// between: nobody is sent away, and everything counts.
#[test]
fn upserts_of_one_key_add_up() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            must(
                &session,
                "CREATE TABLE t (k INTEGER PRIMARY KEY, n BIGINT NOT NULL)",
            )
            .await;
            must(
                &session,
                "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) AS s(i)",
            )
            .await;
        });
        let upserts = |prepared: bool| {
            let session = database.session();
            let upsert =
                "INSERT INTO t VALUES (7, 1) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n";
            move || {
                futures::executor::block_on(async {
                    let statement = session
                        .prepare(upsert.replace('1', "$1").as_str())
                        .await
                        .unwrap();
                    for _ in 0..10_000 {
                        let outcome = match prepared {
                            true => statement.execute(&[1.into()]).await,
                            false => session.execute(upsert).await,
                        };
                        assert!(matches!(outcome.unwrap(), Outcome::Count { rows: 1, .. }));
                    }
                });
            }
        };
        std::thread::scope(|scope| {
            for client in 0..4 {
                scope.spawn(upserts(client % 2 == 0));
            }
            scope.spawn(|| {
                let session = database.session();
                for _ in 0..20 {
                    block_on_threads(must(&session, "UPDATE t SET n = n + 1"));
                }
            });
        });
        let sums = block_on_threads(numbers(
            &database.session(),
            "SELECT sum(n), max(n), count(*) FROM t",
        ));
        assert_eq!(sums, [40_000 + 20 * 1_000, 40_020, 1_000]);
    }
}
