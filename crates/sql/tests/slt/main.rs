//! Runs every `slt/*.slt` on several topologies. Their expected results are DuckDB's: see `slt/verify.py`.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlError};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::path::PathBuf;

/// One session, driven from a thread that has nothing to do with the database's own.
struct Client {
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl DB for Client {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    /// Queries are asked twice: the second time their plan may come from the cache.
    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        self.runtime.block_on(async {
            let is_query = sql
                .trim_start()
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("SELECT"));
            if is_query && let Outcome::Rows(first) = self.session.execute(sql).await? {
                first.collect().await?;
            }
            let stream = match self.session.execute(sql).await? {
                Outcome::Rows(stream) => stream,
                Outcome::Count { rows, .. } => return Ok(DBOutput::StatementComplete(rows)),
                Outcome::Done { .. } => return Ok(DBOutput::StatementComplete(0)),
            };
            let types = vec![DefaultColumnType::Any; stream.schema().fields().len()];
            let rows = stream.collect().await?.iter().flat_map(rows).collect();
            Ok(DBOutput::Rows { types, rows })
        })
    }

    fn engine_name(&self) -> &str {
        "eris"
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default()
        .with_null("NULL")
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"));
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let value = |column: &ArrayFormatter<'_>, row: usize| match column.value(row).to_string() {
        text if text.is_empty() => "(empty)".to_owned(),
        text => text,
    };
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|column| value(column, row)).collect())
        .collect()
}

fn files() -> Vec<PathBuf> {
    // Below the folder that cargo runs tests in: one that was compiled in may be another checkout's that shares the target directory.
    let entries = std::fs::read_dir("tests/slt")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn run(nodes: u16, cores: u16) {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(2 << 30),
    };
    let database = Database::open(Engine::home(settings).unwrap()).unwrap();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let mut failures = Vec::new();
    for file in files() {
        let mut runner = Runner::new(|| async {
            Ok(Client {
                session: database.session(),
                runtime: runtime(),
            })
        });
        if let Err(error) = runner.run_file(&file) {
            failures.push(error.display(false).to_string());
        }
        runner.shutdown();
        drop_all(&database, &runtime());
    }
    assert!(
        failures.is_empty(),
        "{nodes}x{cores}:\n{}",
        failures.join("\n\n")
    );
}

/// Every file begins without tables.
fn drop_all(database: &Database, runtime: &tokio::runtime::Runtime) {
    let session = database.session();
    runtime.block_on(async {
        let Outcome::Rows(tables) = session.execute("SHOW TABLES").await.unwrap() else {
            panic!("SHOW TABLES yields rows");
        };
        for batch in tables.collect().await.unwrap() {
            for row in rows(&batch) {
                session
                    .execute(format!("DROP TABLE \"{}\" CASCADE", row[0]))
                    .await
                    .unwrap();
            }
        }
    });
}

#[test]
fn one_aeu() {
    run(1, 1);
}

#[test]
fn two_aeus_on_one_node() {
    run(1, 2);
}

#[test]
fn eight_aeus_on_four_nodes() {
    run(4, 2);
}
