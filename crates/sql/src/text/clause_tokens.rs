//! Clauses that the parser does not know, as such that it does.
//!
//! ```text
//! a ASOF LEFT JOIN b ON …            a GLOBAL LEFT JOIN b ON …
//! a POSITIONAL JOIN b                a GLOBAL CROSS JOIN b
//! INSERT INTO t BY NAME SELECT …     INSERT INTO t ("by name(") SELECT …
//! ROWS … EXCLUDE NO OTHERS           ROWS …
//! ANY (VALUES …)                     ANY (SELECT * FROM (VALUES …))
//! (FROM t SELECT a WHERE b)          (SELECT a FROM t WHERE b)
//! ```
//!
//! GLOBAL before JOIN is a word of another database. Whoever writes it here names a table so, as in DuckDB.

use crate::error::SqlError;
use crate::text::tokens::{end_of_query, find, is_any, is_word, matching, next, previous};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The only column of an INSERT whose query's columns tell theirs.
pub(crate) const BY_NAME: &str = "by name(";

/// Words that end the list of a query that begins with FROM.
const BEHIND_LIST: [&str; 9] = [
    "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "USING",
];

/// The tokens with clauses that the parser knows.
///
/// # Errors
/// Frames with EXCLUDE.
pub(super) fn known(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let words = [
        "ASOF",
        "POSITIONAL",
        "GLOBAL",
        "BY",
        "EXCLUDE",
        "FROM",
        "ANY",
        "SOME",
        "ALL",
    ];
    let mut at = tokens.len();
    while let Some(place) = tokens[..at].iter().rposition(|token| is_any(token, &words)) {
        at = place;
        let span = tokens[place].span;
        let token = |token| TokenWithSpan::new(token, span);
        let Some(behind) = next(&tokens, place + 1) else {
            continue;
        };
        let joins = ["JOIN", "LEFT", "INNER", "RIGHT", "FULL", "CROSS"];
        if is_word(&tokens[place], "FROM") {
            selected_first(&mut tokens, place);
        } else if is_word(&tokens[place], "GLOBAL") {
            if is_any(&tokens[behind], &joins) {
                tokens[place].token = Token::make_word("global", Some('"'));
            }
        } else if is_word(&tokens[place], "ASOF") {
            if is_any(&tokens[behind], &joins) {
                tokens[place].token = Token::make_keyword("GLOBAL");
            }
        } else if is_word(&tokens[place], "POSITIONAL") {
            if is_word(&tokens[behind], "JOIN") {
                let words = ["GLOBAL", "CROSS"].map(|word| token(Token::make_keyword(word)));
                tokens.splice(place..=place, words);
            }
        } else if is_word(&tokens[place], "EXCLUDE") {
            if is_word(&tokens[behind], "NO")
                && let Some(others) = next(&tokens, behind + 1)
                && is_word(&tokens[others], "OTHERS")
            {
                tokens.drain(place..=others);
            } else if is_any(&tokens[behind], &["CURRENT", "GROUP", "TIES"])
                && let Some(before) = previous(&tokens, place)
                && is_any(&tokens[before], &["ROW", "PRECEDING", "FOLLOWING"])
            {
                return Err(SqlError::not_supported("frames with EXCLUDE"));
            }
        } else if is_any(&tokens[place], &["ANY", "SOME", "ALL"]) {
            compared_values(&mut tokens, behind);
        } else if is_inserted(&tokens[..place]) {
            let name = Token::make_word(BY_NAME, Some('"'));
            if is_word(&tokens[behind], "NAME") {
                let column = [Token::LParen, name, Token::RParen].map(token);
                tokens.splice(place..=behind, column);
            } else if is_word(&tokens[behind], "POSITION") {
                tokens.drain(place..=behind);
            }
        }
    }
    Ok(tokens)
}

/// Puts the list of `(FROM t SELECT a …)` before FROM, for the parser looks for SELECT behind a parenthesis.
fn selected_first(tokens: &mut Vec<TokenWithSpan>, from: usize) {
    let begins = previous(tokens, from).is_some_and(|at| tokens[at].token == Token::LParen);
    if !begins {
        return;
    }
    let end = end_of_query(tokens, from + 1);
    let Some(select) = find(&tokens[..end], from + 1, &["SELECT"]) else {
        return;
    };
    let list_end = find(&tokens[..end], select + 1, &BEHIND_LIST).unwrap_or(end);
    tokens[from..list_end].rotate_left(select - from);
    // What is between two words may have been at an end.
    let space = Token::Whitespace(Whitespace::Space);
    let moved = from + (list_end - select);
    let span = tokens[moved].span;
    tokens.insert(moved, TokenWithSpan::new(space, span));
}

/// `ANY (VALUES …)`, of which the parenthesis is there, is `ANY (SELECT * FROM (VALUES …))`.
fn compared_values(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    if tokens[open].token != Token::LParen {
        return;
    }
    let (Some(values), Some(close)) = (next(tokens, open + 1), matching(tokens, open)) else {
        return;
    };
    if is_word(&tokens[values], "VALUES") {
        let span = tokens[values].span;
        tokens.insert(close, TokenWithSpan::new(Token::RParen, span));
        let [select, from] = ["SELECT", "FROM"].map(Token::make_keyword);
        let begin = [select, Token::Mul, from, Token::LParen];
        let begin = begin.map(|token| TokenWithSpan::new(token, span));
        tokens.splice(values..values, begin);
    }
}

/// Whether these tokens are `INSERT … INTO` and the name of a table.
fn is_inserted(before: &[TokenWithSpan]) -> bool {
    let is_insert = next(before, 0).is_some_and(|first| is_word(&before[first], "INSERT"));
    is_insert
        && find(before, 0, &["INTO"]).is_some()
        && find(
            before,
            0,
            &["SELECT", "VALUES", "FROM", "WITH", "DEFAULT", "SET"],
        )
        .is_none()
        && !before.iter().any(|token| token.token == Token::LParen)
}

#[cfg(test)]
mod tests {
    use super::known;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    #[test]
    fn clauses_are_such_that_the_parser_knows() {
        for (text, expected) in [
            ("a ASOF LEFT JOIN b", "a GLOBAL LEFT JOIN b"),
            ("a POSITIONAL JOIN b", "a GLOBALCROSS JOIN b"),
            ("a GLOBAL JOIN b", "a \"global\" JOIN b"),
            (
                "INSERT INTO t BY NAME SELECT 1",
                "INSERT INTO t (\"by name(\") SELECT 1",
            ),
            (
                "INSERT INTO t SELECT 1 ORDER BY name",
                "INSERT INTO t SELECT 1 ORDER BY name",
            ),
            ("ROWS 1 PRECEDING EXCLUDE NO OTHERS)", "ROWS 1 PRECEDING )"),
            (
                "SELECT (FROM t SELECT max(a) WHERE b)",
                "SELECT (SELECT max(a)  FROM t WHERE b)",
            ),
            ("FROM t SELECT a", "FROM t SELECT a"),
            ("trim(FROM a)", "trim(FROM a)"),
        ] {
            let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
            let shown: String = known(tokens.unwrap())
                .unwrap()
                .iter()
                .map(|token| token.to_string())
                .collect();
            assert_eq!(shown, expected);
        }
    }
}
