//! One file: its records in order, each with a verdict.

use crate::answer::{Expected, difference};
use crate::client::{Client, Ran, is_rejection, is_unsupported};
use crate::harmless::is_harmless;
use crate::places::Places;
use crate::report::FileReport;
use crate::script::{self, Dialect, Script, Step};
use eris_sql::SqlError;
use regex::Regex;
use sqllogictest::{
    Condition, Connection, Control, DefaultColumnType, ExpectedError, QueryExpect, Record,
    SortMode, StatementExpect,
};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Runs all of a file in a fresh database.
pub fn run_file(path: &Path, limit: Duration) -> FileReport {
    let began = Instant::now();
    let mut report = FileReport::new(path.display().to_string());
    let places = Places::of(path);
    let script = places.and_then(|places| {
        let text = std::fs::read(path)?;
        let text = places.fill(&String::from_utf8_lossy(&text));
        Ok((script::parse(&text), places))
    });
    match (script, Client::open()) {
        (Ok((script, _places)), Ok(client)) => {
            let mut run = Run {
                client,
                limit,
                dialect: script.dialect,
                sort: None,
                doubtful: HashSet::new(),
                all_doubtful: false,
                labelled: HashMap::new(),
                loaded: false,
                report: &mut report,
            };
            run.script(&script);
        }
        (Err(error), _) => report.fail(0, "", "", error.to_string()),
        (_, Err(error)) => report.fail(0, "", "", error),
    }
    report.seconds = began.elapsed().as_secs_f64();
    report
}

struct Run<'a> {
    client: Client,
    limit: Duration,
    dialect: Dialect,
    sort: Option<SortMode>,
    /// Names of what could not be made or changed because they were rejected.
    doubtful: HashSet<String>,
    /// Whether something is missing on which everything may depend.
    all_doubtful: bool,
    /// The answers of the first query of each label.
    labelled: HashMap<String, Vec<String>>,
    /// Whether the file has loaded a database.
    loaded: bool,
    report: &'a mut FileReport,
}

/// What a statement did, for the verdict.
struct Verdict {
    expected: String,
    got: Option<String>,
    /// Whether the failure, if it is one, is that an error came in the place of an answer.
    rejected: bool,
}

