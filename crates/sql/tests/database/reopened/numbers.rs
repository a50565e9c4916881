//! Sequences: no number is given twice, after a crash either.

use super::{lines, open};
use crate::common::{Random, block_on_threads, must};
use crate::keeping_home::KeepingHome;
use eris_sql::{Database, Session};
use std::collections::HashSet;

async fn numbers(session: &Session, sql: &str) -> Vec<i64> {
    let rows = lines(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.parse().unwrap()).collect()
}

/// Ends without closing: what was not durable is lost, also what is noted at the end.
fn crash(home: &KeepingHome, database: Database) -> Database {
    home.crash();
    let durable = home.durable();
    drop(database);
    home.crash();
    assert_eq!(home.durable(), durable);
    open(home)
}

#[test]
fn no_number_is_given_twice() {
    let mut random = Random::new();
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let mut database = open(&home);
        let session = database.session();
        must(&session, "CREATE SEQUENCE s").await;
        must(
            &session,
            "CREATE TABLE t (id BIGSERIAL PRIMARY KEY, n BIGINT DEFAULT nextval('s'), x BIGINT)",
        )
        .await;
        drop(session);
        let mut given = HashSet::new();
        let mut ids = HashSet::new();
        for round in 0..60 {
            let session = database.session();
            for _ in 0..random.below(6usize) {
                let many = random.below(200u64);
                let (of_s, of_t) = match random.below(5u8) {
                    0 => ("SELECT nextval('s')".to_owned(), String::new()),
                    1 => (
                        format!("SELECT nextval('s') FROM range({many})"),
                        String::new(),
                    ),
                    // By the short path, and by a query.
                    2 => (
                        String::new(),
                        "INSERT INTO t (x, n) VALUES (1, 0) RETURNING id".to_owned(),
                    ),
                    3 => (
                        String::new(),
                        format!(
                            "INSERT INTO t (x, n) SELECT i, 0 FROM range({many}) r(i) RETURNING id"
                        ),
                    ),
                    _ => (
                        "INSERT INTO t (x) VALUES (1), (2) RETURNING n".to_owned(),
                        String::new(),
                    ),
                };
                for (sql, all) in [(of_s, &mut given), (of_t, &mut ids)] {
                    if sql.is_empty() {
                        continue;
                    }
                    for number in numbers(&session, &sql).await {
                        assert!(all.insert(number), "{number} is given twice: {sql}");
                    }
                }
            }
            drop(session);
            if round % 3 == 0 {
                database = crash(&home, database);
            }
        }
        // Nothing keeps numbers but crashes.
        let session = database.session();
        must(&session, "SELECT nextval('s')").await;
        let last = numbers(&session, "SELECT nextval('s')").await[0];
        drop(session);
        drop(database);
        let database = open(&home);
        let next = numbers(&database.session(), "SELECT nextval('s')").await;
        assert_eq!(next, [last + 1], "the database has ended");
        // What is noted at the end comes too late if it was closed before, and is not needed.
        database.close().unwrap();
        home.crash();
        let session = database.session();
        assert!(session.execute("CREATE TABLE x (a INTEGER)").await.is_err());
        assert!(lines(&session, "SELECT nextval('s')").await.is_err());
        drop(session);
        drop(database);
        home.crash();
        let database = open(&home);
        let next = numbers(&database.session(), "SELECT nextval('s')").await;
        assert_eq!(next, [last + 2], "the database was closed");
    });
}

#[test]
fn they_go_on_where_they_were_set() {
    block_on_threads(async {
        let home = KeepingHome::new(1, 2);
        let mut database = open(&home);
        must(&database.session(), "CREATE SEQUENCE s MAXVALUE 1000").await;
        must(
            &database.session(),
            "CREATE SEQUENCE round INCREMENT -2 MINVALUE -5 MAXVALUE 5 CYCLE",
        )
        .await;
        for (set, expected) in [
            ("SELECT setval('s', 500)", 501),
            ("SELECT setval('s', 500, false)", 500),
            ("SELECT setval('s', 1)", 2),
        ] {
            must(&database.session(), set).await;
            database = crash(&home, database);
            let next = numbers(&database.session(), "SELECT nextval('s')").await;
            assert_eq!(next, [expected], "{set}");
        }
        for _ in 0..4 {
            let next = numbers(&database.session(), "SELECT nextval('round')").await;
            assert!((-5..=5).contains(&next[0]) && next[0] % 2 != 0, "{next:?}");
            database = crash(&home, database);
        }
        let session = database.session();
        must(&session, "SELECT setval('s', 1000)").await;
        drop(session);
        let database = crash(&home, database);
        let session = database.session();
        let ended = lines(&session, "SELECT nextval('s')").await;
        assert!(ended.is_err(), "{ended:?}");
        // A new sequence of the same name has nothing of the old one.
        must(&session, "DROP SEQUENCE s").await;
        must(&session, "CREATE SEQUENCE s").await;
        drop(session);
        let database = crash(&home, database);
        assert_eq!(
            numbers(&database.session(), "SELECT nextval('s')").await,
            [1]
        );
        let session = database.session();
        must(&session, "CREATE TABLE t (id SERIAL)").await;
        must(
            &session,
            "INSERT INTO t SELECT nextval('t_id_seq') FROM range(100)",
        )
        .await;
        must(&session, "CREATE OR REPLACE TABLE t (id SERIAL, n INTEGER)").await;
        drop(session);
        let database = crash(&home, database);
        let session = database.session();
        must(&session, "INSERT INTO t (n) VALUES (1)").await;
        assert_eq!(numbers(&session, "SELECT id FROM t").await, [1]);
    });
}
