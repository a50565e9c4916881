//! Columns of CREATE TABLE that have an expression and no type, which the parser wants to see: `x AS (a + 1)`,
//! `x GENERATED ALWAYS AS (a + 1)`.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The type that stands for that of the expression. No type is called so, for nothing closes its bracket.
pub(crate) const OF_EXPRESSION: &str = "of expression(";

/// Writes the type of such columns out.
pub(super) fn with_types(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut words = tokens.iter().filter_map(keyword).take(5);
    let is_table =
        words.next() == Some(Keyword::CREATE) && words.any(|word| word == Keyword::TABLE);
    let has_expression =
        |token: &TokenWithSpan| matches!(keyword(token), Some(Keyword::AS | Keyword::GENERATED));
    if !is_table || !tokens.iter().any(has_expression) {
        return tokens;
    }
    let mut typed = Vec::with_capacity(tokens.len() + 1);
    let mut depth = 0;
    // The last tokens that are no blanks, the later one first.
    let mut before: [Option<Token>; 2] = [None, None];
    let mut is_query = false;
    for token in tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let word = keyword(&token);
        is_query |= depth == 0 && word == Some(Keyword::AS);
        let begins = matches!(before[1], Some(Token::LParen | Token::Comma));
        let is_name = matches!(before[0], Some(Token::Word(_)));
        let is_expression = matches!(word, Some(Keyword::AS | Keyword::GENERATED));
        if depth == 1 && !is_query && begins && is_name && is_expression {
            let name = Token::make_word(OF_EXPRESSION, Some('"'));
            typed.push(TokenWithSpan::new(name, token.span));
        }
        if !matches!(token.token, Token::Whitespace(_)) {
            before = [Some(token.token.clone()), before[0].take()];
        }
        typed.push(token);
    }
    typed
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        Token::Word(_) => Some(Keyword::NoKeyword),
        _ => None,
    }
}
