//! Sessions from the outside: plans, files, cancelling, errors that keep their type.

use crate::common::{block_on, database, run};
use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::parquet::arrow::ArrowWriter;
use eris_sql::{Function, FunctionKind, Outcome, RelationKind, Session, SqlErrorKind};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All rows of a query, their values separated by blanks.
async fn lines(session: &Session, sql: &str) -> Vec<String> {
    let batches = run(session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut lines = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let values = batch
                .columns()
                .iter()
                .map(|column| array_value_to_string(column, row).unwrap());
            lines.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    lines
}

async fn star(session: &Session) {
    for sql in [
        "CREATE TABLE fact (k INTEGER NOT NULL, v INTEGER, t VARCHAR)",
        "CREATE TABLE dim (k INTEGER NOT NULL, color VARCHAR)",
        "INSERT INTO fact SELECT i % 1000, i, 't' || (i % 10) FROM generate_series(1, 200000) AS g(i)",
        "INSERT INTO dim SELECT i, 'c' || (i % 5) FROM generate_series(0, 999) AS g(i)",
    ] {
        run(session, sql).await.unwrap();
    }
}

/// The lines of a plan that begin a fragment.
fn fragments(plan: &[String]) -> Vec<&str> {
    plan.iter()
        .map(|line| line.trim())
        .filter(|line| line.starts_with("FragmentExec"))
        .collect()
}

#[test]
fn what_fragments_can_do_is_in_the_fragments() {
    block_on(async {
        let session = database(1, 2).session();
        star(&session).await;
        let plan = lines(&session, "EXPLAIN SELECT t, sum(v * 2), avg(v), count(*) FILTER (WHERE v > 5) FROM fact WHERE k BETWEEN 3 AND 9 AND t LIKE 't%' GROUP BY t").await;
        assert_eq!(
            fragments(&plan),
            [
                "FragmentExec: table=fact, filter=[k >= 3 AND k <= 9 AND t LIKE 't%'], groups=[t], \
              aggregates=[sum((CAST(v AS BIGINT) * 2)), count(v), sum(CAST(v AS DOUBLE)), count(*) FILTER (v > 5)], push"
            ],
            "{plan:#?}"
        );
        assert!(
            !plan
                .iter()
                .any(|line| line.contains("mode=Partial") || line.contains("FilterExec")),
            "{plan:#?}"
        );

        let plan = lines(
            &session,
            "EXPLAIN SELECT sum(v) FROM fact JOIN dim ON fact.k = dim.k WHERE color = 'c1'",
        )
        .await;
        assert_eq!(
            fragments(&plan),
            [
                "FragmentExec: table=fact, lookups=[k], groups=[], aggregates=[sum(CAST(v AS BIGINT))], push",
                "FragmentExec: table=dim, columns=[k], filter=[color = 'c1'], push",
            ],
            "{plan:#?}"
        );
        assert!(
            !plan.iter().any(|line| line.contains("RepartitionExec")),
            "{plan:#?}"
        );

        let plan = lines(
            &session,
            "EXPLAIN SELECT v + 1 AS w FROM fact WHERE length(concat(t, v)) > 1 LIMIT 3",
        )
        .await;
        assert_eq!(
            fragments(&plan),
            ["FragmentExec: table=fact, columns=[v, t], push"],
            "{plan:#?}"
        );
        let plan = lines(&session, "EXPLAIN SELECT v FROM fact WHERE v > 7 LIMIT 3").await;
        assert_eq!(
            fragments(&plan),
            ["FragmentExec: table=fact, columns=[v], filter=[v > 7], limit=3, push"],
            "{plan:#?}"
        );
        let plan = lines(&session, "EXPLAIN SELECT count(*) FROM fact").await;
        assert_eq!(
            fragments(&plan),
            [""; 0],
            "the number of rows is known: {plan:#?}"
        );
    });
}

#[test]
fn joins_and_groups_are_in_fragments_as_far_as_they_can() {
    block_on(async {
        let session = database(1, 2).session();
        star(&session).await;
        for sql in [
            "CREATE TABLE other AS SELECT v AS o, k AS c FROM fact WHERE v <= 150000",
            "CREATE TABLE few AS SELECT k FROM dim WHERE k IN (3, 11)",
        ] {
            run(&session, sql).await.unwrap();
        }
        for (sql, expected) in [
            (
                "SELECT color, count(*) FROM fact LEFT JOIN dim ON fact.k = dim.k GROUP BY color",
                &[
                    "FragmentExec: table=fact, lookups=[outer k → (color)], groups=[color], aggregates=[count(*)], push",
                    "FragmentExec: table=dim, columns=[k, k, color], push",
                ][..],
            ),
            (
                "SELECT k, t, sum(v) FROM fact GROUP BY ROLLUP (k, t)",
                &[
                    "FragmentExec: table=fact, groups=[k, t], aggregates=[sum(CAST(v AS BIGINT))], push",
                ],
            ),
            // The other table is too large to be read first. What is left of the fact is not.
            (
                "SELECT max(t), max(c) FROM fact JOIN other ON v = o JOIN dim ON fact.k = dim.k WHERE color = 'c1'",
                &[
                    "FragmentExec: table=other, lookups=[o → (t)], groups=[], aggregates=[max(t), max(c)], push",
                    "FragmentExec: table=fact, columns=[v, t], lookups=[k], push",
                    "FragmentExec: table=dim, columns=[k], filter=[color = 'c1'], push",
                ],
            ),
            // Only groups of the keys that are left are made.
            (
                "SELECT max(v) FROM fact JOIN few ON fact.k = few.k \
                 WHERE v < (SELECT avg(o) FROM other WHERE c = fact.k)",
                &[
                    "FragmentExec: table=fact, columns=[k, v], probes=dynamic(v), lookups=[k], push",
                    "FragmentExec: table=few, columns=[k], push",
                    "FragmentExec: table=other, probes=dynamic(c), groups=[c], aggregates=[count(o), sum(CAST(o AS DOUBLE))], push",
                ],
            ),
            (
                "SELECT upper(t), sum(v) FROM fact GROUP BY 1",
                &[
                    "FragmentExec: table=fact, lookups=[each t → (upper(t))], groups=[upper(t)], aggregates=[sum(CAST(v AS BIGINT))], push",
                ],
            ),
            (
                "SELECT factorial(k), sum(v) FROM fact GROUP BY 1",
                &[
                    "FragmentExec: table=fact, lookups=[each k → (factorial(CAST(k AS Int64)))], groups=[factorial(CAST(k AS Int64))], aggregates=[sum(CAST(v AS BIGINT))], push",
                    "FragmentExec: table=fact, groups=[k], aggregates=[], push",
                ],
            ),
            (
                "SELECT count(*) FROM fact WHERE upper(t) LIKE 'A%' AND v > 3",
                &[
                    "FragmentExec: table=fact, filter=[v > 3], lookups=[passing t], groups=[], aggregates=[count(*)], push",
                ],
            ),
        ] {
            let plan = lines(&session, &format!("EXPLAIN {sql}")).await;
            assert_eq!(fragments(&plan), expected, "{plan:#?}");
        }
    });
}

#[test]
fn the_keys_of_a_join_keep_rows_from_being_sent() {
    block_on(async {
        let session = database(1, 2).session();
        star(&session).await;
        // As lookups of the fragment; and of a join that has a condition on both sides, too.
        let besides = ["", "AND (v >= 0 OR color = t)"];
        let cases = [
            ("color = 'c1'", 40_000),
            ("dim.k < 10", 2_000),
            ("color <> 'c1' AND dim.k % 2 = 0", 80_000),
        ];
        let both = |beside| cases.map(|(condition, passing)| (beside, condition, passing));
        for (beside, condition, passing) in besides.into_iter().flat_map(both) {
            let sql = format!(
                "EXPLAIN ANALYZE SELECT v FROM fact JOIN dim ON fact.k = dim.k {beside} WHERE {condition}"
            );
            let plan = lines(&session, &sql).await;
            let at = plan
                .iter()
                .position(|line| line.contains("table=fact"))
                .unwrap();
            let workers = plan[at + 1..]
                .iter()
                .skip_while(|line| !line.contains("AEU "))
                .take_while(|line| line.contains("AEU "));
            let sent = workers.map(|line| {
                let number = line
                    .split("rows_sent=")
                    .nth(1)
                    .unwrap()
                    .split(',')
                    .next()
                    .unwrap();
                number.parse::<u64>().unwrap()
            });
            assert_eq!(sent.sum::<u64>(), passing, "{plan:#?}");
        }
    });
}

#[test]
fn files_are_tables() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("a.csv"), "id,name\n1,one\n2,two\n").unwrap();
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int64Array::from_iter_values(0..1000))),
            (
                "name",
                Arc::new(StringArray::from_iter_values(
                    (0..1000).map(|i| format!("n{}", i % 7)),
                )),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = std::fs::File::create(path("b.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        std::fs::write(path("bad.parquet"), "no parquet").unwrap();

        let session = database(1, 2).session();
        let csv = lines(
            &session,
            &format!("SELECT id, name FROM '{}' ORDER BY id DESC", path("a.csv")),
        )
        .await;
        assert_eq!(csv, ["2 two", "1 one"]);
        run(
            &session,
            &format!("CREATE TABLE b AS SELECT * FROM '{}'", path("b.parquet")),
        )
        .await
        .unwrap();
        assert_eq!(
            lines(
                &session,
                "SELECT count(*), min(id), max(name) FROM b WHERE name > 'n2'"
            )
            .await,
            ["571 3 n6"]
        );
        let joined = format!(
            "SELECT count(*) FROM b JOIN '{}' a ON a.id = b.id",
            path("a.csv")
        );
        assert_eq!(lines(&session, &joined).await, ["2"]);

        for name in ["missing.parquet", "bad.parquet", "missing.csv"] {
            let sql = format!("SELECT * FROM '{}'", path(name));
            let error = run(&session, &sql).await.unwrap_err();
            assert!(
                matches!(error.kind(), SqlErrorKind::File { path, .. } if path.ends_with(name)),
                "{error}"
            );
        }
    });
}

