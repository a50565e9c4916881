//! Looking at tokens: blanks are passed over, and what is in parentheses is passed as a whole.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The first of these words from `start` on that is in no parentheses.
pub(super) fn find(tokens: &[TokenWithSpan], start: usize, words: &[&str]) -> Option<usize> {
    let mut depth = 0;
    let found = tokens.get(start..)?.iter().position(|token| {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            _ => return depth == 0 && is_any(token, words),
        }
        false
    });
    found.map(|found| start + found)
}

/// The parts between commas that are in no parentheses; an empty one behind the last comma is none.
pub(super) fn split(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if next(tokens, start).is_some() {
        parts.push(&tokens[start..]);
    }
    parts
}

/// Where the query ends that has the token `start` in it: at a parenthesis, or a word that joins queries.
pub(super) fn end_of_query(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0;
    let end = tokens[start..].iter().position(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::SemiColon | Token::EOF if depth == 0 => return true,
            _ => return depth == 0 && is_any(token, &["UNION", "EXCEPT", "INTERSECT"]),
        }
        depth < 0
    });
    end.map_or(tokens.len(), |end| start + end)
}

/// The parenthesis that closes the one there.
pub(super) fn matching(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0;
    let close = tokens[open..].iter().position(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    close.map(|close| open + close)
}

/// The next token that is not blank.
pub(super) fn next(tokens: &[TokenWithSpan], start: usize) -> Option<usize> {
    let found = tokens
        .get(start..)?
        .iter()
        .position(|token| !is_blank(token));
    found.map(|found| start + found)
}

/// The last token before `end` that is not blank.
pub(super) fn previous(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    tokens[..end].iter().rposition(|token| !is_blank(token))
}

/// Whether it is this word, without quotes.
pub(super) fn is_word(token: &TokenWithSpan, name: &str) -> bool {
    match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    }
}

/// Whether it is one of these words.
pub(super) fn is_any(token: &TokenWithSpan, words: &[&str]) -> bool {
    words.iter().any(|word| is_word(token, word))
}

/// Whether it is white space or a comment.
pub(super) fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}