impl Run<'_> {
    fn script(&mut self, script: &Script) {
        for placed in &script.steps {
            match &placed.step {
                Step::Unknown(line) => {
                    self.report.rejected += 1;
                    self.report
                        .directives
                        .push(format!("{}: {line}", placed.line));
                    let loads = ["load", "restart", "reconnect", "include"];
                    self.all_doubtful |= loads.iter().any(|word| line.starts_with(word));
                }
                // The database is new, as the one that is loaded would be.
                Step::Load if !std::mem::replace(&mut self.loaded, true) => {}
                Step::Load => self.all_doubtful = true,
                Step::Maybe(record) => {
                    if let Record::Statement {
                        conditions,
                        connection,
                        sql,
                        ..
                    } = &**record
                        && self.applies(conditions)
                        && !self.maybe(placed.line, connection, sql)
                    {
                        return;
                    }
                }
                Step::Require(what) => {
                    self.report
                        .directives
                        .push(format!("{}: require {what}", placed.line));
                    self.all_doubtful = true;
                }
                Step::Record(record) => {
                    if !self.record(placed.line, record) {
                        return;
                    }
                }
            }
        }
    }

    /// False if the file ends here.
    fn record(&mut self, line: usize, record: &Record<DefaultColumnType>) -> bool {
        match record {
            Record::Halt { .. } => return false,
            Record::Control(Control::SortMode(mode)) => self.sort = Some(*mode),
            Record::Include { .. } | Record::System { .. } | Record::Let { .. } => {
                self.report.rejected += 1;
                self.all_doubtful = true;
            }
            Record::Statement {
                conditions,
                connection,
                sql,
                expected,
                ..
            } if self.applies(conditions) => {
                return self.statement(line, connection, sql, expected);
            }
            Record::Query {
                conditions,
                connection,
                sql,
                expected,
                ..
            } if self.applies(conditions) => return self.query(line, connection, sql, expected),
            _ => {}
        }
        true
    }

    /// Whether a record is meant for us: SQLite's suites let PostgreSQL stand for what is neither of the named.
    fn applies(&self, conditions: &[Condition]) -> bool {
        let ours: &[&str] = match self.dialect {
            Dialect::Sqlite => &["postgresql"],
            Dialect::DuckDb => &["duckdb"],
            Dialect::Other => &["eris", "risinglight", "datafusion", "Datafusion"],
        };
        conditions.iter().all(|condition| match condition {
            Condition::OnlyIf { label } => ours.contains(&label.as_str()),
            Condition::SkipIf { label } => !ours.contains(&label.as_str()),
        })
    }

    fn execute(&mut self, connection: &Connection, sql: &str) -> Ran {
        let name = match connection {
            Connection::Default => "",
            Connection::Named(name) => name,
        };
        self.client.run(name, sql, self.limit)
    }

    /// Any answer will do, but a bug.
    fn maybe(&mut self, line: usize, connection: &Connection, sql: &str) -> bool {
        let ran = self.execute(connection, sql);
        let verdict = match &ran {
            Ran::Failed(error) if crate::client::is_internal(error) => {
                verdict("success or an error".into(), Some(error.to_string()))
            }
            Ran::TimedOut => timed_out("success or an error"),
            _ => verdict(String::new(), None),
        };
        self.conclude(line, sql, verdict, &ran)
    }

    fn statement(
        &mut self,
        line: usize,
        connection: &Connection,
        sql: &str,
        expected: &StatementExpect,
    ) -> bool {
        if self.dialect == Dialect::DuckDb && is_harmless(sql) {
            self.report.passed += 1;
            return true;
        }
        let ran = self.execute(connection, sql);
        let verdict = match (expected, &ran) {
            (StatementExpect::Error(wanted), ran) => self.wants_error(wanted, ran),
            (_, Ran::Failed(error)) => {
                self.doubt(sql, error);
                self.failed("success", error)
            }
            (StatementExpect::Count(wanted), Ran::Count(rows)) if wanted != rows => {
                verdict(format!("{wanted} rows"), Some(format!("{rows} rows")))
            }
            (_, Ran::TimedOut) => timed_out("success"),
            _ => verdict(String::new(), None),
        };
        self.conclude(line, sql, verdict, &ran)
    }

    fn query(
        &mut self,
        line: usize,
        connection: &Connection,
        sql: &str,
        expected: &QueryExpect<DefaultColumnType>,
    ) -> bool {
        let ran = self.execute(connection, sql);
        let verdict = match expected {
            QueryExpect::Error(wanted) => self.wants_error(wanted, &ran),
            // Plans are its own.
            QueryExpect::Results { results, .. }
                if self.dialect == Dialect::DuckDb && is_about_plans(sql, results) =>
            {
                Verdict {
                    expected: results.join("\n"),
                    got: Some("the plan of another database".into()),
                    rejected: true,
                }
            }
            QueryExpect::Results {
                types,
                sort_mode,
                results,
                label,
                ..
            } => {
                let from_file;
                let results = match Self::file_of(results) {
                    Some(lines) => {
                        from_file = lines;
                        &from_file
                    }
                    None => results,
                };
                let wanted = || results.join("\n");
                let counted;
                let (rows, columns) = match &ran {
                    Ran::Rows { rows, columns } => (rows, *columns),
                    Ran::Count(rows) => {
                        counted = vec![vec![Some(rows.to_string())]];
                        (&counted, 1)
                    }
                    Ran::Failed(error) => {
                        self.doubt(sql, error);
                        let verdict = self.failed(&wanted(), error);
                        return self.conclude(line, sql, verdict, &ran);
                    }
                    Ran::TimedOut => return self.conclude(line, sql, timed_out(&wanted()), &ran),
                };
                let lower = sql.to_ascii_lowercase();
                // Queries of one label have the same answer, which may not be told.
                let labelled = match label {
                    Some(label) if self.dialect == Dialect::DuckDb => {
                        let answer = self.labelled.entry(label.clone()).or_insert_with(|| {
                            rows.iter().map(|row| unlabelled(row)).collect::<Vec<_>>()
                        });
                        Some(answer.clone())
                    }
                    _ => None,
                };
                let lines = match &labelled {
                    Some(answer) if results.is_empty() => answer,
                    _ => results,
                };
                let expected = Expected {
                    dialect: self.dialect,
                    types,
                    sort: sort_mode.or(self.sort),
                    ordered: lower.contains("order by"),
                    limited: lower.contains("limit") || lower.contains("offset"),
                    lines,
                };
                verdict(lines.join("\n"), difference(rows, columns, &expected))
            }
        };
        self.conclude(line, sql, verdict, &ran)
    }

    /// The lines of a file that has the expected rows, a header before them, and `|` between values.
    fn file_of(results: &[String]) -> Option<Vec<String>> {
        let [line] = results else { return None };
        let path = line.strip_prefix("<FILE>:")?;
        let text = std::fs::read_to_string(path).ok()?;
        let lines = text.lines().skip(1).map(|line| {
            let values = line.split('|').map(|value| match value {
                "" => "NULL",
                value => value,
            });
            values.collect::<Vec<_>>().join("\t")
        });
        Some(lines.collect())
    }

    /// An error was expected. Its words are the other database's, so any will do, unless the file is ours.
    fn wants_error(&self, wanted: &ExpectedError, ran: &Ran) -> Verdict {
        let words = match wanted {
            ExpectedError::Inline(pattern) => pattern.as_str().to_owned(),
            ExpectedError::Multiline(text) => text.clone(),
            _ => "an error".to_owned(),
        };
        match ran {
            Ran::Failed(error) if crate::client::is_internal(error) => {
                verdict(words, Some(error.to_string()))
            }
            Ran::Failed(error) => Verdict {
                expected: words,
                got: is_unsupported(error).then(|| error.to_string()),
                rejected: true,
            },
            Ran::TimedOut => timed_out(&words),
            Ran::Rows { rows, .. } => verdict(words, Some(format!("success, {} rows", rows.len()))),
            Ran::Count(_) => verdict(words, Some("success".to_owned())),
        }
    }

    fn failed(&self, expected: &str, error: &SqlError) -> Verdict {
        Verdict {
            expected: expected.to_owned(),
            got: Some(error.to_string()),
            rejected: is_rejection(error),
        }
    }

    /// Counts a record. False if the database is gone.
    fn conclude(&mut self, line: usize, sql: &str, verdict: Verdict, ran: &Ran) -> bool {
        let Some(got) = verdict.got else {
            self.report.passed += 1;
            return true;
        };
        if verdict.rejected || self.is_doubtful(sql) {
            self.report.rejected += 1;
            self.report.lacks(line, sql, &got);
        } else {
            self.report.fail(line, sql, &verdict.expected, got);
        }
        if matches!(ran, Ran::TimedOut) && !self.client.answers() {
            self.report.fail(
                line,
                sql,
                "the database answers afterwards",
                "it hangs; the rest of the file is left out".into(),
            );
            return false;
        }
        true
    }

    /// Remembers what a rejected statement would have made or changed.
    fn doubt(&mut self, sql: &str, error: &SqlError) {
        if !is_rejection(error) && !self.is_doubtful(sql) {
            return;
        }
        let lower = sql.to_lowercase();
        let asks = ["select", "values", "from", "explain", "("];
        let is_write = lower.trim_start().starts_with("with") && WRITES.is_match(&lower);
        if asks.iter().any(|word| lower.trim_start().starts_with(word))
            || lower.trim_start().starts_with("with") && !is_write
        {
            return;
        }
        let found = OBJECTS
            .captures_iter(&lower)
            .chain(ON_TABLES.captures_iter(&lower));
        let names = found.map(|found| {
            found[1]
                .rsplit('.')
                .next()
                .unwrap_or_default()
                .replace('"', "")
        });
        self.doubtful.extend(names.filter(|name| !name.is_empty()));
        let first = lower.split_whitespace().next().unwrap_or_default();
        self.all_doubtful |= [
            "rollback", "begin", "start", "pragma", "set", "attach", "use", "load", "install",
            "copy",
        ]
        .contains(&first);
    }

    fn is_doubtful(&self, sql: &str) -> bool {
        let lower = sql.to_lowercase();
        self.all_doubtful
            || lower.trim_start().starts_with("pragma")
            || WORD
                .find_iter(&lower)
                .any(|word| self.doubtful.contains(word.as_str()))
    }
}

