//! Temporary tables and views: each session has its own, and they end with it.

use crate::common::{TOPOLOGIES, block_on_threads, database, must, values};
use eris_sql::{Database, RelationKind, Session};
use std::time::{Duration, Instant};

async fn fails(session: &Session, sql: &str) -> String {
    match session.execute(sql).await {
        Ok(_) => panic!("{sql}: succeeds"),
        Err(error) => error.to_string(),
    }
}

/// The only value of a query.
async fn value(session: &Session, sql: &str) -> i64 {
    let rows = values(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows[0][0].parse().unwrap()
}

/// The tables and views that a session sees.
fn seen(session: &Session) -> Vec<String> {
    let relations = session.relations().into_iter();
    let users = relations.filter(|relation| relation.kind != RelationKind::System);
    let names = users.map(|relation| format!("{}.{}", relation.schema, relation.name));
    names.collect()
}

#[test]
fn sessions_do_not_see_each_others() {
    for (nodes, cores) in TOPOLOGIES {
        block_on_threads(async {
            let database = database(nodes, cores);
            let (a, b) = (database.session(), database.session());
            must(&a, "CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER)").await;
            must(&a, "INSERT INTO t VALUES (1, 1)").await;
            // Plans of the same texts, by key and by scan, are kept for both.
            for _ in 0..3 {
                for session in [&a, &b] {
                    assert_eq!(value(session, "SELECT n FROM t WHERE k = 1").await, 1);
                    assert_eq!(value(session, "SELECT sum(n) FROM t WHERE n > 0").await, 1);
                }
            }
            must(&a, "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY, n INTEGER)").await;
            must(&b, "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY, n INTEGER)").await;
            let c = database.session();
            for round in 1..4 {
                for (session, factor) in [(&a, 10), (&b, 100), (&c, 1000)] {
                    let (k, n): (u64, i64) = (round, factor * round as i64);
                    must(session, &format!("INSERT INTO t VALUES ({k}, {n}) ON CONFLICT (k) DO UPDATE SET n = excluded.n")).await;
                    let one = format!("SELECT n FROM t WHERE k = {k}");
                    assert_eq!(value(session, &one).await, n, "{one}");
                    let update = format!("UPDATE t SET n = n + 1 WHERE k = {k}");
                    assert_eq!(must(session, &update).await, 1);
                    assert_eq!(value(session, &one).await, n + 1);
                    assert_eq!(
                        value(session, "SELECT count(*) FROM t WHERE n > 0").await,
                        k as i64
                    );
                }
            }
            must(&a, "CREATE TEMP VIEW w AS SELECT max(n) AS n FROM t").await;
            assert_eq!(value(&a, "SELECT n FROM w").await, 31);
            assert!(
                fails(&b, "SELECT n FROM w")
                    .await
                    .contains("\"w\" does not exist")
            );
            assert_eq!(seen(&a), ["temp.t", "temp.w", "public.t"]);
            assert_eq!(seen(&b), ["temp.t", "public.t"]);
            assert_eq!(seen(&c), ["public.t"]);
            for other in ["pg_temp_1.t", "pg_temp_2.t", "temp.t"] {
                let message = fails(&c, &format!("SELECT n FROM {other}")).await;
                assert!(message.contains("does not exist"), "{message}");
                let message = fails(&c, &format!("DROP TABLE {other}")).await;
                assert!(message.contains("does not exist"), "{message}");
            }
        });
    }
}

/// Waits until the catalogue has no temporary table, and as many bytes are in use.
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

#[test]
fn they_end_with_the_session() {
    block_on_threads(async {
        let database = database(1, 2);
        let stays = database.session();
        must(&stays, "CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER)").await;
        must(&stays, "INSERT INTO t VALUES (1, 1)").await;
        assert_eq!(value(&stays, "SELECT n FROM t WHERE k = 1").await, 1);
        let before = database.home().budget().used();
        let goes = database.session();
        must(
            &goes,
            "CREATE TEMP TABLE t AS SELECT i AS k, 's' || i AS s FROM range(100000) r(i)",
        )
        .await;
        must(&goes, "CREATE INDEX i ON t (s)").await;
        must(&goes, "CREATE TEMP TABLE p (k INTEGER PRIMARY KEY)").await;
        must(&goes, "CREATE TEMP TABLE c (k INTEGER REFERENCES p)").await;
        must(&goes, "CREATE TEMP VIEW w AS SELECT * FROM t").await;
        assert_eq!(
            value(&goes, "SELECT count(*) FROM w WHERE s = 's7'").await,
            1
        );
        assert_eq!(
            value(&goes, "SELECT count(*) FROM t WHERE k < 10").await,
            10
        );
        assert!(database.home().budget().used() > before);
        drop(goes);
        until(&database, before).await;
        assert_eq!(value(&stays, "SELECT n FROM t WHERE k = 1").await, 1);
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export").display().to_string();
        must(&stays, "CREATE TEMP TABLE x (a INTEGER)").await;
        must(&stays, &format!("EXPORT DATABASE '{target}'")).await;
        let schema = std::fs::read_to_string(format!("{target}/schema.sql")).unwrap();
        assert!(!schema.contains("temp"), "{schema}");
    });
}

#[test]
fn what_is_exported_is_what_they_hide() {
    block_on_threads(async {
        let database = database(1, 2);
        let session = database.session();
        must(&session, "CREATE TABLE t (n INTEGER)").await;
        must(&session, "INSERT INTO t VALUES (1)").await;
        must(&session, "CREATE TEMP TABLE t (n INTEGER)").await;
        must(&session, "INSERT INTO t VALUES (2)").await;
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export").display().to_string();
        must(&session, &format!("EXPORT DATABASE '{target}'")).await;
        // Into a session where a name is hidden, too.
        must(&session, "DROP TABLE public.t").await;
        must(&session, &format!("IMPORT DATABASE '{target}'")).await;
        assert_eq!(value(&session, "SELECT n FROM public.t").await, 1);
        assert_eq!(value(&session, "SELECT n FROM t").await, 2);
    });
}
