//! Settings, prepared statements, time-outs and what the database tells of itself, from the outside.

use crate::common::{Random, block_on, database, values, values_of};
use eris_sql::{Outcome, Parameter, Session, SqlErrorKind};
use std::time::Duration;

async fn must(session: &Session, sql: &str) -> Vec<Vec<String>> {
    values(session, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn one(session: &Session, sql: &str) -> String {
    must(session, sql).await.concat().join(" ")
}

#[test]
fn a_session_has_its_own_settings_and_its_clones_share_them() {
    block_on(async {
        let database = database(1, 2);
        let (first, second) = (database.session(), database.session());
        let clone = first.clone();
        must(&first, "SET batch_rows = 1000").await;
        assert_eq!(one(&first, "SHOW batch_rows").await, "1000");
        assert_eq!(one(&clone, "SHOW batch_rows").await, "1000");
        assert_eq!(one(&second, "SHOW batch_rows").await, "8192");
        must(&first, "PREPARE p AS SELECT 1").await;
        assert_eq!(one(&clone, "EXECUTE p").await, "1");
        assert!(values(&second, "EXECUTE p").await.is_err());
        // What is the database's is everybody's.
        must(&first, "SET memory_limit = '500MB'").await;
        assert_eq!(one(&second, "SHOW memory_limit").await, "500 MB");
        assert_eq!(database.home().budget().limit(), 500_000_000);
    });
}

/// A join that finds nothing, and takes hours for it.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 3000000) AS a(i), generate_series(1, 3000000) AS b(j) WHERE a.i + b.j < 0";

#[test]
fn what_takes_too_long_is_stopped_and_leaves_no_trace() {
    // With one AEU there is one thread above it, which the join does not leave by itself.
    for (nodes, cores) in [(1, 1), (4, 2)] {
        block_on(async {
            let session = database(nodes, cores).session();
            must(&session, "CREATE TABLE t (i BIGINT)").await;
            must(&session, "SET statement_timeout = '100ms'").await;
            let error = values(&session, ENDLESS).await.unwrap_err();
            let kind = error.kind();
            assert!(
                matches!(kind, SqlErrorKind::Timeout(time) if time.as_millis() == 100),
                "{error}"
            );
            assert_eq!(
                error.to_string(),
                "stopped after 100ms: longer than statement_timeout allows"
            );
            let writing = "INSERT INTO t SELECT a.i FROM generate_series(1, 100000000) AS a(i), generate_series(1, 1000) AS b(j)";
            let error = values(&session, writing).await.unwrap_err();
            assert!(matches!(error.kind(), SqlErrorKind::Timeout(_)), "{error}");
            must(&session, "RESET statement_timeout").await;
            assert_eq!(one(&session, "SELECT count(*) FROM t").await, "0");
            let states = must(
                &session,
                "SELECT state, error IS NOT NULL FROM eris.queries WHERE statement LIKE '%generate_series%' AND statement NOT LIKE '%eris.queries%'",
            );
            assert_eq!(states.await, [["failed", "true"], ["failed", "true"]]);
        });
    }
}

#[test]
fn a_chunk_that_is_joined_to_very_many_rows_is_left_in_its_midst() {
    for (nodes, cores) in [(1, 1), (4, 2)] {
        block_on(async {
            let session = database(nodes, cores).session();
            must(
                &session,
                "CREATE TABLE fact AS SELECT i, i % 7 AS k FROM range(8000) AS t(i)",
            )
            .await;
            must(
                &session,
                "CREATE TABLE side AS SELECT i, i % 7 AS k FROM range(3500) AS t(i)",
            )
            .await;
            let join = "fact JOIN side AS a ON fact.k = a.k JOIN side AS b ON fact.k = b.k JOIN side AS c ON fact.k = c.k";
            let plan = must(
                &session,
                &format!("EXPLAIN SELECT sum(a.i + b.i * c.i) FROM {join}"),
            )
            .await;
            assert!(
                plan.iter()
                    .flatten()
                    .any(|line| line.contains("lookups=[k → (i), k → (i), k → (i)]")),
                "{plan:?}"
            );
            // A million times a million pairs.
            must(&session, "SET statement_timeout = '100ms'").await;
            for wanted in ["sum(a.i + b.i * c.i)", "fact.i, a.i, b.i, c.i"] {
                let error = values(&session, &format!("SELECT {wanted} FROM {join}"))
                    .await
                    .unwrap_err();
                assert!(matches!(error.kind(), SqlErrorKind::Timeout(_)), "{error}");
            }
            must(&session, "RESET statement_timeout").await;
            // Counted, and a few of them, they take no time.
            assert_eq!(
                one(&session, &format!("SELECT count(*) FROM {join}")).await,
                "1000000000000"
            );
            let few = format!(
                "SELECT count(*) FROM (SELECT a.i, b.i, c.i FROM {join} LIMIT 200000) AS t"
            );
            assert_eq!(one(&session, &few).await, "200000");
        });
    }
}

#[test]
fn a_time_out_counts_while_rows_wait_for_their_reader() {
    block_on(async {
        let session = database(1, 2).session();
        must(&session, "SET statement_timeout = 50").await;
        let many = "SELECT i FROM generate_series(1, 100000000) AS g(i)";
        let Outcome::Rows(rows) = session.execute(many).await.unwrap() else {
            panic!("a query yields rows");
        };
        // Nobody reads until the statement has ended.
        while one(
            &session,
            "SELECT count(*) FROM eris.queries WHERE state = 'failed'",
        )
        .await
            == "0"
        {}
        let error = rows.collect().await.unwrap_err();
        assert!(matches!(error.kind(), SqlErrorKind::Timeout(_)), "{error}");
    });
}

#[test]
fn another_session_sees_a_running_statement_and_ends_it() {
    block_on(async {
        let database = database(1, 2);
        let (worker, watcher) = (database.session(), database.session());
        let running = worker.clone();
        let work = tokio::task::spawn_blocking(move || block_on(values(&running, ENDLESS)));
        let find = "SELECT id FROM eris.queries WHERE state = 'running' AND statement LIKE '%3000000%' AND statement NOT LIKE '%eris.queries%'";
        let id = loop {
            let found = one(&watcher, find).await;
            if !found.is_empty() {
                break found;
            }
        };
        must(&watcher, &format!("KILL {id}")).await;
        let error = tokio::time::timeout(Duration::from_secs(60), work);
        let error = error.await.expect("it ends").unwrap().unwrap_err();
        assert!(matches!(error.kind(), SqlErrorKind::Killed(_)), "{error}");
        assert_eq!(one(&watcher, find).await, "");
        let told = format!("SELECT state, error FROM eris.queries WHERE id = {id}");
        assert_eq!(
            one(&watcher, &told).await,
            "failed stopped by KILL from session 2"
        );
        let error = values(&watcher, &format!("CALL eris.cancel({id})")).await;
        assert!(error.unwrap_err().to_string().contains("is running"));
    });
}

async fn random_table(session: &Session, random: &mut Random, count: u64) {
    must(
        session,
        "CREATE TABLE r (i INTEGER, b BIGINT, f DOUBLE, m DECIMAL(12,3), s VARCHAR, d DATE, z TIMESTAMP, o BOOLEAN)",
    )
    .await;
    let mut values = Vec::new();
    for _ in 0..count {
        let mut cell = |sql: &dyn Fn(u64) -> String| match random.below(10) {
            0 => "NULL".to_owned(),
            _ => {
                let number = random.below(200);
                sql(number)
            }
        };
        values.push(format!(
            "({}, {}, {}, {}, {}, {}, {}, {})",
            cell(&|n| format!("{}", n as i64 - 100)),
            cell(&|n| format!("{}", (n as i64 - 100) * 10_000_000_000)),
            cell(&|n| format!("{}.25e0", n as i64 - 100)),
            cell(&|n| format!("{}.{:03}", n, n * 5)),
            cell(&|n| format!("'text {}'", n % 40)),
            cell(&|n| format!("DATE '2024-{:02}-{:02}'", n % 12 + 1, n % 28 + 1)),
            cell(&|n| format!("TIMESTAMP '2024-01-01 {:02}:{:02}:00'", n % 24, n % 60)),
            cell(&|n| n.is_multiple_of(2).to_string()),
        ));
    }
    must(
        session,
        &format!("INSERT INTO r VALUES {}", values.join(", ")),
    )
    .await;
}

/// A value for a column: as SQL, and as a parameter.
fn value(random: &mut Random, column: &str) -> (String, Parameter) {
    let n = random.below(200_u64);
    let text = match column {
        "i" => return (format!("{}", n as i64 - 100), (n as i64 - 100).into()),
        "b" => {
            let value = (n as i64 - 100) * 10_000_000_000;
            return (value.to_string(), value.into());
        }
        "f" => {
            let value = n as f64 - 99.75;
            return (format!("CAST('{value}' AS DOUBLE)"), value.into());
        }
        "o" => {
            let value = n.is_multiple_of(2);
            return (value.to_string(), value.into());
        }
        "m" => return (format!("{n}.5"), format!("{n}.5").into()),
        "s" => format!("text {}", n % 40),
        "d" => format!("2024-{:02}-{:02}", n % 12 + 1, n % 28 + 1),
        _ => format!("2024-01-01 {:02}:{:02}:00", n % 24, n % 60),
    };
    (format!("'{text}'"), text.into())
}

#[test]
fn a_prepared_statement_answers_like_the_same_statement_written_out() {
    let mut random = Random::new();
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        block_on(async {
            let session = database(nodes, cores).session();
            random_table(&session, &mut random, 500).await;
            for (number, column) in ["i", "b", "f", "m", "s", "d", "z", "o"].iter().enumerate() {
                for (variant, template) in [
                    "SELECT count(*), min(i), max(b) FROM r WHERE {c} = $1 OR {c} > $2",
                    "SELECT i, {c} FROM r WHERE {c} BETWEEN $1 AND $2 AND {c} IS NOT NULL ORDER BY i, b, f, m, s, d, z, o LIMIT 20",
                    "SELECT s, count(*) FROM r WHERE {c} IN ($1, $2) OR {c} <> $1 GROUP BY s ORDER BY s",
                    "SELECT count(*) FROM (SELECT i FROM r WHERE NOT ({c} < $2)) AS q WHERE i IS DISTINCT FROM 5",
                ]
                .iter()
                .enumerate()
                {
                    let sql = template.replace("{c}", column);
                    let prepared = session.prepare(sql.as_str()).await.unwrap();
                    assert_eq!(prepared.parameter_types().len(), 2, "{sql}");
                    must(&session, &format!("PREPARE p{number}_{variant} AS {sql}")).await;
                    for _ in 0..3 {
                        let (first, second) = (value(&mut random, column), value(&mut random, column));
                        let literal = sql.replace("$1", &first.0).replace("$2", &second.0);
                        let expected = must(&session, &literal).await;
                        let outcome = prepared.execute(&[first.1, second.1]).await.unwrap();
                        assert_eq!(values_of(outcome).await.unwrap(), expected, "{literal}");
                        let execute = format!("EXECUTE p{number}_{variant}({}, {})", first.0, second.0);
                        assert_eq!(must(&session, &execute).await, expected, "{execute}: {literal}");
                    }
                }
            }
        });
    }
}

#[test]
fn prepared_inserts_store_what_was_given() {
    let mut random = Random::new();
    block_on(async {
        let session = database(1, 2).session();
        let columns = ["i", "b", "f", "m", "s", "d", "z", "o"];
        random_table(&session, &mut random, 1).await;
        must(&session, "CREATE TABLE written AS SELECT * FROM r LIMIT 0").await;
        must(&session, "CREATE TABLE prepared AS SELECT * FROM r LIMIT 0").await;
        let sql = "INSERT INTO prepared VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        let insert = session.prepare(sql).await.unwrap();
        assert_eq!(
            insert.parameter_types()[3].as_deref(),
            Some("DECIMAL(12,3)")
        );
        for _ in 0..50 {
            let values = columns.map(|column| match random.below(8) {
                0 => ("NULL".to_owned(), Parameter::NULL),
                _ => value(&mut random, column),
            });
            let texts: Vec<&str> = values.iter().map(|(sql, _)| sql.as_str()).collect();
            let written = format!("INSERT INTO written VALUES ({})", texts.join(", "));
            must(&session, &written).await;
            let values = values.map(|(_, value)| value);
            let outcome = insert.execute(&values).await.unwrap();
            assert!(matches!(outcome, Outcome::Count { rows: 1, .. }));
        }
        let all = |table| format!("SELECT * FROM {table} ORDER BY i, b, f, m, s, d, z, o");
        let expected = must(&session, &all("written")).await;
        assert_eq!(must(&session, &all("prepared")).await, expected);
        // A value that does not fit is named, and nothing is stored.
        let mut values = columns.map(|_| Parameter::NULL);
        values[0] = "seven".into();
        let error = insert.execute(&values).await.unwrap_err();
        assert!(error.to_string().contains("$1: value 'seven'"), "{error}");
        assert_eq!(one(&session, "SELECT count(*) FROM prepared").await, "50");
    });
}

#[test]
fn every_execution_reads_its_own_snapshot_and_schema() {
    block_on(async {
        let session = database(1, 2).session();
        must(&session, "CREATE TABLE t (i BIGINT)").await;
        let count = session.prepare("SELECT count(*) FROM t").await.unwrap();
        let counted = async || {
            let outcome = count.execute(&[]).await?;
            values_of(outcome).await.map(|rows| rows.concat().concat())
        };
        assert_eq!(counted().await.unwrap(), "0");
        must(&session, "INSERT INTO t VALUES (1), (2)").await;
        assert_eq!(counted().await.unwrap(), "2");
        must(&session, "DROP TABLE t").await;
        let error = counted().await.unwrap_err();
        assert!(
            error.to_string().contains("table \"t\" does not exist"),
            "{error}"
        );
        must(&session, "CREATE TABLE t AS SELECT 'x' AS s").await;
        assert_eq!(counted().await.unwrap(), "1");
    });
}

#[test]
fn summaries_agree_with_queries_for_the_same_figures() {
    let mut random = Random::new();
    for (nodes, cores) in [(1, 1), (4, 2)] {
        block_on(async {
            let session = database(nodes, cores).session();
            random_table(&session, &mut random, 2000).await;
            let summary = must(&session, "SUMMARIZE r").await;
            assert_eq!(summary.len(), 8);
            for row in &summary {
                let column = &row[0];
                let exact = format!(
                    "SELECT min({column}), max({column}), count(*), round(100.0 * (count(*) - count({column})) / count(*), 2) FROM r"
                );
                let exact = must(&session, &exact).await.remove(0);
                let share = |text: &str| text.parse::<f64>().unwrap();
                assert_eq!(
                    [&row[2], &row[3], &row[10]],
                    [&exact[0], &exact[1], &exact[2]],
                    "{row:?}"
                );
                assert!(
                    (share(&row[11]) - share(&exact[3])).abs() < 0.011,
                    "{row:?} {exact:?}"
                );
                let distinct =
                    one(&session, &format!("SELECT count(DISTINCT {column}) FROM r")).await;
                let (distinct, estimate) = (share(&distinct), share(&row[4]));
                assert!(
                    (distinct - estimate).abs() <= distinct * 0.05 + 1.0,
                    "{row:?}: {distinct}"
                );
                if matches!(column.as_str(), "i" | "b" | "f" | "m") {
                    let exact = format!(
                        "SELECT avg(CAST({column} AS DOUBLE)), stddev(CAST({column} AS DOUBLE)) FROM r"
                    );
                    let exact = must(&session, &exact).await.remove(0);
                    let near =
                        |a: &str, b: &str| (share(a) - share(b)).abs() <= share(b).abs() * 1e-9;
                    assert!(
                        near(&row[5], &exact[0]) && near(&row[6], &exact[1]),
                        "{row:?} {exact:?}"
                    );
                }
                // A quartile of values lies where a quarter of them is below, give or take two in a hundred.
                if !matches!(column.as_str(), "s" | "o") {
                    for (position, quarter) in [(7, 0.25), (8, 0.5), (9, 0.75)] {
                        let cast = format!("CAST('{}' AS {})", row[position], row[1]);
                        let below = format!(
                            "SELECT count(*) FILTER (WHERE {column} < {cast}), count(*) FILTER (WHERE {column} <= {cast}), count({column}) FROM r"
                        );
                        let below = must(&session, &below).await.remove(0);
                        let [least, most, all] = [0, 1, 2].map(|part: usize| share(&below[part]));
                        assert!(
                            least / all <= quarter + 0.02 && most / all >= quarter - 0.02,
                            "{row:?} {quarter}: {below:?}"
                        );
                    }
                }
            }
            // A query, and a table without rows.
            let summary = must(&session, "SUMMARIZE SELECT i + 1 AS j FROM r WHERE i < 0").await;
            assert_eq!(summary[0][..2], ["j", "BIGINT"]);
            let empty = must(&session, "SUMMARIZE (SELECT * FROM r LIMIT 0)").await;
            assert_eq!(empty.len(), 8);
            assert!(
                empty.iter().all(|row| row[10] == "0" && row[11].is_empty()),
                "{empty:?}"
            );
        });
    }
}

#[test]
fn what_the_engine_says_of_tables_is_what_they_hold_while_they_grow() {
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        block_on(async {
            let session = database(nodes, cores).session();
            must(&session, "CREATE TABLE t (i BIGINT, s VARCHAR)").await;
            for batch in [1, 10, 70_000, 3, 200_000] {
                must(
                    &session,
                    &format!("INSERT INTO t SELECT i, 's' || i % 50 FROM generate_series(1, {batch}) AS g(i)"),
                )
                .await;
                let counted = one(&session, "SELECT count(*) FROM t").await;
                for sum in [
                    "SELECT sum(rows) FROM eris.segments",
                    "SELECT rows FROM eris.tables",
                    "SELECT sum(rows) FROM eris.chunks WHERE \"column\" = 'i'",
                    "SELECT min(rows) FROM eris.columns",
                ] {
                    assert_eq!(one(&session, sum).await, counted, "{sum}");
                }
            }
            assert_eq!(
                one(&session, "SELECT (SELECT sum(bytes) FROM eris.segments) = (SELECT bytes FROM eris.tables)").await,
                "true"
            );
        });
    }
}

