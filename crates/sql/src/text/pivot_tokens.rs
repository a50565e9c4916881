//! `PIVOT t ON a USING sum(b) GROUP BY c` and `UNPIVOT t ON a, b INTO NAME n VALUE v`, which the parser does not know,
//! as clauses that it does.
//!
//! ```text
//! PIVOT t ON a, b IN (1, 2 AS two) USING sum(x) AS s GROUP BY c ORDER BY c
//! SELECT * FROM t PIVOT (count(*) FOR p IN ("pivot on("(a), "pivot on("(b, 1, two => 2), "pivot using("(s => sum(x)),
//!                                           "pivot group("(c))) ORDER BY c
//!
//! UNPIVOT t ON a, b INTO NAME n VALUE v
//! SELECT * FROM t UNPIVOT (v FOR n IN (a, b))
//! ```
//!
//! `FOR a IN (…) b IN (…) GROUP BY c` in the clause becomes such calls, too.

use crate::text::pivot::{GROUP, ON, USING};
use crate::text::tokens::{end_of_query, find, is_any, is_blank, matching, next, previous, split};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The tokens with every PIVOT and UNPIVOT as a clause.
pub(super) fn clauses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens = tokens;
    // From the last one on, so that those within come first.
    let mut at = tokens.len();
    while let Some(place) = tokens[..at].iter().rposition(is_pivot) {
        at = place;
        let is_clause = next(&tokens, place + 1).is_some_and(|next| {
            tokens[next].token == Token::LParen
                && previous(&tokens, place).is_some_and(|before| names(&tokens[before]))
        });
        let rewritten = match (is_clause, is_unpivot(&tokens[place])) {
            (true, false) => clause(&tokens, place),
            (true, true) => None,
            (false, unpivot) => match begins_query(&tokens, place) {
                true => statement(&tokens, place, unpivot),
                false => None,
            },
        };
        if let Some((end, new)) = rewritten {
            tokens.splice(place..end, new);
        }
    }
    tokens
}

fn is_pivot(token: &TokenWithSpan) -> bool {
    is_any(token, &["PIVOT", "PIVOT_WIDER"]) || is_unpivot(token)
}

fn is_unpivot(token: &TokenWithSpan) -> bool {
    is_any(token, &["UNPIVOT", "PIVOT_LONGER"])
}

/// Words behind which a query may begin.
const BEFORE: [&str; 8] = [
    "AS",
    "EXPLAIN",
    "ANALYZE",
    "DESCRIBE",
    "ALL",
    "UNION",
    "EXCEPT",
    "INTERSECT",
];

/// Whether a token may end a table, so that a clause follows.
fn names(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::RParen => true,
        Token::Word(_) => !is_any(token, &BEFORE),
        _ => false,
    }
}

/// Whether a query may begin here.
fn begins_query(tokens: &[TokenWithSpan], place: usize) -> bool {
    previous(tokens, place).is_none_or(|before| {
        let is_parenthesis = matches!(tokens[before].token, Token::LParen | Token::RParen);
        is_parenthesis || is_any(&tokens[before], &BEFORE)
    })
}

/// The end of a statement, and the query that it becomes.
fn statement(
    tokens: &[TokenWithSpan],
    place: usize,
    unpivot: bool,
) -> Option<(usize, Vec<TokenWithSpan>)> {
    let span = tokens[place].span;
    let end = end_of_query(tokens, place + 1);
    let body = &tokens[place + 1..end];
    let on = find(body, 0, &["ON"])?;
    let mut out = Words::new(span);
    out.words(&["SELECT"]);
    out.push(Token::Mul);
    out.words(&["FROM"]);
    out.copy(&body[..on]);
    let rest = &body[on + 1..];
    let tail = find(rest, 0, &["ORDER", "LIMIT", "OFFSET", "FETCH"]).unwrap_or(rest.len());
    let (rest, tail) = rest.split_at(tail);
    if unpivot {
        let into = find(rest, 0, &["INTO"]).unwrap_or(rest.len());
        let (list, into) = rest.split_at(into);
        let value = find(into, 0, &["VALUE", "VALUES"]);
        let name = find(into, 0, &["NAME"]);
        let (name, values) = match (name, value) {
            (Some(name), Some(value)) => (into.get(name + 1..value)?, into.get(value + 1..)?),
            (None, None) if into.is_empty() => (into, into),
            _ => return None,
        };
        out.words(&["UNPIVOT"]);
        out.push(Token::LParen);
        match values.is_empty() {
            true => out.words(&["value"]),
            false => {
                let several = split(values).len() > 1;
                out.list(values, several);
            }
        }
        out.words(&["FOR"]);
        match name.is_empty() {
            true => out.words(&["name"]),
            false => out.copy(name),
        }
        out.words(&["IN"]);
        out.push(Token::LParen);
        let items = split(list);
        let is_all = items.len() == 1 && solid(items[0]).eq([&Token::Mul]);
        match is_all {
            true => {
                out.words(&["columns"]);
                out.list(list, true);
            }
            false => out.copy(list),
        }
        out.push(Token::RParen);
        out.push(Token::RParen);
    } else {
        let group = find(rest, 0, &["GROUP"]);
        let (rest, group) = match group {
            Some(group) => (&rest[..group], Some(&rest[group..])),
            None => (rest, None),
        };
        let using = find(rest, 0, &["USING"]);
        let (on, using) = match using {
            Some(using) => (&rest[..using], Some(&rest[using + 1..])),
            None => (rest, None),
        };
        out.words(&["PIVOT"]);
        out.push(Token::LParen);
        out.count();
        out.words(&["FOR", "p", "IN"]);
        out.push(Token::LParen);
        for (number, item) in split(on).into_iter().enumerate() {
            if number > 0 {
                out.push(Token::Comma);
            }
            out.on(item)?;
        }
        if let Some(using) = using {
            out.push(Token::Comma);
            out.call(USING, &split(using));
        }
        if let Some(group) = group {
            let by = find(group, 0, &["BY"])?;
            out.push(Token::Comma);
            out.call(GROUP, &split(&group[by + 1..]));
        }
        out.push(Token::RParen);
        out.push(Token::RParen);
    }
    out.copy(tail);
    Some((end, out.tokens))
}

