//! Runs every `slt/*.slt` on several topologies, and on [a home](memory_home) that is nothing but batches in a list.
//! Their expected results are DuckDB's: see `slt/verify.py`.

#[path = "../keeping_home/mod.rs"]
mod keeping_home;
mod memory_home;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::ArrayFormatter;
use eris_engine::{Engine, Settings};
use eris_home::Home;
use eris_numa::{HugePages, Profile, Topology};
use eris_sql::{Database, Outcome, Session, SqlError, VALUE_FORMAT, formatter};
use keeping_home::KeepingHome;
use keeping_home::dump::{assert_same, dump};
use memory_home::MemoryHome;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, parse_file};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One session, driven from a thread that has nothing to do with the database's own.
struct Client {
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl DB for Client {
    type Error = SqlError;
    type ColumnType = DefaultColumnType;

    /// Queries are asked twice: the second time their plan may come from the cache. Those that take numbers of a
    /// sequence are not.
    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, SqlError> {
        self.runtime.block_on(async {
            let is_query = sql
                .trim_start()
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("SELECT"));
            let takes_numbers = sql.contains("nextval") || sql.contains("setval");
            if is_query
                && !takes_numbers
                && let Outcome::Rows(first) = self.session.execute(sql).await?
            {
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
    let options = VALUE_FORMAT
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"));
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| formatter(column, &options).unwrap())
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
    // Below the folder that cargo runs tests in: one that was compiled in may be another checkout's that shares the
    // target directory.
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

/// Files whose tables have several chunks, so that there is something to pull.
const SCANNING: [&str; 12] = [
    "asof",
    "at_source",
    "average",
    "delete",
    "flights",
    "groups",
    "key",
    "row_order",
    "star",
    "stars_found",
    "sum",
    "update",
];

fn scanning_files() -> Vec<PathBuf> {
    let files = SCANNING.map(|name| PathBuf::from(format!("tests/slt/{name}.slt")));
    files.into()
}

/// What the home in memory does not have, and so is not asked for: files, and statements that contain some words.
const LEFT_OUT_FILES: [(&str, &str); 4] = [
    ("balance.slt", "it is about rows that get other owners"),
    ("index.slt", "it is about secondary indexes"),
    ("index_blink.slt", "it is about secondary indexes"),
    ("unique_index.slt", "it is about secondary indexes"),
];
const LEFT_OUT_STATEMENTS: [(&str, &str); 14] = [
    ("CREATE INDEX", "there are no secondary indexes"),
    ("duckdb_indexes", "there are no secondary indexes"),
    (
        "CALL eris.recode",
        "no column is stored by an order of keys",
    ),
    ("encoding LIKE", "all columns are plain"),
    (
        "dictionary_entries",
        "there are no dictionaries, and extremes are not known",
    ),
    ("CALL eris.reorganize", "there is no index of keys"),
    ("eris.reorganizations", "there is no index of keys"),
    ("eris.recodings", "no column is stored by an order of keys"),
    ("average_length", "nothing is sampled"),
    ("correlation", "nothing is sampled"),
    ("eris.placement", "nobody knows where its memory lies"),
    ("resident_bytes", "nobody knows where its memory lies"),
    ("eris.memory", "its rows are not accounted for"),
    (
        "commands_received",
        "there are no workers, so they get no commands",
    ),
];

/// The records of a file, for a home that has everything or only what every home must have.
fn records(file: &Path, has_all: bool) -> Vec<Record<DefaultColumnType>> {
    let mut records = parse_file(file).unwrap();
    records.retain(|record| match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => {
            has_all
                || !LEFT_OUT_STATEMENTS
                    .iter()
                    .any(|(words, _)| sql.contains(words))
        }
        _ => true,
    });
    records
}

/// `strategy` is what `numa_strategy` is set to at first, if it is not the default.
fn run(
    name: &str,
    home: Arc<dyn Home>,
    files: Vec<PathBuf>,
    has_all: bool,
    strategy: Option<&str>,
) {
    let database = Database::open(home).unwrap();
    let mut failures = Vec::new();
    for file in files {
        let is_left_out = |(left_out, _): &(&str, &str)| file.ends_with(left_out);
        if !has_all && LEFT_OUT_FILES.iter().any(is_left_out) {
            continue;
        }
        failures.extend(run_file(&file, &database, has_all, strategy));
        drop_all(&database, &runtime());
    }
    assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n\n"));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// What is wrong with a file's results.
fn run_file(
    file: &Path,
    database: &Database,
    has_all: bool,
    strategy: Option<&str>,
) -> Option<String> {
    let mut runner = Runner::new(|| async {
        let session = database.session();
        if let Some(strategy) = strategy {
            let set = format!("SET numa_strategy = {strategy}");
            session.execute(set).await.unwrap();
        }
        Ok(Client {
            session,
            runtime: runtime(),
        })
    });
    let mut records = records(file, has_all);
    if strategy.is_some() {
        records.retain(|record| !shows_strategy(record));
    }
    let failure = runner.run_multi(records).err();
    runner.shutdown();
    failure.map(|error| error.display(false).to_string())
}

fn run_on_engine(nodes: u16, cores: u16) {
    run_on(Topology::fake(nodes, cores), files(), None);
}

fn run_on(topology: Topology, files: Vec<PathBuf>, strategy: Option<&str>) {
    let paced = if topology.is_paced() { "paced" } else { "" };
    let name = format!("{} AEUs {strategy:?} {paced}", topology.aeus().len());
    let settings = Settings {
        topology,
        huge_pages: HugePages::Never,
        memory_limit: Some(2 << 30),
        database: None,
    };
    let home = Engine::home(settings).unwrap();
    run(&name, home, files, true, strategy);
}

/// Whether a record shows settings or plans, which tell of the strategy.
fn shows_strategy(record: &Record<DefaultColumnType>) -> bool {
    match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => {
            let sql = sql.to_lowercase();
            let words = ["explain", "numa_strategy", "show all", "eris.settings"];
            words.iter().any(|word| sql.contains(word))
        }
        _ => false,
    }
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
    run_on_engine(1, 1);
}

#[test]
fn two_aeus_on_one_node() {
    run_on_engine(1, 2);
}

#[test]
fn eight_aeus_on_four_nodes() {
    run_on_engine(4, 2);
}

/// Links are as slow as those of another machine, so that chunks are copied while others are scanned.
fn paced() -> Topology {
    let machine = Arc::new(Profile::known("eris-amd").unwrap());
    Topology::fake(4, 2).paced_as(machine).unwrap()
}

#[test]
fn eight_aeus_that_pull_over_paced_links() {
    run_on(paced(), files(), Some("pull"));
}

#[test]
fn eight_aeus_that_push() {
    run_on(Topology::fake(4, 2), files(), Some("push"));
}

#[test]
fn eight_aeus_that_pull() {
    run_on(Topology::fake(4, 2), scanning_files(), Some("pull"));
}

#[test]
fn eight_aeus_that_push_beside_paced_links() {
    run_on(paced(), scanning_files(), Some("push"));
}

#[test]
fn eight_aeus_that_decide_by_block_over_paced_links() {
    run_on(paced(), scanning_files(), Some("auto"));
}

#[test]
fn a_home_in_memory() {
    let home = Arc::new(MemoryHome::new(2 << 30));
    run("in memory", home, files(), false, None);
}

/// Behind each file the database ends and is opened again. All that it says of itself is the same, rows included.
#[test]
fn two_aeus_whose_database_is_opened_again() {
    let home = KeepingHome::new(1, 2);
    let mut database = Database::open(home.home()).unwrap();
    let mut failures = Vec::new();
    for file in files() {
        failures.extend(run_file(&file, &database, true, None));
        let before = runtime().block_on(dump(&database.session()));
        drop(database);
        database = Database::open(home.home()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let after = runtime().block_on(dump(&database.session()));
        assert_same(&before, &after, &file.display().to_string());
        drop_all(&database, &runtime());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
