//! Macros through EXPORT and IMPORT, beside plans that are kept, and in limits.

use crate::common::{block_on, database, must, values};
use eris_sql::Session;

async fn shown(session: &Session, sql: &str) -> Vec<String> {
    let rows = values(session, sql).await;
    let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| row.join("|")).collect()
}

async fn error(session: &Session, sql: &str) -> String {
    match session.execute(sql).await {
        Ok(_) => panic!("{sql} succeeds"),
        Err(error) => error.to_string(),
    }
}

const DEFINITIONS: [&str; 14] = [
    "CREATE SCHEMA s",
    "CREATE TABLE item (id INTEGER, price DECIMAL(8, 2), \"Odd name\" VARCHAR)",
    "CREATE TABLE s.item (id INTEGER)",
    "INSERT INTO item VALUES (1, 2.50, 'it''s'), (2, 3, NULL)",
    "INSERT INTO s.item VALUES (40), (50)",
    "CREATE MACRO taxed(p DECIMAL(8, 2), rate := 0.5) AS p * (1 + rate), (p, a, b) AS p * (a - b) - (a - (b - p))",
    "CREATE MACRO \"Odd one\"(\"The x\") AS CASE WHEN \"The x\" BETWEEN 1 AND 2 THEN 'it''s' ELSE \"The x\"::VARCHAR || '!' END",
    "CREATE MACRO soon(d) AS d + INTERVAL '1 day' * 2",
    "CREATE MACRO tagged(l, t) AS list_transform(l, v -> {'v': v, 't': t})",
    "CREATE MACRO top(n) AS TABLE SELECT id, \"Odd name\" FROM item WHERE id NOT IN (9, 8) ORDER BY price DESC LIMIT n",
    "COMMENT ON MACRO TABLE top IS 'the dearest'",
    "USE s",
    "CREATE MACRO greatest_id() AS (SELECT max(id) FROM item)",
    "USE public",
];

const QUERIES: [(&str, &str); 8] = [
    ("SELECT taxed(id) FROM item ORDER BY id", "1.500,3.000"),
    ("SELECT taxed(2, 5, 3)", "0"),
    (
        "SELECT \"Odd one\"(id * 2) FROM item ORDER BY id",
        "it's,4!",
    ),
    ("SELECT soon(DATE '2024-02-28')", "2024-03-01T00:00:00"),
    ("SELECT tagged([1], 'a')::VARCHAR", "[{'v': 1, 't': a}]"),
    ("FROM top(1)", "2|"),
    ("SELECT s.greatest_id()", "50"),
    (
        "SELECT comment FROM eris.macros WHERE macro = 'top'",
        "the dearest",
    ),
];

#[test]
fn they_are_exported_and_imported() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export").display().to_string();
        let from = database(1, 2);
        let session = from.session();
        for sql in DEFINITIONS {
            must(&session, sql).await;
        }
        for (query, expected) in QUERIES {
            assert_eq!(shown(&session, query).await.join(","), expected, "{query}");
        }
        must(&session, "CREATE TEMP MACRO own(x) AS x").await;
        must(&session, &format!("EXPORT DATABASE '{target}'")).await;

        let into = database(4, 2);
        let session = into.session();
        must(&session, &format!("IMPORT DATABASE '{target}'")).await;
        for (query, expected) in QUERIES {
            assert_eq!(shown(&session, query).await.join(","), expected, "{query}");
        }
        let all = shown(
            &session,
            "SELECT DISTINCT macro FROM eris.macros ORDER BY 1",
        )
        .await;
        let expected = ["Odd one", "greatest_id", "soon", "tagged", "taxed", "top"];
        assert_eq!(all, expected, "temporary ones are left out");
    });
}

