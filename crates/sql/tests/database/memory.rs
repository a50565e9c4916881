//! What does not fit into memory: spilled, or rejected cleanly, but never answered otherwise.

use crate::common::{block_on, database_with, run};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::record_batch::RecordBatch;
use eris_sql::{Database, Outcome, Session, SqlError, SqlErrorKind};
use futures::future::join_all;

/// What operators may use in most of these tests.
const TIGHT: u64 = 40_000_000;
const AMPLE: u64 = 4 << 30;

fn database(nodes: u16, cores: u16) -> Database {
    database_with(nodes, cores, AMPLE)
}

/// All rows of a query as one batch.
async fn rows(session: &Session, sql: &str) -> Result<RecordBatch, SqlError> {
    let Outcome::Rows(rows) = session.execute(sql).await? else {
        panic!("no query: {sql}");
    };
    let schema = rows.schema().clone();
    let batches = rows.collect().await?;
    Ok(concat_batches(&schema, &batches).unwrap())
}

/// Leaves so many bytes for operators beside the tables.
fn leave(database: &Database, bytes: u64) {
    let budget = database.home().budget();
    budget.set_limit(budget.used() + bytes);
}

/// Of a size that keys can be computed with.
fn seed() -> u64 {
    crate::common::seed() % 1_000_000
}

/// Two wide tables with equal, unequal and NULL keys, that none of the joins below can hold in `TIGHT`.
async fn two_tables(session: &Session, seed: u64) {
    // Some strings are in a dictionary, some are not; long ones are spilled in another way than short ones.
    let columns = "i AS v, i * 3 AS w, i % 1000 AS x, i * 7 AS y, i * i AS z, \
                   'text number ' || (i % 5000) AS t, CAST(i AS DECIMAL(20, 2)) AS d";
    for (name, rows, keys) in [("a", 250_000, 90_000), ("b", 270_000, 110_000)] {
        let key = format!("CASE WHEN i % 31 = 5 THEN NULL ELSE (i * 7919 + {seed}) % {keys} END");
        let sql = format!(
            "CREATE TABLE {name} AS SELECT {key} AS k, {key} % 97 AS g, {columns} \
             FROM generate_series(1, {rows}) AS s(i)"
        );
        run(session, &sql).await.unwrap();
    }
}

/// Everything about the rows that does not depend on their order.
fn of_all(rows: &str) -> String {
    format!(
        "SELECT count(*), count(av), count(bv), sum(av), sum(bv), sum(av * 31 + bv), min(at), max(bt), \
                sum(length(at)), sum(length(bt)), sum(ad), sum(bd), sum(az % 1000003), sum(bz % 1000003) \
         FROM ({rows})"
    )
}

const SIDES: &str =
    "a.v AS av, b.v AS bv, a.t AS at, b.t AS bt, a.d AS ad, b.d AS bd, a.z AS az, b.z AS bz";
const LEFT: &str =
    "a.v AS av, a.w AS bv, a.t AS at, a.t AS bt, a.d AS ad, a.d AS bd, a.z AS az, a.y AS bz";

fn joins() -> Vec<String> {
    let mut joins = Vec::new();
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for residual in [
            "",
            " AND a.x <> b.x",
            " AND a.v + b.v > 100000 AND a.g = b.g",
        ] {
            joins.push(of_all(&format!(
                "SELECT {SIDES} FROM a {kind} b ON a.k = b.k{residual}"
            )));
        }
    }
    joins
}

/// Semi, anti and mark joins, with either table on either side.
fn half_joins() -> Vec<String> {
    let mut joins = Vec::new();
    for condition in [
        "EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x > a.x)",
        "NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
        "NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x > a.x)",
        "a.k IN (SELECT k FROM b WHERE b.v > 1000)",
        "a.k NOT IN (SELECT k FROM b WHERE b.v > 20000)",
        "a.k NOT IN (SELECT k FROM b WHERE b.v > 20000 AND b.k IS NOT NULL)",
        "a.k NOT IN (SELECT k FROM b WHERE b.v < 0)",
        "(a.x < 10 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x < 500))",
        "(a.x < 10 OR a.k IN (SELECT k FROM b WHERE b.x < 500))",
    ] {
        let query = format!("SELECT {LEFT} FROM a WHERE {condition}");
        let swapped = query.replace("b.", "c.").replace("FROM b", "FROM a AS c");
        let swapped = swapped.replace(" a.", " b.").replace("(a.", "(b.");
        joins.push(of_all(&query));
        joins.push(of_all(&swapped.replace("FROM a WHERE", "FROM b WHERE")));
    }
    joins
}

