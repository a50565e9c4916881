//! What is stored anew in the background, and when.

use super::Recodings;
use crate::Database;
use crate::context::StatementContext;
use crate::running::outcome::Begun;
use datafusion::arrow::util::display::array_value_to_string;
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use futures::TryStreamExt;
use std::sync::Arc;

/// Rows that are worth it here: some chunks, whoever owns them.
const WORTH: u64 = 300_000;

fn with_each_topology(test: impl AsyncFn(&StatementContext)) {
    for (nodes, cores) in [(1, 1), (1, 2)] {
        let settings = Settings {
            topology: Topology::fake(nodes, cores),
            huge_pages: HugePages::Never,
            memory_limit: Some(1 << 30),
            database: None,
        };
        let database = Database::open(Engine::home(settings).unwrap()).unwrap();
        let recodings = Recodings::new(Arc::clone(database.home())).worth(WORTH);
        let mut context = StatementContext::clone(database.context());
        context.recodings = Arc::new(recodings);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        runtime.block_on(test(&context));
    }
}

/// A statement's rows, their values separated by spaces; once nothing goes on in the background.
async fn run(context: &StatementContext, sql: &str) -> Vec<String> {
    // What a statement does is too large for the stack of a test.
    let begun = Box::pin(crate::session::pipeline::begin_text(context, sql)).await;
    let begun = begun.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches = match begun {
        Begun::Rows(rows) => rows.try_collect().await.unwrap(),
        _ => Vec::new(),
    };
    context.recodings.finished().await;
    let mut lines = Vec::new();
    for batch in &batches {
        lines.extend((0..batch.num_rows()).map(|row| {
            let values = batch.columns().iter();
            let values = values.map(|values| array_value_to_string(values, row).unwrap());
            values.collect::<Vec<_>>().join(" ")
        }));
    }
    lines
}

/// Columns of `f` with their state and whether most of their rows are stored so.
async fn state(context: &StatementContext) -> Vec<String> {
    let sql = "SELECT \"column\", other_table, state, rows_late * 2 < rows FROM eris.recodings WHERE \"table\" = 'f' ORDER BY 1";
    run(context, sql).await
}

/// Two tables that others refer to, whose keys are in no good order.
const DIMENSIONS: [&str; 4] = [
    "CREATE TABLE d (k INTEGER PRIMARY KEY, kind INTEGER, part VARCHAR)",
    "INSERT INTO d SELECT i, i % 40, 'part ' || (i % 4) FROM generate_series(1, 2000) g(i)",
    "CREATE TABLE e (a INTEGER, b INTEGER, u BIGINT UNIQUE, kind INTEGER, PRIMARY KEY (a, b))",
    "INSERT INTO e SELECT i, i, i * 1000000, i % 9 FROM generate_series(1, 900) g(i)",
];

fn facts(from: u32, to: u32) -> String {
    format!(
        "INSERT INTO f SELECT i, 1 + i * 7 % 2000, 1 + i % 900, 1 + i % 900, (1 + i * 11 % 900) * 1000000 FROM generate_series({from}, {to}) g(i)"
    )
}

const FACT: &str = "CREATE TABLE f (i INTEGER, k INTEGER, a INTEGER, b INTEGER, u BIGINT";

#[test]
fn columns_that_refer_to_a_table_are_stored_before_anybody_joins_it() {
    with_each_topology(async |context| {
        for sql in DIMENSIONS {
            run(context, sql).await;
        }
        let keys =
            "REFERENCES e (u), FOREIGN KEY (k) REFERENCES d, FOREIGN KEY (a, b) REFERENCES e";
        run(context, &format!("{FACT} {keys})")).await;
        run(context, &facts(1, 200_000)).await;
        assert!(state(context).await.is_empty(), "too few rows");
        run(context, &facts(200_001, 400_000)).await;
        let stored = ["k d stored true", "u e stored true"];
        assert_eq!(state(context).await, stored);
        let sql = "SELECT part, count(*), sum(i) FROM f JOIN d USING (k) JOIN e USING (u) WHERE e.kind = 4 GROUP BY part ORDER BY part";
        let before = run(context, sql).await;
        assert_eq!(state(context).await, stored);
        run(context, "CALL eris.recode('f')").await;
        assert_eq!(run(context, sql).await, before);
        // What comes later is stored so when enough has come.
        run(context, &facts(400_001, 900_000)).await;
        assert_eq!(state(context).await, stored);
    });
}

