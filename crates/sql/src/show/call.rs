//! CALL: procedures, which act on what system tables show.

use super::kill;
use crate::balance::WAYS;
use crate::core::{Begun, Core};
use crate::error::SqlError;
use crate::recoding::Join;
use crate::statement::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart,
    Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// CALL name(argument).
pub(crate) async fn call(
    core: &Core,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    match call.name.to_string().to_lowercase().as_str() {
        "eris.balance" => balance(core, call, statement).await,
        "eris.cancel" => cancel(core, call),
        "eris.recode" => recode(core, call, statement).await,
        "eris.reorganize" => reorganize(core, call, statement).await,
        _ => Err(
            SqlError::invalid(format!("there is no procedure \"{}\"", call.name)).with_hint(Some(
                "there are eris.balance('table'), eris.cancel(statement), eris.recode('table') and eris.reorganize('table')",
            )),
        ),
    }
}

/// The only argument, if it is a constant.
fn argument(call: &Function) -> Option<&ValueWithSpan> {
    match arguments(call)[..] {
        [argument] => Some(argument),
        _ => None,
    }
}

/// The arguments, if all of them are constants.
fn arguments(call: &Function) -> Vec<&ValueWithSpan> {
    let FunctionArguments::List(list) = &call.args else {
        return Vec::new();
    };
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => Some(value),
        _ => None,
    });
    values.collect::<Option<_>>().unwrap_or_default()
}

/// Gives rows of a table other owners now, or says how it is to be balanced from now on.
async fn balance(core: &Core, call: &Function, statement: &Statement) -> Result<Begun, SqlError> {
    let wrong = || {
        SqlError::invalid("eris.balance takes the name of a table, as text, and perhaps how it is to be balanced from now on")
            .with_hint(Some("CALL eris.balance('schema.table'), or CALL eris.balance('schema.table', 'off'); also 'one_shot', 'moving_average', and 'default', which is what SET balancing says"))
    };
    let (name, way) = match arguments(call)[..] {
        [name] => (name, None),
        [name, way] => (name, Some(way)),
        _ => return Err(wrong()),
    };
    let name = table_name(name).ok_or_else(wrong)?;
    let table = core.table(&name, statement)?;
    match way.map(|way| &way.value) {
        None => core.balance.balance(&core.engine, table.object).await?,
        Some(Value::SingleQuotedString(way)) => {
            let known = WAYS.iter().find(|known| way.eq_ignore_ascii_case(known));
            if known.is_none() && !way.eq_ignore_ascii_case("default") {
                return Err(wrong());
            }
            core.balance.choose_for(table.object, known.copied());
        }
        Some(_) => return Err(wrong()),
    }
    Ok(Begun::Done { tag: "CALL" })
}

fn cancel(core: &Core, call: &Function) -> Result<Begun, SqlError> {
    let id = match argument(call).map(|argument| &argument.value) {
        Some(Value::Number(digits, _)) => digits.parse().ok(),
        _ => None,
    };
    let id = id.ok_or_else(|| {
        SqlError::invalid("eris.cancel takes the number of a running statement")
            .with_hint(Some("SELECT * FROM eris.queries WHERE state = 'running'"))
    })?;
    kill(core, id)
}

/// Begins to move together what lookups by a table's key go through; it goes on after the statement.
async fn reorganize(
    core: &Core,
    call: &Function,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = argument(call).and_then(table_name).ok_or_else(|| {
        SqlError::invalid("eris.reorganize takes the name of a table, as text")
            .with_hint(Some("CALL eris.reorganize('schema.table')"))
    })?;
    let table = core.table(&name, statement)?;
    if table.key.is_none() {
        return Err(SqlError::invalid(format!(
            "table \"{}\" has no key, so there is no index to reorganize",
            table.name
        ))
        .with_hint(Some(
            "SELECT DISTINCT \"schema\", \"table\" FROM eris.reorganizations lists tables with one",
        )));
    }
    core.engine.reorganize(table.object).await?;
    Ok(Begun::Done { tag: "CALL" })
}

/// Stores the columns that a table has been joined by, or that refer to other tables, by the order of these tables' rows.
async fn recode(core: &Core, call: &Function, statement: &Statement) -> Result<Begun, SqlError> {
    let name = argument(call).and_then(table_name).ok_or_else(|| {
        SqlError::invalid("eris.recode takes the name of a table, as text")
            .with_hint(Some("CALL eris.recode('schema.table')"))
    })?;
    let fact = core.table(&name, statement)?;
    let mut joins = core.recodings.joins_of(fact.object);
    for (column, table, key) in fact.references(&core.catalog.contents()) {
        if !joins.iter().any(|(other, ..)| *other == column) {
            joins.push((column, table, key));
        }
    }
    for (column, dimension, key) in joins {
        let join = Join {
            fact: fact.object,
            column,
            sizes: core
                .recodings
                .sizes((fact.object, column), dimension.object)?,
            dimension,
            key,
        };
        core.recodings.recode(&join).await?;
    }
    Ok(Begun::Done { tag: "CALL" })
}

/// A text as a name, at the text's place.
fn table_name(argument: &ValueWithSpan) -> Option<ObjectName> {
    let Value::SingleQuotedString(text) = &argument.value else {
        return None;
    };
    let mut parser = (Parser::new(&PostgreSqlDialect {}).try_with_sql(text)).ok()?;
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
