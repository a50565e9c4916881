//! Sequences under many sessions, and through EXPORT and IMPORT.

use crate::common::{TOPOLOGIES, block_on_threads, database, must, values};
use eris_sql::{Session, SqlErrorKind};

async fn numbers(session: &Session, sql: &str) -> Vec<i64> {
    let rows = values(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let numbers = rows.iter().flatten().map(|text| text.parse().unwrap());
    numbers.collect()
}

#[test]
fn no_two_sessions_get_the_same_number() {
    const SESSIONS: usize = 4;
    const ROUNDS: usize = 30;
    for (nodes, cores) in TOPOLOGIES {
        block_on_threads(async {
            let database = database(nodes, cores);
            let first = database.session();
            must(
                &first,
                "CREATE TABLE t (id BIGSERIAL PRIMARY KEY, who INTEGER)",
            )
            .await;
            let tasks = (0..SESSIONS).map(|who| {
                let session = database.session();
                tokio::spawn(async move {
                    let mut last = 0;
                    for round in 0..ROUNDS {
                        // By the short path, by a query, and by itself.
                        must(&session, &format!("INSERT INTO t (who) VALUES ({who})")).await;
                        let now = numbers(&session, "SELECT currval('t_id_seq')").await;
                        let own = format!("SELECT max(id) FROM t WHERE who = {who}");
                        assert_eq!(
                            now,
                            numbers(&session, &own).await,
                            "it is the session's own"
                        );
                        assert!(now[0] > last);
                        let many = format!("INSERT INTO t (who) SELECT {who} FROM range({round})");
                        must(&session, &many).await;
                        last = numbers(&session, "SELECT nextval('t_id_seq')").await[0];
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            let rows = SESSIONS * (ROUNDS + ROUNDS * (ROUNDS - 1) / 2);
            let counted = numbers(&first, "SELECT count(*), count(DISTINCT id) FROM t").await;
            assert_eq!(counted, [rows as i64, rows as i64]);
            let next = numbers(&first, "SELECT nextval('t_id_seq')").await[0];
            assert_eq!(next as usize, rows + SESSIONS * ROUNDS + 1);
        });
    }
}

#[test]
fn sequences_go_on_where_they_were_exported() {
    block_on_threads(async {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export").display().to_string();
        let from = database(1, 2);
        let session = from.session();
        for sql in [
            "CREATE SEQUENCE s START 5 INCREMENT 2",
            "CREATE TABLE t (id INTEGER GENERATED ALWAYS AS IDENTITY, n BIGINT DEFAULT nextval('s'), x INTEGER)",
            "INSERT INTO t (x) VALUES (1), (2)",
        ] {
            must(&session, sql).await;
        }
        must(&session, &format!("EXPORT DATABASE '{target}'")).await;
        let into = database(4, 2);
        let session = into.session();
        must(&session, &format!("IMPORT DATABASE '{target}'")).await;
        let inserted = numbers(&session, "INSERT INTO t (x) VALUES (3) RETURNING id, n").await;
        assert_eq!(inserted, [3, 9]);
        assert_eq!(
            numbers(&session, "SELECT sum(id), sum(n) FROM t").await,
            [6, 21]
        );
        let again = session.execute(format!("IMPORT DATABASE '{target}'")).await;
        let error = again.err().unwrap();
        assert!(matches!(error.kind(), SqlErrorKind::Invalid(..)), "{error}");
        assert_eq!(numbers(&session, "SELECT nextval('s')").await, [11]);
    });
}