/// What a statement that makes or changes something names.
static OBJECTS: LazyLock<Regex> = LazyLock::new(|| {
    let object = r#"\b(?:table|view|macro|function|type|sequence|schema|index|into|update|delete\s+from|copy)\s+"#;
    let clause = r#"(?:if\s+(?:not\s+)?exists\s+)?([\w."]+)"#;
    Regex::new(&format!("{object}{clause}")).expect("a pattern")
});

/// The table that an index or a trigger is of.
static ON_TABLES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bon\s+([\w."]+)"#).expect("a pattern"));

/// What a WITH may begin, but a query.
static WRITES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:insert|merge)\s+into\b|\bupdate\s|\bdelete\s+from\b").expect("a pattern")
});

static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w+").expect("a pattern"));

fn verdict(expected: String, got: Option<String>) -> Verdict {
    Verdict {
        expected,
        got,
        rejected: false,
    }
}

/// Whether a query shows how another database would run it.
fn is_about_plans(sql: &str, results: &[String]) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    first.eq_ignore_ascii_case("explain") && results.iter().any(|line| line.contains("REGEX>:"))
}

/// A row of an answer as a line that is expected.
fn unlabelled(row: &[Option<String>]) -> String {
    let values = row.iter().map(|value| match value.as_deref() {
        None => "NULL",
        Some("") => "(empty)",
        Some(value) => value,
    });
    values.collect::<Vec<_>>().join("\t")
}

fn timed_out(expected: &str) -> Verdict {
    verdict(
        expected.to_owned(),
        Some("no answer within the time limit".to_owned()),
    )
}
