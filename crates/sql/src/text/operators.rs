//! Operators with a sign behind them: `x>-1` is `x > -1`, as in PostgreSQL and DuckDB.
//!
//! The tokenizer takes all characters of operators that stand together for one operator, as PostgreSQL does. It lacks
//! PostgreSQL's exception: an operator of standard SQL ends before a sign. Here `%` does, too, so `5%-3` is 2.
//! PostgreSQL and DuckDB reject that.
//!
//! DuckDB's `a // b` and `a ** b` are `a / b` and `a ^ b`: of integers, `/` is the whole part of the quotient here.

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

/// The tokens, in which signs are tokens of their own.
pub(super) fn before_signs(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut apart: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Some(last) = apart.last_mut()
            && let Some(both) = doubled(last, &token)
        {
            last.token = both;
            last.span.end = token.span.end;
            continue;
        }
        match parts(&token) {
            Some(parts) => apart.extend(parts),
            None => apart.push(token),
        }
    }
    apart
}

/// What two tokens mean that stand together: `**`, `//`, and `0XAB`, of which the tokenizer takes the letters for a
/// name.
fn doubled(first: &TokenWithSpan, second: &TokenWithSpan) -> Option<Token> {
    if first.span.end != second.span.start {
        return None;
    }
    match (&first.token, &second.token) {
        (Token::Mul, Token::Mul) => Some(Token::Caret),
        (Token::Div, Token::Div) => Some(Token::Div),
        (Token::Number(zero, false), Token::Word(word))
            if zero == "0" && word.quote_style.is_none() =>
        {
            let digits = word.value.strip_prefix('X')?.replace('_', "");
            let number = u128::from_str_radix(&digits, 16).ok()?;
            Some(Token::Number(number.to_string(), false))
        }
        _ => None,
    }
}

/// An operator and the signs behind it; `None` if it is another token.
fn parts(token: &TokenWithSpan) -> Option<Vec<TokenWithSpan>> {
    let Token::CustomBinaryOperator(text) = &token.token else {
        return None;
    };
    let name = text.trim_end_matches(['+', '-']);
    let operator = match name {
        "=" => Some(Token::Eq),
        "<>" | "!=" => Some(Token::Neq),
        "<" => Some(Token::Lt),
        "<=" => Some(Token::LtEq),
        ">" => Some(Token::Gt),
        ">=" => Some(Token::GtEq),
        "*" => Some(Token::Mul),
        "/" => Some(Token::Div),
        "%" => Some(Token::Mod),
        // Nothing but signs.
        "" => None,
        _ => return None,
    };
    // All of it is ASCII, and on one line.
    let Location { line, column } = token.span.start;
    let at = |first: usize, length: usize| {
        let place = |behind: usize| Location::of(line, column + behind as u64);
        Span::new(place(first), place(first + length))
    };
    let operator = operator.map(|operator| TokenWithSpan::new(operator, at(0, name.len())));
    let mut parts: Vec<TokenWithSpan> = operator.into_iter().collect();
    for (behind, sign) in text[name.len()..].chars().enumerate() {
        let sign = match sign {
            '-' => Token::Minus,
            _ => Token::Plus,
        };
        parts.push(TokenWithSpan::new(sign, at(name.len() + behind, 1)));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    /// The tokens of a text, each with its column.
    fn tokens(text: &str) -> Vec<String> {
        let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
        let tokens = before_signs(tokens.unwrap()).into_iter();
        tokens
            .map(|token| format!("{} {}", token.span.start.column, token.token))
            .collect()
    }

    #[test]
    fn signs_are_tokens_of_their_own() {
        assert_eq!(tokens("x>-1"), ["1 x", "2 >", "3 -", "4 1"]);
        assert_eq!(tokens("5-+3"), ["1 5", "2 -", "3 +", "4 3"]);
        assert_eq!(tokens("x<>+-1"), ["1 x", "2 <>", "4 +", "5 -", "6 1"]);
        for operator in ["=", "<>", "<", "<=", ">", ">=", "*", "/", "%"] {
            let shown = tokens(&format!("5{operator}-3"));
            let behind = 2 + operator.len();
            assert_eq!(
                shown[1..3],
                [format!("2 {operator}"), format!("{behind} -")]
            );
        }
    }

    #[test]
    fn operators_of_duckdb_are_those_of_others() {
        assert_eq!(tokens("7//2"), ["1 7", "2 /", "4 2"]);
        assert_eq!(tokens("2**-3"), ["1 2", "2 ^", "4 -", "5 3"]);
        assert_eq!(tokens("2*3"), ["1 2", "2 *", "3 3"]);
        assert_eq!(tokens("0XAB_cd 0Xy"), ["1 43981", "8  ", "9 0", "10 Xy"]);
    }

    #[test]
    fn other_operators_stay_what_they_are() {
        for operator in ["->", "->>", "@>", "#-", "~*", "||", "!~*"] {
            let shown = tokens(&format!("a{operator}b"));
            assert_eq!(shown[1], format!("2 {operator}"), "{shown:?}");
        }
    }
}
