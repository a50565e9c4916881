//! `USING SAMPLE`, and what DuckDB writes behind TABLESAMPLE, as the parser knows it.
//!
//! ```text
//! SELECT a FROM t WHERE b USING SAMPLE 10%     SELECT a FROM t TABLESAMPLE (10 PERCENT) WHERE b
//! SELECT a FROM t JOIN u USING (k)
//!          USING SAMPLE 10%                    SELECT a FROM t JOIN u USING (k) WHERE random() * 100 < 10
//! t TABLESAMPLE reservoir(20 ROWS)             t TABLESAMPLE (20 ROWS)
//! ```
//!
//! As in DuckDB, the rows of FROM are sampled, before WHERE.

use crate::error::SqlError;
use crate::text::tokens::{find, is_any, is_word, matching, next, previous};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// Words that end FROM.
const BEHIND_FROM: [&str; 9] = [
    "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "SELECT", "OFFSET",
];

/// The tokens with samples as the parser knows them.
///
/// # Errors
/// A number of rows of a join.
pub(super) fn samples(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut at = tokens.len();
    while let Some(place) = tokens[..at]
        .iter()
        .rposition(|token| is_any(token, &["TABLESAMPLE", "SAMPLE"]))
    {
        at = place;
        let Some((sample, end)) = Sample::read(&tokens, place) else {
            continue;
        };
        if is_word(&tokens[place], "TABLESAMPLE") {
            tokens.splice(place..end, sample.clause());
        } else if let Some(using) = previous(&tokens, place)
            && is_word(&tokens[using], "USING")
        {
            at = using;
            tokens.drain(using..end);
            sample.of_query(&mut tokens, using)?;
        }
    }
    Ok(tokens)
}

/// What is written behind the word.
struct Sample {
    /// The method, if the parser is to know it.
    method: Option<TokenWithSpan>,
    amount: Vec<TokenWithSpan>,
    is_rows: bool,
    seed: Option<Vec<TokenWithSpan>>,
    span: Span,
}

impl Sample {
    /// A sample, and where it ends.
    fn read(tokens: &[TokenWithSpan], word: usize) -> Option<(Sample, usize)> {
        let first = next(tokens, word + 1)?;
        let span = tokens[word].span;
        let mut sample = Sample {
            method: None,
            amount: Vec::new(),
            is_rows: false,
            seed: None,
            span,
        };
        let methods = ["BERNOULLI", "SYSTEM", "RESERVOIR"];
        let mut end;
        if is_any(&tokens[first], &methods) || tokens[first].token == Token::LParen {
            let open = match tokens[first].token {
                Token::LParen => first,
                _ => next(tokens, first + 1)?,
            };
            if tokens[open].token != Token::LParen {
                return None;
            }
            let is_reservoir = is_word(&tokens[first], "RESERVOIR");
            if open != first && !is_reservoir {
                sample.method = Some(tokens[first].clone());
            }
            let close = matching(tokens, open)?;
            let unit = sample.amount_of(&tokens[open + 1..close]);
            sample.is_rows = unit.unwrap_or(is_reservoir);
            end = close + 1;
        } else {
            let Token::Number(..) = tokens[first].token else {
                return None;
            };
            sample.amount.push(tokens[first].clone());
            end = first + 1;
            sample.is_rows = true;
            if let Some(unit) = next(tokens, end)
                && let Some(is_rows) = unit_of(&tokens[unit])
            {
                sample.is_rows = is_rows;
                end = unit + 1;
            }
            // `10% (bernoulli, 42)`.
            if let Some(open) = next(tokens, end)
                && tokens[open].token == Token::LParen
                && let Some(close) = matching(tokens, open)
                && let Some(method) = next(tokens, open + 1)
                && is_any(&tokens[method], &methods)
            {
                if let Some(comma) = next(tokens, method + 1)
                    && tokens[comma].token == Token::Comma
                {
                    sample.seed = Some(tokens[comma + 1..close].to_vec());
                }
                end = close + 1;
            }
        }
        if let Some(word) = next(tokens, end)
            && is_word(&tokens[word], "REPEATABLE")
            && let Some(open) = next(tokens, word + 1)
            && let Some(close) = matching(tokens, open)
        {
            sample.seed = Some(tokens[open + 1..close].to_vec());
            end = close + 1;
        }
        Some((sample, end))
    }

    /// Takes `10 PERCENT`; whether it is a number of rows, if a unit says so.
    fn amount_of(&mut self, tokens: &[TokenWithSpan]) -> Option<bool> {
        let last = previous(tokens, tokens.len());
        let unit = last.and_then(|last| Some((last, unit_of(&tokens[last])?)));
        let end = unit.map_or(tokens.len(), |(last, _)| last);
        self.amount = tokens[..end].to_vec();
        unit.map(|(_, is_rows)| is_rows)
    }

    fn word(&self, word: &str) -> TokenWithSpan {
        self.token(Token::make_word(word, None))
    }

    fn token(&self, token: Token) -> TokenWithSpan {
        TokenWithSpan::new(token, self.span)
    }

