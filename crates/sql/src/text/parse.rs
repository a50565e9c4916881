//! From text to syntax tree, and places in the text for errors.

use crate::error::error_text::of_parser;
use crate::error::position::Position;
use crate::error::sql_terms::in_sql;
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::text::clause_tokens::known;
use crate::text::commas::without_last;
use crate::text::depth::{self, Excess};
use crate::text::duckdb_catalog;
use crate::text::from_first::select_all;
use crate::text::generated::with_types;
use crate::text::intervals::calls;
use crate::text::lambdas::arrows;
use crate::text::mistakes;
use crate::text::operators::before_signs;
use crate::text::pivot_tokens::clauses;
use crate::text::pragma;
use crate::text::precedence::rebind;
use crate::text::sample_tokens::samples;
use crate::text::statement::{Statement, split};
use datafusion::common::SchemaError;
use datafusion::common::Span;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::sql::sqlparser::ast::{
    self, JoinConstraint, JoinOperator, ObjectName, SelectFlavor, Spanned, Value, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use eris_syntax::ErisDialect;
use eris_syntax::{expressions_mut, walk_mut};
use std::ops::ControlFlow;

/// The function that `{'a': 1}` becomes when it is parsed.
pub(crate) const STRUCT: &str = "struct_pack";

/// The function that `MAP {'a': 1}` becomes.
const MAP: &str = "make_map";

/// Expressions may nest this deep.
const DEPTH: usize = 100;

/// The syntax tree of exactly one statement.
///
/// # Errors
/// [`SqlErrorKind::Syntax`] with the place.
pub(crate) fn parse(statement: &Statement) -> Result<ast::Statement, SqlError> {
    parse_tokens(tokens(statement)?, statement)
}

/// The query of `SUMMARIZE query` or `SUMMARIZE table`, which the parser does not know; `None` for other statements.
///
/// # Errors
/// [`SqlErrorKind::Syntax`] with the place.
pub(crate) fn parse_summarized(statement: &Statement) -> Result<Option<ast::Query>, SqlError> {
    let (first, rest) = statement
        .text()
        .split_at_checked(SUMMARIZE.len())
        .unwrap_or_default();
    if !first.eq_ignore_ascii_case(SUMMARIZE)
        || rest.starts_with(|c: char| c == '_' || c.is_alphanumeric())
    {
        return Ok(None);
    }
    let mut tokens = tokens(statement)?;
    let word = tokens.remove(0);
    let next = tokens
        .iter()
        .find(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_query = next.is_some_and(|token| match &token.token {
        Token::LParen => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE
        ),
        _ => false,
    });
    if !is_query {
        let start = [
            Token::make_keyword("SELECT"),
            Token::Mul,
            Token::make_keyword("FROM"),
        ];
        tokens.splice(
            0..0,
            start.map(|token| TokenWithSpan::new(token, word.span)),
        );
    }
    match parse_tokens(tokens, statement)? {
        ast::Statement::Query(query) => Ok(Some(*query)),
        _ => Err(SqlError::not_supported(
            "SUMMARIZE of anything but a table or query",
        )),
    }
}

const SUMMARIZE: &str = "SUMMARIZE";

/// What `grammar` makes of the whole statement, with nothing behind it.
///
/// # Errors
/// [`SqlErrorKind::Syntax`] with the place.
pub(crate) fn parse_with<T>(
    statement: &Statement,
    grammar: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    parse_whole(tokens(statement)?, statement, grammar)
}

/// The tokens of a statement. A question mark is a parameter: the first is `$1`. `0x1F` is a number, as in PostgreSQL.
fn tokens(statement: &Statement) -> Result<Vec<TokenWithSpan>, SqlError> {
    let dialect = ErisDialect;
    let mut tokens = Tokenizer::new(&dialect, statement.text())
        .tokenize_with_location()
        .map_err(|error| {
            syntax(error.message).at(Some(statement.excerpt(position(error.location))))
        })?;
    let mut parameters = 0;
    for token in &mut tokens {
        if matches!(&token.token, Token::Placeholder(name) if name == "?") {
            parameters += 1;
            token.token = Token::Placeholder(format!("${parameters}"));
        }
        if let Some(number) = hexadecimal(token) {
            token.token = Token::Number(number, false);
        }
    }
    let tokens = known(samples(calls(arrows(without_last(before_signs(tokens)))))?)?;
    Ok(with_types(clauses(select_all(tokens))))
}

/// The digits of `0x1F`; none of `X'1F'`, which is the same token, but has a character more around them.
fn hexadecimal(token: &TokenWithSpan) -> Option<String> {
    let Token::HexStringLiteral(digits) = &token.token else {
        return None;
    };
    let (start, end) = (token.span.start, token.span.end);
    // `X'…'` may have line breaks within.
    let width = end.column.checked_sub(start.column)?;
    let is_number = start.line == end.line && width == "0x".len() as u64 + digits.len() as u64;
    let number = u128::from_str_radix(&digits.replace('_', ""), 16).ok();
    number
        .filter(|_| is_number)
        .map(|number| number.to_string())
}

fn parse_tokens(
    tokens: Vec<TokenWithSpan>,
    statement: &Statement,
) -> Result<ast::Statement, SqlError> {
    let parsed = parse_whole(tokens, statement, |parser| parser.parse_statement())?;
    repair_levels(duckdb_catalog::as_query(pragma::as_set(parsed)))
}

fn parse_whole<T>(
    tokens: Vec<TokenWithSpan>,
    statement: &Statement,
    grammar: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let dialect = ErisDialect;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(DEPTH)
        .with_tokens_with_locations(structs_as_calls(tokens));
    let parsed = grammar(&mut parser).map_err(|error| {
        let (message, place) = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                of_parser(&message)
            }
            ParserError::RecursionLimitExceeded => {
                ("the statement is nested too deeply".to_owned(), None)
            }
        };
        let place = place.unwrap_or_else(|| position(parser.peek_token().span.start));
        // What is missing at the end has no place of its own.
        let place = if place.line > 0 {
            place
        } else {
            end(statement.text())
        };
        syntax(message).at(Some(statement.excerpt(place)))
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

/// The place behind a text, without the blanks at its end.
fn end(text: &str) -> Position {
    let text = text.trim_end();
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position {
        line: 1 + text.matches('\n').count() as u64,
        column: 1 + last.chars().count() as u64,
    }
}

/// Turns `{'a': 1}` and `MAP {'a': 1}`, which this dialect does not have, into calls.
fn structs_as_calls(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if tokens.iter().all(|token| token.token != Token::LBrace) {
        return tokens;
    }
    let mut depth = 0;
    let mut calls = Vec::with_capacity(tokens.len());
    for TokenWithSpan { token, span } in tokens {
        let token = match token {
            Token::LBrace => {
                depth += 1;
                // MAP becomes the name of its function.
                let name = Token::make_word(if pop_map(&mut calls) { MAP } else { STRUCT }, None);
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

/// Takes the word MAP away if it is the last token.
fn pop_map(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let length = tokens.iter().rposition(|token| !is_blank(token));
    let is_map = length.is_some_and(|last| match &tokens[last].token {
        Token::Word(word) => word.keyword == Keyword::MAP && word.quote_style.is_none(),
        _ => false,
    });
    if is_map {
        tokens.truncate(length.unwrap_or_default());
    }
    is_map
}

/// A query that is part of another statement, put right like a statement.
pub(crate) fn repair_query(query: ast::Query) -> Result<ast::Query, SqlError> {
    match repair_levels(ast::Statement::Query(Box::new(query)))? {
        ast::Statement::Query(query) => Ok(*query),
        _ => unreachable!("a query stays one"),
    }
}

/// The text behind the first AS that is not in parentheses: the query of CREATE VIEW … AS query.
pub(crate) fn after_as(statement: &Statement) -> Option<String> {
    let text = statement.text();
    let tokens = Tokenizer::new(&ErisDialect, text).tokenize_with_location();
    let mut depth = 0;
    let tokens = tokens.ok()?;
    let found = tokens.iter().find(|token| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 0 => return word.keyword == Keyword::AS,
            _ => {}
        }
        false
    })?;
    // Without a comment behind it, or a semicolon.
    let text = &text[offset(text, found.span.end)?..];
    match &split(text).ok()?[..] {
        [query] => Some(query.text().to_owned()),
        _ => None,
    }
}

/// The place of a token in a text, in bytes; none of what is behind the end.
pub(crate) fn offset(text: &str, place: Location) -> Option<usize> {
    let lines = text.split_inclusive('\n');
    let before: usize = lines
        .take((place.line as usize).checked_sub(1)?)
        .map(str::len)
        .sum();
    let rest = &text[before..];
    let column = rest.char_indices().nth(place.column as usize - 1);
    Some(before + column?.0)
}

/// Puts a tree right, and levels its long chains of operators.
fn repair_levels(parsed: ast::Statement) -> Result<ast::Statement, SqlError> {
    let mut tree = repair(parsed);
    let (message, hint) = match depth::level(&mut tree) {
        Ok(()) => return Ok(tree),
        Err(Excess::Levels) => (
            format!("an expression of more than {} levels", depth::LEVELS),
            "compute a part of it in a subquery",
        ),
        Err(Excess::Parts) => (
            format!("a statement of more than {} expressions", depth::PARTS),
            "INSERT values into a table, and query that",
        ),
    };
    Err(SqlError::invalid(Mistake::TooComplex, message).with_hint(Some(hint)))
}

/// Puts right where the parser deviates from SQL: a number with an exponent is a DOUBLE, and what follows
/// `IS DISTINCT FROM` ends before AND and OR. `FROM t SELECT a` is `SELECT a FROM t`.
fn repair(mut tree: ast::Statement) -> ast::Statement {
    // The visitors never break off.
    let _ = walk_mut(&mut tree, &mut Selects);
    let _ = expressions_mut(&mut tree, |expr| {
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
            // As DuckDB exports them.
            ast::Expr::Nested(inner) if matches!(**inner, ast::Expr::Lambda(_)) => {
                let placeholder = ast::Expr::value(Value::Null);
                *expr = std::mem::replace(&mut **inner, placeholder);
            }
            other => rebind(other),
        }
        ControlFlow::<()>::Continue(())
    });
    tree
}

/// Makes `FROM t SELECT a` a query like others. `SEMI JOIN` is `LEFT SEMI JOIN`.
struct Selects;

impl VisitorMut for Selects {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        select.flavor = SelectFlavor::Standard;
        for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
            match &mut join.join_operator {
                JoinOperator::Semi(condition) => {
                    let condition = std::mem::replace(condition, JoinConstraint::None);
                    join.join_operator = JoinOperator::LeftSemi(condition);
                }
                JoinOperator::Anti(condition) => {
                    let condition = std::mem::replace(condition, JoinConstraint::None);
                    join.join_operator = JoinOperator::LeftAnti(condition);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
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

/// The error of planning this statement: the mistake that its tree shows, else what DataFusion says, at the place that
/// it names.
pub(crate) fn planning_error(
    error: DataFusionError,
    statement: &Statement,
    registry: &dyn FunctionRegistry,
) -> SqlError {
    let is_text = match error.find_root() {
        DataFusionError::Plan(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Internal(_) => true,
        // Where no column can be, another mistake tells more.
        DataFusionError::SchemaError(schema, _) => matches!(
            schema.as_ref(),
            SchemaError::FieldNotFound { valid_fields, .. } if valid_fields.is_empty()
        ),
        _ => false,
    };
    if is_text && let Some(mistake) = mistakes::find(statement, registry) {
        return mistake;
    }
    let span = span(&error);
    let help = error
        .diagnostic()
        .and_then(|diagnostic| Some(in_sql(&diagnostic.helps.first()?.message)));
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

/// The place where an expression begins.
pub(crate) fn place_of_expr(expr: &ast::Expr) -> Option<Position> {
    let start = expr.span().start;
    (start.line > 0).then(|| position(start))
}
