//! Joins with constants that were never there before: the planner is the oracle, while rows come and go.

use super::{database, run, runtime, templates};
use crate::context::StatementContext;
use crate::plan_cache::PlanCache;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

async fn star(context: &StatementContext) {
    for sql in [
        "CREATE TABLE item AS SELECT i AS k, 'maker' || (i % 4) AS maker, i % 10 AS size, CAST(i AS DECIMAL(7, 2)) / 2 AS cost FROM range(60) AS s(i)",
        "CREATE TABLE shop (k VARCHAR, city VARCHAR, opened DATE)",
        "INSERT INTO shop SELECT 'shop' || i, 'city' || (i % 7), DATE '2020-01-01' + CAST(i * 30 AS INTEGER) FROM range(25) AS s(i)",
        "CREATE TABLE sale AS SELECT i AS k, i * 7 % 65 AS item, CASE WHEN i % 11 > 0 THEN 'shop' || (i * 13 % 27) END AS shop, i % 50 AS pieces,
            CAST(i % 97 AS DECIMAL(9, 2)) / 4 AS price, DATE '2021-01-01' + CAST(i % 365 AS INTEGER) AS day FROM range(3000) AS s(i)",
    ] {
        run(context, sql).await.unwrap();
    }
}

fn constant(column: &str) -> BoxedStrategy<String> {
    match column {
        "maker" => (0..5).prop_map(|n| format!("'maker{n}'")).boxed(),
        "city" => (0..8).prop_map(|n| format!("'city{n}'")).boxed(),
        "opened" | "day" => (2019..2023, 1..13)
            .prop_map(|(year, month)| format!("DATE '{year}-{month:02}-01'"))
            .boxed(),
        "cost" | "price" => (0..400)
            .prop_map(|n| format!("{}.{:02}", n / 16, n % 16 * 6))
            .boxed(),
        _ => (-3..60).prop_map(|n: i32| n.to_string()).boxed(),
    }
}

fn condition() -> impl Strategy<Value = String> {
    let column = prop::sample::select(vec![
        ("item", "maker"),
        ("item", "size"),
        ("item", "cost"),
        ("shop", "city"),
        ("shop", "opened"),
        ("sale", "pieces"),
        ("sale", "price"),
        ("sale", "day"),
        ("sale", "k"),
    ]);
    let operator = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let comparison = (column, operator, any::<bool>(), any::<bool>());
    let simple =
        comparison.prop_flat_map(|((table, column), operator, is_between, is_qualified)| {
            let called = match is_qualified || column == "k" {
                true => format!("{table}.{column}"),
                false => column.to_owned(),
            };
            (constant(column), constant(column)).prop_map(move |(a, b)| match is_between {
                true => format!("{called} BETWEEN {a} AND {b}"),
                false => format!("{called} {operator} {a}"),
            })
        });
    simple.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} AND {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
}

fn query() -> impl Strategy<Value = String> {
    let list = prop::sample::select(vec![
        "sum(price * pieces), count(*)",
        "maker, city, sum(pieces) AS n",
        "sale.k, cost",
    ]);
    let joins = prop::sample::select(vec![
        "sale, item, shop WHERE sale.item = item.k AND sale.shop = shop.k AND",
        "sale JOIN item ON item = item.k JOIN shop ON shop.k = sale.shop WHERE",
        "item JOIN sale ON sale.item = item.k AND size > 1 INNER JOIN shop ON shop.k = sale.shop WHERE",
    ]);
    (list, joins, condition()).prop_map(|(list, joins, condition)| {
        let end = match list {
            "maker, city, sum(pieces) AS n" => "GROUP BY maker, city ORDER BY n, maker, city",
            _ => "",
        };
        format!("SELECT {list} FROM {joins} {condition} {end}")
    })
}

/// Rows that come and go between the first and the second execution of a text.
fn change() -> impl Strategy<Value = Option<String>> {
    let change = prop_oneof![
        // A key that occurs twice, until one goes.
        (0..60).prop_map(|k| format!("INSERT INTO item VALUES ({k}, 'maker9', 3, 1)")),
        Just("DELETE FROM item WHERE maker = 'maker9'".to_owned()),
        (0..27, 0..9).prop_map(|(k, city)| format!(
            "UPDATE shop SET city = 'city{city}' WHERE k = 'shop{k}'"
        )),
        (0..3000).prop_map(|k| format!("UPDATE sale SET pieces = pieces + 1 WHERE k = {k}")),
        (0..60).prop_map(|item| format!(
            "INSERT INTO sale VALUES (-1, {item}, 'shop1', 3, 2.5, DATE '2021-05-05')"
        )),
        Just("CALL eris.recode('sale')".to_owned()),
    ];
    prop::option::weighted(0.3, change)
}

