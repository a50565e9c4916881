//! Indexes of others, each in a process of its own: the program that `make bench-index` builds of `bench/rivals`.
//!
//! ```text
//! rivals list THREADS                                   one name per line
//! rivals NAME dense|random KEYS THREADS [--huge-pages]  then requests by line, each answered by a line:
//!
//!   insert FIRST END            0           keys of these numbers
//!   lookup SEED COUNT           found       random keys that were there with their values
//!   ranges SEED COUNT LENGTH    entries     or `none`: it has no order
//!   bytes                       bytes       or `none`: it does not tell
//! ```
//! Whatever begins with `error ` says why there is no answer. Requests take milliseconds, and passing one on takes
//! microseconds, so that they can be timed here.

use super::error::IndexBenchError;
use super::keys::KeySequence;
use super::structure::Structure;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The rivals that the program has for so many threads, each started with no keys in it.
///
/// # Errors
/// The program cannot be run, or does not answer.
pub fn rivals(
    program: &Path,
    keys: KeySequence,
    threads: usize,
    huge_pages: bool,
) -> Result<Vec<Box<dyn Structure>>, IndexBenchError> {
    let failed = |reason: String| failure(program, reason);
    let list = Command::new(program)
        .args(["list", &threads.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !list.status.success() {
        return Err(failed(list.status.to_string()));
    }
    let names = String::from_utf8_lossy(&list.stdout);
    let started = names.lines().map(|name| {
        let rival = Rival::start(program, name, keys, threads, huge_pages)?;
        Ok(Box::new(rival) as Box<dyn Structure>)
    });
    started.collect()
}

fn failure(program: &Path, reason: String) -> IndexBenchError {
    IndexBenchError::Rival {
        program: program.display().to_string(),
        reason,
    }
}

/// A structure in another process, which ends when this is dropped.
struct Rival {
    name: String,
    program: PathBuf,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Rival {
    fn start(
        program: &Path,
        name: &str,
        keys: KeySequence,
        threads: usize,
        huge_pages: bool,
    ) -> Result<Self, IndexBenchError> {
        let mut process = Command::new(program)
            .args([name, keys.order()])
            .args([keys.count.to_string(), threads.to_string()])
            .args(huge_pages.then_some("--huge-pages"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failure(program, error.to_string()))?;
        Ok(Rival {
            name: name.to_owned(),
            program: program.to_owned(),
            requests: process.stdin.take().expect("piped"),
            answers: BufReader::new(process.stdout.take().expect("piped")),
            process,
        })
    }

    fn ask(&mut self, request: String) -> Result<Option<u64>, IndexBenchError> {
        let mut answer = String::new();
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        let got = sent.and_then(|()| self.answers.read_line(&mut answer));
        let failed = |reason: String| failure(&self.program, format!("{}: {reason}", self.name));
        got.map_err(|error| failed(error.to_string()))?;
        match answer.trim_end() {
            "none" => Ok(None),
            "" => Err(failed(format!("no answer to {request}"))),
            number => {
                let number = number.parse();
                number.map(Some).map_err(|_| {
                    let text = answer.trim_end();
                    failed(text.strip_prefix("error ").unwrap_or(text).to_owned())
                })
            }
        }
    }

    /// As [`Rival::ask`], of what always has an answer.
    fn count(&mut self, request: String) -> Result<u64, IndexBenchError> {
        let answer = self.ask(request)?;
        answer.ok_or_else(|| failure(&self.program, format!("{}: no number", self.name)))
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // One that has ended has nothing left to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Structure for Rival {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch(&self) -> usize {
        1
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        self.count(format!("insert {} {}", numbers.start, numbers.end))?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        self.count(format!("lookup {seed} {count}"))
    }

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        self.ask("bytes".to_owned())
    }

    fn ranges(
        &mut self,
        seed: u64,
        count: u64,
        length: usize,
    ) -> Result<Option<u64>, IndexBenchError> {
        self.ask(format!("ranges {seed} {count} {length}"))
    }
}
