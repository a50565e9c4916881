//! Units of a script that is still being written by another process.
//!
//! ```text
//! pieces     SELECT 1; SEL        ECT 2;⏎SELECT          3;⏎ <end>
//! runs                            SELECT 1, SELECT 2     SELECT 3
//! ```
//!
//! A statement runs as soon as the line with its semicolon is there, a command with its line: whoever writes to our
//! standard input may wait for its result before writing the next one.

use crate::units::{self, Unit};
use eris_sql::SqlError;
use std::str::Utf8Error;

/// Cuts units off a text that arrives in pieces.
#[derive(Default)]
pub struct Arriving {
    /// What has not been cut off. Blank lines and columns stand for what has, so that places in errors keep counting.
    text: String,
    /// The bytes behind the last whole line.
    rest: Vec<u8>,
}

/// The text cannot be cut.
#[derive(Debug, thiserror::Error)]
pub enum ArrivingError {
    /// It is no text.
    #[error("line {line} is not UTF-8: {source}")]
    NotText {
        /// Where, from 1.
        line: usize,
        /// What is wrong with its bytes.
        source: Utf8Error,
    },
    /// It is no script.
    #[error(transparent)]
    Script(#[from] SqlError),
}

impl Arriving {
    /// Takes a piece; gives the units that it has completed.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Unit>, ArrivingError> {
        let Some(line_end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            self.rest.extend_from_slice(piece);
            return Ok(Vec::new());
        };
        // Whole lines only: a comment that is not ended yet must not swallow or release anything.
        let (lines, rest) = piece.split_at(line_end + 1);
        self.rest.extend_from_slice(lines);
        let before = self.text.len();
        self.take_rest()?;
        self.rest.extend_from_slice(rest);
        let ends_a_unit = |line: &str| line.contains([';', '\\']) || units::is_command(line);
        if !self.text[before..].lines().any(ends_a_unit) {
            return Ok(Vec::new());
        }
        let mut units = units::cut(&self.text)?;
        let open = units.pop_if(|last| !last.is_complete());
        self.blank_to(open.map_or(self.text.len(), |open| open.offset()));
        Ok(units)
    }

    /// What is left at the end, where the last semicolon may be missing.
    pub fn finish(mut self) -> Result<Vec<Unit>, ArrivingError> {
        self.take_rest()?;
        Ok(units::cut(&self.text)?)
    }

    fn take_rest(&mut self) -> Result<(), ArrivingError> {
        match std::str::from_utf8(&self.rest) {
            Ok(text) => self.text.push_str(text),
            Err(source) => {
                let valid = &self.rest[..source.valid_up_to()];
                let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
                let line = 1 + lines(self.text.as_bytes()) + lines(valid);
                return Err(ArrivingError::NotText { line, source });
            }
        }
        self.rest.clear();
        Ok(())
    }

    fn blank_to(&mut self, cut: usize) {
        let (done, open) = self.text.split_at(cut);
        let column = done.rsplit('\n').next().unwrap_or_default().chars().count();
        self.text = "\n".repeat(done.matches('\n').count()) + &" ".repeat(column) + open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each statement as `line:column text`.
    fn cut(pieces: &[&str]) -> Vec<Vec<String>> {
        let mut arriving = Arriving::default();
        let show = |units: Vec<Unit>| -> Vec<String> {
            let show = |unit: &Unit| match unit {
                Unit::Statement(s) => format!("{} {}", s.start(), s.text()),
                Unit::Command(c) => format!("{} {}", c.start, c.text),
            };
            units.iter().map(show).collect()
        };
        let mut all: Vec<Vec<String>> = pieces
            .iter()
            .map(|piece| show(arriving.push(piece.as_bytes()).expect("a script")))
            .collect();
        all.push(show(arriving.finish().expect("a script")));
        all
    }

    #[test]
    fn statements_come_with_the_line_that_ends_them() {
        let pieces = ["SELECT 1; SEL", "ECT 2;\nSELECT", " 3;", "\n\n  SELECT 4"];
        let expected: [&[&str]; 5] = [
            &[],
            &["1:1 SELECT 1", "1:11 SELECT 2"],
            &[],
            &["2:1 SELECT 3"],
            &["4:3 SELECT 4"],
        ];
        assert_eq!(cut(&pieces), expected);
    }

    #[test]
    fn places_count_from_the_beginning_of_the_script() {
        let pieces = ["SELECT 'ä;\n'; SELECT\n", "2\n", ";\nSELECT 3;\n"];
        let expected: [&[&str]; 4] = [
            &["1:1 SELECT 'ä;\n'"],
            &[],
            &["2:4 SELECT\n2", "5:1 SELECT 3"],
            &[],
        ];
        // The second line has `'; ` before the second statement.
        assert_eq!(cut(&pieces), expected);
    }

    #[test]
    fn commands_come_with_their_line() {
        let pieces = [".mode", " csv\nSELECT a", "\n.b;\n\\d"];
        let expected: [&[&str]; 4] = [&[], &["1:1 .mode csv"], &["2:1 SELECT a\n.b"], &["4:1 \\d"]];
        assert_eq!(cut(&pieces), expected);
    }

    #[test]
    fn no_cut_changes_what_a_script_means() {
        let script = "-- one; two\nSELECT '--;é', /* ;\n; */ 1;\nSELECT \";\" FROM t -- end;\n;SELECT 3; -- x;\n";
        let whole: Vec<String> = cut(&[script]).concat();
        assert_eq!(whole.len(), 3, "{whole:?}");
        for at in (0..script.len()).filter(|at| script.is_char_boundary(*at)) {
            let (first, second) = script.split_at(at);
            assert_eq!(cut(&[first, second]).concat(), whole, "cut at {at}");
        }
        let bytes: Vec<Vec<u8>> = script.bytes().map(|byte| vec![byte]).collect();
        let mut arriving = Arriving::default();
        let count: usize = bytes
            .iter()
            .map(|byte| arriving.push(byte).expect("a script").len())
            .sum();
        assert_eq!(count, 3, "even in the middle of a character");
    }

    #[test]
    fn what_is_no_text_is_rejected_with_its_line() {
        let mut arriving = Arriving::default();
        arriving.push(b"SELECT 1;\nSELECT\n").expect("a script");
        let error = arriving
            .push(b"\n\xff;\n")
            .expect_err("no UTF-8")
            .to_string();
        assert!(error.starts_with("line 4 is not UTF-8"), "{error}");
    }
}