/// Runs statements with much memory and with little: equal answers, and files that come and go.
async fn differ(database: &Database, statements: &[String], left: u64, seed: u64) -> usize {
    let session = database.session();
    let mut spilled = 0;
    for sql in statements {
        leave(database, AMPLE);
        let expected = rows(&session, sql).await.unwrap();
        leave(database, left);
        let before = database.spill().written();
        let got = rows(&session, sql)
            .await
            .unwrap_or_else(|error| panic!("seed {seed}: {sql}: {error}"));
        assert!(got == expected, "seed {seed}: {sql}\n{got:?}\n{expected:?}");
        let written = database.spill().written() - before;
        let shown = sql.find("FROM (").map_or(&sql[..], |at| &sql[at..]);
        eprintln!("{left:>10} left, {written:>10} spilled: {shown}");
        spilled += usize::from(written > 0);
        eventually("gone", || database.spill().files() == 0).await;
        assert_eq!(database.spill().used(), 0);
    }
    leave(database, AMPLE);
    spilled
}

#[test]
fn joins_of_every_kind_answer_the_same_when_they_spill() {
    block_on(async {
        let (database, seed) = (database(1, 2), seed());
        two_tables(&database.session(), seed).await;
        let joins = joins();
        let spilled = differ(&database, &joins, 13_000_000, seed).await;
        assert_eq!(spilled, joins.len());
        let joins = half_joins();
        let spilled = differ(&database, &joins, 10_000_000, seed).await;
        assert!(spilled > 5, "{spilled} of {}", joins.len());
    });
}

#[test]
fn a_join_on_one_key_alone_ends_as_a_merge() {
    block_on(async {
        let (database, seed) = (database(1, 2), seed());
        // The few are taken for many, so the many are kept.
        let side = |numbers: u32, every: u32| {
            format!(
                "(SELECT i / 10000000 AS k, i AS v, i * 2 AS w, 'text ' || i AS t \
                  FROM generate_series(1, {numbers}) AS s(i) WHERE i % {every} = 0)"
            )
        };
        let joins: Vec<String> = ["JOIN", "LEFT JOIN", "FULL JOIN"]
            .iter()
            .map(|kind| {
                format!(
                    "SELECT count(*), sum(a.v), sum(b.v), max(a.t) FROM {} a {kind} {} b \
                     ON a.k = b.k AND a.w <> b.v",
                    side(200_000, 1),
                    side(4_200_000, 700_000)
                )
            })
            .collect();
        let spilled = differ(&database, &joins, 12_000_000, seed).await;
        assert_eq!(spilled, joins.len());
    });
}

#[test]
fn sorts_groups_and_windows_answer_the_same_when_they_spill() {
    block_on(async {
        let (database, seed) = (database(1, 2), seed());
        two_tables(&database.session(), seed).await;
        let statements = [
            "SELECT x, v, t, d, z FROM a ORDER BY x, v DESC",
            "SELECT t, k, v, w, y, z FROM b ORDER BY t DESC, k NULLS FIRST, v",
            "SELECT count(*), sum(n), sum(s), max(m), sum(e), sum(l) FROM (SELECT k, v % 3 AS r, count(*) AS n, \
               sum(w) AS s, max(t) AS m, sum(d) AS e, min(v + z) AS l FROM b GROUP BY k, v % 3)",
            "SELECT count(DISTINCT v), count(DISTINCT t), sum(DISTINCT z) FROM a",
            "SELECT g, count(DISTINCT v), sum(DISTINCT w), count(DISTINCT t) FROM a GROUP BY g ORDER BY g",
            "SELECT sum(r), sum(s), sum(p) FROM (SELECT row_number() OVER (PARTITION BY g ORDER BY v) AS r, \
               sum(w) OVER (PARTITION BY g ORDER BY v) AS s, lag(v) OVER (PARTITION BY x ORDER BY v) AS p FROM a)",
            "SELECT count(*), sum(v) FROM (SELECT DISTINCT v, t, z FROM (SELECT * FROM a UNION ALL SELECT * FROM b))",
            "SELECT count(*), sum(v) FROM (SELECT v, t, y FROM a INTERSECT SELECT v, t, y FROM b)",
        ]
        .map(str::to_owned);
        let spilled = differ(&database, &statements, 32_000_000, seed).await;
        // How much is in memory at once depends on which thread comes first.
        assert!(
            spilled > statements.len() / 2,
            "{spilled} of {}",
            statements.len()
        );
    });
}

