//! The second prompt within the edited text: a tab behind a line end.
//!
//! Within a string, quoted name or comment it would become part of it, so there it is neither put nor taken away.

use eris_sql::{LexemeKind, lexemes};

/// What stands for the second prompt.
pub const MARK: char = '\t';

/// The text without second prompts.
pub fn without(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut after_line_end = false;
    for lexeme in lexemes(text) {
        let part = &text[lexeme.span];
        let blank = lexeme.kind == LexemeKind::Blank;
        if !(blank && after_line_end && part.starts_with(MARK)) {
            plain.push_str(part);
        }
        // A comment to the end of a line includes that end.
        let comment = lexeme.kind == LexemeKind::Comment && part.starts_with("--");
        after_line_end = (blank || comment) && part.ends_with('\n');
    }
    plain
}

/// Whether the end of the text lies in a string, quoted name or comment.
pub fn is_within_text(text: &str) -> bool {
    lexemes(text).last().is_some_and(|last| last.open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prompts_are_taken_away() {
        assert_eq!(
            without("SELECT\t1,\n\t2, -- two\n\t\t3, '\n\t4';"),
            "SELECT\t1,\n2, -- two\n\t3, '\n\t4';"
        );
        assert!(is_within_text("SELECT 'a\n"));
        assert!(!is_within_text("SELECT 'a'\n"));
    }
}
