//! Parsing what is said about macros, which the SQL parser does not know as DuckDB's users write it.
//!
//! ```text
//! CREATE [OR REPLACE] [TEMP] {MACRO | FUNCTION} [IF NOT EXISTS] name form, …
//!     form: ([parameter [type] [:= default], …]) AS {expression | TABLE query}
//! DROP {MACRO | FUNCTION} [TABLE] [IF EXISTS] name, …
//! COMMENT [IF EXISTS] ON {MACRO | FUNCTION} [TABLE] name IS {'text' | NULL}
//! ```

use super::definition::{Body, Form, Parameter};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::lexeme::{LexemeKind, lexemes};
use crate::text::own::query_of;
use crate::text::parse::{offset, parse_with, place_of, repair_query};
use crate::text::shorthand::field_of_struct;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Value, Visitor,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use eris_syntax::{Tree, expressions, expressions_mut, own_expressions, walk};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// A statement about macros.
pub(crate) enum MacroStatement {
    Create(CreateMacro),
    Drop {
        names: Vec<ObjectName>,
        is_table: bool,
        if_exists: bool,
    },
    Comment {
        name: ObjectName,
        is_table: bool,
        if_exists: bool,
        text: Option<String>,
    },
}

pub(crate) struct CreateMacro {
    pub or_replace: bool,
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: ObjectName,
    /// Of one kind: all are expressions, or all are queries.
    pub forms: Vec<Form>,
}

impl CreateMacro {
    /// Whether it is called in FROM.
    pub fn is_table(&self) -> bool {
        matches!(self.forms[0].body, Body::Table(_))
    }
}

/// The statement, if it is one about macros.
///
/// # Errors
/// It is one, but not as it has to be written, or it contradicts itself.
pub(crate) fn parse(statement: &Statement) -> Result<Option<MacroStatement>, SqlError> {
    if !is_about_macros(statement.text()) {
        return Ok(None);
    }
    let mut bodies = Vec::new();
    let parsed = parse_with(statement, |parser| {
        let first = parser.next_token();
        match &first.token {
            Token::Word(word) if word.keyword == Keyword::CREATE => create(parser, &mut bodies),
            Token::Word(word) if word.keyword == Keyword::DROP => {
                parser.next_token();
                let is_table = parser.parse_keyword(Keyword::TABLE);
                let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
                let names =
                    parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
                // Nothing is kept of what a macro is used by.
                let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
                Ok(MacroStatement::Drop {
                    names,
                    is_table,
                    if_exists,
                })
            }
            _ => comment(parser),
        }
    })?;
    match parsed {
        MacroStatement::Create(mut create) => {
            let text = statement.text();
            for (form, (start, behind)) in create.forms.iter_mut().zip(bodies) {
                let start = offset(text, start).unwrap_or(text.len());
                let behind = offset(text, behind).unwrap_or(text.len());
                form.text = text[start..behind].trim_end().to_owned();
                repair(form)?;
                check(form, statement)?;
            }
            check_together(&create.forms)?;
            Ok(Some(MacroStatement::Create(create)))
        }
        other => Ok(Some(other)),
    }
}

/// Whether the first words of a text say so.
fn is_about_macros(text: &str) -> bool {
    let mut words = Words(text);
    let mut next = || words.next().unwrap_or_default();
    let word = match next().as_str() {
        "CREATE" => loop {
            match next().as_str() {
                "OR" | "REPLACE" | "TEMP" | "TEMPORARY" => {}
                other => break other.to_owned(),
            }
        },
        "DROP" => next(),
        "COMMENT" => loop {
            match next().as_str() {
                "IF" | "EXISTS" | "ON" => {}
                other => break other.to_owned(),
            }
        },
        _ => return false,
    };
    matches!(word.as_str(), "MACRO" | "FUNCTION")
}

/// The words with which a text begins, in capitals.
struct Words<'a>(&'a str);

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let start = lexemes(self.0)
            .find(|lexeme| !matches!(lexeme.kind, LexemeKind::Blank | LexemeKind::Comment))?;
        let rest = &self.0[start.span.start..];
        let end = rest.find(|c: char| !c.is_ascii_alphabetic());
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.0 = rest;
        (!word.is_empty()).then(|| word.to_ascii_uppercase())
    }
}

