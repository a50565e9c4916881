//! A comment in a text keeps it out of the cache: so the planner itself is the oracle.

mod joined;

use crate::Database;
use crate::Outcome;
use crate::Parameter;
use crate::context::StatementContext;
use crate::plan_cache::PlanCache;
use crate::running::outcome::Begun;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::arrow::util::pretty::pretty_format_batches;
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use futures::{StreamExt, TryStreamExt};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn database() -> Database {
    Database::open(
        Engine::home(Settings {
            topology: Topology::fake(1, 2),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
            database: None,
        })
        .unwrap(),
    )
    .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

/// The rows as they are printed, in some order, or the error.
async fn run(context: &StatementContext, sql: &str) -> Result<Vec<String>, String> {
    let begun = crate::session::pipeline::begin_text(context, sql).await;
    let Begun::Rows(rows) = begun.map_err(|error| error.to_string())? else {
        return Ok(Vec::new());
    };
    let batches: Vec<_> = rows
        .try_collect()
        .await
        .map_err(|error| error.to_string())?;
    let shown = pretty_format_batches(&batches).unwrap().to_string();
    let mut lines: Vec<_> = shown.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// Texts with at least one template.
fn templates(context: &StatementContext) -> usize {
    context
        .catalog
        .contents()
        .attached::<PlanCache>()
        .queries
        .planned()
}

async fn table(context: &StatementContext) {
    let columns = "i AS k, CAST(i % 100 AS TINYINT) AS small, CAST(i AS BIGINT) * 5000000000 AS large, \
                   CAST(i AS DECIMAL(9, 2)) / 4 AS price, CAST(i AS DOUBLE) / 8 AS ratio, \
                   CASE WHEN i % 7 <> 0 THEN 'it''s ' || (i % 50) END AS name, \
                   DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day, \
                   CAST(DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS TIMESTAMP) AS at, i % 3 = 0 AS flag";
    let sql = format!("CREATE TABLE t AS SELECT {columns} FROM generate_series(1, 2000) AS s(i)");
    run(context, &sql).await.unwrap();
}

fn condition() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (-300i64..2500).prop_map(|n| n.to_string()),
        (-300i64..2500, 0..1000).prop_map(|(n, f)| format!("{n}.{f}")),
        Just("99999999999999999999999999999999999999999".to_owned()),
    ];
    let text = prop_oneof![
        (0..60).prop_map(|n| format!("'it''s {n}'")),
        (1..14, 1..32).prop_map(|(month, day)| format!("'2024-{month:02}-{day:02}'")),
        (1..4, 1..29).prop_map(|(month, day)| format!("DATE '2024-{month:02}-{day:02}'")),
        Just("''".to_owned()),
    ];
    let constant = prop_oneof![3 => number, 2 => text, 1 => Just("NULL".to_owned())];
    let column = prop_oneof![
        Just("k"),
        Just("small"),
        Just("large"),
        Just("price"),
        Just("ratio"),
        Just("t.name"),
        Just("day"),
        Just("at"),
        Just("flag"),
        Just("k + 1"),
        Just("nothing"),
    ];
    let operator = prop_oneof![
        Just("="),
        Just("<>"),
        Just("<"),
        Just("<="),
        Just(">"),
        Just(">=")
    ];
    let comparison = (column.clone(), operator, constant.clone())
        .prop_map(|(column, operator, constant)| format!("{column} {operator} {constant}"));
    let reversed =
        (constant.clone(), column.clone()).prop_map(|(c, column)| format!("{c} >= {column}"));
    let between = (column, constant.clone(), constant)
        .prop_map(|(column, low, high)| format!("{column} BETWEEN {low} AND {high}"));
    let simple = prop_oneof![4 => comparison, 1 => reversed, 2 => between];
    simple.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} AND {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
}

#[test]
fn what_the_cache_answers_is_what_the_planner_answers() {
    let (database, runtime) = (database(), runtime());
    let context = database.context();
    runtime.block_on(table(context));
    let lists = prop_oneof![
        Just("k, name"),
        Just("count(*), sum(price), min(day), 1 + 1"),
        Just("flag, count(*) AS n"),
        Just("k % 10, sum(small)"),
    ];
    let query = (lists, condition(), 1..5).prop_map(|(list, condition, limit)| {
        let end = match list {
            "k, name" => format!("ORDER BY k LIMIT {limit}"),
            "flag, count(*) AS n" => format!("GROUP BY flag HAVING count(*) > {limit}"),
            "k % 10, sum(small)" => "GROUP BY k % 10".to_owned(),
            _ => String::new(),
        };
        format!("SELECT {list} FROM t WHERE {condition} {end}")
    });
    // The generator's seed is printed with a failure.
    let mut runner = TestRunner::new(Config::with_cases(400));
    let result = runner.run(&query, |query| {
        let (expected, first, second) = runtime.block_on(async {
            let planned = run(context, &format!("{query} -- planned")).await;
            (
                planned,
                run(context, &query).await,
                run(context, &query).await,
            )
        });
        if expected.is_ok() {
            prop_assert_eq!(&first, &expected, "{}", query);
            prop_assert_eq!(&second, &expected, "{}", query);
        } else {
            prop_assert!(
                first.is_err() && second.is_err(),
                "{}: {:?}",
                query,
                expected
            );
        }
        Ok(())
    });
    result.unwrap();
    assert!(templates(context) > 30, "{}", templates(context));
}

