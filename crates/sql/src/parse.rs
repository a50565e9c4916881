//! From text to syntax tree, and places in the text for errors.

use crate::error::{SqlError, SqlErrorKind};
use crate::files::STRUCT;
use crate::names::make_unique;
use crate::position::Position;
use crate::statement::Statement;
use datafusion::common::SchemaError;
use datafusion::common::Span;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, ObjectName, Spanned, Value, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::ops::ControlFlow;

/// Expressions may nest this deep.
const DEPTH: usize = 100;

/// The syntax tree of exactly one statement.
///
/// # Errors
/// [`SqlErrorKind::Syntax`] with the place.
pub(crate) fn parse(statement: &Statement) -> Result<ast::Statement, SqlError> {
    let parsed = parse_with(statement, |parser| parser.parse_statement())?;
    repair(parsed, statement)
}

/// What `grammar` makes of the whole statement, with nothing behind it.
///
/// # Errors
/// [`SqlErrorKind::Syntax`] with the place.
pub(crate) fn parse_with<T>(
    statement: &Statement,
    grammar: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, statement.text())
        .tokenize_with_location()
        .map_err(|error| {
            syntax(error.message).at(Some(statement.excerpt(position(error.location))))
        })?;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(DEPTH)
        .with_tokens_with_locations(structs_as_calls(tokens));
    let parsed = grammar(&mut parser).map_err(|error| {
        let (message, place) = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                located(&message)
            }
            ParserError::RecursionLimitExceeded => {
                ("the statement is nested too deeply".to_owned(), None)
            }
        };
        let place = place.unwrap_or_else(|| position(parser.peek_token().span.start));
        syntax(message).at((place.line > 0).then(|| statement.excerpt(place)))
    })?;
    while parser.consume_token(&Token::SemiColon) {}
    let next = parser.peek_token();
    if next.token != Token::EOF {
        let error = syntax(format!(
            "unexpected {} after the end of the statement",
            next.token
        ));
        return Err(error.at(Some(statement.excerpt(position(next.span.start)))));
    }
    Ok(parsed)
}

/// Turns `{'a': 1}`, which this dialect does not have, into a call, for the options of files are written so.
fn structs_as_calls(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut depth = 0;
    let mut calls = Vec::with_capacity(tokens.len());
    for TokenWithSpan { token, span } in tokens {
        let token = match token {
            Token::LBrace => {
                depth += 1;
                let name = Token::make_word(STRUCT, None);
                calls.push(TokenWithSpan { token: name, span });
                Token::LParen
            }
            Token::RBrace if depth > 0 => {
                depth -= 1;
                Token::RParen
            }
            Token::Colon if depth > 0 => Token::Comma,
            other => other,
        };
        calls.push(TokenWithSpan { token, span });
    }
    calls
}

/// A query that is part of another statement, put right like a statement.
pub(crate) fn repair_query(
    query: ast::Query,
    statement: &Statement,
) -> Result<ast::Query, SqlError> {
    match repair(ast::Statement::Query(Box::new(query)), statement)? {
        ast::Statement::Query(query) => Ok(*query),
        _ => unreachable!("a query stays one"),
    }
}

/// The place of an expression.
pub(crate) fn place_of_expr(expr: &ast::Expr) -> Option<Position> {
    let start = expr.span().start;
    (start.line > 0).then(|| position(start))
}

/// Puts right where the parser deviates from SQL: a number with an exponent is a DOUBLE, and what follows
/// `IS DISTINCT FROM` ends before AND and OR. The latter cannot be put right in the tree, so it is refused.
fn repair(mut tree: ast::Statement, statement: &Statement) -> Result<ast::Statement, SqlError> {
    let visited = visit_expressions_mut(&mut tree, |expr| {
        match expr {
            ast::Expr::Value(value) => {
                if let Value::Number(digits, _) = &value.value
                    && digits.contains(['e', 'E'])
                {
                    let digits = ast::Expr::value(Value::SingleQuotedString(digits.clone()));
                    *expr = ast::Expr::Cast {
                        kind: ast::CastKind::Cast,
                        expr: Box::new(digits),
                        data_type: ast::DataType::Float8,
                        array: false,
                        format: None,
                    };
                }
            }
            ast::Expr::IsDistinctFrom(_, right) | ast::Expr::IsNotDistinctFrom(_, right) => {
                if let ast::Expr::BinaryOp {
                    op: BinaryOperator::And | BinaryOperator::Or,
                    ..
                } = **right
                {
                    return ControlFlow::Break(right.span().start);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    match visited {
        ControlFlow::Continue(()) => {
            make_unique(&mut tree);
            Ok(tree)
        }
        ControlFlow::Break(place) => {
            let place = (place.line > 0).then(|| statement.excerpt(position(place)));
            let error = SqlError::not_supported("IS [NOT] DISTINCT FROM directly before AND or OR");
            Err(error.at(place).with_hint(Some("put it in parentheses")))
        }
    }
}

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlErrorKind::Syntax(message))
}

pub(crate) fn position(location: Location) -> Position {
    Position {
        line: location.line,
        column: location.column,
    }
}

/// The parser ends its messages with the place, in words.
fn located(message: &str) -> (String, Option<Position>) {
    let split = || {
        let (text, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((
            text,
            Position {
                line: line.parse().ok()?,
                column: column.parse().ok()?,
            },
        ))
    };
    match split() {
        Some((text, place)) => (text.to_owned(), Some(place)),
        None => (message.to_owned(), None),
    }
}

/// The error of planning this statement, at the place that DataFusion names.
pub(crate) fn planning_error(error: DataFusionError, statement: &Statement) -> SqlError {
    let span = span(&error);
    let help = error
        .diagnostic()
        .and_then(|diagnostic| diagnostic.helps.first().map(|help| help.message.clone()));
    let place = span.map(|span| {
        statement.excerpt(Position {
            line: span.start.line,
            column: span.start.column,
        })
    });
    let error = SqlError::from_datafusion(error).at(place);
    if error.hint().is_some() {
        error
    } else {
        error.with_hint(help)
    }
}

fn span(error: &DataFusionError) -> Option<Span> {
    let told = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    let named = || match error.find_root() {
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, .. }
            | SchemaError::AmbiguousReference { field } => field.spans.first(),
            _ => None,
        },
        _ => None,
    };
    told.or_else(named).filter(|span| span.start.line > 0)
}

/// The place of a name.
pub(crate) fn place_of(name: &ObjectName) -> Option<Position> {
    let start = name.span().start;
    (start.line > 0).then(|| position(start))
}
