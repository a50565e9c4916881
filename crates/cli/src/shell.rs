//! The interactive prompt.
//!
//! A statement may span lines and runs when its `;` is entered. Ctrl-C at the prompt forgets the input, during a statement
//! cancels it; the shell stays. Ctrl-D leaves. Input is remembered in `$XDG_STATE_HOME/eris/history`, by default
//! `~/.local/state/eris/history`.

use crate::format::FormatError;
use crate::places;
use crate::script::{Runner, ScriptError};
use eris_sql::Session;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Editor, Helper};
use std::io::Write;
use std::path::PathBuf;
use tokio::runtime::Runtime;

const HELP: &str = "\
Statements end in ';' and may span lines.
  \\?       this help
  \\q       leave (as Ctrl-D)
  Ctrl-C   cancel the running statement, or forget the input
  SHOW TABLES; DESCRIBE table; EXPLAIN [ANALYZE] SELECT …;
";

/// Why the shell ended other than by the user's wish.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The terminal does not work.
    #[error("cannot read from the terminal: {0}")]
    Terminal(#[from] ReadlineError),
    /// Nobody can see the results.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Tells the line editor whether the input is a whole statement.
struct Statements;

impl Helper for Statements {}
impl Highlighter for Statements {}
impl Completer for Statements {
    type Candidate = String;
}
impl Hinter for Statements {
    type Hint = String;
}

impl Validator for Statements {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Whether the input can be run: a command of the shell, nothing at all, or statements that are all ended.
fn is_whole(input: &str) -> bool {
    input.trim_start().starts_with('\\')
        || Session::split(input).is_ok_and(|all| all.last().is_none_or(|last| last.is_complete()))
}

/// Reads and runs statements until the user leaves.
pub fn run<W: Write>(runner: &mut Runner<W>, runtime: &Runtime) -> Result<(), ShellError> {
    let config = Config::builder()
        .auto_add_history(true)
        .history_ignore_dups(true)?
        .build();
    let mut editor: Editor<Statements, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Statements));
    let history = history_file();
    if let Some(file) = &history {
        // A first start has no history yet.
        let _ = editor.load_history(file);
    }
    println!(
        "Eris {} – \\? for help, \\q to leave. Data lives as long as this shell.",
        env!("CARGO_PKG_VERSION")
    );
    let ended = prompt(&mut editor, runner, runtime);
    if let Some(file) = &history
        && let Err(error) = editor.save_history(file)
    {
        eprintln!(
            "warning: cannot save the history in {}: {error}",
            file.display()
        );
    }
    ended
}

fn prompt<W: Write>(
    editor: &mut Editor<Statements, FileHistory>,
    runner: &mut Runner<W>,
    runtime: &Runtime,
) -> Result<(), ShellError> {
    loop {
        let input = match editor.readline("eris> ") {
            Ok(input) => input,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match input.trim() {
            "\\q" => return Ok(()),
            "\\?" => print!("{HELP}"),
            command if command.starts_with('\\') => {
                eprintln!("error: unknown command {command}\nhint: \\? lists them")
            }
            _ => statements(runner, runtime, &input)?,
        }
    }
}

/// Runs the input; Ctrl-C cancels it. Only a broken output ends the shell.
fn statements<W: Write>(
    runner: &mut Runner<W>,
    runtime: &Runtime,
    input: &str,
) -> Result<(), ShellError> {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            outcome = runner.run(input) => Some(outcome),
        }
    });
    match outcome {
        Some(Ok(())) => {}
        Some(Err(ScriptError::Format(error @ FormatError::Output(_)))) => return Err(error.into()),
        Some(Err(error)) => eprintln!("error: {error}"),
        None => eprintln!("cancelled"),
    }
    Ok(())
}

/// Where the history is kept; its directory exists then. `None` if there is no such place: input is not remembered.
fn history_file() -> Option<PathBuf> {
    let directory = places::state()?;
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn input_is_read_on_until_its_semicolon() {
        for whole in [
            "",
            "  ",
            "SELECT 1;",
            "SELECT 1;\n",
            "SELECT ';';",
            "\\q",
            "-- note",
            "SELECT 1; -- note",
        ] {
            assert!(is_whole(whole), "{whole:?}");
        }
        for part in [
            "SELECT",
            "SELECT 1; SELECT",
            "SELECT ';",
            "SELECT 1 -- ;",
            "SELECT /* ;",
        ] {
            assert!(!is_whole(part), "{part:?}");
        }
    }
}