#[test]
fn constants_alone_are_what_the_planner_makes_of_them() {
    let database = database();
    let context = database.context();
    let known = || {
        context
            .catalog
            .contents()
            .attached::<PlanCache>()
            .constants
            .planned()
    };
    runtime().block_on(async {
        let queries = [
            "SELECT 1",
            "SELECT 'it''s' AS \"Was\", 7 AS n, 8, 'x'",
            "SELECT '' AS a, 1 AS a",
            "SELECT 3, 999999999999999999",
        ];
        // Twice: the second time without a plan.
        let check = async |query: &str| {
            let planned = run(context, &format!("{query} -- planned")).await;
            for _ in 0..2 {
                assert_eq!(run(context, query).await, planned, "{query}");
            }
        };
        for query in queries {
            check(query).await;
        }
        assert_eq!(known(), queries.len());
        // The same texts with other constants: of the same types, and of others.
        for query in [
            "SELECT 2",
            "SELECT 9999999999999999999",
            "SELECT 1.50",
            "SELECT 0042",
            "SELECT 'a' AS \"Was\", 12345678901234567890 AS n, 0.5, ''''",
        ] {
            check(query).await;
        }
        // What is more than constants.
        for query in [
            "SELECT 1 WHERE 1 = 2",
            "SELECT 1 LIMIT 0",
            "SELECT DISTINCT 1",
            "SELECT -1",
            "SELECT 1 UNION ALL SELECT 2",
            "SELECT 1 AS a ORDER BY a",
            "SELECT DATE '2024-01-01'",
        ] {
            check(query).await;
        }
        assert_eq!(known(), queries.len());
    });
}

#[test]
fn a_template_ends_with_what_it_depends_on() {
    let database = database();
    let context = database.context();
    runtime().block_on(async {
        let query = "SELECT count(*), sum(v) FROM t WHERE k >= 2";
        let expect = async |answer: &str| {
            for _ in 0..2 {
                let got = run(context, query).await.unwrap().concat().replace(' ', "");
                assert!(got.contains(answer), "{answer}: {got}");
            }
            assert_eq!(templates(context), 1);
        };
        run(context, "CREATE TABLE t (k INTEGER, v INTEGER)")
            .await
            .unwrap();
        run(context, "INSERT INTO t VALUES (1, 10), (2, 20)")
            .await
            .unwrap();
        expect("|1|20|").await;
        run(context, "INSERT INTO t VALUES (3, 30)").await.unwrap();
        expect("|2|50|").await;
        run(context, "ALTER TABLE t RENAME COLUMN k TO old")
            .await
            .unwrap();
        run(context, "ALTER TABLE t ADD COLUMN k VARCHAR DEFAULT '4'")
            .await
            .unwrap();
        let error = run(context, query).await;
        let planned = run(context, &format!("{query} --")).await;
        assert_eq!(error, planned);
        run(context, "DROP TABLE t").await.unwrap();
        assert!(
            run(context, query)
                .await
                .unwrap_err()
                .contains("does not exist")
        );
        run(
            context,
            "CREATE TABLE t AS SELECT i AS k, i AS v FROM generate_series(1, 200000) AS s(i)",
        )
        .await
        .unwrap();
        let answer = run(context, query).await.unwrap().concat();
        assert!(answer.contains("199999"), "{answer}");
        run(context, "TRUNCATE t").await.unwrap();
        let answer = run(context, query).await.unwrap().concat().replace(' ', "");
        assert!(answer.contains("|0||"), "{answer}");
    });
}