#[test]
fn a_key_that_is_declared_later_has_its_column_stored() {
    with_each_topology(async |context| {
        for sql in DIMENSIONS {
            run(context, sql).await;
        }
        run(context, &format!("{FACT})")).await;
        run(context, &facts(1, 400_000)).await;
        assert!(state(context).await.is_empty());
        run(context, "SET key_recoding = off").await;
        let off = context.of_session(&context.session);
        run(&off, "ALTER TABLE f ADD FOREIGN KEY (k) REFERENCES d").await;
        assert!(state(context).await.is_empty(), "the session keeps from it");
        run(
            context,
            "ALTER TABLE f ADD FOREIGN KEY (u) REFERENCES e (u)",
        )
        .await;
        // All that is declared, once the table is looked at.
        assert_eq!(state(context).await, ["k d stored true", "u e stored true"]);
        // The other table is another one, in another order.
        let before = run(
            context,
            "SELECT attributes FROM eris.recodings WHERE \"column\" = 'k'",
        )
        .await;
        run(
            context,
            "UPDATE d SET part = 'part ' || (k % 7), kind = k % 7",
        )
        .await;
        run(context, "INSERT INTO d SELECT i, i % 7, 'part ' || (i % 7) FROM generate_series(2001, 4000) g(i)").await;
        let after = run(
            context,
            "SELECT attributes FROM eris.recodings WHERE \"column\" = 'k'",
        )
        .await;
        assert_eq!(before, ["part, kind"]);
        assert_ne!(before, after);
    });
}

/// The order by which `k` is stored: its keys, and late ones among them.
async fn keys(context: &StatementContext) -> Vec<String> {
    let sql =
        "SELECT keys, keys_late, rows_late * 4 < rows FROM eris.recodings WHERE \"column\" = 'k'";
    run(context, sql).await
}

const ASKED: &str = "SELECT part, count(*), sum(i) FROM f JOIN d USING (k) WHERE kind < 9 GROUP BY part ORDER BY part";

/// What the rows answer that are stored as they come.
async fn asked_elsewhere(context: &StatementContext) -> Vec<String> {
    run(
        context,
        "CREATE TABLE copied AS SELECT i, k + 0 AS k FROM f",
    )
    .await;
    let answer = run(context, &ASKED.replace("FROM f", "FROM copied")).await;
    run(context, "DROP TABLE copied").await;
    answer
}

#[test]
fn late_keys_have_places_at_the_end_until_there_are_many() {
    with_each_topology(async |context| {
        for sql in DIMENSIONS {
            run(context, sql).await;
        }
        run(context, &format!("{FACT}, FOREIGN KEY (k) REFERENCES d)")).await;
        run(context, &facts(1, 400_000)).await;
        assert_eq!(keys(context).await, ["2000 0 true"]);
        let grow = |from: u32, to: u32| {
            format!(
                "INSERT INTO d SELECT i, i % 40, 'part ' || (i % 4) FROM generate_series({from}, {to}) g(i)"
            )
        };
        run(context, &grow(2001, 2100)).await;
        let late =
            "SELECT i, 2001 + i % 100, 1, 1, 1000000 FROM generate_series(400001, 400900) g(i)";
        run(context, &format!("INSERT INTO f {late}")).await;
        assert_eq!(
            keys(context).await,
            ["2000 0 true"],
            "a few rows are no reason"
        );
        let late = "SELECT i, 1 + i * 1009 % 2100, 1, 1, 1000000 FROM generate_series(401001, 701000) g(i)";
        run(context, &format!("INSERT INTO f {late}")).await;
        assert_eq!(keys(context).await, ["2100 100 true"]);
        assert_eq!(run(context, ASKED).await, asked_elsewhere(context).await);
        // Nothing new: the same order.
        run(context, &facts(701_001, 1_000_000)).await;
        assert_eq!(keys(context).await, ["2100 100 true"]);
        assert_eq!(run(context, ASKED).await, asked_elsewhere(context).await);
        // An eighth more than there were when the order was made.
        run(context, &grow(2101, 2250)).await;
        assert_eq!(keys(context).await, ["2100 100 true"]);
        run(context, &grow(2251, 2260)).await;
        assert_eq!(keys(context).await, ["2260 0 true"]);
        assert_eq!(run(context, ASKED).await, asked_elsewhere(context).await);
        // Rows that change are new ones, though there are no more of them.
        run(context, "UPDATE f SET a = a + 1 WHERE k < 2000").await;
        assert_eq!(keys(context).await, ["2260 0 true"]);
        assert_eq!(run(context, ASKED).await, asked_elsewhere(context).await);
    });
}