    /// The clause behind a table.
    fn clause(&self) -> Vec<TokenWithSpan> {
        let mut clause = vec![self.word("TABLESAMPLE")];
        clause.extend(self.method.clone());
        clause.push(self.token(Token::LParen));
        clause.extend(self.amount.iter().cloned());
        clause.push(self.word(if self.is_rows { "ROWS" } else { "PERCENT" }));
        clause.push(self.token(Token::RParen));
        if let Some(seed) = &self.seed {
            clause.push(self.word("REPEATABLE"));
            clause.push(self.token(Token::LParen));
            clause.extend(seed.iter().cloned());
            clause.push(self.token(Token::RParen));
        }
        clause
    }

    /// Puts the sample into the query that ends, but for ORDER BY and LIMIT, at `end`.
    fn of_query(self, tokens: &mut Vec<TokenWithSpan>, end: usize) -> Result<(), SqlError> {
        let Some(from) = from_of(&tokens[..end]) else {
            return Err(SqlError::not_supported("USING SAMPLE without FROM"));
        };
        let clause_end = find(&tokens[..end], from + 1, &BEHIND_FROM).unwrap_or(end);
        let is_join = find(&tokens[..clause_end], from + 1, &["JOIN"]).is_some()
            || super::tokens::split(&tokens[from + 1..clause_end]).len() > 1;
        if !is_join {
            tokens.splice(clause_end..clause_end, self.clause());
            return Ok(());
        }
        if self.is_rows || self.seed.is_some() {
            return Err(
                SqlError::not_supported("USING SAMPLE of a number of rows of a join").with_hint(
                    Some("USING SAMPLE 10% takes a part; FROM (SELECT … JOIN …) USING SAMPLE 10 ROWS a number"),
                ),
            );
        }
        let mut condition = vec![self.word("random"), self.token(Token::LParen)];
        condition.push(self.token(Token::RParen));
        condition.push(self.token(Token::Mul));
        condition.push(self.token(Token::Number("100".to_owned(), false)));
        condition.push(self.token(Token::Lt));
        condition.extend(self.amount.iter().cloned());
        if is_word(&tokens[clause_end.min(tokens.len() - 1)], "WHERE") && clause_end < end {
            let behind = find(&tokens[..end], clause_end + 1, &BEHIND_FROM).unwrap_or(end);
            tokens.insert(behind, self.token(Token::RParen));
            condition.push(self.token(Token::make_keyword("AND")));
            condition.push(self.token(Token::LParen));
            tokens.splice(clause_end + 1..clause_end + 1, condition);
        } else {
            condition.insert(0, self.token(Token::make_keyword("WHERE")));
            tokens.splice(clause_end..clause_end, condition);
        }
        Ok(())
    }
}

/// Whether a unit is a number of rows; `None` if it is no unit.
fn unit_of(token: &TokenWithSpan) -> Option<bool> {
    match &token.token {
        Token::Mod => Some(false),
        Token::Word(_) if is_word(token, "PERCENT") => Some(false),
        Token::Word(_) if is_word(token, "ROWS") => Some(true),
        _ => None,
    }
}

/// The FROM of the query that these tokens end in.
fn from_of(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0;
    tokens.iter().enumerate().rev().find_map(|(at, token)| {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ if depth == 0 && is_word(token, "FROM") => {
                let before = previous(tokens, at);
                let is_operator = before.is_some_and(|at| is_word(&tokens[at], "DISTINCT"));
                return (!is_operator).then_some(Some(at));
            }
            _ => {}
        }
        (depth < 0).then_some(None)
    })?
}

#[cfg(test)]
mod tests {
    use super::samples;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use eris_syntax::ErisDialect;

    #[test]
    fn samples_are_written_as_the_parser_knows_them() {
        for (text, expected) in [
            (
                "SELECT a FROM t USING SAMPLE 10%",
                "SELECT a FROM t TABLESAMPLE(10PERCENT)",
            ),
            (
                "SELECT a FROM t WHERE b IS DISTINCT FROM c USING SAMPLE 3 ROWS ORDER BY a",
                "SELECT a FROM t TABLESAMPLE(3ROWS)WHERE b IS DISTINCT FROM c  ORDER BY a",
            ),
            (
                "SELECT a FROM t, u WHERE b USING SAMPLE 1 PERCENT",
                "SELECT a FROM t, u WHERErandom()*100<1AND( b )",
            ),
            (
                "FROM t TABLESAMPLE reservoir(2 ROWS) AS x",
                "FROM t TABLESAMPLE(2 ROWS) AS x",
            ),
            (
                "FROM t TABLESAMPLE BERNOULLI (10)",
                "FROM t TABLESAMPLEBERNOULLI(10PERCENT)",
            ),
            ("SELECT sample FROM t", "SELECT sample FROM t"),
        ] {
            let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
            let shown: String = samples(tokens.unwrap())
                .unwrap()
                .iter()
                .map(|token| token.to_string())
                .collect();
            assert_eq!(shown, expected);
        }
    }
}