#[test]
fn a_dropped_query_ends_at_once_and_harms_nobody() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        star(&session).await;
        let endless = "SELECT sum(a.v) FROM fact a, fact b, fact c WHERE a.v < b.v + c.v";
        let began = Instant::now();
        let waited = tokio::time::timeout(Duration::from_millis(200), run(&session, endless)).await;
        assert!(waited.is_err());
        let Outcome::Rows(mut rows) = session
            .execute("SELECT a.v FROM fact a, fact b")
            .await
            .unwrap()
        else {
            panic!("a query yields rows");
        };
        assert!(rows.next().await.unwrap().unwrap().num_rows() > 0);
        drop(rows);
        assert_eq!(
            lines(&session, "SELECT count(v) FROM fact WHERE v > 100").await,
            ["199900"]
        );
        assert!(began.elapsed() < Duration::from_secs(10));
        let rejected = run(
            &session,
            "INSERT INTO fact SELECT a.k, a.v, b.t FROM fact a, fact b",
        );
        assert!(
            tokio::time::timeout(Duration::from_millis(300), rejected)
                .await
                .is_err()
        );
        assert_eq!(
            lines(&session, "SELECT count(*) FROM fact").await,
            ["200000"]
        );
    });
}

/// A join that finds no pair yields nothing for hours. Given up, it must leave its thread: there are two.
#[test]
fn joins_that_find_nothing_leave_their_threads_when_given_up() {
    block_on(async {
        let session = database(1, 2).session();
        star(&session).await;
        let endless = "SELECT count(*) FROM fact a, fact b WHERE a.v + b.v = -7";
        for _ in 0..4 {
            let waited = tokio::time::timeout(Duration::from_millis(100), run(&session, endless));
            assert!(waited.await.is_err());
        }
        let next = lines(
            &session,
            "SELECT k % 2, count(*) FROM fact GROUP BY 1 ORDER BY 1",
        );
        let next = tokio::time::timeout(Duration::from_secs(20), next).await;
        assert_eq!(next.expect("a thread is free").len(), 2);
    });
}

