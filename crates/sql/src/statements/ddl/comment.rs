//! COMMENT ON.

use super::{excerpt, excerpt_of};
use crate::catalog::{Table, TableOrView, View, is_reserved};
use crate::context::{StatementContext, no_schema_hint};
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::running::outcome::Begun;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::locks;
use datafusion::sql::sqlparser::ast::{CommentObject, Ident, ObjectName};
use std::sync::Arc;

const TAG: &str = "COMMENT";

/// `COMMENT [IF EXISTS] ON TABLE | VIEW | COLUMN | SCHEMA name IS 'text' | NULL`. No text is a comment of none, as in
/// PostgreSQL.
pub(super) async fn comment(
    context: &StatementContext,
    object: CommentObject,
    name: &ObjectName,
    text: Option<String>,
    if_exists: bool,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let text = text.filter(|text| !text.is_empty());
    let commented = match object {
        CommentObject::Table => on_relation(context, name, "TABLE", text, statement).await,
        CommentObject::View => on_relation(context, name, "VIEW", text, statement).await,
        CommentObject::Column => on_column(context, name, text, statement).await,
        CommentObject::Schema => on_schema(context, name, text, statement).await,
        other => {
            let hint = "tables, views, columns and schemas have comments";
            return Err(SqlError::not_supported(format!("COMMENT ON {other}"))
                .at(excerpt(name, statement))
                .with_hint(Some(hint)));
        }
    };
    match commented {
        Err(error) if if_exists && is_undefined(&error) => {}
        other => other?,
    }
    Ok(Begun::Done { tag: TAG })
}

fn is_undefined(error: &SqlError) -> bool {
    matches!(
        error.kind(),
        SqlErrorKind::Invalid(
            Mistake::UndefinedTable | Mistake::UndefinedColumn | Mistake::UndefinedSchema,
            _
        )
    )
}

async fn on_relation(
    context: &StatementContext,
    name: &ObjectName,
    word: &str,
    text: Option<String>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let found = context.relation(name, statement)?;
    let is = match &found {
        TableOrView::Table(_) => "TABLE",
        TableOrView::View(_) => "VIEW",
    };
    if word != is {
        let (full, kind, word) = (found.name(), found.kind(), word.to_lowercase());
        let message = format!("\"{full}\" is a {kind}, not a {word}");
        return Err(SqlError::invalid(Mistake::WrongObjectType, message)
            .at(excerpt(name, statement))
            .with_hint(Some(format!("COMMENT ON {is} {} IS …", full.sql()))));
    }
    match found {
        TableOrView::Table(_) => {
            let changed = |table: &Table| {
                let mut definition = table.definition();
                definition.comment.clone_from(&text);
                table.redefined(definition)
            };
            change_table(context, name, changed, statement).await
        }
        TableOrView::View(_) => {
            let changed = |view: &mut View| {
                view.comment = text;
                Ok(())
            };
            change_view(context, name, changed, statement).await
        }
    }
}

async fn on_column(
    context: &StatementContext,
    name: &ObjectName,
    text: Option<String>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let mut relation = name.clone();
    let last = relation.0.pop();
    let column = last.as_ref().and_then(|part| part.as_ident());
    let Some(column) = column.filter(|_| !relation.0.is_empty()) else {
        let message = "COMMENT ON COLUMN names a column by its table";
        return Err(SqlError::invalid(Mistake::Syntax, message)
            .at(excerpt(name, statement))
            .with_hint(Some("COMMENT ON COLUMN table.column IS …")));
    };
    let plain = normalize(column);
    let found = context.relation(&relation, statement)?;
    let no_column = || no_column(&found, column, statement);
    match &found {
        TableOrView::Table(_) => {
            let changed = |table: &Table| {
                let position = table.schema.index_of(&plain).map_err(|_| no_column())?;
                let mut definition = table.definition();
                definition.rules[position].comment.clone_from(&text);
                table.redefined(definition)
            };
            change_table(context, &relation, changed, statement).await
        }
        TableOrView::View(_) => {
            let changed = |view: &mut View| {
                let position = view.schema.index_of(&plain).map_err(|_| no_column())?;
                view.column_comments
                    .resize(view.schema.fields().len(), None);
                view.column_comments[position] = text;
                Ok(())
            };
            change_view(context, &relation, changed, statement).await
        }
    }
}

fn no_column(of: &TableOrView, column: &Ident, statement: &Statement) -> SqlError {
    let (kind, name, plain) = (of.kind(), of.name(), normalize(column));
    SqlError::invalid(
        Mistake::UndefinedColumn,
        format!("{kind} \"{name}\" has no column \"{plain}\""),
    )
    .at(excerpt_of(column, statement))
    .with_hint(Some(format!("DESCRIBE {} shows its columns", name.sql())))
}

async fn change_table(
    context: &StatementContext,
    name: &ObjectName,
    changed: impl Fn(&Table) -> Result<Table, SqlError>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let locked = locks::exclusive_table(context, name, statement).await?;
    let new = changed(&locked.table)?;
    let mut change = context.catalog.change().await;
    change.put(TableOrView::Table(Arc::new(new)));
    change.commit().await
}

async fn change_view(
    context: &StatementContext,
    name: &ObjectName,
    changed: impl FnOnce(&mut View) -> Result<(), SqlError>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let full = context.resolve(name, statement)?;
    let mut change = context.catalog.change().await;
    let Some(TableOrView::View(view)) = change.get(&full) else {
        return Err(context.missing("view", &full, name, statement));
    };
    let mut view = View::clone(view);
    changed(&mut view)?;
    change.put(TableOrView::View(Arc::new(view)));
    change.commit().await
}

async fn on_schema(
    context: &StatementContext,
    name: &ObjectName,
    text: Option<String>,
    statement: &Statement,
) -> Result<(), SqlError> {
    let schema = super::schema::schema_name(name, statement)?;
    let mut change = context.catalog.change().await;
    let error = if is_reserved(&schema) {
        let message = format!("schema \"{schema}\" is reserved for system tables");
        SqlError::invalid(Mistake::InsufficientPrivilege, message)
    } else if !change.has_schema(&schema) {
        let message = format!("schema \"{schema}\" does not exist");
        SqlError::invalid(Mistake::UndefinedSchema, message)
            .with_hint(Some(no_schema_hint(&change, &schema)))
    } else {
        change.comment_on_schema(&schema, text);
        return change.commit().await;
    };
    Err(error.at(excerpt(name, statement)))
}