/// `bodies` gets the places where each form's body begins, and what is behind it.
fn create(
    parser: &mut Parser<'_>,
    bodies: &mut Vec<(Location, Location)>,
) -> Result<MacroStatement, ParserError> {
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let temporary = parser
        .parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY])
        .is_some();
    parser.next_token();
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let forms = parser.parse_comma_separated(|parser| form(parser, bodies))?;
    Ok(MacroStatement::Create(CreateMacro {
        or_replace,
        temporary,
        if_not_exists,
        name,
        forms,
    }))
}

fn form(
    parser: &mut Parser<'_>,
    bodies: &mut Vec<(Location, Location)>,
) -> Result<Form, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let parameters = match parser.consume_token(&Token::RParen) {
        true => Vec::new(),
        false => {
            let parameters = parser.parse_comma_separated(parameter)?;
            parser.expect_token(&Token::RParen)?;
            parameters
        }
    };
    parser.expect_keyword_is(Keyword::AS)?;
    let is_table = parser.parse_keyword(Keyword::TABLE);
    let start = parser.peek_token_ref().span.start;
    let body = match is_table {
        true => Body::Table(parser.parse_query()?),
        false => Body::Scalar(Box::new(parser.parse_expr()?)),
    };
    bodies.push((start, parser.peek_token_ref().span.start));
    Ok(Form {
        parameters,
        body,
        text: String::new(),
    })
}

fn parameter(parser: &mut Parser<'_>) -> Result<Parameter, ParserError> {
    let name = parser.parse_identifier()?;
    let is_end = matches!(
        parser.peek_token_ref().token,
        Token::Comma | Token::RParen | Token::Assignment
    );
    let data_type = match is_end {
        true => None,
        false => Some(parser.parse_data_type()?),
    };
    let default = match parser.consume_token(&Token::Assignment) {
        true => Some(parser.parse_expr()?),
        false => None,
    };
    Ok(Parameter {
        name,
        data_type,
        default,
    })
}

fn comment(parser: &mut Parser<'_>) -> Result<MacroStatement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    parser.expect_keyword_is(Keyword::ON)?;
    parser.next_token();
    let is_table = parser.parse_keyword(Keyword::TABLE);
    let name = parser.parse_object_name(false)?;
    parser.expect_keyword_is(Keyword::IS)?;
    let text = match parser.parse_keyword(Keyword::NULL) {
        true => None,
        false => Some(parser.parse_literal_string()?),
    };
    Ok(MacroStatement::Comment {
        name,
        is_table,
        if_exists,
        text,
    })
}

/// Puts the trees right, as those of statements.
fn repair(form: &mut Form) -> Result<(), SqlError> {
    let defaults = form.parameters.iter_mut();
    for default in defaults.filter_map(|parameter| parameter.default.as_mut()) {
        repair_expression(default)?;
    }
    match &mut form.body {
        Body::Scalar(expr) => {
            repair_expression(expr)?;
            name_fields(&mut **expr);
        }
        Body::Table(query) => {
            **query = repair_query(Query::clone(query))?;
            name_fields(&mut **query);
        }
    }
    Ok(())
}