#[test]
fn joins_with_other_constants_are_as_planned() {
    let (database, runtime) = (database(), runtime());
    let context = database.context();
    runtime.block_on(star(context));
    // The generator's seed is printed with a failure.
    let mut runner = TestRunner::new(Config::with_cases(200));
    let result = runner.run(&(query(), query(), change()), |(query, other, change)| {
        let both = async |query: &str| {
            let planned = run(context, &format!("{query} -- planned")).await;
            (run(context, query).await, planned)
        };
        let runs = runtime.block_on(async {
            let first = both(&query).await;
            let second = both(&other).await;
            if let Some(change) = &change {
                run(context, change).await.unwrap();
            }
            [first, second, both(&query).await, both(&other).await]
        });
        for (got, planned) in runs {
            let planned = planned.unwrap();
            prop_assert_eq!(
                got.unwrap(),
                planned,
                "{} and {}, {:?}",
                query,
                other,
                change
            );
        }
        Ok(())
    });
    result.unwrap();
    assert!(templates(context) > 50, "{}", templates(context));
}

#[test]
fn a_key_of_one_table_is_not_looked_for_in_another() {
    let (database, runtime) = (database(), runtime());
    let context = database.context();
    runtime.block_on(async {
        // The planner may infer conditions of one table from those of another; the tables have different widths.
        for sql in [
            "CREATE TABLE narrow AS SELECT i AS k FROM range(50) AS s(i)",
            "CREATE TABLE wide AS SELECT i AS a, i % 5 AS b, i % 50 AS k, i * 2 AS c FROM range(3000) AS s(i)",
        ] {
            run(context, sql).await.unwrap();
        }
        for constant in [3, 49, 50, 7] {
            let query = format!(
                "SELECT sum(c), min(b) FROM wide, narrow n WHERE wide.k = n.k AND n.k <= {constant} AND b <> {}",
                constant % 5
            );
            let planned = run(context, &format!("{query} -- planned")).await;
            assert_eq!(run(context, &query).await, planned, "{query}");
            assert_eq!(run(context, &query).await, planned, "{query}");
        }
        assert_eq!(templates(context), 1);
    });
}

#[test]
fn a_plan_of_joins_keeps_no_deleted_rows() {
    let (database, runtime) = (database(), runtime());
    let context = database.context();
    runtime.block_on(async {
        for sql in [
            "CREATE TABLE side AS SELECT i AS k, i % 9 AS v FROM range(30000) AS s(i)",
            "CREATE TABLE fact AS SELECT i AS k, i % 30000 AS side FROM range(300000) AS s(i)",
        ] {
            run(context, sql).await.unwrap();
        }
        let query = "SELECT count(*) FROM fact, side WHERE side = side.k AND v < 9";
        assert!(
            run(context, query)
                .await
                .unwrap()
                .concat()
                .contains("300000")
        );
        assert_eq!(templates(context), 1);
        run(context, "DELETE FROM fact WHERE k >= 10")
            .await
            .unwrap();
        run(context, "DELETE FROM side WHERE k >= 20")
            .await
            .unwrap();
        assert!(
            run(context, query)
                .await
                .unwrap()
                .concat()
                .contains("| 10 ")
        );
        for _ in 0..2000 {
            let sql = "SELECT sum(rows) FROM eris.segments WHERE \"table\" IN ('fact', 'side')";
            if run(context, sql).await.unwrap().concat().contains("| 30 ") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the rows are still there");
    });
}

#[test]
fn what_had_no_plan_gets_one_when_its_tables_have_become_others() {
    let (database, runtime) = (database(), runtime());
    let context = database.context();
    let session = database.session();
    runtime.block_on(async {
        star(context).await;
        run(
            context,
            "CREATE TABLE few AS SELECT i AS k, i % 60 AS item FROM range(50) AS s(i)",
        )
        .await
        .unwrap();
        let query = "SELECT count(*) FROM few, item WHERE few.item = item.k AND size = 3";
        let prepared = session.prepare(query.replace('3', "$1")).await.unwrap();
        let ask = async || {
            let planned = run(context, &format!("{query} -- planned")).await;
            assert_eq!(run(context, query).await, planned);
            prepared.execute(&[3.into()]).await.unwrap();
            let contents = context.catalog.contents();
            let kept = contents.attached::<PlanCache>().prepared.lock().len();
            (templates(context), kept)
        };
        // Both tables are about as large: no star, and no template.
        assert_eq!(ask().await, (0, 0));
        let more = "INSERT INTO few SELECT i, i % 60 FROM range(20) AS s(i)";
        run(context, more).await.unwrap();
        assert_eq!(ask().await, (0, 0), "not much else");
        let many = "INSERT INTO few SELECT i, i % 60 FROM range(3000) AS s(i)";
        run(context, many).await.unwrap();
        assert_eq!(ask().await, (1, 1));
    });
}
