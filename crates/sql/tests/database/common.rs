//! What these tests have in common: databases, statements and their results, numbers that look random.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use eris_engine::{DatabaseSettings, Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_sql::{Database, Outcome, Session, SqlError};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Nodes and cores: one owner, two of one node, eight of four.
pub const TOPOLOGIES: [(u16, u16); 3] = [(1, 1), (1, 2), (4, 2)];

/// A database with a gigabyte of memory.
pub fn database(nodes: u16, cores: u16) -> Database {
    database_with(nodes, cores, 1 << 30)
}

/// A database with so many bytes of memory.
pub fn database_with(nodes: u16, cores: u16, memory: u64) -> Database {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(memory),
        database: None,
    };
    Database::open(Engine::home(settings).unwrap()).unwrap()
}

/// Opens the database of a directory, on so many nodes with so many cores, or makes one.
pub fn open(directory: &Path, (nodes, cores): (u16, u16)) -> Database {
    let database = try_open((nodes, cores), kept_in(directory));
    database.unwrap_or_else(|error| panic!("{error}"))
}

/// A directory whose commits are durable when its database says.
pub fn kept_in(directory: &Path) -> DatabaseSettings {
    DatabaseSettings {
        directory: directory.to_owned(),
        synchronous: None,
        read_only: false,
    }
}

/// The same of any such settings.
///
/// # Errors
/// It cannot be opened.
pub fn try_open(
    (nodes, cores): (u16, u16),
    database: DatabaseSettings,
) -> Result<Database, SqlError> {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: Some(database),
    };
    Database::open(Engine::home(settings)?)
}

/// Copies a directory as it is now.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(from, to).unwrap()),
        }
    }
}

/// Drives a test on this thread alone.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(future)
}

/// Drives a test whose tasks run on two threads.
pub fn block_on_threads<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build();
    runtime.unwrap().block_on(future)
}

/// The rows of a statement; none if it is no query.
pub async fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, SqlError> {
    match session.execute(sql).await? {
        Outcome::Rows(rows) => rows.collect().await,
        Outcome::Count { .. } | Outcome::Done { .. } => Ok(Vec::new()),
    }
}

/// How many rows a statement has written, or read.
pub async fn count(session: &Session, sql: &str) -> Result<u64, SqlError> {
    match session.execute(sql).await? {
        Outcome::Rows(rows) => {
            let batches = rows.collect().await?;
            Ok(batches.iter().map(|batch| batch.num_rows() as u64).sum())
        }
        Outcome::Count { rows, .. } => Ok(rows),
        Outcome::Done { .. } => Ok(0),
    }
}

/// The same of a statement that has to succeed.
pub async fn must(session: &Session, sql: &str) -> u64 {
    let done = count(session, sql).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The values of a statement's rows, as they are shown.
pub async fn values(session: &Session, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
    values_of(session.execute(sql).await?).await
}

/// The values of all rows, as they are shown; NULL is empty.
pub async fn values_of(outcome: Outcome) -> Result<Vec<Vec<String>>, SqlError> {
    let Outcome::Rows(rows) = outcome else {
        return Ok(Vec::new());
    };
    let batches = rows.collect().await?;
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(move |row| {
            let columns = batch.columns().iter();
            let values = columns.map(|column| array_value_to_string(column, row).unwrap());
            values.collect()
        })
    });
    Ok(rows.collect())
}

/// Numbers that look random and repeat with their seed.
pub struct Random(u64);

impl Random {
    /// Seeded by `ERIS_SEED`, else by the time; the seed is told if the test fails.
    pub fn new() -> Self {
        Self::seeded(seed())
    }

    /// Seeds that are near to each other lead to numbers that are not.
    pub fn seeded(seed: u64) -> Self {
        Random((seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    /// A number from 0 up to before `end`.
    pub fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, end: N) -> N {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let end = end.try_into().ok().expect("the end is positive");
        let number = (self.0 >> 11) % end;
        N::try_from(number).ok().expect("it is below the end")
    }
}

/// `ERIS_SEED`, else the time; told if the test fails.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let given = std::env::var("ERIS_SEED").ok();
    let seed = given.map_or(now.as_nanos() as u64, |seed| seed.parse().unwrap());
    println!("ERIS_SEED={seed}");
    seed
}
