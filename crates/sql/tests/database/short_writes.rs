//! Writes of single rows that need no plan, in several sessions at a time, some of them given up: references lead to
//! rows, no value is there twice, and what UNIQUE constraints know is what the tables have.

use crate::common::{Random, TOPOLOGIES, block_on_threads, count, database, must, seed};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use eris_sql::{Database, Outcome, Session, SqlErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const SESSIONS: u64 = 4;
const STATEMENTS_EACH: u64 = 100;
const KEYS: u64 = 8;
const MAILS: u64 = 6;

/// Waits until all memory is back: tables that somebody still held when they were replaced go in the background.
fn nothing_is_left(database: &Database) {
    let began = Instant::now();
    let used = || database.home().budget().used();
    while used() > 0 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{} bytes",
            used()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The one number that a query has for an answer.
async fn number(session: &Session, sql: &str) -> i64 {
    let Ok(Outcome::Rows(rows)) = session.execute(sql).await else {
        panic!("{sql} has no rows");
    };
    let batches = rows.collect().await.unwrap();
    let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

const TABLES: [&str; 2] = [
    "CREATE TABLE p (k BIGINT PRIMARY KEY, mail VARCHAR UNIQUE, a BIGINT, b BIGINT, UNIQUE (b, a), CHECK (k >= 0))",
    "CREATE TABLE c (k BIGINT PRIMARY KEY, p BIGINT REFERENCES p, mail VARCHAR REFERENCES p (mail), up BIGINT REFERENCES c)",
];

fn statement(random: &mut Random) -> String {
    let key = random.below(KEYS);
    let mail = match random.below(7) {
        0 => "NULL".to_owned(),
        mail => format!("'m{}'", mail - 1),
    };
    let (a, b) = (random.below(3), random.below(3));
    let (p, up) = (random.below(KEYS), random.below(KEYS));
    let returning = if random.below(2) == 0 {
        ""
    } else {
        " RETURNING *"
    };
    let text = match random.below(14) {
        0 | 1 => format!("INSERT INTO p VALUES ({key}, {mail}, {a}, {b})"),
        2 => format!("INSERT INTO p VALUES ({key}, {mail}, NULL, {b}) ON CONFLICT (k) DO NOTHING"),
        3 => format!(
            "INSERT INTO p VALUES ({key}, {mail}, {a}, {b}) ON CONFLICT (k) DO UPDATE SET a = excluded.a, b = excluded.b"
        ),
        4 => format!("UPDATE p SET a = {a}, b = {b} WHERE k = {key}"),
        5 => format!("DELETE FROM p WHERE k = {key}"),
        // These take keys away, and need the table alone.
        6 => format!("UPDATE p SET mail = {mail} WHERE k = {key}"),
        7 => format!("DELETE FROM p WHERE k > {key}"),
        8 | 9 => format!("INSERT INTO c VALUES ({key}, {p}, {mail}, {up})"),
        10 => format!(
            "INSERT INTO c (k, p) VALUES ({key}, {p}) ON CONFLICT (k) DO UPDATE SET p = excluded.p"
        ),
        11 => format!("UPDATE c SET p = {p}, mail = {mail} WHERE k = {key}"),
        12 => format!("UPDATE c SET up = {up} WHERE k = {key}"),
        _ => format!("DELETE FROM c WHERE k = {key}"),
    };
    text + returning
}

/// How often a snapshot shows a broken rule. NULL is not in what is empty, but refers to nothing.
const BROKEN: &str = "SELECT (SELECT count(*) FROM c WHERE p IS NOT NULL AND p NOT IN (SELECT k FROM p))
    + (SELECT count(*) FROM c WHERE mail IS NOT NULL AND mail NOT IN (SELECT mail FROM p WHERE mail IS NOT NULL))
    + (SELECT count(*) FROM c WHERE up IS NOT NULL AND up NOT IN (SELECT k FROM c))
    + (SELECT count(mail) - count(DISTINCT mail) FROM p)
    + (SELECT count(*) - count(DISTINCT 10 * a + b) FROM p WHERE a IS NOT NULL)
    + (SELECT count(*) - count(DISTINCT k) FROM p)";

#[test]
fn rules_hold_whoever_comes_in_between() {
    let seed = seed();
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            for table in TABLES {
                must(&session, table).await;
            }
            let kept = Arc::new(AtomicU64::new(0));
            let sessions = (0..SESSIONS).map(|number_of| {
                let (session, kept) = (database.session(), kept.clone());
                tokio::spawn(async move {
                    let mut random =
                        Random::seeded(seed ^ number_of.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    for round in 0..STATEMENTS_EACH {
                        let sql = statement(&mut random);
                        // Some are given up on the way, and may have committed or not.
                        let patience = match round % 6 {
                            5 => Duration::from_micros(random.below(200)),
                            _ => Duration::MAX,
                        };
                        match timeout(patience, count(&session, &sql)).await {
                            Ok(Ok(_)) => _ = kept.fetch_add(1, Ordering::Relaxed),
                            Ok(Err(error)) => {
                                let is_constraint =
                                    matches!(error.kind(), SqlErrorKind::Constraint(..));
                                assert!(is_constraint, "{sql}: {error}");
                            }
                            Err(_) => {}
                        }
                        if round % 20 == number_of {
                            let broken = number(&session, BROKEN).await;
                            assert_eq!(broken, 0, "after {sql}, the {round}th of {number_of}");
                        }
                    }
                })
            });
            for session in sessions.collect::<Vec<_>>() {
                session.await.unwrap();
            }
            assert!(kept.load(Ordering::Relaxed) > 0);
            // Whoever was given up may still be committing.
            database.home().barrier().await.unwrap();
            assert_eq!(number(&session, BROKEN).await, 0);
            // What the constraints know is what the table has.
            must(&session, "DELETE FROM c").await;
            for (number_of, mail) in (0..MAILS).map(|mail| (1_000 + mail, format!("'m{mail}'"))) {
                let known = format!("SELECT count(*) FROM p WHERE mail = {mail}");
                let known = number(&session, &known).await;
                let sql = format!("INSERT INTO p (k, mail) VALUES ({number_of}, {mail})");
                assert_eq!(count(&session, &sql).await.is_err(), known > 0, "{sql}");
            }
            for pair in 0..9 {
                let (a, b) = (pair / 3, pair % 3);
                let known = format!("SELECT count(*) FROM p WHERE a = {a} AND b = {b}");
                let known = number(&session, &known).await;
                let sql = format!("INSERT INTO p VALUES ({}, NULL, {a}, {b})", 2_000 + pair);
                assert_eq!(count(&session, &sql).await.is_err(), known > 0, "{sql}");
            }
            must(&session, "DROP TABLE c, p").await;
        });
        nothing_is_left(&database);
    }
}

#[test]
fn rows_by_their_keys_keep_all_rules() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            for table in TABLES {
                must(&session, table).await;
            }
            let keys = |keys: &[i64]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
            let mails =
                |mails: &[Option<&str>]| Arc::new(StringArray::from(mails.to_vec())) as ArrayRef;
            let of_p = |k: &[i64], mail: &[Option<&str>]| {
                RecordBatch::try_from_iter([("k", keys(k)), ("mail", mails(mail))]).unwrap()
            };
            let mut p = session.rows("p").unwrap();
            let three = of_p(&[1, 2, 3], &[Some("a"), Some("b"), None]);
            assert_eq!(p.put(&three).await.unwrap(), 0);
            // The same again, values that change hands, and one that another row has.
            assert_eq!(p.put(&three).await.unwrap(), 3);
            let swapped = of_p(&[2, 1], &[Some("a"), Some("b")]);
            assert_eq!(p.put(&swapped).await.unwrap(), 2);
            let taken = p
                .put(&of_p(&[4], &[Some("a")]))
                .await
                .unwrap_err()
                .to_string();
            assert!(
                taken.contains("UNIQUE \"p_mail_key\" does not hold"),
                "{taken}"
            );
            assert!(taken.contains("(mail) = (a)"), "{taken}");
            let twice = p.put(&of_p(&[4, 5], &[Some("x"), Some("x")])).await;
            assert!(twice.unwrap_err().to_string().contains("UNIQUE"));
            let twice = p.put(&of_p(&[1, 1], &[None, Some("x")])).await;
            assert!(twice.unwrap_err().to_string().contains("PRIMARY KEY"));
            // Nothing, no key, and one twice.
            assert_eq!(p.put(&of_p(&[], &[])).await.unwrap(), 0);
            assert_eq!(p.remove(&[keys(&[])]).await.unwrap(), 0);
            let null = Arc::new(Int64Array::from(vec![None::<i64>])) as ArrayRef;
            assert_eq!(p.remove(&[null]).await.unwrap(), 0);
            assert_eq!(p.put(&of_p(&[70], &[Some("seventy")])).await.unwrap(), 0);
            assert_eq!(p.remove(&[keys(&[70, 70, 71])]).await.unwrap(), 1);
            let negative = p.put(&of_p(&[-1], &[None])).await;
            assert!(negative.unwrap_err().to_string().contains("CHECK"));
            assert_eq!(number(&session, "SELECT count(*) FROM p").await, 3);

            let of_c = |k: &[i64], p: &[i64], mail: &[Option<&str>], up: &[i64]| {
                let columns = [
                    ("k", keys(k)),
                    ("p", keys(p)),
                    ("mail", mails(mail)),
                    ("up", keys(up)),
                ];
                RecordBatch::try_from_iter(columns).unwrap()
            };
            let mut c = session.rows("c").unwrap();
            assert_eq!(
                c.put(&of_c(&[1], &[1], &[Some("a")], &[1])).await.unwrap(),
                0
            );
            assert_eq!(
                c.put(&of_c(&[2, 3], &[3, 3], &[None, None], &[3, 1]))
                    .await
                    .unwrap(),
                0
            );
            let nobody = c
                .put(&of_c(&[4], &[9], &[None], &[1]))
                .await
                .unwrap_err()
                .to_string();
            assert!(nobody.contains("\"c_p_fkey\""), "{nobody}");
            let nobody = c.put(&of_c(&[4], &[1], &[Some("z")], &[1])).await;
            assert!(nobody.unwrap_err().to_string().contains("\"c_mail_fkey\""));
            // What others refer to stays.
            let referred = p.remove(&[keys(&[3])]).await.unwrap_err().to_string();
            assert!(referred.contains("\"c_p_fkey\""), "{referred}");
            let referred = p
                .put(&of_p(&[2], &[Some("other")]))
                .await
                .unwrap_err()
                .to_string();
            assert!(referred.contains("\"c_mail_fkey\""), "{referred}");
            assert_eq!(c.remove(&[keys(&[2, 3])]).await.unwrap(), 2);
            assert_eq!(p.remove(&[keys(&[3, 7])]).await.unwrap(), 1);
            assert_eq!(number(&session, BROKEN).await, 0);
            // Nobody holds a lock any more, and what was removed is free.
            must(&session, "ALTER TABLE p ADD COLUMN note VARCHAR").await;
            assert!(p.put(&three).await.is_err(), "the table has changed");
            must(
                &session,
                "INSERT INTO p (k, mail) VALUES (8, NULL), (9, 'c')",
            )
            .await;
            drop((c, p));
            must(&session, "DROP TABLE c, p").await;
        });
        nothing_is_left(&database);
    }
}

