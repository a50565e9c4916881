//! Short statements take no lock that others take, too. They are executed in the thread that asks for them, which
//! counts.

use crate::common::{database, must};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use eris_atomics::acquisitions;
use eris_sql::{Outcome, PreparedStatement, Session, TableRows};
use futures::executor::block_on;
use std::sync::Arc;

const ROWS: i64 = 1_000;
const STATEMENTS: i64 = 1_000;

struct Client {
    session: Session,
    prepared: PreparedStatement,
    rows: TableRows,
}

impl Client {
    /// One statement of a kind.
    async fn execute(&mut self, kind: &str, number: i64) {
        let any = (number * 7).rem_euclid(ROWS);
        let new = 2 * ROWS + number;
        let sql = match kind {
            "lookup" => format!("SELECT v FROM t WHERE k = {any}"),
            "constant" => format!("SELECT {any}"),
            "insert" => format!("INSERT INTO t VALUES ({new}, 0)"),
            "upsert" => format!(
                "INSERT INTO t VALUES ({any}, 1) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v"
            ),
            "update" => format!("UPDATE t SET v = v + 1 WHERE k = {any}"),
            "append" => format!("INSERT INTO a VALUES ({number})"),
            "child" => format!("INSERT INTO c VALUES ({new}, {any})"),
            "delete" => format!("DELETE FROM c WHERE k = {new}"),
            "prepared" => {
                return read(self.prepared.execute(&[any.into()]).await.unwrap()).await;
            }
            "get" => {
                let found = self.rows.get(&[key(any)], &["v"]).await.unwrap();
                return assert_eq!(found.rows.num_rows(), 1);
            }
            _ => {
                let row = RecordBatch::try_new(
                    Arc::clone(self.rows.schema()),
                    vec![key(any), key(number)],
                );
                return assert_eq!(self.rows.put(&row.unwrap()).await.unwrap(), 1);
            }
        };
        if number == -1 {
            self.is_short(&sql).await;
        }
        read(self.session.execute(sql.as_str()).await.unwrap()).await;
    }

    /// It is executed here, or else its locks would be counted elsewhere.
    async fn is_short(&self, sql: &str) {
        let explained = self.session.execute(format!("EXPLAIN {sql}")).await;
        let Outcome::Rows(rows) = explained.unwrap() else {
            panic!("EXPLAIN has rows");
        };
        let batches = rows.collect().await.unwrap();
        let text = pretty_format_batches(&batches).unwrap().to_string();
        assert!(text.contains("short path:"), "{sql}: {text}");
    }
}

fn key(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

/// Reads the one row, or counts it.
async fn read(outcome: Outcome) {
    let rows = match outcome {
        Outcome::Rows(rows) => {
            let batches = rows.collect().await.unwrap();
            batches.iter().map(|batch| batch.num_rows() as u64).sum()
        }
        Outcome::Count { rows, .. } => rows,
        Outcome::Done { .. } => 0,
    };
    assert_eq!(rows, 1);
}

#[test]
fn short_statements_take_no_lock() {
    let database = database(1, 2);
    let session = database.session();
    block_on(async {
        must(&session, "CREATE TABLE a (v BIGINT)").await;
        must(&session, "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").await;
        must(
            &session,
            "CREATE TABLE c (k BIGINT PRIMARY KEY, t BIGINT REFERENCES t)",
        )
        .await;
        let rows = format!("INSERT INTO t SELECT i, 0 FROM range({ROWS}) AS r(i)");
        must(&session, &rows).await;
        let prepared = session
            .prepare("SELECT v FROM t WHERE k = $1")
            .await
            .unwrap();
        let rows = session.rows("t").unwrap();
        let mut client = Client {
            session,
            prepared,
            rows,
        };
        for kind in [
            "lookup", "constant", "prepared", "get", "put", "insert", "upsert", "update", "append",
            "child", "delete",
        ] {
            // The first ones are planned.
            for number in -10..0 {
                client.execute(kind, number).await;
            }
            let mut free = 0;
            let before = acquisitions();
            for number in 0..STATEMENTS {
                let before = acquisitions();
                client.execute(kind, number).await;
                free += i64::from(acquisitions() == before);
            }
            let taken = acquisitions() - before;
            println!("{kind}: {taken} locks in {STATEMENTS} statements, {free} without any");
            match kind {
                "lookup" | "constant" | "prepared" | "get" => assert_eq!(taken, 0, "{kind}"),
                // Who has to wait until its commit is visible says so under a lock.
                "append" => assert!(taken <= STATEMENTS as u64 * 11 / 10, "{kind}: {taken}"),
                // Ranges of ascending keys are looked at again once in some hundred rows, and so are joins.
                _ => assert!(
                    free >= STATEMENTS * 98 / 100,
                    "{kind}: only {free} took no lock"
                ),
            }
        }
    });
}
