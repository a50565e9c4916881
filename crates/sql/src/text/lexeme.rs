//! The parts of a text that tell statements apart: strings, quoted names, comments, semicolons.

use std::ops::Range;

/// A part of a script. Lexemes follow each other without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// What it is.
    pub kind: LexemeKind,
    /// Where it is, in bytes.
    pub span: Range<usize>,
    /// Whether the script ends before it does: a string, quoted name or comment without its end.
    pub open: bool,
}

/// What a lexeme is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// One character of white space, or a byte order mark.
    Blank,
    /// `-- …` with its line end, `/* … */`.
    Comment,
    /// `'…'` without what may precede it, such as `E`; `$$…$$`.
    String,
    /// `"…"`.
    Name,
    /// `;`, the end of a statement.
    Semicolon,
    /// One character of anything else.
    Other,
}

/// With what some editors begin a file.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The lexemes of a script.
pub fn lexemes(script: &str) -> impl Iterator<Item = Lexeme> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let lexeme = (at < script.len()).then(|| lexeme(script, at))?;
        at = lexeme.span.end;
        Some(lexeme)
    })
}

/// The lexeme that begins at `at`: at least one character.
fn lexeme(script: &str, at: usize) -> Lexeme {
    let rest = &script[at..];
    let bytes = rest.as_bytes();
    let closed = |kind, length: Option<usize>| Lexeme {
        kind,
        span: at..length.map_or(script.len(), |length| at + length),
        open: length.is_none(),
    };
    match bytes[0] {
        b';' => closed(LexemeKind::Semicolon, Some(1)),
        b'-' if bytes.get(1) == Some(&b'-') => {
            let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
            closed(LexemeKind::Comment, Some(end))
        }
        b'/' if bytes.get(1) == Some(&b'*') => closed(LexemeKind::Comment, comment(bytes)),
        b'\'' => {
            let end = quoted(bytes, b'\'', backslash(&script[..at]));
            closed(LexemeKind::String, end)
        }
        b'"' => closed(LexemeKind::Name, quoted(bytes, b'"', false)),
        b'$' => match dollar_tag(&script[..at], rest) {
            Some(tag) => {
                let end = rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len());
                closed(LexemeKind::String, end)
            }
            None => closed(LexemeKind::Other, Some(1)),
        },
        _ => {
            let c = rest.chars().next().expect("not at the end");
            let kind = if c.is_whitespace() || c == BYTE_ORDER_MARK {
                LexemeKind::Blank
            } else {
                LexemeKind::Other
            };
            closed(kind, Some(c.len_utf8()))
        }
    }
}

/// Length of a quoted text; a doubled quote stands for one.
fn quoted(bytes: &[u8], quote: u8, backslash: bool) -> Option<usize> {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if backslash => at += 1,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether the string that follows `before` is an `E'…'`, in which a backslash escapes.
fn backslash(before: &str) -> bool {
    let mut chars = before.chars().rev();
    matches!(chars.next(), Some('e' | 'E')) && !chars.next().is_some_and(is_word)
}

/// Length of a comment; comments nest.
fn comment(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The tag `$name$` with which `rest` begins, unless the dollar belongs to a word or parameter.
fn dollar_tag<'a>(before: &str, rest: &'a str) -> Option<&'a str> {
    if before.chars().next_back().is_some_and(is_word) {
        return None;
    }
    let end = 1 + rest[1..].find(|c: char| !is_word(c))?;
    let name = &rest[1..end];
    let is_tag = rest.as_bytes()[end] == b'$' && !name.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &rest[..=end])
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_told_apart() {
        let script = "a 'it''s'\"n\"; --c\n$x$;$x$/* open";
        let parts: Vec<_> = lexemes(script)
            .filter(|lexeme| lexeme.kind != LexemeKind::Blank)
            .map(|lexeme| (lexeme.kind, &script[lexeme.span], lexeme.open))
            .collect();
        let expected = [
            (LexemeKind::Other, "a", false),
            (LexemeKind::String, "'it''s'", false),
            (LexemeKind::Name, "\"n\"", false),
            (LexemeKind::Semicolon, ";", false),
            (LexemeKind::Comment, "--c\n", false),
            (LexemeKind::String, "$x$;$x$", false),
            (LexemeKind::Comment, "/* open", true),
        ];
        assert_eq!(parts, expected);
    }

    proptest! {
        #[test]
        fn no_character_is_lost(script in "[-a;'\"$/* \n_1E\\\\é]{0,60}") {
            let mut end = 0;
            for lexeme in lexemes(&script) {
                prop_assert_eq!(lexeme.span.start, end);
                end = lexeme.span.end;
            }
            prop_assert_eq!(end, script.len());
        }
    }
}