#[test]
fn what_its_reader_computes_is_a_statement_like_others() {
    let database = database();
    // No runtime of tokio's is there to be found.
    futures::executor::block_on(async {
        let session = database.session();
        let start = async |sql: &str| match session.execute(sql).await.unwrap() {
            Outcome::Rows(rows) => rows,
            _ => panic!("rows"),
        };
        let create = "CREATE TABLE t AS SELECT i AS k FROM generate_series(1, 300000) AS s(i)";
        session.execute(create).await.unwrap();
        for most in [10, 20, 30] {
            let rows = start(&format!("SELECT count(*) FROM t WHERE k <= {most}")).await;
            let batches = rows.collect().await.unwrap();
            let shown = pretty_format_batches(&batches).unwrap().to_string();
            assert!(shown.contains(&format!("| {most} ")), "{shown}");
        }
        drop(start("SELECT count(*) FROM t WHERE k <= 40").await);
        let mut killed = start("SELECT count(*) FROM t WHERE k <= 50").await;
        let sql = "SELECT id, state, rows FROM eris.queries WHERE statement LIKE 'SELECT count%' ORDER BY id";
        let state = async || {
            let batches = start(sql).await.collect().await.unwrap();
            let batch = concat_batches(batches[0].schema_ref(), &batches).unwrap();
            let column = |number: usize| {
                let column = batch.column(number);
                let shown = (0..batch.num_rows()).map(|row| array_value_to_string(column, row));
                shown.collect::<Result<Vec<_>, _>>().unwrap()
            };
            (column(0), column(1), column(2))
        };
        let (ids, states, rows) = state().await;
        assert_eq!(
            states,
            ["finished", "finished", "finished", "cancelled", "running"]
        );
        assert_eq!(rows[..3], ["1", "1", "1"]);
        session.execute(format!("KILL {}", ids[4])).await.unwrap();
        let error = killed.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("KILL"), "{error}");
        assert!(killed.next().await.is_none());
        assert_eq!(state().await.1[4], "failed");
    });
}

#[test]
fn columns_that_are_called_otherwise_have_their_own_types() {
    let database = database();
    let context = database.context();
    runtime().block_on(async {
        let create = "CREATE TABLE t AS SELECT 1 AS a, DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01 10:00:00' AS s";
        run(context, create).await.unwrap();
        for query in [
            "SELECT * FROM t AS x (a, s, d) WHERE s = '2024-01-01'",
            "SELECT * FROM t AS x (a, s, d) WHERE d = '2024-01-01 10:00:00'",
            "SELECT * FROM t WHERE d = '2024-01-01 10:00:00'",
            "SELECT * FROM t WHERE s >= DATE '2024-01-01'",
            "SELECT * FROM t WHERE s = '2024-01-01 10:00:00.0000001'",
            "SELECT a FROM t x WHERE x.a = 1",
        ] {
            let planned = run(context, &format!("{query} -- planned")).await;
            for _ in 0..2 {
                assert_eq!(run(context, query).await, planned, "{query}");
            }
        }
    });
}

#[test]
fn a_template_keeps_no_deleted_rows() {
    let database = database();
    let context = database.context();
    runtime().block_on(async {
        let create = "CREATE TABLE t AS SELECT i AS k FROM generate_series(1, 300000) AS s(i)";
        run(context, create).await.unwrap();
        let query = "SELECT count(*) FROM t WHERE k > 5";
        assert!(
            run(context, query)
                .await
                .unwrap()
                .concat()
                .contains("299995")
        );
        assert_eq!(templates(context), 1);
        run(context, "DELETE FROM t WHERE k > 10").await.unwrap();
        assert!(run(context, query).await.unwrap().concat().contains("| 5 "));
        for _ in 0..2000 {
            let rows = run(
                context,
                "SELECT sum(rows) FROM eris.segments WHERE \"table\" = 't'",
            )
            .await;
            if rows.unwrap().concat().contains("| 10 ") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the rows are still there");
    });
}

#[test]
fn prepared_queries_take_any_value() {
    let database = database();
    runtime().block_on(async {
        table(database.context()).await;
        let session = database.session();
        let prepared = session.prepare("SELECT count(*) FROM t WHERE price < $1 AND k <> $2");
        let prepared = prepared.await.unwrap();
        let run = async |values: &[Parameter]| {
            let Outcome::Rows(rows) = prepared.execute(values).await.unwrap() else {
                panic!("rows");
            };
            let batches = rows.collect().await.unwrap();
            let shown = pretty_format_batches(&batches).unwrap().to_string();
            shown.lines().nth(3).unwrap().replace(['|', ' '], "")
        };
        for _ in 0..2 {
            assert_eq!(run(&[2.into(), 1.into()]).await, "6");
            assert_eq!(run(&["2.25".into(), 1.into()]).await, "7");
            assert_eq!(run(&[Parameter::NULL, 1.into()]).await, "0");
            assert_eq!(run(&[2.into(), 5_000_000_000i64.into()]).await, "7");
        }
        let sql = "ALTER TABLE t ALTER COLUMN price SET DEFAULT 0";
        session.execute(sql).await.unwrap();
        session
            .execute("INSERT INTO t (k) VALUES (-1)")
            .await
            .unwrap();
        assert_eq!(run(&[2.into(), 1.into()]).await, "7");
    });
}
