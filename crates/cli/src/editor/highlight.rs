//! Colours of the input. The coloured text is as wide as the plain one.

use super::PROMPT;
use super::continuation::MARK;
use super::keywords::is_keyword;
use crate::units;
use eris_sql::{Lexeme, LexemeKind, lexemes};
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

/// Drawn instead of the mark of a further line; as wide as the prompt.
const FURTHER: &str = "   …> ";

const KEYWORD: &str = "\x1b[1;34m";
const STRING: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[2m";
const COMMAND: &str = "\x1b[35m";
const MATCHING: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

/// Colours SQL and commands.
pub struct SqlHighlighter;

impl SqlHighlighter {
    /// The input with its colours; the cursor is at `position`.
    pub fn highlight(&self, text: &str, position: usize) -> String {
        let mut painter = Painter::default();
        if units::is_command(text) {
            let name = text.find(char::is_whitespace).unwrap_or(text.len());
            painter.paint(COMMAND, &text[..name]);
            painter.paint("", &text[name..]);
            return painter.out;
        }
        let matching = matching(text, position);
        for (span, colour) in spans(text) {
            let colour = match matching {
                Some(pair) if pair.contains(&span.start) => MATCHING,
                _ => colour,
            };
            painter.paint(colour, &text[span]);
        }
        painter.out
    }
}

/// Writes text with tabs as blanks, for the terminal's own may be elsewhere.
struct Painter {
    out: String,
    column: usize,
    line_start: bool,
}

impl Default for Painter {
    fn default() -> Self {
        Painter {
            out: String::new(),
            column: PROMPT.len(),
            line_start: false,
        }
    }
}

impl Painter {
    fn paint(&mut self, colour: &str, text: &str) {
        self.out.push_str(colour);
        for character in text.chars() {
            match character {
                '\n' => {
                    self.out.push('\n');
                    (self.column, self.line_start) = (0, true);
                    continue;
                }
                MARK if self.line_start => {
                    self.out.push_str(COMMENT);
                    self.out.push_str(FURTHER);
                    self.out.push_str(PLAIN);
                    self.out.push_str(colour);
                    self.column = PROMPT.len();
                }
                '\t' => {
                    let blanks = PROMPT.len() - self.column % PROMPT.len();
                    self.out.extend(std::iter::repeat_n(' ', blanks));
                    self.column += blanks;
                }
                other => {
                    self.out.push(other);
                    self.column += other.width().unwrap_or(0);
                }
            }
            self.line_start = false;
        }
        if !colour.is_empty() {
            self.out.push_str(PLAIN);
        }
    }
}

/// The text in parts of one colour.
fn spans(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut spans: Vec<(Range<usize>, &'static str)> = Vec::new();
    let mut word: Option<Range<usize>> = None;
    for Lexeme { kind, span, .. } in lexemes(text) {
        let part = &text[span.clone()];
        let in_word = kind == LexemeKind::Other
            && part.chars().all(|c| {
                c.is_alphanumeric() || c == '_' || c == '.' && continues_number(text, &word)
            });
        if in_word {
            word = Some(word.map_or(span.start, |word| word.start)..span.end);
            continue;
        }
        if let Some(word) = word.take() {
            spans.push((word.clone(), word_colour(&text[word])));
        }
        let colour = match kind {
            LexemeKind::String => STRING,
            LexemeKind::Comment => COMMENT,
            _ => "",
        };
        spans.push((span, colour));
    }
    if let Some(word) = word {
        spans.push((word.clone(), word_colour(&text[word])));
    }
    spans
}

fn continues_number(text: &str, word: &Option<Range<usize>>) -> bool {
    let is_digits = |word: &Range<usize>| text[word.clone()].chars().all(|c| c.is_ascii_digit());
    word.as_ref().is_some_and(is_digits)
}

fn word_colour(word: &str) -> &'static str {
    match word.chars().next() {
        Some(first) if first.is_ascii_digit() => NUMBER,
        _ if is_keyword(word) => KEYWORD,
        _ => "",
    }
}

/// The places of the parenthesis at or before the cursor and of the one that belongs to it.
fn matching(text: &str, position: usize) -> Option<[usize; 2]> {
    let mut open = Vec::new();
    let mut pairs = Vec::new();
    for lexeme in lexemes(text).filter(|lexeme| lexeme.kind == LexemeKind::Other) {
        let at = lexeme.span.start;
        match &text[lexeme.span] {
            "(" | "[" => open.push(at),
            ")" | "]" => pairs.extend(open.pop().map(|from| [from, at])),
            _ => {}
        }
    }
    let at = |place: usize| pairs.iter().find(|pair| pair.contains(&place)).copied();
    at(position).or_else(|| at(position.checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(text: &str, position: usize) -> String {
        let text = SqlHighlighter.highlight(text, position);
        [
            (KEYWORD, "<k:"),
            (STRING, "<s:"),
            (NUMBER, "<n:"),
            (COMMENT, "<c:"),
            (COMMAND, "<m:"),
            (MATCHING, "<p:"),
            (PLAIN, ">"),
        ]
        .iter()
        .fold(text, |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn each_kind_has_its_colour() {
        assert_eq!(
            painted("select 'it''s', a1, 1.5e3 -- x", 0),
            "<k:select> <s:'it''s'>, a1, <n:1.5e3> <c:-- x>"
        );
        assert_eq!(painted("\\d t", 0), "<m:\\d> t");
    }

    #[test]
    fn the_other_parenthesis_is_shown() {
        assert_eq!(painted("(a(b))c", 4), "(a<p:(>b<p:)>)c");
        assert_eq!(painted("(a(b))c", 6), "<p:(>a(b)<p:)>c");
        assert_eq!(painted("(')')", 4), "<p:(><s:')'><p:)>");
    }

    #[test]
    fn a_further_line_begins_with_the_second_prompt() {
        assert_eq!(painted("a\n\tb\tc", 0), "a\n<c:   …> >b     c");
        assert_eq!(unicode_width::UnicodeWidthStr::width(FURTHER), PROMPT.len());
    }
}