#[test]
fn repartitioned_groups_answer_the_same_when_memory_gets_short() {
    for (nodes, cores) in [(1, 1), (1, 2), (2, 2)] {
        block_on(async {
            let (database, seed) = (database(nodes, cores), seed());
            let session = database.session();
            let key = format!("(i * 7919 + {seed}) % 180001");
            let create = format!(
                "CREATE TABLE g AS SELECT CASE WHEN i % 31 = 5 THEN NULL ELSE {key} END AS k, i % 700 AS a, \
                        i % 900 AS b, 'text ' || {key} AS t, i AS v \
                 FROM generate_series(1, 500000) AS s(i)"
            );
            run(&session, &create).await.unwrap();
            let query = |keys: &str| {
                format!(
                    "SELECT count(*), sum(n), sum(s), sum(x), min(low), max(low), sum(length(high)) FROM (\
                        SELECT {keys}, count(*) AS n, sum(v) AS s, max(v) FILTER (WHERE v % 3 = 0) AS x, \
                               min(v) AS low, max(t) AS high FROM g GROUP BY {keys})"
                )
            };
            let queries: Vec<String> = ["k", "a, b", "t", "t, k", "v"].map(query).into();
            // Before memory gets short: then groups may be sent on without being merged.
            let explained = format!("EXPLAIN ANALYZE {}", queries[0]);
            let shown = rows(&session, &explained).await.unwrap();
            let shown = format!("{shown:?}");
            assert!(shown.contains("MergeGroupsExec"), "{shown}");
            assert!(shown.contains("groups_merged="), "{shown}");
            // Enough for everything, for some of it, and for nothing that lasts.
            for left in [AMPLE, 120_000_000, 60_000_000, 30_000_000] {
                differ(&database, &queries, left, seed).await;
            }
        });
    }
}

#[test]
fn exchanges_that_spill_on_several_threads_do_not_wait_for_each_other() {
    block_on(async {
        let (database, seed) = (database(1, 4), seed());
        let session = database.session();
        two_tables(&session, seed).await;
        let sql =
            "SELECT count(*), sum(n) FROM (SELECT v, t, z, count(*) AS n FROM b GROUP BY v, t, z)";
        let expected = rows(&session, sql).await.unwrap();
        // The aggregates take it all, so the exchange below them gets nothing.
        leave(&database, 8_000_000);
        for _ in 0..5 {
            let answer =
                tokio::time::timeout(std::time::Duration::from_secs(60), rows(&session, sql));
            let answer = answer.await.expect("it does not hang");
            let answer = answer.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(answer == expected, "seed {seed}");
        }
        assert!(database.spill().written() > 0);
    });
}

/// Polls until it is true; the work that makes it true is on other threads.
async fn eventually(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..20_000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}

fn files_below(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let own = entries.map(|entry| match entry.path() {
        path if path.is_dir() => files_below(&path),
        path => usize::from(path.file_name().is_some_and(|name| name != "lock")),
    });
    own.sum()
}

#[test]
fn files_are_where_they_should_be_and_go_with_their_statement() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        two_tables(&session, 1).await;
        let directory = tempfile::tempdir().unwrap();
        database.spill().set_directory(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let join = of_all(&format!("SELECT {SIDES} FROM a FULL JOIN b ON a.k = b.k"));
        for sql in ["SELECT * FROM a ORDER BY t, v", &join] {
            leave(&database, 13_000_000);
            let session = database.session();
            let running = tokio::spawn({
                let sql = sql.to_owned();
                async move { run(&session, &sql).await }
            });
            // Those of an exchange come and go.
            eventually("spilled", || {
                files_below(directory.path()) > 0 && database.spill().files() > 0
            })
            .await;
            assert!(database.spill().used() < 1 << 30);
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
            // A file is counted until it is about to be removed.
            eventually("gone", || {
                database.spill().files() == 0 && files_below(directory.path()) == 0
            })
            .await;
            assert_eq!(
                (database.spill().used(), files_below(directory.path())),
                (0, 0)
            );
        }
        let used = database.home().budget().used();
        leave(&database, AMPLE);
        rows(&session, "SELECT count(*) FROM a").await.unwrap();
        assert_eq!(database.home().budget().used(), used);
        drop((session, database));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    });
}

#[test]
fn what_may_not_be_spilled_fails_with_a_hint_and_no_more() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        two_tables(&session, 1).await;
        let join = of_all(&format!("SELECT {SIDES} FROM a JOIN b ON a.k = b.k"));
        database.spill().set_limit(Some(1_000_000));
        for sql in ["SELECT * FROM a ORDER BY t, v", &join] {
            leave(&database, 13_000_000);
            let error = rows(&session, sql).await.unwrap_err();
            assert!(matches!(error.kind(), SqlErrorKind::Spill(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains("of 1 MB are in use"), "{text}");
            assert!(
                text.contains("hint: raise max_temp_directory_size"),
                "{text}"
            );
            eventually("gone", || database.spill().files() == 0).await;
            assert_eq!(database.spill().used(), 0);
        }
        database.spill().set_limit(None);
        rows(&session, &join).await.unwrap();
        let error = database.spill().set_directory("/nowhere").unwrap_err();
        assert!(error.to_string().contains("'/nowhere'"), "{error}");
    });
}

