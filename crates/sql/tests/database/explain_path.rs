//! EXPLAIN's last line: the short path, or what keeps a statement from it. And what it says is so.

use crate::common::{block_on, database, must, values};
use eris_sql::Session;

/// The last line of EXPLAIN.
async fn path(session: &Session, sql: &str) -> String {
    let lines = values(session, &format!("EXPLAIN {sql}")).await;
    let mut lines = lines.unwrap_or_else(|error| panic!("EXPLAIN {sql}: {error}"));
    lines
        .pop()
        .and_then(|mut line| line.pop())
        .expect("a plan has lines")
}

async fn tables(session: &Session) {
    for sql in [
        "CREATE TABLE parent (k INTEGER PRIMARY KEY)",
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER DEFAULT 1, s VARCHAR, b BOOLEAN)",
        "CREATE TABLE child (k INTEGER PRIMARY KEY, p INTEGER REFERENCES parent)",
        "CREATE TABLE plain (a INTEGER, b VARCHAR)",
        "CREATE VIEW seen AS SELECT * FROM t",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO t (k, v, s) SELECT i, i, 's' FROM generate_series(1, 100) AS g(i)",
    ] {
        must(session, sql).await;
    }
}

#[test]
fn every_statement_has_its_reason() {
    let database = database(1, 2);
    block_on(async {
        let session = database.session();
        tables(&session).await;
        must(&session, "PREPARE one AS SELECT v FROM t WHERE k = $1").await;
        must(
            &session,
            "PREPARE declared (INTEGER) AS SELECT v FROM t WHERE k = $1",
        )
        .await;
        must(
            &session,
            "PREPARE summed AS SELECT sum(v) + $1 FROM t WHERE k = $2",
        )
        .await;
        let mut others = Vec::new();
        for (sql, expected) in [
            ("SELECT v FROM t WHERE k = 7", "short path: a lookup by key"),
            (
                "SELECT sum(v) FROM t WHERE v > 7",
                "short path: a plan that is kept",
            ),
            ("SELECT 1, 'one'", "short path: a plan that is kept"),
            (
                "INSERT INTO t VALUES (200, 1, 'x', true)",
                "short path: a write of single rows",
            ),
            (
                "INSERT INTO t (k, v) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v",
                "short path: a write of single rows",
            ),
            (
                "UPDATE t SET v = v + 1 WHERE k = 7",
                "short path: a write of single rows",
            ),
            (
                "DELETE FROM t WHERE k = 7",
                "short path: a write of single rows",
            ),
            ("EXECUTE one(7)", "short path: a lookup by key"),
            (
                "EXECUTE declared(7)",
                "general path: a parameter has a declared type",
            ),
            (
                "EXECUTE summed(7, 8)",
                "general path: a parameter stands elsewhere than in comparisons with columns of one type",
            ),
            (
                "SELECT v FROM t WHERE k = 1.5",
                "general path: a value is no exact value of its column's type",
            ),
            (
                "SELECT v /* here */ FROM t WHERE k = 1",
                "general path: its text has comments, parameters, or constants that are rarely written so",
            ),
            (
                "SELECT v FROM t WHERE k = 1 UNION ALL SELECT 2",
                "general path: it is not one SELECT",
            ),
            (
                "SELECT v FROM seen WHERE k = 1",
                "general path: it reads something else than tables",
            ),
            (
                "SELECT t.v FROM t LEFT JOIN child ON t.k = child.k WHERE t.k = 1",
                "general path: it has an outer join",
            ),
            (
                "SELECT t.v FROM t JOIN child ON t.k = child.k WHERE t.k > 1 ORDER BY t.v LIMIT 1",
                "general path: it asks for the first of joined rows",
            ),
            (
                "SELECT count(*) FROM t",
                "general path: no column is compared with a constant or parameter",
            ),
            (
                "SELECT random() FROM t WHERE k = 1",
                "general path: it calls functions whose results change",
            ),
            (
                "INSERT INTO plain SELECT 1, 'one'",
                "general path: its rows are not written out as VALUES",
            ),
            (
                "INSERT INTO plain VALUES (1, 'a'), (2.0, 'b')",
                "short path: a write of single rows",
            ),
            (
                "INSERT INTO t (k) VALUES (1), (2) ON CONFLICT (k) DO NOTHING",
                "general path: ON CONFLICT is for several rows",
            ),
            (
                "DELETE FROM parent WHERE k = 1",
                "general path: it takes keys away that other rows may refer to",
            ),
            (
                "UPDATE t SET k = 3 WHERE k = 1",
                "general path: it changes the primary key, or assigns several columns at once",
            ),
            (
                "UPDATE t SET v = plain.a FROM plain WHERE k = 1",
                "general path: it reads other tables",
            ),
            (
                "UPDATE t SET v = 1 WHERE v = 2",
                "general path: its condition does not fix the primary key by constants or parameters",
            ),
            (
                "INSERT INTO t (k) VALUES (1 + 2)",
                "general path: a value is neither a constant nor a parameter",
            ),
        ] {
            let shown = path(&session, sql).await;
            if shown != expected {
                others.push((sql, shown, expected));
            }
        }
        assert!(others.is_empty(), "{others:#?}");
    });
}

#[test]
fn other_settings_end_no_short_path() {
    let database = database(1, 2);
    block_on(async {
        let (session, other) = (database.session(), database.session());
        tables(&session).await;
        must(&other, "SET statement_timeout = '50min'").await;
        let sql =
            "INSERT INTO t (k, v) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v";
        // Each is planned anew for its own settings, and says so.
        for session in [&session, &other, &session] {
            assert_eq!(must(session, sql).await, 1);
            assert_eq!(
                path(session, sql).await,
                "short path: a write of single rows"
            );
        }
        let found = values(&session, "SELECT v FROM t WHERE k = 1")
            .await
            .unwrap();
        assert_eq!(found, [["7"]]);
    });
}