#[test]
fn errors_know_their_place_and_kind() {
    block_on(async {
        let session = database(1, 2).session();
        run(&session, "CREATE TABLE t (a INTEGER)").await.unwrap();
        run(&session, "INSERT INTO t VALUES (1)").await.unwrap();
        let script = "SELECT 1;\n  SELECT\n    b FROM t;\nSELECT 2 FROM";
        let statements = Session::split(script).unwrap();
        let error = session.execute(&statements[1]).await.unwrap_err();
        let position = error.position().unwrap();
        assert_eq!((position.line, position.column), (3, 5), "{error}");
        assert!(
            matches!(error.kind(), SqlErrorKind::Invalid(..)),
            "{error:?}"
        );
        let error = session.execute(&statements[2]).await.unwrap_err();
        assert!(matches!(error.kind(), SqlErrorKind::Syntax(_)), "{error:?}");
        let error = run(&session, "SELECT sum(a * 9223372036854775807 * 2) FROM t")
            .await
            .unwrap_err();
        let overflow = eris_fragment::FragmentError::Overflow {
            what: String::new(),
        };
        let SqlErrorKind::Fragment(inner) = error.kind() else {
            panic!("{error:?}")
        };
        assert_eq!(
            std::mem::discriminant(inner),
            std::mem::discriminant(&overflow),
            "{error}"
        );
        let error = run(&session, "CREATE DOMAIN d AS INTEGER")
            .await
            .unwrap_err();
        assert!(
            matches!(error.kind(), SqlErrorKind::NotSupported(_)),
            "{error:?}"
        );
    });
}