/// The end of a clause that the parser does not know as it is, and what it becomes.
fn clause(tokens: &[TokenWithSpan], place: usize) -> Option<(usize, Vec<TokenWithSpan>)> {
    let open = next(tokens, place + 1)?;
    let close = matching(tokens, open)?;
    let body = &tokens[open + 1..close];
    let for_word = find(body, 0, &["FOR"])?;
    let (aggregates, columns) = (&body[..for_word], &body[for_word + 1..]);
    let group = find(columns, 0, &["GROUP"]);
    let (columns, group) = match group {
        Some(group) => (&columns[..group], Some(&columns[group..])),
        None => (columns, None),
    };
    let mut out = Words::new(tokens[place].span);
    out.words(&["PIVOT"]);
    out.push(Token::LParen);
    out.count();
    out.words(&["FOR", "p", "IN"]);
    out.push(Token::LParen);
    let mut rest = columns;
    let mut number = 0;
    while let Some(in_word) = find(rest, 0, &["IN"]) {
        let open = next(rest, in_word + 1)?;
        if rest[open].token != Token::LParen {
            return None;
        }
        let close = matching(rest, open)?;
        if number > 0 {
            out.push(Token::Comma);
        }
        number += 1;
        out.on(&rest[..=close])?;
        rest = &rest[close + 1..];
    }
    if number == 0 || next(rest, 0).is_some() {
        return None;
    }
    out.push(Token::Comma);
    out.call(USING, &split(aggregates));
    if let Some(group) = group {
        let by = find(group, 0, &["BY"])?;
        out.push(Token::Comma);
        out.call(GROUP, &split(&group[by + 1..]));
    }
    out.push(Token::RParen);
    out.push(Token::RParen);
    Some((close + 1, out.tokens))
}

/// Tokens that are written.
struct Words {
    tokens: Vec<TokenWithSpan>,
    span: Span,
}

impl Words {
    fn new(span: Span) -> Self {
        Words {
            tokens: Vec::new(),
            span,
        }
    }

    fn push(&mut self, token: Token) {
        self.tokens.push(TokenWithSpan::new(token, self.span));
    }

    fn words(&mut self, words: &[&str]) {
        words
            .iter()
            .for_each(|word| self.push(Token::make_word(word, None)));
    }

    fn copy(&mut self, tokens: &[TokenWithSpan]) {
        self.tokens.extend_from_slice(tokens);
    }

    fn list(&mut self, tokens: &[TokenWithSpan], in_parentheses: bool) {
        if in_parentheses {
            self.push(Token::LParen);
        }
        self.copy(tokens);
        if in_parentheses {
            self.push(Token::RParen);
        }
    }

    /// What is computed unless USING says otherwise.
    fn count(&mut self) {
        self.words(&["count"]);
        self.push(Token::LParen);
        self.push(Token::Mul);
        self.push(Token::RParen);
    }

    /// `a IN (1, 2 AS two)` as a call.
    fn on(&mut self, item: &[TokenWithSpan]) -> Option<()> {
        let mut arguments = Vec::new();
        match find(item, 0, &["IN"]) {
            Some(in_word) => {
                let open = next(item, in_word + 1)?;
                let close = matching(item, open)?;
                arguments.push(&item[..in_word]);
                arguments.extend(split(&item[open + 1..close]));
            }
            None => arguments.push(item),
        }
        self.call(ON, &arguments);
        Some(())
    }

    /// A call with these arguments, `e AS name` as `name => e`.
    fn call(&mut self, name: &str, arguments: &[&[TokenWithSpan]]) {
        self.push(Token::make_word(name, Some('"')));
        self.push(Token::LParen);
        for (number, argument) in arguments.iter().enumerate() {
            if number > 0 {
                self.push(Token::Comma);
            }
            match find(argument, 0, &["AS"])
                .zip(argument.iter().rposition(|token| !is_blank(token)))
            {
                Some((as_word, last)) if as_word < last => {
                    let alias = match &argument[last].token {
                        Token::SingleQuotedString(text) => Token::make_word(text, Some('"')),
                        other => other.clone(),
                    };
                    self.push(alias);
                    self.push(Token::RArrow);
                    self.copy(&argument[..as_word]);
                }
                _ => self.copy(argument),
            }
        }
        self.push(Token::RParen);
    }
}

/// The tokens that are not blank.
fn solid(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &Token> {
    let tokens = tokens.iter().filter(|token| !is_blank(token));
    tokens.map(|token| &token.token)
}
