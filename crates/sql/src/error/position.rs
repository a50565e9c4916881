//! Places in a script.

use std::fmt;

/// A place in a text: line and column count from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Position {
    /// The first character of a text.
    pub const START: Position = Position { line: 1, column: 1 };

    /// The place of `self`, which counts from `start` of another text, in that other text.
    pub(crate) fn seen_from(self, start: Position) -> Position {
        match self.line {
            0 | 1 => Position {
                line: start.line,
                column: start.column + self.column.max(1) - 1,
            },
            line => Position {
                line: start.line + line - 1,
                column: self.column,
            },
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A place together with its line, to be shown with a caret below it.
#[derive(Clone, Debug)]
pub(crate) struct Excerpt {
    /// The place in the whole script.
    pub position: Position,
    line: String,
    caret: usize,
}

/// Characters of a line shown on either side of the place.
const AROUND: usize = 60;

impl Excerpt {
    /// The line of `text` on which `local` lies; `start` is where `text` begins in its script.
    pub fn new(text: &str, start: Position, local: Position) -> Self {
        let line = text
            .lines()
            .nth(local.line.saturating_sub(1) as usize)
            .unwrap_or_default();
        let column = (local.column.max(1) - 1) as usize;
        let first = column.saturating_sub(AROUND);
        let line: String = line
            .chars()
            .skip(first)
            .take(2 * AROUND)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Excerpt {
            position: local.seen_from(start),
            line: line.trim_end().to_owned(),
            caret: column - first,
        }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}\n  {:caret$}^", self.line, "", caret = self.caret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_place() {
        let excerpt = Excerpt::new(
            "SELECT 1\nFROM x",
            Position { line: 5, column: 3 },
            Position { line: 2, column: 6 },
        );
        assert_eq!(excerpt.position, Position { line: 6, column: 6 });
        assert_eq!(excerpt.to_string(), "  FROM x\n       ^");
    }

    #[test]
    fn the_first_line_is_shifted_by_where_the_text_begins() {
        let local = Position { line: 1, column: 4 };
        assert_eq!(
            local.seen_from(Position {
                line: 2,
                column: 10
            }),
            Position {
                line: 2,
                column: 13
            }
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = "x".repeat(500);
        let excerpt = Excerpt::new(
            &text,
            Position::START,
            Position {
                line: 1,
                column: 401,
            },
        );
        assert!(excerpt.to_string().lines().all(|line| line.len() <= 130));
        assert_eq!(excerpt.position.column, 401);
    }
}