#[test]
fn a_statement_reads_one_snapshot() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        run(&session, "CREATE TABLE t (a BIGINT)").await.unwrap();
        let writer = database.session();
        let writing = async {
            for _ in 0..30 {
                run(
                    &writer,
                    "INSERT INTO t SELECT i FROM generate_series(1, 1000) AS g(i)",
                )
                .await
                .unwrap();
            }
        };
        let reading = async {
            for _ in 0..60 {
                let sql = "SELECT (SELECT count(*) FROM t), (SELECT count(a) FROM t WHERE a > 0), (SELECT count(*) FROM t x JOIN (SELECT DISTINCT a FROM t) y ON x.a = y.a)";
                let line = lines(&session, sql).await.remove(0);
                let counts: Vec<u64> = line
                    .split(' ')
                    .map(|count| count.parse().unwrap())
                    .collect();
                assert!(
                    counts
                        .iter()
                        .all(|count| *count == counts[0] && count % 1000 == 0),
                    "{line}"
                );
            }
        };
        tokio::join!(writing, reading);
        assert_eq!(lines(&session, "SELECT count(*) FROM t").await, ["30000"]);
    });
}

#[test]
fn dropping_and_replacing_at_once_hits_the_table_that_the_name_leads_to() {
    block_on(async {
        let database = database(1, 2);
        let (replacer, dropper) = (database.session(), database.session());
        let replacing = async {
            for _ in 0..300 {
                let sql = "CREATE OR REPLACE TABLE t AS SELECT 1 AS a";
                run(&replacer, sql).await.unwrap();
            }
        };
        let dropping = async {
            for _ in 0..1000 {
                run(&dropper, "DROP TABLE IF EXISTS t").await.unwrap();
            }
        };
        tokio::join!(replacing, dropping);
        // What a name leads to exists.
        run(&replacer, "CREATE OR REPLACE TABLE t AS SELECT 7 AS a")
            .await
            .unwrap();
        assert_eq!(lines(&replacer, "SELECT a FROM t").await, ["7"]);
        let error = run(&dropper, "DROP TABLE t, missing").await.unwrap_err();
        assert!(
            error.to_string().contains("\"missing\" does not exist"),
            "{error}"
        );
        run(&dropper, "DROP TABLE t, t").await.unwrap();
    });
}