#[test]
fn what_workers_have_done_shows_by_kind_of_work() {
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        let made =
            "CREATE TABLE t AS SELECT i AS k, i % 7 AS v FROM generate_series(1, 200000) AS s(i)";
        must(&session, made).await;
        for _ in 0..20 {
            must(&session, "SELECT v, sum(k) FROM t GROUP BY v").await;
        }
        let commands = "SELECT sum(run) FROM eris.tasks WHERE form = 'command'";
        let received = "SELECT sum(commands_received) FROM eris.aeus";
        let (before, counted) = (one(&session, commands).await, one(&session, received).await);
        // Only this session is at work, and reading a system table sends no command.
        assert_eq!(before, counted);
        let slices = "SELECT (SELECT sum(run) FROM eris.tasks WHERE form = 'task') = (SELECT sum(slices) FROM eris.aeus)";
        assert_eq!(one(&session, slices).await, "true");
        let work = "SELECT DISTINCT work FROM eris.tasks WHERE busy_seconds > 0 AND form = 'task' ORDER BY work";
        assert_eq!(one(&session, work).await, "insert scan");
        // All scans have come to their end; workers' own tasks are there for good.
        let scans = "SELECT sum(spawned) >= 40, sum(waiting), min(spawned) > 0 FROM eris.tasks WHERE work = 'scan'";
        assert_eq!(one(&session, scans).await, "true 0 true");
        let waits = "SELECT bool_and((waits IS NULL) = (form = 'command')), bool_and((spawned IS NULL) = (form = 'command')) FROM eris.tasks";
        assert_eq!(one(&session, waits).await, "true true");
    });
}
