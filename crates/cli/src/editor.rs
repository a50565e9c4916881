//! The line editor: whole statements over several lines, with completion, colours and a history.
//!
//! ```text
//! eris> SELECT count(*)
//!    …> FROM lineorder;
//! ```
//!
//! The second prompt is part of the edited text: a tab after the line end, as wide as the prompt, which the highlighter
//! draws as `   …> `. So the editor knows where the cursor is, and the database never sees it ([`continuation`]).

mod complete;
mod continuation;
mod highlight;
mod keys;
mod keywords;

use crate::places;
use crate::units;
use complete::SqlCompleter;
use eris_sql::Session;
use highlight::SqlHighlighter;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Helper};
use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Shown before input.
const PROMPT: &str = "eris> ";
/// Statements that are remembered.
const REMEMBERED: usize = 10_000;

/// Reads input from the terminal.
pub struct Editor {
    editor: rustyline::Editor<SqlHelper, FileHistory>,
    /// `None`: there is no place for it.
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor that completes what the session sees.
    ///
    /// # Errors
    /// The terminal does not work.
    pub fn new(session: &Session) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .tab_stop(PROMPT.len() as u8)
            .auto_add_history(false)
            .build();
        let mut editor = rustyline::Editor::with_config(config)?;
        // Without colours nothing draws the second prompt.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let coloured = std::io::stdout().is_terminal() && !no_color;
        editor.set_helper(Some(SqlHelper {
            completer: SqlCompleter::new(session.clone()),
            highlighter: SqlHighlighter,
        }));
        keys::bind(&mut editor, coloured);
        let history = history_file();
        if let Some(file) = &history {
            // A first start has no history yet.
            let _ = editor.load_history(file);
        }
        Ok(Editor { editor, history })
    }

    /// Waits for whole input, and remembers it. `None` at its end.
    ///
    /// # Errors
    /// The terminal does not work.
    pub fn read(&mut self) -> Result<Option<String>, ReadlineError> {
        loop {
            match self.editor.readline(PROMPT) {
                Ok(input) => {
                    self.remember(&input);
                    return Ok(Some(continuation::without(&input)));
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends to the history at once: a shell that is killed has forgotten nothing.
    fn remember(&mut self, input: &str) {
        let added = self.editor.add_history_entry(input.trim_end());
        let Some(file) = &self.history else { return };
        if matches!(added, Ok(true))
            && let Err(error) = self.editor.append_history(file)
        {
            eprintln!(
                "warning: cannot keep the history in {}: {error}",
                file.display()
            );
            self.history = None;
        }
    }
}

/// Where the history is kept; its directory exists then. `None` if there is no such place: input is not remembered.
fn history_file() -> Option<PathBuf> {
    let directory = places::state()?;
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

/// Whether the input can be run: a command of the shell, nothing at all, or units that are all ended.
fn is_whole(input: &str) -> bool {
    let whole = || {
        let units = units::cut(input)?;
        Ok::<_, eris_sql::SqlError>(units.last().is_none_or(units::Unit::is_complete))
    };
    // A command on a line of its own is never part of a statement; what it says must not wait for a semicolon.
    let last = input.trim_end().rsplit('\n').next().unwrap_or_default();
    whole().unwrap_or(true)
        || last.trim_start().starts_with('\\') && !continuation::is_within_text(input)
}

/// What the editor asks while somebody types.
struct SqlHelper {
    completer: SqlCompleter,
    highlighter: SqlHighlighter,
}

impl Helper for SqlHelper {}

impl Hinter for SqlHelper {
    type Hint = String;
}

/// Asked where [`keys`] are not heard, on a terminal without cursor keys.
impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

impl Completer for SqlHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.completer.complete(line, position))
    }
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, position: usize) -> Cow<'l, str> {
        self.highlighter.highlight(line, position).into()
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        format!("\x1b[1m{prompt}\x1b[0m").into()
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        // The parenthesis that belongs to the one at the cursor moves with it.
        true
    }
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
            ".tables",
            "-- note",
            "SELECT 1; -- note",
            "SELECT 1 \\g",
            "SELECT 1\n\\q",
        ] {
            assert!(is_whole(whole), "{whole:?}");
        }
        for part in [
            "SELECT",
            "SELECT 1; SELECT",
            "SELECT ';",
            "SELECT '\n\\q",
            "SELECT 1 -- ;",
            "SELECT /* ;",
        ] {
            assert!(!is_whole(part), "{part:?}");
        }
    }
}