#[test]
fn a_sum_that_overflows_says_so_wherever_it_is_computed() {
    block_on(async {
        let session = database(1, 2).session();
        for sql in [
            "CREATE TABLE t (k INTEGER, b BIGINT)",
            "INSERT INTO t VALUES (1, 9223372036854775807)",
            "INSERT INTO t VALUES (1, 1)",
        ] {
            run(&session, sql).await.unwrap();
        }
        for sql in [
            "SELECT sum(b) FROM t",
            "SELECT k, sum(b) FROM t GROUP BY k",
            "SELECT sum(x.b) FROM t x JOIN (SELECT DISTINCT k FROM t) y ON x.k = y.k",
            "SELECT sum(b) OVER (ORDER BY k) FROM t",
        ] {
            let error = run(&session, sql).await.unwrap_err();
            let SqlErrorKind::Fragment(eris_fragment::FragmentError::Overflow { what }) =
                error.kind()
            else {
                panic!("{sql}: {error:?}")
            };
            // Where a row's AEU adds it up, it is the column's; where shares are added, the sum's.
            assert!(what.to_lowercase().contains("sum"), "{sql}: {what}");
        }
    });
}

#[test]
fn a_statement_tells_how_far_it_is() {
    block_on(async {
        let session = database(1, 2).session();
        star(&session).await;
        // Before its first poll nothing has happened, and the same handle shows what happens then.
        let running = session.execute(
            "CREATE TABLE copy AS SELECT f.v FROM fact f JOIN dim d ON f.k = d.k WHERE f.v > 100",
        );
        let progress = running.progress().clone();
        assert_eq!(progress.rows().total, 0);
        running.await.unwrap();
        assert_eq!(progress.rows().total, 201_000, "both tables");
        assert_eq!(progress.rows().fraction(), Some(1.0));
        assert_eq!(progress.written(), 199_900);
        // A row that has come was read before.
        let Outcome::Rows(mut rows) = session.execute("SELECT v FROM fact").await.unwrap() else {
            panic!("rows");
        };
        let progress = rows.progress().clone();
        while let Some(batch) = rows.next().await {
            assert!(batch.unwrap().num_rows() as u64 <= progress.rows().done);
        }
        assert_eq!(progress.rows().fraction(), Some(1.0));
        // What zones exclude is done, too.
        let Outcome::Rows(rows) = session
            .execute("SELECT v FROM fact WHERE v > 10000000")
            .await
            .unwrap()
        else {
            panic!("rows");
        };
        let progress = rows.progress().clone();
        rows.collect().await.unwrap();
        assert_eq!(progress.rows().fraction(), Some(1.0));
    });
}

#[test]
fn what_there_is_can_be_asked_without_a_statement() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let create = "CREATE TABLE \"Odd name\" (k INTEGER NOT NULL, p DECIMAL(8,2) DEFAULT 9.50, t VARCHAR(4) DEFAULT 'it''s', d DATE DEFAULT '2024-02-29', b BOOLEAN DEFAULT true) WITH (partition_by = 'k')";
        run(&session, create).await.unwrap();
        let relations: Vec<_> = (session.relations().into_iter())
            .filter(|relation| relation.kind != RelationKind::System)
            .collect();
        assert_eq!(relations.len(), 1);
        let table = &relations[0];
        assert_eq!((&*table.schema, &*table.name), ("public", "Odd name"));
        let types: Vec<_> = table.columns.iter().map(|c| &*c.data_type).collect();
        assert_eq!(
            types,
            ["INTEGER", "DECIMAL(8,2)", "VARCHAR(4)", "DATE", "BOOLEAN"]
        );
        // The definition makes the same table, of which the same is told.
        run(&session, "DROP TABLE \"Odd name\"").await.unwrap();
        run(&session, &table.definition).await.unwrap();
        assert_eq!(session.relations()[0].definition, table.definition);
        run(&session, "INSERT INTO \"Odd name\" (k) VALUES (1)")
            .await
            .unwrap();
        let rows = lines(&session, "SELECT * FROM \"Odd name\"").await;
        assert_eq!(rows, ["1 9.50 it's 2024-02-29 true"]);

        let functions = database.functions();
        for (name, kind) in [
            ("upper", FunctionKind::Scalar),
            ("sum", FunctionKind::Aggregate),
            ("row_number", FunctionKind::Window),
            ("generate_series", FunctionKind::Table),
        ] {
            let known = |f: &&Function| f.name == name && f.kind == kind;
            assert_eq!(functions.iter().filter(known).count(), 1, "{name}");
        }
    });
}
