//! CREATE MACRO, DROP MACRO, COMMENT ON MACRO.

use super::{check_schema, excerpt, excerpt_of, exists};
use crate::catalog::{Macro, RelationName, SCHEMA, is_reserved};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::text::identifier::normalize;
use crate::text::macros::{
    Body, CreateMacro, Definition, Form, MacroStatement, printable, unknown_column,
};
use crate::text::qualify::{Kind, qualify};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;
use std::cell::RefCell;
use std::sync::Arc;

const TAG: &str = "CREATE MACRO";

/// Runs a statement about macros.
pub(crate) async fn run(
    context: &StatementContext,
    parsed: MacroStatement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    match parsed {
        MacroStatement::Create(written) => create(context, written, statement).await,
        MacroStatement::Drop {
            names,
            is_table,
            if_exists,
        } => drop(context, &names, is_table, if_exists, statement).await,
        MacroStatement::Comment {
            name,
            is_table,
            if_exists,
            text,
        } => comment(context, &name, is_table, if_exists, text, statement).await,
    }
}

async fn create(
    context: &StatementContext,
    written: CreateMacro,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = &written.name;
    let is_table = written.is_table();
    let full = context.new_name(name, written.temporary, statement)?;
    if written.temporary {
        context.make_temporary_schema().await;
    }
    let mut change = context.catalog.change().await;
    check_schema(&change, &full, name, statement)?;
    if change.macro_named(&full, is_table).is_some() && !written.or_replace {
        if written.if_not_exists {
            return Ok(Begun::Done { tag: TAG });
        }
        let hint = "CREATE MACRO IF NOT EXISTS, or CREATE OR REPLACE MACRO";
        return Err(exists("macro", &full, Some(hint)).at(excerpt(name, statement)));
    }
    let mut forms = written.forms;
    for form in &mut forms {
        bind(context, form, &full, statement)?;
    }
    change.put_macro(Macro {
        is_table,
        definition: Arc::new(Definition {
            name: full.to_string(),
            schema: context.current_schema.to_string(),
            forms,
        }),
        name: full,
        comment: None,
    });
    change.commit().await?;
    Ok(Begun::Done { tag: TAG })
}

/// Qualifies the names in a form, so that it means the same whatever schema is current and whatever is made later.
///
/// # Errors
/// A table or a column does not exist, or ends with the session.
fn bind(
    context: &StatementContext,
    form: &mut Form,
    full: &RelationName,
    statement: &Statement,
) -> Result<(), SqlError> {
    let schema = &*context.current_schema;
    let unknown = match context.is_opening() {
        true => None,
        false => unknown_column(form, context, schema),
    };
    let failed = RefCell::new(None);
    let schema_of = |kind: Kind, name: &ObjectName| {
        let found = match kind {
            // Whatever it read may be gone since it was made.
            Kind::Relation if context.is_opening() => {
                Ok(relation(context, name, statement).unwrap_or(None))
            }
            Kind::Relation => relation(context, name, statement),
            Kind::Function => Ok(context
                .macro_named(name, false)
                .map(|named| named.name.clone())),
            Kind::TableFunction => Ok(context
                .macro_named(name, true)
                .map(|named| named.name.clone())),
        };
        match found {
            Ok(Some(found)) if found.is_temporary() && !full.is_temporary() => {
                let message =
                    format!("macro \"{full}\" would use \"{found}\", which ends with the session");
                let error = SqlError::invalid(Mistake::InvalidObjectDefinition, message)
                    .at(excerpt(name, statement))
                    .with_hint(Some("CREATE TEMP MACRO"));
                failed.borrow_mut().get_or_insert(error);
                None
            }
            Ok(found) => found.map(|found| found.shown_schema().to_owned()),
            Err(error) => {
                failed.borrow_mut().get_or_insert(error);
                None
            }
        }
    };
    match &mut form.body {
        Body::Scalar(expr) => qualify(&mut **expr, schema_of),
        Body::Table(query) => qualify(&mut **query, schema_of),
    }
    for default in form
        .parameters
        .iter_mut()
        .filter_map(|parameter| parameter.default.as_mut())
    {
        qualify(default, schema_of);
    }
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    if let Some(column) = unknown {
        let message = format!("column \"{}\" does not exist", normalize(&column));
        let hint = format!("the macro has the parameters {}", form.parameters_text());
        return Err(SqlError::invalid(Mistake::UndefinedColumn, message)
            .at(excerpt_of(&column, statement))
            .with_hint(Some(hint)));
    }
    if schema != SCHEMA {
        match &form.body {
            Body::Scalar(expr) => printable(&**expr, "macro")?,
            Body::Table(query) => printable(&**query, "macro")?,
        }
    }
    Ok(())
}

/// The table or view of a name; none of a file and of a system table, which are looked for when the macro is called.
fn relation(
    context: &StatementContext,
    name: &ObjectName,
    statement: &Statement,
) -> Result<Option<RelationName>, SqlError> {
    let is_file = name.to_string().contains(['/', '\'', '.']) && name.0.len() == 1;
    match context.full_name(name) {
        Some(full) if !is_file && !is_reserved(&full.schema) => {
            let found = context.relation(name, statement)?;
            Ok(Some(found.name().clone()))
        }
        _ => Ok(None),
    }
}

/// DROP of one or several macros: all of them, or none.
async fn drop(
    context: &StatementContext,
    names: &[ObjectName],
    is_table: bool,
    if_exists: bool,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let mut change = context.catalog.change().await;
    let mut dropped: Vec<RelationName> = Vec::new();
    for name in names {
        match context.macro_named(name, is_table) {
            Some(found) => dropped.push(found.name.clone()),
            None if if_exists => {}
            None => {
                let error = context.no_macro(name, is_table);
                return Err(error.at(excerpt(name, statement)));
            }
        }
    }
    for name in &dropped {
        change.remove_macro(name, is_table);
    }
    change.commit().await?;
    Ok(Begun::Done { tag: "DROP MACRO" })
}

async fn comment(
    context: &StatementContext,
    name: &ObjectName,
    is_table: bool,
    if_exists: bool,
    text: Option<String>,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let mut change = context.catalog.change().await;
    match context.macro_named(name, is_table) {
        Some(found) => {
            let mut commented = Macro::clone(&found);
            commented.comment = text.filter(|text| !text.is_empty());
            change.put_macro(commented);
            change.commit().await?;
        }
        None if if_exists => {}
        None => {
            let error = context.no_macro(name, is_table);
            return Err(error.at(excerpt(name, statement)));
        }
    }
    Ok(Begun::Done { tag: "COMMENT" })
}
