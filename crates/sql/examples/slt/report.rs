//! What came of the files: a line for each, the failures, the sums.

use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;

pub struct Failure {
    line: usize,
    sql: String,
    expected: String,
    got: String,
}

pub struct FileReport {
    name: String,
    pub passed: usize,
    pub rejected: usize,
    pub seconds: f64,
    /// Lines that are not understood.
    pub directives: Vec<String>,
    failures: Vec<Failure>,
    /// What was said instead of an answer, how often it was wanted, and where first.
    lacking: BTreeMap<String, (usize, String)>,
}

impl FileReport {
    pub fn new(name: String) -> Self {
        FileReport {
            name,
            passed: 0,
            rejected: 0,
            seconds: 0.0,
            directives: Vec::new(),
            failures: Vec::new(),
            lacking: BTreeMap::new(),
        }
    }

    pub fn fail(&mut self, line: usize, sql: &str, expected: &str, got: String) {
        self.failures.push(Failure {
            line,
            sql: sql.to_owned(),
            expected: expected.to_owned(),
            got,
        });
    }

    pub fn lacks(&mut self, line: usize, sql: &str, message: &str) {
        let message = message.lines().next().unwrap_or_default();
        let first = || (0, format!("{line}: {sql}"));
        let (count, _) = self.lacking.entry(message.to_owned()).or_insert_with(first);
        *count += 1;
    }

    fn json(&self) -> serde_json::Value {
        let failures = self.failures.iter().map(|failure| {
            json!({ "line": failure.line, "sql": failure.sql, "expected": failure.expected, "got": failure.got })
        });
        json!({
            "file": self.name,
            "passed": self.passed,
            "failed": self.failures.len(),
            "rejected": self.rejected,
            "seconds": self.seconds,
            "directives": self.directives,
            "lacking": self.lacking,
            "failures": failures.collect::<Vec<_>>(),
        })
    }
}

/// Prints as files end.
pub struct Summary {
    verbose: bool,
    json: bool,
    files: usize,
    passed: usize,
    failed: usize,
    rejected: usize,
    seconds: f64,
}

impl Summary {
    pub fn new(verbose: bool, json: bool) -> Self {
        if !json {
            println!(
                "{:>8} {:>8} {:>12} {:>9}  file",
                "passed", "failed", "rejected", "seconds"
            );
        }
        Summary {
            verbose,
            json,
            files: 0,
            passed: 0,
            failed: 0,
            rejected: 0,
            seconds: 0.0,
        }
    }

    pub fn add(&mut self, file: FileReport) {
        self.files += 1;
        self.passed += file.passed;
        self.failed += file.failures.len();
        self.rejected += file.rejected;
        self.seconds += file.seconds;
        if self.json {
            println!("{}", file.json());
            return;
        }
        line(
            file.passed,
            file.failures.len(),
            file.rejected,
            file.seconds,
            &file.name,
        );
        if self.verbose {
            for directive in &file.directives {
                println!("    not understood: {}:{directive}", file.name);
            }
            for failure in &file.failures {
                println!("\n{}:{}", file.name, failure.line);
                println!("{}", indented(&failure.sql));
                println!("  expected:\n{}", indented(&failure.expected));
                println!("  got:\n{}\n", indented(&failure.got));
            }
        }
    }

    pub fn finish(self) -> ExitCode {
        if !self.json {
            let files = format!("{} files", self.files);
            line(
                self.passed,
                self.failed,
                self.rejected,
                self.seconds,
                &files,
            );
        }
        ExitCode::from(u8::from(self.failed > 0))
    }
}

fn line(passed: usize, failed: usize, rejected: usize, seconds: f64, name: &str) {
    println!("{passed:>8} {failed:>8} {rejected:>12} {seconds:>9.2}  {name}");
}

/// Lines of a longer text that are shown.
const SHOWN: usize = 20;

fn indented(text: &str) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .take(SHOWN)
        .map(|line| format!("    {line}"))
        .collect();
    if let Some(more @ 1..) = text.lines().count().checked_sub(SHOWN) {
        lines.push(format!("    … {more} more lines"));
    }
    lines.join("\n")
}
