//! Wrong statements and wrong files: each is told exactly what is written in `wrong/*.txt`, and leaves nothing behind.
//!
//! ```text
//! SELECT 1 +                                         the case: statements of a new session, the last of which fails
//!   | [42601] line 1:11: syntax error: Expected: …   what it says, with SQLSTATE, place and hint
//! ```
//!
//! `ERIS_WRITE=1` writes down what is said now, to be read before it is committed. `{dir}` is the directory of the
//! files.

mod inputs;

use crate::common::{block_on, database};
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::StreamExt;
use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The tables of all cases.
const TABLES: &str = include_str!("../wrong/tables.sql");

/// Words of the machinery, of what may not happen, and the codes of mistakes that nobody here knows.
const FORBIDDEN: [&str; 22] = [
    "[22000]",
    "[42000]",
    "internal error",
    "Internal error",
    "bug",
    "panicked",
    "DataFusion",
    "ArrowError",
    "Arrow:",
    "Arrow error",
    "Utf8",
    "Int8",
    "Int32",
    "Int64",
    "Float64",
    "Schema error",
    "Plan error",
    "Error during planning",
    "Execution error",
    "physical",
    "Physical",
    "logical",
];

async fn run(session: &Session, sql: &str) -> Result<String, SqlError> {
    let mut shown = String::new();
    if let Outcome::Rows(mut rows) = session.execute(sql).await? {
        while let Some(batch) = rows.next().await {
            write!(shown, "{:?}", batch?.columns()).unwrap();
        }
    }
    Ok(shown)
}

/// Everything that a failed statement might have changed.
async fn state(database: &Database, directory: &Path) -> String {
    let session = database.session();
    let mut state = String::new();
    for query in [
        "SELECT table_schema, table_name, column_name, data_type, column_default, is_nullable
         FROM information_schema.columns WHERE table_schema <> 'eris' ORDER BY 1, 2, ordinal_position",
        "SELECT * FROM t ORDER BY a",
        "SELECT * FROM u",
        "SELECT * FROM v ORDER BY a",
    ] {
        state += &run(&session, query).await.unwrap();
        state.push('\n');
    }
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    write!(state, "{files:?}").unwrap();
    state
}

/// The bytes in use after at most ten seconds of waiting for `expected`: what a query began in parallel may end after
/// its last batch.
async fn used(database: &Database, expected: u64) -> u64 {
    for _ in 0..10_000 {
        if database.home().budget().used() == expected {
            break;
        }
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(1));
    }
    database.home().budget().used()
}

/// What a case says.
async fn told(database: &Database, case: &str) -> String {
    let session = database.session();
    let statements = match Session::split(case) {
        Ok(statements) => statements,
        Err(error) => return with_sqlstate(&error),
    };
    let (last, first) = statements.split_last().expect("a case has a statement");
    for statement in first {
        run(&session, statement.text()).await.unwrap();
    }
    match run(&session, last.text()).await {
        Ok(rows) => format!("SUCCESS {rows}"),
        Err(error) => with_sqlstate(&error),
    }
}

fn with_sqlstate(error: &SqlError) -> String {
    format!("[{}] {error}", error.sqlstate())
}

/// The cases of a file: statements, and what they say.
fn cases(text: &str) -> Vec<(String, String)> {
    let mut cases = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let (mut case, mut expected) = (Vec::new(), Vec::new());
        for line in block.trim_matches('\n').lines() {
            match line.strip_prefix("  |") {
                Some(line) => expected.push(line.strip_prefix(' ').unwrap_or(line)),
                None => case.push(line),
            }
        }
        cases.push((case.join("\n"), expected.join("\n")));
    }
    cases
}

