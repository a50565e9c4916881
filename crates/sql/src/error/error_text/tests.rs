//! The patterns against what DataFusion and the parser say.

use super::*;
use crate::{Database, Outcome, Session, SqlError};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use eris_engine::{Engine, Settings};
use eris_numa::{HugePages, Topology};
use eris_syntax::ErisDialect;
use futures::StreamExt;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The patterns that texts of errors were like, whoever met them: statements are planned on several threads.
static MET: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The text of an error was like this pattern.
pub(super) fn note(pattern: &'static str) {
    MET.lock().unwrap().insert(pattern);
}

#[test]
fn texts_are_known_by_their_fixed_parts() {
    assert_eq!(gaps("a {} b {}", "a x b y z"), Some(vec!["x", "y z"]));
    assert_eq!(gaps("{}: {} end", "q: r end"), Some(vec!["q", "r"]));
    assert_eq!(gaps("a {} b", "a x c"), None);
    assert_eq!(gaps("a", "a b"), None);
    // Not by `tell`, which notes that the pattern was met.
    let (_, told) = find("Cannot cast string 'x' to value of DATE type").unwrap();
    assert_eq!(told.kind.to_string(), "cannot cast 'x' to DATE");
    assert_eq!(told.hint.as_deref(), Some(TRY));
    assert_eq!(told.kind.sqlstate(), InvalidDatetimeFormat.sqlstate());
    assert!(find("table \"t\" does not exist").is_none());
}

#[test]
fn more_than_arrow_counts_is_told_in_words() {
    for error in [
        ArrowError::OffsetOverflowError(1 << 31),
        ArrowError::ArithmeticOverflow("byte array offset overflow".to_owned()),
    ] {
        let error = SqlError::from(error);
        assert_eq!(error.sqlstate().code(), "54000");
        assert!(error.to_string().contains("more than 2 GiB"), "{error}");
    }
}

async fn run(session: &Session, sql: &str) -> Result<(), SqlError> {
    if let Outcome::Rows(mut rows) = session.execute(sql).await? {
        while let Some(batch) = rows.next().await {
            batch?;
        }
    }
    Ok(())
}

/// What `tests/wrong/statements.txt` says is checked where it is told from outside. Here it is asked what it came from.
#[test]
fn every_pattern_is_met_by_a_wrong_statement() {
    let settings = Settings {
        topology: Topology::fake(1, 2),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: None,
    };
    let database = Database::open(Engine::home(settings).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(async {
        let tables = std::fs::read_to_string("tests/wrong/tables.sql").unwrap();
        for statement in Session::split(&tables).unwrap() {
            run(&database.session(), statement.text()).await.unwrap();
        }
        let cases = std::fs::read_to_string("tests/wrong/statements.txt").unwrap();
        for case in cases.split("\n\n") {
            let lines = case.lines().filter(|line| !line.starts_with("  |"));
            let case = lines.collect::<Vec<_>>().join("\n");
            let session = database.session();
            for statement in Session::split(&case).unwrap_or_default() {
                let _ = run(&session, statement.text()).await;
            }
        }
    });
    let met = MET.lock().unwrap();
    let mistakes = MISTAKES.iter().map(|(_, (text, ..))| *text);
    let all = mistakes.chain(NOT_SUPPORTED.iter().map(|(text, ..)| *text));
    let unmet: Vec<&str> = all.filter(|text| !met.contains(text)).collect();
    assert!(unmet.is_empty(), "no statement meets {unmet:#?}");
}

#[test]
fn the_prefix_of_an_error_is_left_out() {
    let error = DataFusionError::Execution("why".to_owned());
    assert_eq!(unprefixed(&error.to_string()), "why");
}

#[test]
fn the_parser_tells_places_in_words() {
    let told = |sql: &str| match Parser::parse_sql(&ErisDialect, sql) {
        Err(ParserError::ParserError(message)) => of_parser(&message),
        other => panic!("{other:?}"),
    };
    let (message, place) = told("SELECT (a\n FROM t");
    assert!(message.ends_with("found: FROM"), "{message}");
    assert_eq!(place.map(|place| place.line), Some(2));
    let (message, _) = told("SELECT 1 +");
    assert!(message.ends_with("found: the end"), "{message}");
}
