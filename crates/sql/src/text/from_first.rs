//! `FROM t WHERE a = 1` and `TABLE t ORDER BY a`: a query that begins so and has no SELECT selects everything.
//!
//! The parser knows `FROM t` and `FROM t SELECT a`, but no other clause behind a FROM without SELECT, and little of
//! `TABLE t`. So the words that are left out are put before the name.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The tokens with `SELECT * FROM` in the place of each such FROM or TABLE.
pub(super) fn select_all(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let selects_all = |at: &usize| {
        let (before, rest) = tokens.split_at(*at);
        is(&rest[0], Keyword::FROM) && begins_query(before) && !is_selected(rest)
            || is(&rest[0], Keyword::TABLE)
                && begins_query(before)
                && !is_described(before)
                && !is_of_macro(rest)
    };
    let begins: Vec<usize> = (0..tokens.len()).filter(selects_all).collect();
    if begins.is_empty() {
        return tokens;
    }
    let mut begins = begins.into_iter().peekable();
    let mut out = Vec::with_capacity(tokens.len() + 2);
    for (at, token) in tokens.into_iter().enumerate() {
        if begins.next_if_eq(&at).is_some() {
            let [select, from] = ["SELECT", "FROM"].map(Token::make_keyword);
            let words = [select, Token::Mul, from];
            out.extend(words.map(|word| TokenWithSpan::new(word, token.span)));
        } else {
            out.push(token);
        }
    }
    out
}

/// Whether a query may begin behind these tokens.
fn begins_query(before: &[TokenWithSpan]) -> bool {
    let mut before = before.iter().rev().filter(|token| !is_blank(token));
    let Some(last) = before.next() else {
        return true;
    };
    let word = match &last.token {
        // `trim(FROM x)` is no query.
        Token::LParen => return before.next().is_none_or(|token| !is(token, Keyword::TRIM)),
        Token::Word(word) => word.keyword,
        // The columns of INSERT, or a query of WITH.
        Token::RParen => {
            let mut depth = 1;
            let mut before = before.skip_while(|token| {
                depth += match token.token {
                    Token::RParen => 1,
                    Token::LParen => -1,
                    _ => 0,
                };
                depth > 0
            });
            let name = before.nth(1);
            let is_named = |name| is(name, Keyword::AS) || is(name, Keyword::MATERIALIZED);
            return name.is_some_and(|name| is_named(name) || is_inserted(before));
        }
        _ => return false,
    };
    match word {
        Keyword::AS
        | Keyword::UNION
        | Keyword::EXCEPT
        | Keyword::INTERSECT
        | Keyword::EXPLAIN
        | Keyword::ANALYZE
        | Keyword::DESCRIBE => true,
        // The query of a macro.
        Keyword::TABLE => before.next().is_some_and(|token| is(token, Keyword::AS)),
        Keyword::ALL => before.next().is_some_and(|token| {
            let sets = [Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];
            sets.iter().any(|set| is(token, *set))
        }),
        _ => is_inserted(before),
    }
}

/// Whether these tokens, the last one first, lead back to INSERT INTO by nothing but a name.
fn is_inserted<'a>(mut before: impl Iterator<Item = &'a TokenWithSpan>) -> bool {
    while let Some(token) = before.next() {
        match &token.token {
            Token::Word(word) if word.keyword == Keyword::INTO => {
                let words = [Keyword::INSERT, Keyword::REPLACE, Keyword::IGNORE];
                let insert = before.next();
                return insert.is_some_and(|token| words.iter().any(|word| is(token, *word)));
            }
            Token::Word(word) if word.keyword == Keyword::SELECT => return false,
            Token::Word(_) | Token::Period => {}
            _ => return false,
        }
    }
    false
}

/// Whether these tokens end with a word behind which TABLE says what follows.
fn is_described(before: &[TokenWithSpan]) -> bool {
    let last = before.iter().rev().find(|token| !is_blank(token));
    let words = [Keyword::DESCRIBE, Keyword::ANALYZE];
    last.is_some_and(|last| words.iter().any(|word| is(last, *word)))
}

/// Whether a query follows TABLE, not a name: it is that of a macro.
fn is_of_macro(rest: &[TokenWithSpan]) -> bool {
    let mut behind = rest[1..].iter().filter(|token| !is_blank(token));
    behind.next().is_none_or(|token| match &token.token {
        Token::LParen => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::FROM | Keyword::VALUES | Keyword::TABLE
        ),
        _ => false,
    })
}

/// Whether the query that begins with these tokens has a SELECT of its own.
fn is_selected(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0;
    for token in tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            Token::Word(word) if depth == 0 => match word.keyword {
                Keyword::SELECT => return true,
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

fn is(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

#[cfg(test)]
mod tests {
    use super::select_all;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    #[test]
    fn what_is_left_out_is_put_before_from() {
        for (text, expected) in [
            ("FROM t", "SELECT*FROM t"),
            ("FROM t WHERE a = 1", "SELECT*FROM t WHERE a = 1"),
            ("FROM t SELECT a", "FROM t SELECT a"),
            ("SELECT a FROM (FROM t)", "SELECT a FROM (SELECT*FROM t)"),
            (
                "FROM t UNION ALL FROM u",
                "SELECT*FROM t UNION ALL SELECT*FROM u",
            ),
            (
                "INSERT INTO s.t (a, b) FROM u",
                "INSERT INTO s.t (a, b) SELECT*FROM u",
            ),
            ("INSERT INTO t FROM u", "INSERT INTO t SELECT*FROM u"),
            (
                "SELECT trim(FROM a), extract(year FROM d)",
                "SELECT trim(FROM a), extract(year FROM d)",
            ),
            ("SELECT a IS DISTINCT FROM b", "SELECT a IS DISTINCT FROM b"),
            ("SELECT (a) FROM t", "SELECT (a) FROM t"),
            (
                "WITH q AS (SELECT 1), r AS (FROM q) FROM r",
                "WITH q AS (SELECT 1), r AS (SELECT*FROM q) SELECT*FROM r",
            ),
            ("SELECT a INTO x FROM t", "SELECT a INTO x FROM t"),
            ("DELETE FROM t", "DELETE FROM t"),
            ("TABLE t", "SELECT*FROM t"),
            (
                "(TABLE t) UNION TABLE u",
                "(SELECT*FROM t) UNION SELECT*FROM u",
            ),
            ("DROP TABLE t", "DROP TABLE t"),
            ("INSERT INTO TABLE t", "INSERT INTO TABLE t"),
        ] {
            let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
            let tokens = select_all(tokens.unwrap());
            let shown: String = tokens.iter().map(|token| token.to_string()).collect();
            assert_eq!(shown, expected);
        }
    }
}
