//! `eris check`: what is wrong with a database on a disk, for people or as JSON.

use crate::args::CheckCommand;
use crate::numbers::{bytes, counted};
use eris_engine::{Counted, DatabaseCheck, DatabaseFinding, EngineError, check_database};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the command does not say that a database is whole.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is none, or somebody has it open.
    #[error("cannot check {}: {source}", directory.display())]
    Open {
        directory: PathBuf,
        source: EngineError,
    },
    #[error("{} is damaged: {}", directory.display(), counted(*findings, "finding"))]
    Damaged { directory: PathBuf, findings: u64 },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl CheckError {
    /// Whether all that happened is that the reader of our output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, CheckError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 1: it is damaged. 2: there was nothing to look at.
    pub fn exit_code(&self) -> u8 {
        match self {
            CheckError::Open { .. } => 2,
            _ => 1,
        }
    }
}

/// `eris check`.
///
/// # Errors
/// The database is damaged, or there is none.
pub fn run(arguments: &CheckCommand) -> Result<(), CheckError> {
    let directory = &arguments.directory;
    let bar = bar();
    let checked = check_database(directory, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let checked = checked.map_err(|source| CheckError::Open {
        directory: directory.clone(),
        source,
    })?;
    let mut out = io::stdout().lock();
    match arguments.output.json {
        true => writeln!(out, "{}", as_json(&checked))?,
        false => write_text(&checked, directory, &mut out)?,
    }
    match checked.findings.len() as u64 {
        0 => Ok(()),
        findings => Err(CheckError::Damaged {
            directory: directory.clone(),
            findings,
        }),
    }
}

/// How much of a database was looked at.
pub fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left");
    ProgressBar::new(0).with_style(style.expect("the template is constant"))
}

/// What is wrong, a line or two for each finding.
pub fn write_findings(checked: &DatabaseCheck, out: &mut impl Write) -> io::Result<()> {
    for found in &checked.findings {
        writeln!(out, "{}", told(found))?;
    }
    match checked.findings.is_empty() {
        true => Ok(()),
        false => writeln!(out),
    }
}

fn write_text(checked: &DatabaseCheck, directory: &Path, out: &mut impl Write) -> io::Result<()> {
    write_findings(checked, out)?;
    let unused = match checked.unused.parts {
        0 => String::new(),
        chunks => format!(
            ", and {} that nothing refers to ({})",
            counted(chunks, "chunk"),
            bytes(checked.unused.bytes)
        ),
    };
    let Counted { files, .. } = checked.snapshot;
    for (kind, count, part, more) in [
        ("snapshot", checked.snapshot, "group", ""),
        ("log", checked.log, "group", ""),
        ("chunks", checked.chunks, "chunk", &unused),
    ] {
        if kind == "snapshot" && files == 0 {
            continue;
        }
        let (files, parts) = (counted(count.files, "file"), counted(count.parts, part));
        let size = bytes(count.bytes);
        writeln!(
            out,
            "{kind:<9} {files:>10} {size:>10}   {parts} whole{more}"
        )?;
    }
    let (tables, rows) = (checked.tables, checked.rows);
    writeln!(
        out,
        "{}, {}",
        counted(tables, "table"),
        counted(rows, "row")
    )?;
    if !checked.remarks.is_empty() {
        writeln!(out, "\nNo damage, and of no use to the next start:")?;
    }
    for remark in &checked.remarks {
        writeln!(out, "{}", told(remark))?;
    }
    if checked.findings.is_empty() {
        writeln!(out, "\n{} is whole", directory.display())?;
    }
    Ok(())
}

/// A finding as a line, and another one if it is known who is hit.
fn told(found: &DatabaseFinding) -> String {
    let DatabaseFinding {
        path, offset, what, ..
    } = found;
    let mut text = format!("{}, byte {offset}: {what}", path.display());
    let mut hit = Vec::new();
    hit.extend(found.table.as_ref().map(|table| format!("table {table}")));
    hit.extend(found.commits.map(|(first, last)| match last {
        Some(last) if last <= first => format!("commit {}", first.0),
        Some(last) => format!("commits {} to {}", first.0, last.0),
        None => format!("commits from {} on", first.0),
    }));
    if !hit.is_empty() {
        text.push_str("\n    hit: ");
        text.push_str(&hit.join(", "));
    }
    text
}

/// All that a check has found.
pub fn as_json(checked: &DatabaseCheck) -> Value {
    let count = |count: Counted, parts: &str| json!({"files": count.files, "bytes": count.bytes, parts: count.parts});
    let all = |findings: &[DatabaseFinding]| -> Vec<Value> {
        let one = |found: &DatabaseFinding| {
            let (first, last) = found.commits.unzip();
            json!({
                "file": found.path.display().to_string(),
                "byte": found.offset,
                "what": found.what,
                "table": found.table,
                "first_commit": first.map(|first| first.0),
                "last_commit": last.flatten().map(|last| last.0),
            })
        };
        findings.iter().map(one).collect()
    };
    json!({
        "is_whole": checked.findings.is_empty(),
        "findings": all(&checked.findings),
        "remarks": all(&checked.remarks),
        "snapshot": count(checked.snapshot, "groups"),
        "log": count(checked.log, "groups"),
        "chunks": count(checked.chunks, "chunks"),
        "unused": {"chunks": checked.unused.parts, "bytes": checked.unused.bytes},
        "tables": checked.tables,
        "rows": checked.rows,
    })
}
