//! What a script consists of: statements, and commands to the shell between them.
//!
//! ```text
//! .mode csv⏎               command: from its backslash or dot to the end of the line
//! SELECT 1;                statement: to its semicolon
//! SELECT 2 \watch 5⏎       statement that a command ends: \g, \gx or \watch
//! ```
//!
//! No statement begins with a backslash or with a dot and a letter, so there is nothing to escape. `exit` and `quit`
//! are commands, too, if a line has nothing else.

use eris_sql::{LexemeKind, Position, Session, SqlError, Statement, lexemes};

/// A statement or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// For the database.
    Statement(Statement),
    /// For the shell.
    Command(CommandLine),
}

/// A command as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// From its backslash or dot; without blanks at its end.
    pub text: String,
    /// Where it begins in the script, in bytes.
    pub offset: usize,
    /// Where it begins in the script.
    pub start: Position,
    /// Whether it stands in place of the semicolon of the statement before it.
    pub ends_statement: bool,
}

impl Unit {
    /// Where it begins in the script, in bytes.
    pub fn offset(&self) -> usize {
        match self {
            Unit::Statement(statement) => statement.offset(),
            Unit::Command(command) => command.offset,
        }
    }

    /// Whether nothing is missing at its end.
    pub fn is_complete(&self) -> bool {
        match self {
            Unit::Statement(statement) => statement.is_complete(),
            Unit::Command(_) => true,
        }
    }
}

/// The units of a script, in their order.
///
/// # Errors
/// A script of more than 4 GiB.
pub fn cut(script: &str) -> Result<Vec<Unit>, SqlError> {
    let spans = command_spans(script);
    if spans.is_empty() {
        let statements = Session::split(script)?.into_iter();
        return Ok(statements.map(Unit::Statement).collect());
    }
    // Statements are cut from a text in which commands are blank, so that places keep counting.
    let mut masked = script.as_bytes().to_vec();
    let mut units = Vec::new();
    let mut lines = (0, Position::START);
    for Span {
        from,
        to,
        ends_statement,
    } in spans
    {
        masked[from..to].fill(b' ');
        if ends_statement {
            masked[from] = b';';
        }
        lines = (from, advance(&script[lines.0..from], lines.1));
        units.push(Unit::Command(CommandLine {
            text: script[from..to].trim_end().to_owned(),
            offset: from,
            start: lines.1,
            ends_statement,
        }));
    }
    let masked = String::from_utf8(masked).expect("whole characters were replaced by ASCII");
    units.extend(Session::split(&masked)?.into_iter().map(Unit::Statement));
    units.sort_by_key(Unit::offset);
    Ok(units)
}

/// Whether a line begins a command, if no statement is open.
pub fn is_command(line: &str) -> bool {
    let mut chars = line.trim_start().chars();
    match chars.next() {
        Some('\\') => true,
        Some('.') => chars.next().is_some_and(char::is_alphabetic),
        _ => leaves(line.trim_start()),
    }
}

/// Whether a line has nothing but the word with which people leave.
fn leaves(line: &str) -> bool {
    let Some((word, rest)) = line.split_at_checked(4) else {
        return false;
    };
    let mut rest = rest.chars().take_while(|c| *c != '\n');
    let is_word = ["exit", "quit"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word));
    is_word && rest.all(|c| c.is_whitespace() || c == ';')
}

struct Span {
    from: usize,
    to: usize,
    ends_statement: bool,
}

fn command_spans(script: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut base, mut open) = (0, false);
    'command: loop {
        for lexeme in lexemes(&script[base..]) {
            let from = base + lexeme.span.start;
            let rest = &script[from..];
            match lexeme.kind {
                LexemeKind::Blank | LexemeKind::Comment => continue,
                LexemeKind::Semicolon => open = false,
                LexemeKind::Other if open && ends_statement(rest) || !open && is_command(rest) => {
                    let to = from + rest.find('\n').unwrap_or(rest.len());
                    let ends_statement = open;
                    spans.push(Span {
                        from,
                        to,
                        ends_statement,
                    });
                    (base, open) = (to, false);
                    continue 'command;
                }
                _ => open = true,
            }
        }
        return spans;
    }
}

/// Whether a text begins with a command that also ends the statement before it.
fn ends_statement(text: &str) -> bool {
    // It is asked at every character: it must not look for the end of a word that may be a line of megabytes.
    ["\\gx", "\\g", "\\watch"].iter().any(|word| {
        let rest = text.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| !c.is_whitespace()))
    })
}

/// The place behind a text that begins at `position`.
fn advance(text: &str, position: Position) -> Position {
    let lines = text.matches('\n').count() as u64;
    let last = text.rsplit('\n').next().unwrap_or_default();
    let characters = last.chars().count() as u64;
    Position {
        line: position.line + lines,
        column: match lines {
            0 => position.column + characters,
            _ => 1 + characters,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each unit as `line:column text`, an open statement with `…`.
    fn texts(script: &str) -> Vec<String> {
        let show = |unit: Unit| match unit {
            Unit::Statement(statement) => {
                let open = if statement.is_complete() { "" } else { " …" };
                format!("{} {}{open}", statement.start(), statement.text())
            }
            Unit::Command(command) => format!("{} {}", command.start, command.text),
        };
        cut(script).expect("short").into_iter().map(show).collect()
    }

    #[test]
    fn commands_stand_between_statements() {
        let script = ".mode csv\nSELECT 1; \\timing on \n-- note\n  \\d t;u\nSELECT\n2";
        assert_eq!(
            texts(script),
            [
                "1:1 .mode csv",
                "2:1 SELECT 1",
                "2:11 \\timing on",
                "4:3 \\d t;u",
                "5:1 SELECT\n2 …"
            ]
        );
    }

    #[test]
    fn what_looks_like_a_command_within_a_statement_is_part_of_it() {
        for script in [
            "SELECT '\n\\d\n'",
            "SELECT a\n.b",
            "SELECT /*\n\\q */ 1",
            "SELECT \"\n.x\"",
            "SELECT\n\\q",
            "SELECT\\gxy",
            "SELECT \\g2",
        ] {
            assert_eq!(texts(&format!("{script};")), [format!("1:1 {script}")]);
        }
        assert_eq!(texts(".5;"), ["1:1 .5"], "a number");
    }

    #[test]
    fn people_leave_by_a_word_on_its_own() {
        assert_eq!(texts("SELECT 1;\nexit\n"), ["1:1 SELECT 1", "2:1 exit"]);
        assert_eq!(texts("QUIT;"), ["1:1 QUIT;"]);
        assert_eq!(texts("SELECT\nexit;"), ["1:1 SELECT\nexit"]);
        assert_eq!(texts("exit now;"), ["1:1 exit now"]);
        assert_eq!(texts("exits"), ["1:1 exits …"]);
    }

    #[test]
    fn a_long_line_without_blanks_is_cut_in_linear_time() {
        // Some ten milliseconds; with a look at the rest of the line for each character, hours.
        let script = format!("VALUES(0){};", ",(1)".repeat(4 << 20));
        assert_eq!(cut(&script).expect("short").len(), 1);
    }

    #[test]
    fn some_commands_end_the_statement_before_them() {
        assert_eq!(
            texts("SELECT 'ä' \\watch 2\nSELECT 2 \\g\n\\watch"),
            [
                "1:1 SELECT 'ä'",
                "1:12 \\watch 2",
                "2:1 SELECT 2",
                "2:10 \\g",
                "3:1 \\watch"
            ]
        );
    }
}
