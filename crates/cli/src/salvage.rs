//! `eris salvage`: what is whole of a damaged database goes into a new one, and the rest is listed.

use crate::args::SalvageCommand;
use crate::check::{self, write_findings};
use crate::numbers::{bytes, counted};
use eris_engine::{DatabaseSalvage, Engine, EngineError, LostRows, Settings};
use eris_sql::{SalvageTarget, SalvagedDatabase, SqlError, is_within};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Why the command does not say that all was saved.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is none, somebody has it open, or it does not fit into the memory.
    #[error("cannot salvage {}: {source}", directory.display())]
    Open {
        directory: PathBuf,
        source: EngineError,
    },
    #[error("{} is in {}, in which nothing may be changed: choose a directory elsewhere", target.display(), directory.display())]
    Inside { target: PathBuf, directory: PathBuf },
    #[error("cannot write {}: {source}", target.display())]
    Target { target: PathBuf, source: SqlError },
    #[error("{} is damaged; what could be saved is in {}", directory.display(), target.display())]
    Damaged { directory: PathBuf, target: PathBuf },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl SalvageError {
    /// Whether all that happened is that the reader of our output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, SalvageError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// 1: something is lost. 2: nothing was written.
    pub fn exit_code(&self) -> u8 {
        match self {
            SalvageError::Damaged { .. } | SalvageError::Output(_) => 1,
            _ => 2,
        }
    }
}

/// What was saved, and what was not.
struct Report {
    salvage: DatabaseSalvage,
    written: SalvagedDatabase,
}

/// `eris salvage`.
///
/// # Errors
/// Something is lost, or nothing could be written.
pub async fn run(settings: Settings, arguments: &SalvageCommand) -> Result<(), SalvageError> {
    let (directory, target) = (arguments.directory.clone(), arguments.target.clone());
    if is_within(&target, &directory) {
        return Err(SalvageError::Inside { target, directory });
    }
    let no_target = |source| SalvageError::Target {
        target: target.clone(),
        source,
    };
    let made = SalvageTarget::create(target.clone()).await;
    let made = made.map_err(no_target)?;
    let bar = check::bar();
    let salvaged = Engine::salvage(
        settings,
        &directory,
        &eris_sql::unique_columns,
        &mut |done, total| looked(&bar, done, total),
    );
    let salvaged = salvaged.map_err(|source| SalvageError::Open {
        directory: directory.clone(),
        source,
    });
    let (engine, salvage) = salvaged.inspect_err(|_| bar.finish_and_clear())?;
    let may_have_lost = salvage.may_have_lost_definitions;
    let written = made.write(Arc::new(engine), may_have_lost).await;
    bar.finish_and_clear();
    let written = written.map_err(no_target)?;
    let report = Report { salvage, written };
    let mut out = io::stdout().lock();
    match arguments.output.json {
        true => writeln!(out, "{}", report.as_json(&target))?,
        false => report.write_text(&target, &mut out)?,
    }
    match report.is_whole() {
        true => Ok(()),
        false => Err(SalvageError::Damaged { directory, target }),
    }
}

/// How far it is; at the end, that it goes on.
fn looked(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
    if done == total {
        let style =
            ProgressStyle::with_template("{spinner} {bytes} were looked at, writing what is whole");
        bar.set_style(style.expect("the template is constant"));
        bar.enable_steady_tick(Duration::from_millis(100));
    }
}

impl Report {
    fn is_whole(&self) -> bool {
        let Report { salvage, written } = self;
        salvage.is_whole()
            && written.left_out.is_empty()
            && written.reduced.is_empty()
            && written.made.is_empty()
            && written.dangling.is_empty()
    }

    /// Sequences of which notes may be lost.
    fn may_repeat_numbers(&self) -> &[String] {
        match self.salvage.may_have_lost_definitions {
            true => &self.written.sequences,
            false => &[],
        }
    }

