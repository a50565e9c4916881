//! CALL: procedures, which act on what system tables show.

use super::kill;
use crate::catalog::{TableBalancing, TableOrView};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::maintenance::balance::WAYS;
use crate::maintenance::recoding::Join;
use crate::running::outcome::Begun;
use crate::statements::set;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::references::Effect;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart,
    Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use eris_syntax::ErisDialect;
use std::sync::Arc;

/// CALL name(argument).
pub(crate) async fn call(
    context: &StatementContext,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    match call.name.to_string().to_lowercase().as_str() {
        "eris.balance" => balance(context, call, statement).await,
        "eris.cancel" => cancel(context, call),
        "eris.recode" => recode(context, call, statement).await,
        "eris.reorganize" => reorganize(context, call, statement).await,
        _ => Err(
            SqlError::invalid(Mistake::UndefinedFunction, format!("there is no procedure \"{}\"", call.name)).with_hint(Some(
                "there are eris.balance('table'), eris.cancel(statement), eris.recode('table') and eris.reorganize('table')",
            )),
        ),
    }
}

/// The only argument, if it is a constant.
fn argument(call: &Function) -> Option<&ValueWithSpan> {
    match named(call)?[..] {
        [(None, Expr::Value(value))] => Some(value),
        _ => None,
    }
}

/// The arguments, by name if they have one.
fn named(call: &Function) -> Option<Vec<(Option<String>, &Expr)>> {
    let FunctionArguments::List(list) = &call.args else {
        return None;
    };
    let named = list.args.iter().map(|argument| match argument {
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(value),
            ..
        }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((Some(normalize(name)), value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some((None, value)),
        _ => None,
    });
    named.collect()
}

/// Gives rows of a table other owners now, or says how it is to be balanced from now on.
async fn balance(
    context: &StatementContext,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let wrong = || {
        SqlError::invalid(Mistake::UndefinedFunction, "eris.balance takes the name of a table, as a string, and perhaps how it is to be balanced from now on")
            .with_hint(Some("CALL eris.balance('schema.table'), or CALL eris.balance('schema.table', 'off'); also 'one_shot', 'moving_average', and 'default', which is what SET balancing says; neighbours => 4 and threshold => 10 may follow"))
    };
    let given = named(call).ok_or_else(wrong)?;
    let mut given = given.into_iter().peekable();
    let Some((None, Expr::Value(name))) = given.next() else {
        return Err(wrong());
    };
    let name = table_name(name).ok_or_else(wrong)?;
    let table = context.table(&name, statement)?;
    if given.peek().is_none() {
        let rows = context.services.balance.balance(table.object).await?;
        return Ok(Begun::Count { rows, tag: "MOVED" });
    }
    let mut own = TableBalancing::default();
    if let Some((_, way)) = given.next_if(|(name, _)| name.is_none()) {
        let Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(way),
            ..
        }) = way
        else {
            return Err(wrong());
        };
        let known = WAYS.iter().find(|known| way.eq_ignore_ascii_case(known));
        if known.is_none() && !way.eq_ignore_ascii_case("default") {
            return Err(wrong());
        }
        own.way = known.map(|way| (*way).to_owned());
    }
    for (name, value) in given {
        let name = name.ok_or_else(wrong)?;
        let is_given = match name.as_str() {
            "neighbours" => {
                let neighbours = set::number("balancing_neighbours", value)? as usize;
                own.neighbours.replace(neighbours).is_some()
            }
            "threshold" => {
                let threshold = set::number("balancing_threshold", value)?;
                own.threshold.replace(threshold).is_some()
            }
            _ => {
                let message = format!("eris.balance takes no \"{name}\"");
                return Err(SqlError::invalid(Mistake::UndefinedFunction, message).with_hint(Some(
                    "a table may have neighbours and a threshold of its own; the period is the same for all",
                )));
            }
        };
        if is_given {
            let message = format!("eris.balance: \"{name}\" is given twice");
            return Err(SqlError::invalid(Mistake::Syntax, message));
        }
    }
    if own.neighbours.is_some() && own.way.as_ref().is_some_and(|way| way != "moving_average") {
        return Err(SqlError::invalid(
            Mistake::InvalidParameterValue,
            "eris.balance: only 'moving_average' looks at neighbours",
        ));
    }
    // Whoever alters or empties the table takes over what it has of its own.
    let table = locks::writable(context, &name, &Effect::default(), statement).await?;
    let mut change = context.catalog.change().await;
    // Another call may have changed it, but nobody else.
    let newest = change.table(&table.name).unwrap_or(&table);
    let mut definition = newest.definition();
    definition.balancing = own.clone();
    let newest = newest.redefined(definition)?;
    change.put(TableOrView::Table(Arc::new(newest)));
    change.commit().await?;
    context
        .services
        .balance
        .choose_for(&*context.home, table.object, own);
    Ok(Begun::Done { tag: "CALL" })
}

