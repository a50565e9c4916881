//! Lambdas and lists that are made of lists, as the parser knows them.
//!
//! ```text
//! lambda x, i: x + i              (x, i) -> x + i
//! [x + 1 FOR x IN l IF x > 2]     array_transform(array_filter(l, (x) -> x > 2), (x) -> x + 1)
//! ```

use crate::text::tokens::{find, is_word, next};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The tokens with lambdas that the parser knows.
pub(super) fn arrows(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = tokens.len();
    while let Some(place) = tokens[..at]
        .iter()
        .rposition(|token| token.token == Token::LBracket || is_word(token, "LAMBDA"))
    {
        at = place;
        match tokens[place].token {
            Token::LBracket => comprehension(&mut tokens, place),
            _ => lambda(&mut tokens, place),
        }
    }
    tokens
}

/// `lambda x, i:` as `(x, i) ->`.
fn lambda(tokens: &mut Vec<TokenWithSpan>, place: usize) {
    let names = tokens[place + 1..].iter().position(|token| {
        !matches!(
            token.token,
            Token::Word(_) | Token::Comma | Token::Whitespace(_)
        )
    });
    let Some(colon) = names.map(|names| place + 1 + names) else {
        return;
    };
    if tokens[colon].token != Token::Colon || next(tokens, place + 1) == Some(colon) {
        return;
    }
    let span = tokens[place].span;
    tokens[place].token = Token::LParen;
    tokens[colon].token = Token::RParen;
    tokens.insert(colon + 1, TokenWithSpan::new(Token::Arrow, span));
}

fn comprehension(tokens: &mut Vec<TokenWithSpan>, open: usize) {
    let mut depth = 0;
    let close = tokens[open..].iter().position(|token| {
        match token.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some(close) = close.map(|close| open + close) else {
        return;
    };
    let body = &tokens[open + 1..close];
    let Some(for_word) = find(body, 0, &["FOR"]) else {
        return;
    };
    let Some(in_word) = find(body, for_word + 1, &["IN"]) else {
        return;
    };
    let if_word = find(body, in_word + 1, &["IF"]);
    let (value, names) = (&body[..for_word], &body[for_word + 1..in_word]);
    let list = &body[in_word + 1..if_word.unwrap_or(body.len())];
    let mut made = Made {
        tokens: Vec::new(),
        span: tokens[open].span,
    };
    made.call("array_transform");
    if let Some(if_word) = if_word {
        made.call("array_filter");
        made.tokens.extend_from_slice(list);
        made.lambda(names, &body[if_word + 1..]);
    } else {
        made.tokens.extend_from_slice(list);
    }
    made.lambda(names, value);
    tokens.splice(open..=close, made.tokens);
}

struct Made {
    tokens: Vec<TokenWithSpan>,
    span: Span,
}

impl Made {
    fn push(&mut self, token: Token) {
        self.tokens.push(TokenWithSpan::new(token, self.span));
    }

    /// A function and its parenthesis.
    fn call(&mut self, name: &str) {
        self.push(Token::make_word(name, None));
        self.push(Token::LParen);
    }

    /// The last argument, and the end of the call.
    fn lambda(&mut self, names: &[TokenWithSpan], body: &[TokenWithSpan]) {
        self.push(Token::Comma);
        self.push(Token::LParen);
        self.tokens.extend_from_slice(names);
        self.push(Token::RParen);
        self.push(Token::Arrow);
        self.tokens.extend_from_slice(body);
        self.push(Token::RParen);
    }
}

#[cfg(test)]
mod tests {
    use super::arrows;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    #[test]
    fn lambdas_have_arrows() {
        for (text, expected) in [
            ("f(l, lambda x: x + 1)", "f(l, ( x)-> x + 1)"),
            ("f(l, lambda x, i: x)", "f(l, ( x, i)-> x)"),
            (
                "[x + 1 FOR x IN l IF x > 2]",
                "array_transform(array_filter( l ,( x )-> x > 2),( x )->x + 1 )",
            ),
            ("[x FOR x IN [1, 2]]", "array_transform( [1, 2],( x )->x )"),
            ("lambda, l[1:2]", "lambda, l[1:2]"),
        ] {
            let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
            let tokens = arrows(tokens.unwrap());
            let shown: String = tokens.iter().map(|token| token.to_string()).collect();
            assert_eq!(shown, expected);
        }
    }
}