#[test]
fn rows_by_their_keys_go_on_with_a_table_that_was_emptied() {
    for (nodes, cores) in TOPOLOGIES {
        let database = database(nodes, cores);
        block_on_threads(async {
            let session = database.session();
            must(&session, "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").await;
            let keys = |keys: &[i64]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
            let of = |k: &[i64], v: &[i64]| {
                RecordBatch::try_from_iter([("k", keys(k)), ("v", keys(v))]).unwrap()
            };
            let mut rows = session.rows("t").unwrap();
            assert_eq!(rows.put(&of(&[1, 2], &[10, 20])).await.unwrap(), 0);
            for empty in ["DELETE FROM t", "TRUNCATE t"] {
                must(&session, empty).await;
                let found = rows.get(&[keys(&[1])], &["v"]).await.unwrap();
                assert!(found.of.is_empty());
                assert_eq!(rows.put(&of(&[2, 3], &[21, 31])).await.unwrap(), 0);
                assert_eq!(number(&session, "SELECT sum(v) FROM t").await, 52);
                assert_eq!(rows.remove(&[keys(&[3])]).await.unwrap(), 1);
            }
            // Rules and indexes that came since hold.
            must(&session, "CREATE UNIQUE INDEX once ON t (v)").await;
            assert!(rows.put(&of(&[4], &[21])).await.is_err());
            assert_eq!(rows.put(&of(&[2], &[21])).await.unwrap(), 1);
            // Another column is another form: the caller has to look.
            must(&session, "ALTER TABLE t ADD COLUMN w BIGINT").await;
            let error = rows.put(&of(&[5], &[5])).await.unwrap_err().to_string();
            assert!(error.contains("\"t\" was changed or dropped"), "{error}");
            must(&session, "DROP TABLE t").await;
            must(&session, "CREATE TABLE t (v BIGINT PRIMARY KEY, k BIGINT)").await;
            assert!(rows.get(&[keys(&[1])], &["v"]).await.is_err());
            must(&session, "DROP TABLE t").await;
        });
        nothing_is_left(&database);
    }
}