fn cancel(context: &StatementContext, call: &Function) -> Result<Begun, SqlError> {
    let id = match argument(call).map(|argument| &argument.value) {
        Some(Value::Number(digits, _)) => digits.parse().ok(),
        _ => None,
    };
    let id = id.ok_or_else(|| {
        SqlError::invalid(
            Mistake::UndefinedFunction,
            "eris.cancel takes the number of a running statement",
        )
        .with_hint(Some("SELECT * FROM eris.queries WHERE state = 'running'"))
    })?;
    kill(context, id)
}

/// The table whose name is the only argument of a procedure.
fn named_table(call: &Function, procedure: &str) -> Result<ObjectName, SqlError> {
    argument(call).and_then(table_name).ok_or_else(|| {
        SqlError::invalid(
            Mistake::UndefinedFunction,
            format!("{procedure} takes the name of a table, as a string"),
        )
        .with_hint(Some(format!("CALL {procedure}('schema.table')")))
    })
}

/// Begins to move together what lookups by a table's key go through; it goes on after the statement.
async fn reorganize(
    context: &StatementContext,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = named_table(call, "eris.reorganize")?;
    let table = context.table(&name, statement)?;
    if table.key.is_none() {
        return Err(SqlError::invalid(
            Mistake::WrongObjectType,
            format!(
                "table \"{}\" has no key, so there is no index to reorganize",
                table.name
            ),
        )
        .with_hint(Some(
            "SELECT DISTINCT \"schema\", \"table\" FROM eris.reorganizations lists tables with one",
        )));
    }
    let indexes = context.home.key_indexes();
    let indexes =
        indexes.ok_or_else(|| SqlError::not_supported("eris.reorganize where these tables are"))?;
    indexes.reorganize(table.object).await?;
    Ok(Begun::Done { tag: "CALL" })
}

/// Stores the columns that a table has been joined by, or that refer to other tables, by the order of these tables'
/// rows.
async fn recode(
    context: &StatementContext,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = named_table(call, "eris.recode")?;
    let fact = context.table(&name, statement)?;
    let mut joins = context.recodings.joins_of(fact.object);
    for (column, table, key) in fact.references(&context.catalog.contents()) {
        if !joins.iter().any(|(other, ..)| *other == column) {
            joins.push((column, table, key));
        }
    }
    for (column, dimension, key) in joins {
        let join = Join {
            fact: fact.object,
            column,
            sizes: context
                .recodings
                .sizes((fact.object, column), dimension.object)?,
            dimension,
            key,
        };
        context.recodings.recode(&join).await?;
    }
    Ok(Begun::Done { tag: "CALL" })
}

/// A text as a name, at the text's place.
fn table_name(argument: &ValueWithSpan) -> Option<ObjectName> {
    let Value::SingleQuotedString(text) = &argument.value else {
        return None;
    };
    let mut parser = (Parser::new(&ErisDialect).try_with_sql(text)).ok()?;
    let mut name = parser.parse_object_name(false).ok()?;
    if parser.peek_token().token != Token::EOF {
        return None;
    }
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(part) = part {
            part.span = argument.span;
        }
    }
    Some(name)
}
