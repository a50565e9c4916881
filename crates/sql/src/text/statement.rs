//! Cutting a script into statements, without parsing them: only comments, strings and quoted names matter.

use crate::error::position::{Excerpt, Position};
use crate::error::{Mistake, SqlError};
use crate::text::lexeme::{BYTE_ORDER_MARK, LexemeKind, lexemes};
use std::ops::Range;
use std::sync::Arc;

/// One statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    text: Arc<str>,
    offset: usize,
    start: Position,
    complete: bool,
    calls_macros: bool,
}

impl Statement {
    /// Its text, without the semicolon, from its first to its last character that is neither blank nor comment.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it begins in the script, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Where it begins in the script.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Whether a semicolon ends it. Interactive input waits for more text while the last statement is not complete.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The same statement, of whose tree macros have become a part.
    pub(crate) fn calling_macros(&self) -> Self {
        Statement {
            calls_macros: true,
            ..self.clone()
        }
    }

    /// Whether its tree has macros in it, of which its text has only the calls.
    pub(crate) fn calls_macros(&self) -> bool {
        self.calls_macros
    }

    /// The line around a place of this statement's text.
    pub(crate) fn excerpt(&self, local: Position) -> Excerpt {
        Excerpt::new(&self.text, self.start, local)
    }
}

impl From<&str> for Statement {
    /// A text that is one statement.
    fn from(text: &str) -> Self {
        Statement {
            text: text.into(),
            offset: 0,
            start: Position::START,
            complete: true,
            calls_macros: false,
        }
    }
}

impl From<&String> for Statement {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Statement {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&Statement> for Statement {
    fn from(statement: &Statement) -> Self {
        statement.clone()
    }
}

/// Cuts a script at its semicolons. Empty statements are left out; the last one may be without semicolon, or end inside
/// of a string, quoted name or comment: then it is not [complete](Statement::is_complete).
///
/// # Errors
/// A script of more than 4 GiB.
pub(crate) fn split(script: &str) -> Result<Vec<Statement>, SqlError> {
    if u32::try_from(script.len()).is_err() {
        return Err(SqlError::invalid(
            Mistake::TooLarge,
            "a script may not be larger than 4 GiB",
        ));
    }
    let mut statements = Vec::new();
    let mut span: Option<(usize, usize)> = None;
    let mut lines = Lines {
        script,
        at: 0,
        position: Position::START,
    };
    for lexeme in lexemes(script) {
        let Range { start, end } = lexeme.span;
        match lexeme.kind {
            LexemeKind::Blank | LexemeKind::Comment if !lexeme.open => {}
            LexemeKind::Semicolon => {
                if let Some((from, to)) = span.take() {
                    statements.push(lines.statement(from, to, true));
                }
            }
            _ => span = Some((span.map_or(start, |(from, _)| from), end)),
        }
    }
    if let Some((from, to)) = span {
        statements.push(lines.statement(from, to, false));
    }
    Ok(statements)
}

/// Turns ascending offsets into positions.
struct Lines<'a> {
    script: &'a str,
    at: usize,
    position: Position,
}

impl Lines<'_> {
    fn statement(&mut self, from: usize, to: usize, complete: bool) -> Statement {
        for c in self.script[self.at..from].chars() {
            if c == '\n' {
                self.position = Position {
                    line: self.position.line + 1,
                    column: 1,
                };
            } else if c != BYTE_ORDER_MARK {
                self.position.column += 1;
            }
        }
        self.at = from;
        Statement {
            text: self.script[from..to].into(),
            offset: from,
            start: self.position,
            complete,
            calls_macros: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(script: &str) -> Vec<String> {
        split(script)
            .unwrap()
            .iter()
            .map(|s| s.text().to_owned())
            .collect()
    }

    #[test]
    fn semicolons_in_strings_names_and_comments_do_not_cut() {
        let script =
            "SELECT ';', \"a;b\" -- c;d\n /* ; /* ; */ ; */ , $x$;$$;$x$, E'\\';'; SELECT 'it''s;'";
        assert_eq!(texts(script).len(), 2);
        assert_eq!(texts(script)[1], "SELECT 'it''s;'");
    }

    #[test]
    fn comments_around_a_statement_are_no_part_of_it() {
        let statements = split("-- first\n  SELECT 1 /* one */ ; ;\n\n/* x */ SELECT 2").unwrap();
        assert_eq!(statements.len(), 2);
        assert_eq!(statements[0].text(), "SELECT 1");
        assert_eq!(statements[0].start(), Position { line: 2, column: 3 });
        assert!(statements[0].is_complete());
        assert_eq!(statements[1].text(), "SELECT 2");
        assert_eq!(statements[1].start(), Position { line: 4, column: 9 });
        assert!(!statements[1].is_complete());
    }

    #[test]
    fn what_the_end_leaves_open_is_not_complete() {
        for script in [
            "SELECT 'a;",
            "SELECT \"a;",
            "/* SELECT 1;",
            "SELECT $$;",
            "SELECT 1 /* ;",
        ] {
            let statements = split(script).unwrap();
            assert_eq!(statements.len(), 1, "{script}");
            assert!(!statements[0].is_complete(), "{script}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_blank() {
        let statements = split("\u{feff}SELECT 1;\n\u{feff}SELECT 2").unwrap();
        assert_eq!(statements[0].text(), "SELECT 1");
        assert_eq!(statements[0].start(), Position { line: 1, column: 1 });
        assert_eq!(statements[1].start(), Position { line: 2, column: 1 });
    }

    #[test]
    fn a_parameter_is_no_dollar_quote() {
        assert_eq!(texts("SELECT $1; SELECT $2"), ["SELECT $1", "SELECT $2"]);
    }

    proptest! {
        #[test]
        fn every_statement_is_where_it_says(script in "[-a;'\"$/* \n_1E\\\\é]{0,60}") {
            let mut end = 0;
            for statement in split(&script).unwrap() {
                let from = statement.offset();
                prop_assert!(from >= end);
                end = from + statement.text().len();
                prop_assert_eq!(&script[from..end], statement.text());
                let line = script[..from].matches('\n').count() as u64 + 1;
                let column = script[..from].rsplit('\n').next().unwrap().chars().count() as u64 + 1;
                prop_assert_eq!(statement.start(), Position { line, column });
            }
        }

        #[test]
        fn joined_statements_come_apart_again(parts in proptest::collection::vec("[a-z]{1,5}( '[a-z;]{0,3}')?", 0..6)) {
            let script = parts.iter().map(|part| format!("{part} ;\n")).collect::<String>();
            prop_assert_eq!(texts(&script), parts);
        }
    }
}
