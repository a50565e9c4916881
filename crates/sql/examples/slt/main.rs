//! Runs sqllogictest files of other databases against Eris: `make slt FILES="…"`.
//!
//! ```text
//! file ── script: blocks, loops unrolled ── sqllogictest's parser ── records
//!                                                                       │ each, within the time limit
//!                              session of a fresh database ◄────────────┘
//!                                     │ rows
//!             answer: as the file's dialect writes them, sorted, hashed ── verdict: passed, failed, rejected
//! ```
//!
//! Files of SQLite, DuckDB, RisingLight and DataFusion mean the same by most lines; where they differ, `script` and
//! `answer` tell. What Eris says it does not support is counted apart from failures, and so is what fails because of
//! it.

#![forbid(unsafe_code)]

mod answer;
mod client;
mod harmless;
mod places;
mod report;
mod run;
mod script;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Runs sqllogictest files. Each has a database of its own; ERIS_TOPOLOGY is heeded.
///
/// Exit status: 0 nothing failed (rejected does not count), 1 something did, 2 the command line is wrong.
#[derive(Parser)]
#[command(name = "slt")]
struct Options {
    /// Files, or directories of *.slt, *.test and *.test_slow files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show every failure: place, statement, what was expected, what came.
    #[arg(short, long)]
    verbose: bool,
    /// One JSON object per file, with all failures.
    #[arg(long)]
    json: bool,
    /// Seconds that a record may take.
    #[arg(long, default_value_t = 20.0)]
    timeout: f64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut files = Vec::new();
    for path in &options.files {
        if let Err(error) = collect(path, &mut files) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    let limit = Duration::from_secs_f64(options.timeout.max(0.001));
    let mut summary = report::Summary::new(options.verbose, options.json);
    for file in files {
        summary.add(run::run_file(&file, limit));
    }
    summary.finish()
}

/// The files meant by a path: itself, or what lies below it, by name.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        // Unreadable files are told now rather than after an hour.
        std::fs::File::open(path)?;
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        let is_test = entry.extension().is_some_and(|ending| {
            ["slt", "test", "test_slow"]
                .iter()
                .any(|known| ending == *known)
        });
        if entry.is_dir() || is_test {
            collect(&entry, files)?;
        }
    }
    Ok(())
}