    fn write_text(&self, target: &Path, out: &mut impl Write) -> io::Result<()> {
        let Report { salvage, written } = self;
        write_findings(&salvage.check, out)?;
        if salvage.is_guessed {
            let what = "What the database consists of was guessed: the newest snapshot, and all files of the log";
            writeln!(out, "{what}\n")?;
        }
        let mut lost: Vec<String> = salvage.lost_rows.iter().map(shown).collect();
        let left_out = written.left_out.iter();
        lost.extend(left_out.map(|(name, why)| format!("{name}: {why}")));
        lost.extend(
            written
                .reduced
                .iter()
                .map(|(name, what)| format!("{name}, {what}")),
        );
        let made = written.made.iter();
        lost.extend(made.map(|name| format!("{name}, its definition: it was made of its rows")));
        if salvage.may_have_lost_definitions {
            lost.push(
                "perhaps views, macros and other definitions that nobody knows any more".to_owned(),
            );
        }
        let sequences = self.may_repeat_numbers().iter();
        lost.extend(sequences.map(|name| {
            format!(
                "perhaps numbers of sequence {name}: it goes on behind those that rows have, \
                     and may give others once more"
            )
        }));
        if salvage.lost_chunks.parts > 0 {
            lost.push(format!(
                "perhaps rows of {} that no group names any more ({})",
                counted(salvage.lost_chunks.parts, "chunk"),
                bytes(salvage.lost_chunks.bytes)
            ));
        }
        if !lost.is_empty() {
            writeln!(out, "Lost:")?;
            lost.iter().try_for_each(|one| writeln!(out, "  {one}"))?;
            writeln!(out)?;
        }
        for one in &written.dangling {
            let rows = counted(one.rows, "row");
            writeln!(
                out,
                "{}: {rows} that refer by {} to rows of {} that are lost",
                one.table, one.foreign_key, one.referenced
            )?;
        }
        if !written.dangling.is_empty() {
            writeln!(out)?;
        }
        let names = written.tables.iter().map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0);
        for (name, rows) in &written.tables {
            writeln!(out, "{name:<width$}  {}", counted(*rows, "row"))?;
        }
        let tables = counted(written.tables.len() as u64, "table");
        let rows = counted(written.tables.iter().map(|(_, rows)| rows).sum(), "row");
        let saved = match (self.is_whole(), lost.is_empty()) {
            (true, _) => "Nothing is lost",
            (false, true) => "Saved",
            (false, false) => "The rest is saved",
        };
        writeln!(
            out,
            "\n{saved}: {tables}, {rows}. To open it: eris --db {}",
            target.display()
        )
    }

    fn as_json(&self, target: &Path) -> Value {
        let Report { salvage, written } = self;
        let rows = salvage.lost_rows.iter().map(|lost| {
            let (first, last) = lost.commits.unzip();
            json!({
                "table": lost.table,
                "object": lost.object.0,
                "rows": lost.rows,
                "first_commit": first.map(|at| at.0),
                "last_commit": last.map(|at| at.0),
                "why": lost.why,
            })
        });
        let definitions = written.left_out.iter();
        let definitions = definitions.map(|(name, why)| json!({"name": name, "why": why}));
        let reduced = written.reduced.iter();
        let reduced = reduced.map(|(name, what)| json!({"name": name, "what": what}));
        let dangling = written.dangling.iter().map(|one| {
            json!({
                "table": one.table,
                "foreign_key": one.foreign_key,
                "referenced": one.referenced,
                "rows": one.rows,
            })
        });
        let tables = written.tables.iter();
        let tables = tables.map(|(name, rows)| json!({"name": name, "rows": rows}));
        json!({
            "is_whole": self.is_whole(),
            "found": check::as_json(&salvage.check),
            "is_guessed": salvage.is_guessed,
            "lost": {
                "rows": rows.collect::<Vec<_>>(),
                "definitions": definitions.collect::<Vec<_>>(),
                "reduced": reduced.collect::<Vec<_>>(),
                "made_of_rows": written.made,
                "may_have_lost_definitions": salvage.may_have_lost_definitions,
                "may_repeat_numbers": self.may_repeat_numbers(),
                "chunks": {"chunks": salvage.lost_chunks.parts, "bytes": salvage.lost_chunks.bytes},
            },
            "dangling": dangling.collect::<Vec<_>>(),
            "tables": tables.collect::<Vec<_>>(),
            "directory": target.display().to_string(),
        })
    }
}

/// Rows that are lost, as a line.
fn shown(lost: &LostRows) -> String {
    let table = match &lost.table {
        Some(table) => format!("table {table}"),
        None => format!("a table that nobody knows ({})", lost.object),
    };
    let commits = match lost.commits {
        None => String::new(),
        Some((first, last)) if first == last => format!(" of commit {}", first.0),
        Some((first, last)) => format!(" of commits {} to {}", first.0, last.0),
    };
    format!(
        "{table}, {}{commits}: {}",
        counted(lost.rows, "row"),
        lost.why
    )
}