/// Makes the names of fields strings, so that they are taken neither for columns nor for parameters.
fn name_fields(tree: &mut impl Tree) {
    // The visitor never breaks off.
    let _ = expressions_mut(tree, |expr| {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            access_chain.iter_mut().for_each(field_of_struct);
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Rejects a tree whose text would not be read as what it is: the parser marks joins that it does not know.
pub(crate) fn printable(tree: &impl Tree, what: &str) -> Result<(), SqlError> {
    struct Marked;
    impl Visitor for Marked {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let mut joins = select.from.iter().flat_map(|from| &from.joins);
            match joins.any(|join| join.global) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    if walk(tree, &mut Marked).is_continue() {
        return Ok(());
    }
    let message = format!("ASOF JOIN in a {what} with names that have to be qualified");
    let hint = "write it in a macro or a view of its own, while the schema public is current";
    Err(SqlError::not_supported(message).with_hint(Some(hint)))
}

fn repair_expression(expr: &mut Expr) -> Result<(), SqlError> {
    let mut query = query_of("SELECT 1");
    *only_item(&mut query) = expr.clone();
    let mut repaired = repair_query(query)?;
    *expr = only_item(&mut repaired).clone();
    Ok(())
}

fn only_item(query: &mut Query) -> &mut Expr {
    match &mut *query.body {
        SetExpr::Select(select) => match &mut select.projection[..] {
            [SelectItem::UnnamedExpr(expr)] => expr,
            _ => unreachable!("the list has one expression"),
        },
        _ => unreachable!("it is a SELECT"),
    }
}

/// Rejects a form that contradicts itself, or names a column where there is no table.
fn check(form: &Form, statement: &Statement) -> Result<(), SqlError> {
    let place = |name: &Ident| {
        let name = ObjectName::from(vec![name.clone()]);
        place_of(&name).map(|place| statement.excerpt(place))
    };
    let wrong = |message: String, name: &Ident| {
        Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message).at(place(name)))
    };
    let mut seen = HashSet::new();
    let mut has_default = false;
    for parameter in &form.parameters {
        let name = &parameter.name;
        if !seen.insert(normalize(name)) {
            return wrong(format!("two parameters {name}"), name);
        }
        match &parameter.default {
            None if has_default => {
                let message = format!("parameter {name} has no default, but one before it has");
                return wrong(message, name);
            }
            None => {}
            Some(default) => {
                has_default = true;
                let has_query = walk(default, &mut Queries).is_break();
                if has_query {
                    let message = format!("the default of parameter {name} has a query in it");
                    return wrong(message, name);
                }
                if let Some(column) = column(default, &HashSet::new()) {
                    let message = format!("the default of parameter {name} names a column");
                    return wrong(message, &column);
                }
            }
        }
    }
    let placeholder = match &form.body {
        Body::Scalar(expr) => placeholder(&**expr),
        Body::Table(query) => placeholder(&**query),
    };
    if let Some(placeholder) = placeholder {
        let message = format!("{placeholder} in a macro, which has parameters of its own");
        return Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message));
    }
    let lambdas = match &form.body {
        Body::Scalar(expr) => lambda_parameters(&**expr),
        Body::Table(query) => lambda_parameters(&**query),
    };
    if let Some(parameter) = form
        .parameters
        .iter()
        .find(|parameter| lambdas.contains(&normalize(&parameter.name)))
    {
        let name = &parameter.name;
        let message = format!("{name} is a parameter of the macro and of a lambda in it");
        return wrong(message, name);
    }
    if let Body::Scalar(expr) = &form.body {
        seen.extend(lambdas);
        if let Some(column) = column(expr, &seen) {
            let message = format!("column \"{}\" does not exist", normalize(&column));
            let hint = format!("the macro has the parameters {}", form.parameters_text());
            return Err(SqlError::invalid(Mistake::UndefinedColumn, message)
                .at(place(&column))
                .with_hint(Some(hint)));
        }
    }
    Ok(())
}

/// Finds a query.
struct Queries;

impl Visitor for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// The first parameter of a prepared statement.
fn placeholder(tree: &impl Tree) -> Option<String> {
    let found = expressions(tree, |expr| match expr {
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => ControlFlow::Break(name.clone()),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// The first column that an expression names outside of its subqueries, but these.
fn column(expr: &Expr, but: &HashSet<String>) -> Option<Ident> {
    let found = own_expressions(expr, |expr| {
        let name = match expr {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => &parts[0],
            _ => return ControlFlow::Continue(()),
        };
        match but.contains(&normalize(name)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(name.clone()),
        }
    });
    found.break_value()
}

/// The parameters of all lambdas.
pub(super) fn lambda_parameters(tree: &impl Tree) -> HashSet<String> {
    struct Lambdas(HashSet<String>);
    impl Visitor for Lambdas {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::Lambda(lambda) = expr {
                let names = lambda.params.iter();
                self.0
                    .extend(names.map(|parameter| normalize(&parameter.name)));
            }
            ControlFlow::Continue(())
        }
    }
    let mut lambdas = Lambdas(HashSet::new());
    // The visitor never breaks off.
    let _ = walk(tree, &mut lambdas);
    lambdas.0
}

/// Rejects forms that a call cannot tell apart.
fn check_together(forms: &[Form]) -> Result<(), SqlError> {
    let wrong = |message: String| Err(SqlError::invalid(Mistake::InvalidObjectDefinition, message));
    let is_table = |form: &Form| matches!(form.body, Body::Table(_));
    if forms
        .iter()
        .any(|form| is_table(form) != is_table(&forms[0]))
    {
        return wrong("a macro is an expression or a query, not both".into());
    }
    let mut lengths = HashSet::new();
    for form in forms {
        let length = form.parameters.len();
        if !lengths.insert(length) {
            let message = format!("a macro with two forms of {length} parameters");
            let hint = "the forms of a macro differ in how many parameters they have";
            return Err(SqlError::not_supported(message).with_hint(Some(hint)));
        }
    }
    Ok(())
}
