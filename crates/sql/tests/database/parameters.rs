//! Parameters: lists, and many rows of them as one statement.

use crate::common::{TOPOLOGIES, block_on, database, must, values, values_of};
use datafusion::arrow::array::{ArrayRef, Int64Array, NullArray, StringArray};
use eris_sql::{Outcome, Parameter, Session, SqlError};
use std::sync::Arc;

async fn rows(
    session: &Session,
    sql: &str,
    values: &[Parameter],
) -> Result<Vec<Vec<String>>, SqlError> {
    values_of(session.prepare(sql).await?.execute(values).await?).await
}

async fn many(session: &Session, sql: &str, rows: Vec<Vec<Parameter>>) -> Result<u64, SqlError> {
    match session.prepare(sql).await?.execute_many(rows).await? {
        Outcome::Count { rows, .. } => Ok(rows),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_are_values_of_any() {
    block_on(async {
        let session = database(1, 2).session();
        must(
            &session,
            "CREATE TABLE t AS SELECT i AS k, 'text ' || i AS s FROM range(0, 100) r(i)",
        )
        .await;
        let numbers: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(3), None, Some(5), Some(1000)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["text 7", "it's"]));
        let nulls: ArrayRef = Arc::new(NullArray::new(2));
        let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        for (sql, list, expected) in [
            (
                "SELECT k FROM t WHERE k = ANY($1) ORDER BY k",
                &numbers,
                vec!["3", "5"],
            ),
            (
                "SELECT k FROM t WHERE s = ANY($1) ORDER BY k",
                &texts,
                vec!["7"],
            ),
            (
                "SELECT k FROM t WHERE k = ANY($1) ORDER BY k",
                &nulls,
                vec![],
            ),
            (
                "SELECT k FROM t WHERE k = ANY($1) ORDER BY k",
                &none,
                vec![],
            ),
            (
                "SELECT count(*) FROM t WHERE k <> ALL($1)",
                &none,
                vec!["100"],
            ),
            ("SELECT array_length($1)", &numbers, vec!["4"]),
        ] {
            let list = Parameter::list(list).unwrap();
            let found = rows(&session, sql, &[list]).await;
            let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(found.concat(), expected, "{sql}");
        }
    });
}

#[test]
fn a_parameter_of_no_known_type_takes_any_value() {
    block_on(async {
        let session = database(1, 1).session();
        let sum = rows(&session, "SELECT $a + $b", &[1.into(), 2.into()])
            .await
            .unwrap();
        assert_eq!(sum, [["3"]]);
    });
}

#[test]
fn many_rows_are_one_statement() {
    for (nodes, cores) in TOPOLOGIES {
        block_on(async {
            let session = database(nodes, cores).session();
            must(&session, "CREATE TABLE t (k BIGINT PRIMARY KEY, d DATE, s VARCHAR DEFAULT 'none', x DOUBLE CHECK (x < 1e6))").await;
            let insert = "INSERT INTO t (k, d, s, x) VALUES ($1, $2, lower($3), $4 * 2)";
            let given = (0..5_000).map(|i: i64| {
                let text = (i % 3 > 0).then(|| format!("Text {i}"));
                vec![
                    i.into(),
                    "2024-02-29".into(),
                    text.into(),
                    (i as f64).into(),
                ]
            });
            assert_eq!(
                many(&session, insert, given.collect()).await.unwrap(),
                5_000
            );
            let found = "SELECT count(*), count(s), max(s), sum(x), min(d) FROM t";
            assert_eq!(
                values(&session, found).await.unwrap(),
                [["5000", "3333", "text 998", "24995000.0", "2024-02-29"]]
            );
            // All rows, or none: a key that is there, a rule, a value that fits nowhere.
            for (row, message) in [
                (
                    vec![4_999.into(), Parameter::NULL, Parameter::NULL, 0.0.into()],
                    "(k) = (4999)",
                ),
                (
                    vec![7_000.into(), Parameter::NULL, Parameter::NULL, 1e6.into()],
                    "CHECK",
                ),
                (
                    vec![
                        7_000.into(),
                        "2024-02-30".into(),
                        Parameter::NULL,
                        0.0.into(),
                    ],
                    "row 2",
                ),
                (
                    vec![7_000.into(), Parameter::NULL, Parameter::NULL],
                    "row 2",
                ),
            ] {
                let first = vec![6_000.into(), Parameter::NULL, Parameter::NULL, 0.0.into()];
                let error = many(&session, insert, vec![first, row]).await.unwrap_err();
                assert!(error.to_string().contains(message), "{error}");
            }
            assert_eq!(
                values(&session, "SELECT count(*) FROM t").await.unwrap(),
                [["5000"]]
            );
            let upsert =
                "INSERT INTO t (k, s) VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET s = excluded.s";
            let given = vec![vec![1.into(), "new".into()], vec![9_000.into(), 7.into()]];
            assert_eq!(many(&session, upsert, given).await.unwrap(), 2);
            assert_eq!(
                values(&session, "SELECT s FROM t WHERE k IN (1, 9000) ORDER BY k")
                    .await
                    .unwrap(),
                [["new"], ["7"]]
            );
            assert_eq!(many(&session, upsert, Vec::new()).await.unwrap(), 0);
        });
    }
}

#[test]
fn only_an_insert_of_values_takes_many_rows() {
    block_on(async {
        let session = database(1, 1).session();
        must(&session, "CREATE TABLE t (k BIGINT)").await;
        for (sql, takes) in [
            ("INSERT INTO t VALUES ($1)", true),
            ("INSERT INTO t SELECT $1", false),
            ("INSERT INTO t VALUES ($1), (2)", false),
            ("DELETE FROM t WHERE k = $1", false),
        ] {
            let prepared = session.prepare(sql).await.unwrap();
            assert_eq!(prepared.is_insert_of_values(), takes, "{sql}");
            let done = prepared.execute_many(vec![vec![1.into()]]).await;
            assert_eq!(done.is_ok(), takes, "{sql}");
        }
    });
}

#[test]
fn a_question_mark_may_stand_right_behind_an_operator() {
    block_on(async {
        let session = database(1, 1).session();
        for sql in [
            "SELECT 2>?",
            "SELECT 2>=?",
            "SELECT 0<?",
            "SELECT 2<>?",
            "SELECT 2!=?",
            "SELECT 1=?",
            "SELECT 1<=?",
            "SELECT -?=-1",
            "SELECT 1=2-?",
            "SELECT 1=1*?",
            "SELECT 0=2%?+0*1-0",
            "SELECT ?-1=0",
            "SELECT ?+0=1",
            "SELECT 3>1+?",
        ] {
            let found = rows(&session, sql, &[1.into()]).await;
            let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(found, [["true"]], "{sql}");
        }
        for sql in ["SELECT 'a'||?", "SELECT 'a' || ?"] {
            assert_eq!(
                rows(&session, sql, &["b".into()]).await.unwrap(),
                [["ab"]],
                "{sql}"
            );
        }
    });
}