#[test]
fn a_kept_plan_is_none_of_another_macro() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        must(
            &session,
            "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)",
        )
        .await;
        must(&session, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").await;
        for (definition, expected) in [
            ("CREATE MACRO near(i) AS i + 1", ["20", "30"]),
            ("CREATE OR REPLACE MACRO near(i) AS i", ["10", "20"]),
            ("CREATE OR REPLACE MACRO near(i) AS i + 3 - 2", ["20", "30"]),
        ] {
            must(&session, definition).await;
            for _ in 0..3 {
                for (key, expected) in [1, 2].into_iter().zip(expected) {
                    let query = format!("SELECT x FROM t WHERE id = near({key})");
                    assert_eq!(shown(&session, &query).await, [expected], "{definition}");
                }
            }
        }
        must(&session, "PREPARE p AS SELECT x FROM t WHERE id = near($1)").await;
        must(&session, "CREATE OR REPLACE MACRO near(i) AS i").await;
        for _ in 0..3 {
            assert_eq!(
                shown(&session, "EXECUTE p(1)").await,
                ["20"],
                "as it was prepared"
            );
            assert_eq!(
                shown(&session, "EXECUTE p(2)").await,
                ["30"],
                "as it was prepared"
            );
        }
        must(&session, "DROP MACRO near").await;
        let gone = error(&session, "SELECT x FROM t WHERE id = near(1)").await;
        assert!(gone.contains("there is no function \"near\""), "{gone}");
        assert_eq!(shown(&session, "EXECUTE p(1)").await, ["20"]);
    });
}

#[test]
fn what_would_grow_without_end_is_rejected() {
    block_on(async {
        let database = database(1, 1);
        let session = database.session();
        must(&session, "CREATE MACRO f0(x) AS x + x").await;
        for level in 1..40 {
            let before = level - 1;
            let sql = format!("CREATE MACRO f{level}(x) AS f{before}(x) + f{before}(x)");
            must(&session, &sql).await;
        }
        assert_eq!(shown(&session, "SELECT f5(1)").await, ["64"]);
        let calls = error(&session, "SELECT f39(1)").await;
        assert!(calls.contains("more than 10000 calls of macros"), "{calls}");

        must(&session, "CREATE MACRO g(x) AS x + x").await;
        let nested = |depth: usize| format!("SELECT {}1{}", "g(".repeat(depth), ")".repeat(depth));
        assert_eq!(shown(&session, &nested(10)).await, ["1024"]);
        let size = error(&session, &nested(40)).await;
        assert!(size.contains("more than 250000 expressions"), "{size}");

        must(&session, "CREATE MACRO h0(x) AS x + 1").await;
        for level in 1..400 {
            let before = level - 1;
            must(
                &session,
                &format!("CREATE MACRO h{level}(x) AS -h{before}(x)"),
            )
            .await;
        }
        assert_eq!(shown(&session, "SELECT h20(1)").await, ["2"]);
        let deep = error(&session, "SELECT h399(1)").await;
        assert!(deep.contains("more than 100 deep"), "{deep}");
        let wide = (0..200).map(|at| format!("a{at}")).collect::<Vec<_>>();
        let sum = wide.join(" + ");
        must(
            &session,
            &format!("CREATE MACRO w({}) AS {sum}", wide.join(", ")),
        )
        .await;
        let args = vec!["1"; 200].join(", ");
        assert_eq!(shown(&session, &format!("SELECT w({args})")).await, ["200"]);
    });
}

#[test]
fn what_fails_leaves_no_macro() {
    block_on(async {
        let database = database(1, 1);
        let session = database.session();
        must(&session, "CREATE MACRO m(x) AS x").await;
        for sql in [
            "CREATE MACRO n(x) AS y",
            "CREATE MACRO n(x) AS (SELECT max(a) FROM nosuch)",
            "CREATE MACRO nosuch.n(x) AS x",
            "CREATE MACRO eris.n(x) AS x",
            "CREATE MACRO n(x) AS x +",
            "CREATE MACRO n(x, x) AS x",
            "CREATE MACRO n(x) AS x, (x) AS x",
            "CREATE MACRO m(x) AS x + 1",
            "DROP MACRO m, nosuch",
        ] {
            error(&session, sql).await;
        }
        let all = shown(&session, "SELECT macro, definition FROM eris.macros").await;
        assert_eq!(all, ["m|x"]);
    });
}