fn check(name: &str, directory: &TempDir, at_least: usize) {
    let path = format!("tests/wrong/{name}.txt");
    let cases = cases(&std::fs::read_to_string(&path).unwrap());
    assert!(cases.len() >= at_least, "{} cases", cases.len());
    let shown = directory.path().to_str().unwrap();
    let database = database(1, 2);
    let (mut written, mut wrong) = (String::new(), String::new());
    block_on(async {
        let session = database.session();
        for statement in Session::split(TABLES).unwrap() {
            run(&session, statement.text()).await.unwrap();
        }
        drop(session);
        let before = state(&database, directory.path()).await;
        // Nothing of these queries runs after this.
        std::thread::sleep(Duration::from_millis(200));
        let memory = database.home().budget().used();
        for (case, expected) in cases {
            let told = told(&database, &case.replace("{dir}", shown)).await;
            let told = told.replace(shown, "{dir}").replace('\t', "  ");
            let forbidden = FORBIDDEN.iter().find(|word| told.contains(**word));
            if told != expected || forbidden.is_some() {
                writeln!(
                    wrong,
                    "{case}\n{told}\n{forbidden:?}\nbut expected\n{expected}\n"
                )
                .unwrap();
            }
            writeln!(written, "{case}").unwrap();
            for line in told.lines() {
                writeln!(written, "{}", format!("  | {line}").trim_end()).unwrap();
            }
            written.push('\n');
            assert_eq!(state(&database, directory.path()).await, before, "{case}");
            assert_eq!(used(&database, memory).await, memory, "{case}");
            assert_eq!(database.spill().files(), 0, "{case}");
        }
    });
    if std::env::var_os("ERIS_WRITE").is_some() {
        std::fs::write(path, written).unwrap();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn wrong_statements_say_what_is_wrong_and_change_nothing() {
    check("statements", &TempDir::new().unwrap(), 90);
}

#[test]
fn wrong_files_and_options_say_what_is_wrong_and_change_nothing() {
    // Names of the same length everywhere, for places in statements are told by column.
    let directory = TempDir::new_in("/tmp").unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).unwrap();
    for (name, text) in [
        ("empty.csv", ""),
        ("empty.parquet", ""),
        ("empty.json", ""),
        ("empty.arrow", ""),
        ("none.parquet", "this is no Parquet"),
        ("none.arrow", "this is no Arrow"),
        ("none.csv.gz", "this is no gzip"),
        ("none.csv.zst", "this is no zstd"),
        ("quote.csv", "a,b\n1,x\n2,\"y\n"),
        ("header.csv", "a,x\n"),
        ("wide.csv", "1,2\n1,2,3\n"),
        ("comma.json", "[{\"a\": 1},\n {\"a\": 2},\n]"),
        ("commas.json", "[{\"a\": 1},,{\"a\": 2}]"),
        ("member.jsonl", "{\"a\": 1,}\n"),
        ("cut.json", "[{\"a\": 1}, {\"a\":"),
        ("fraction.jsonl", "{\"a\": 1.0}\n{\"a\": 1.5}\n"),
        ("true.jsonl", "{\"a\": 1}\n{\"a\": true}\n"),
        ("large.jsonl", "{\"a\": 3e9}\n"),
    ] {
        write(name, text.as_bytes());
    }
    write("bytes.csv", b"a\nx\n\xFF\n");
    write("bytes.jsonl", b"{\"a\": \"\xFF\"}\n");
    let long = [&b"a\n"[..], &vec![b'x'; (16 << 20) + 9]].concat();
    write("long.csv", &long);
    let numbers: String = (0..50_000).map(|row| format!("{row}\n")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(numbers.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    write("cut.csv.gz", &gzip[..gzip.len() / 2]);
    let zstd = zstd::encode_all(numbers.as_bytes(), 1).unwrap();
    write("cut.csv.zst", &zstd[..zstd.len() / 2]);
    std::fs::create_dir(path("directory.csv")).unwrap();
    std::os::unix::fs::symlink("/dev/full", path("full.csv")).unwrap();
    block_on(async {
        let database = database(1, 2);
        let session = database.session();
        for format in ["parquet", "arrow", "arrows"] {
            let good = path(&format!("good.{format}"));
            let rows = "SELECT i AS a, 'x' || i AS b FROM generate_series(1, 20000) AS g(i)";
            let copy = format!("COPY ({rows}) TO '{}'", good.display());
            run(&session, &copy).await.unwrap();
            let bytes = std::fs::read(&good).unwrap();
            write(&format!("cut.{format}"), &bytes[..bytes.len() / 2]);
        }
    });
    check("files", &directory, 60);
}

/// Calls `run` with each seed of a fuzz target, and with some changes of it by chance; `ERIS_SEEDS` says how many.
fn changed_seeds(target: &str, run: impl Fn(&[u8])) {
    let changes = std::env::var("ERIS_SEEDS").map_or(40, |seeds| seeds.parse().unwrap());
    let mut seeds: Vec<_> = std::fs::read_dir(format!("fuzz/seeds/{target}"))
        .unwrap()
        .map(|seed| std::fs::read(seed.unwrap().path()).unwrap())
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 4);
    let mut state = 1u64;
    let mut below = |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    for (number, seed) in seeds.iter().enumerate() {
        run(seed);
        for _ in 0..changes {
            let mut input = seed.clone();
            for _ in 0..=below(3) {
                let other = &seeds[(number + below(seeds.len())) % seeds.len()];
                let (at, from) = (below(input.len() + 1), below(other.len()));
                let end = (at + below(8)).min(input.len());
                match below(3) {
                    // A part goes, a part of another seed comes, a byte is another.
                    0 => drop(input.drain(at..end)),
                    1 => drop(input.splice(at..at, other[from..].iter().copied().take(16))),
                    _ => input[at..]
                        .iter_mut()
                        .take(1)
                        .for_each(|byte| *byte = below(256) as u8),
                }
            }
            run(&input);
        }
    }
}

#[test]
fn any_bytes_as_sql_get_an_answer() {
    let inputs = inputs::Inputs::new();
    changed_seeds("sql", |input| inputs.sql(input));
}

#[test]
fn any_bytes_as_files_get_an_answer() {
    let inputs = inputs::Inputs::new();
    changed_seeds("csv", |input| inputs.csv(input));
    changed_seeds("json", |input| inputs.json(input));
    changed_seeds("parquet", |input| inputs.parquet(input));
    changed_seeds("arrow", |input| inputs.arrow(input));
}