#[test]
fn a_table_that_does_not_fit_leaves_the_rest_usable() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        two_tables(&session, 1).await;
        let budget = database.home().budget().clone();
        let before = budget.used();
        leave(&database, 20_000_000);
        for sql in [
            "INSERT INTO a SELECT a.* FROM a, generate_series(1, 100)",
            "CREATE TABLE c AS SELECT i * i AS i, 'some text ' || i AS t FROM generate_series(1, 100000000) AS s(i)",
        ] {
            let error = run(&session, sql).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("out of memory"), "{sql}: {text}");
            assert!(text.contains("hint: raise memory_limit"), "{sql}: {text}");
            eventually("given back", || budget.used() == before).await;
        }
        let count = rows(&session, "SELECT count(*) FROM a").await.unwrap();
        leave(&database, AMPLE);
        run(&session, "INSERT INTO a SELECT * FROM a")
            .await
            .unwrap();
        assert_eq!(count.num_rows(), 1);
    });
}

#[test]
fn many_statements_under_pressure_end_with_their_answer_or_an_error() {
    block_on(async {
        let (database, seed) = (database(1, 2), seed());
        let session = database.session();
        two_tables(&session, seed).await;
        let statements: Vec<String> = joins()
            .into_iter()
            .step_by(4)
            .chain([
                "SELECT x, v, t, d, z FROM a ORDER BY x, v DESC".to_owned(),
                "SELECT count(*), sum(n) FROM (SELECT k, v, count(*) AS n FROM b GROUP BY k, v)"
                    .to_owned(),
                "SELECT count(*) FROM a, b WHERE a.v + b.v = 7 AND a.v < 100 AND b.v < 100"
                    .to_owned(),
            ])
            .collect();
        let mut expected = Vec::new();
        for sql in &statements {
            expected.push(rows(&session, sql).await.unwrap());
        }
        leave(&database, TIGHT);
        let running = (0..3 * statements.len()).map(|number| {
            let session = database.session();
            let number = number % statements.len();
            let (sql, expected) = (&statements[number], &expected[number]);
            async move {
                match rows(&session, sql).await {
                    Ok(rows) => {
                        assert!(rows == *expected, "seed {seed}: {sql}");
                        true
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("memory_limit"), "seed {seed}: {sql}: {text}");
                        false
                    }
                }
            }
        });
        let ended = tokio::time::timeout(std::time::Duration::from_secs(120), join_all(running));
        let ended = ended.await.expect("none hangs");
        eprintln!(
            "{} of {} succeeded",
            ended.iter().filter(|&&ok| ok).count(),
            ended.len()
        );
        assert!(ended.contains(&true));
        eventually("gone", || database.spill().files() == 0).await;
    });
}

#[test]
fn rows_that_nobody_reads_leave_room_for_others_and_are_all_there() {
    block_on(async {
        // All batches that wait may have an eighth of it, which is less than those of one statement would be.
        let database = database_with(1, 2, 100_000_000);
        let session = database.session();
        run(
            &session,
            "CREATE TABLE t AS SELECT i, i * 2 AS j, i * 3 AS k FROM generate_series(1, 1000000) AS g(i)",
        )
        .await
        .unwrap();
        let mut unread = Vec::new();
        for _ in 0..12 {
            // An operator above the scan, so that rows are computed before anybody asks for them.
            let query = "SELECT i, j, k FROM t LIMIT 900000 OFFSET 10";
            let Outcome::Rows(rows) = session.execute(query).await.unwrap() else {
                panic!("no rows");
            };
            unread.push(rows);
        }
        let half = database.home().budget().free() / 2;
        let others = database.home().budget().try_reserve(half);
        assert!(others.is_ok(), "{others:?}");
        drop(others);
        let groups = rows(&session, "SELECT i % 200000 AS g, sum(j) FROM t GROUP BY g").await;
        assert_eq!(groups.unwrap().num_rows(), 200_000);
        // The last one first, so that those in front of it wait.
        for stream in unread.into_iter().rev() {
            let batches = stream.collect().await.unwrap();
            let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(count, 900_000);
        }
    });
}
