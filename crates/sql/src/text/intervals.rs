//! Intervals as DataFusion knows them.
//!
//! ```text
//! INTERVAL '1 day 04:05:06'    CAST('1 day 04:05:06' AS INTERVAL)     the planner reads no 04:05:06
//! INTERVAL x DAY               x * INTERVAL '1 DAY'
//! INTERVAL 3 DECADES           INTERVAL 3 DECADE                      tokens: it takes DECADES for an alias
//! INTERVAL (x + 1) DAY         to_days(x + 1)                         tokens: the parser takes (…) for a precision
//! ```

use crate::text::tokens::{is_any, is_blank, is_word};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Interval, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Units of intervals, each with the function that makes an interval of a number of them.
static UNITS: [(&[&str], &str); 13] = [
    (&["MILLENNIUM", "MILLENNIUMS", "MILLENNIA"], "to_millennia"),
    (&["CENTURY", "CENTURIES"], "to_centuries"),
    (&["DECADE", "DECADES"], "to_decades"),
    (&["YEAR", "YEARS"], "to_years"),
    (&["QUARTER", "QUARTERS"], "to_quarters"),
    (&["MONTH", "MONTHS"], "to_months"),
    (&["WEEK", "WEEKS"], "to_weeks"),
    (&["DAY", "DAYS"], "to_days"),
    (&["HOUR", "HOURS"], "to_hours"),
    (&["MINUTE", "MINUTES"], "to_minutes"),
    (&["SECOND", "SECONDS"], "to_seconds"),
    (&["MILLISECOND", "MILLISECONDS"], "to_milliseconds"),
    (&["MICROSECOND", "MICROSECONDS"], "to_microseconds"),
];

/// The tokens, in which `INTERVAL (…) DAY` is a call.
pub(super) fn calls(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_interval = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.keyword == Keyword::INTERVAL,
        _ => false,
    };
    if !tokens.iter().any(is_interval) {
        return tokens;
    }
    let mut calls: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Per parenthesis that is open, and for the one that was closed last: the word INTERVAL before it.
    let mut open = Vec::new();
    let mut closed: Option<usize> = None;
    let mut word = None;
    let mut is_amount = false;
    for mut token in tokens {
        if is_blank(&token) {
            calls.push(token);
            continue;
        }
        let before = closed.take();
        if is_amount && let Some((names, _)) = unit_of(&token) {
            token.token = Token::make_word(names[0], None);
        }
        is_amount = word.is_some() && matches!(token.token, Token::Number(..));
        match &token.token {
            Token::LParen => open.push(word),
            Token::RParen => closed = open.pop().flatten(),
            _ => {}
        }
        word = is_word(&token, "INTERVAL").then_some(calls.len());
        match before.zip(unit_of(&token)) {
            Some((word, (_, function))) => {
                calls[word].token = Token::make_word(function, None);
            }
            None => calls.push(token),
        }
    }
    calls
}

fn unit_of(token: &TokenWithSpan) -> Option<&'static (&'static [&'static str], &'static str)> {
    UNITS.iter().find(|(names, _)| is_any(token, names))
}

/// The interval as DataFusion reads it, if it does not as it is written.
pub(super) fn written_out(interval: &Interval) -> Option<Expr> {
    match (&*interval.value, &interval.leading_field) {
        (Expr::Value(value), None) => match &value.value {
            Value::SingleQuotedString(text) => {
                is_read_by_cast(text).then(|| as_cast(&interval.value))
            }
            _ => None,
        },
        (Expr::Value(_), Some(_)) => None,
        (Expr::Identifier(_) | Expr::Nested(_), None) => Some(as_cast(&interval.value)),
        (_, None) => None,
        (Expr::UnaryOp { op, expr }, Some(_))
            if *op == UnaryOperator::Minus && matches!(**expr, Expr::Value(_)) =>
        {
            None
        }
        (amount, Some(_)) => {
            let one = Value::SingleQuotedString("1".to_owned());
            let one = Interval {
                value: Box::new(Expr::value(one)),
                ..interval.clone()
            };
            Some(Expr::Nested(Box::new(Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(amount.clone()))),
                op: BinaryOperator::Multiply,
                right: Box::new(Expr::Interval(one)),
            })))
        }
    }
}

fn as_cast(value: &Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(value.clone()),
        data_type: DataType::Interval {
            fields: None,
            precision: None,
        },
        array: false,
        format: None,
    }
}

/// Whether it has a time of day, or is some time ago.
fn is_read_by_cast(text: &str) -> bool {
    text.contains(':') || text.trim_end().to_ascii_lowercase().ends_with(" ago")
}
