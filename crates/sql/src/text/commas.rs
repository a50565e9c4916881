//! A comma behind the last item of a list, as DuckDB takes it: `SELECT a, b, FROM t`, `f(1, 2,)`, `VALUES (1,), (2,),`.

use crate::text::tokens::{is_any, next};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words that end a list, and never begin an item of one.
const ENDS: [&str; 17] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "QUALIFY",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "RETURNING",
    "ROWS",
    "RANGE",
    "GROUPS",
    "USING",
];

/// The tokens without such commas.
pub(super) fn without_last(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_last = |at: &usize| {
        tokens[*at].token == Token::Comma && ends_list(&tokens, *at) && has_item(&tokens[..*at])
    };
    let last: Vec<usize> = (0..tokens.len()).filter(is_last).collect();
    if last.is_empty() {
        return tokens;
    }
    let mut last = last.into_iter().peekable();
    let kept = tokens.into_iter().enumerate();
    let kept = kept.filter(|(at, _)| last.next_if_eq(at).is_none());
    kept.map(|(_, token)| token).collect()
}

fn ends_list(tokens: &[TokenWithSpan], comma: usize) -> bool {
    let Some(behind) = next(tokens, comma + 1) else {
        return true;
    };
    match &tokens[behind].token {
        Token::RParen | Token::RBracket | Token::RBrace | Token::SemiColon | Token::EOF => true,
        Token::Word(_) if is_any(&tokens[behind], &ENDS) => !is_name(tokens, behind),
        // `WITH a AS (…), SELECT`.
        Token::Word(_) => is_any(&tokens[behind], &["SELECT"]),
        _ => false,
    }
}

/// Whether a word is a name after all, such as that of a column `rows` or of a function `range`.
fn is_name(tokens: &[TokenWithSpan], word: usize) -> bool {
    let names = ["ROWS", "RANGE", "GROUPS", "OFFSET", "WINDOW"];
    if !is_any(&tokens[word], &names) {
        return false;
    }
    match next(tokens, word + 1) {
        None => true,
        Some(behind) => {
            let begins = ["BETWEEN", "UNBOUNDED", "CURRENT"];
            let is_frame = is_any(&tokens[behind], &begins);
            let is_number = matches!(tokens[behind].token, Token::Number(..));
            let is_named = is_any(&tokens[word], &["WINDOW"])
                && matches!(tokens[behind].token, Token::Word(_));
            !(is_frame || is_number || is_named)
        }
    }
}

/// Whether an item ends before the comma.
fn has_item(before: &[TokenWithSpan]) -> bool {
    let last = before
        .iter()
        .rev()
        .find(|token| !super::tokens::is_blank(token));
    last.is_some_and(|last| match &last.token {
        Token::Comma | Token::LParen | Token::LBracket | Token::LBrace => false,
        Token::Word(_) => !is_any(last, &["SELECT", "VALUES", "BY"]),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::without_last;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    #[test]
    fn only_the_last_comma_of_a_list_is_left_out() {
        for (text, expected) in [
            ("SELECT a, b, FROM t", "SELECT a, b FROM t"),
            ("SELECT f(1,), [1,], FROM t", "SELECT f(1), [1] FROM t"),
            ("VALUES (1,), (2,),", "VALUES (1), (2)"),
            (
                "SELECT a GROUP BY a, ORDER BY a,",
                "SELECT a GROUP BY a ORDER BY a",
            ),
            (
                "WITH x AS (SELECT 1), SELECT 1",
                "WITH x AS (SELECT 1) SELECT 1",
            ),
            ("f(,)", "f(,)"),
            ("SELECT , FROM t", "SELECT , FROM t"),
            ("SELECT a,, b", "SELECT a,, b"),
            ("FROM t, range(3)", "FROM t, range(3)"),
            (
                "SELECT a, rows, offset FROM t",
                "SELECT a, rows, offset FROM t",
            ),
            (
                "OVER (PARTITION BY a, ROWS BETWEEN",
                "OVER (PARTITION BY a ROWS BETWEEN",
            ),
        ] {
            let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
            let shown: String = without_last(tokens.unwrap())
                .iter()
                .map(|token| token.to_string())
                .collect();
            assert_eq!(shown, expected);
        }
    }
}
