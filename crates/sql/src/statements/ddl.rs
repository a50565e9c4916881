//! Statements that define: CREATE, ALTER, DROP, TRUNCATE.
//!
//! Each checks itself against the catalogue's contents, makes new contents and puts them in place, all at once.
//! Statements that run meanwhile see the old contents, with the rows that belong to them, those that begin later the
//! new ones. Rows that have to be written anew go into a new data object before.
//!
//! What is written but would not hold is rejected, never accepted in silence: a table that says PRIMARY KEY has one.

mod alter;
mod columns;
mod comment;
mod create_table;
mod dependents;
mod draft;
mod drop;
mod generated;
mod index;
pub(crate) mod macros;
mod references;
pub(crate) mod restored;
mod row_order;
mod schema;
mod sequence;
mod truncate;
mod view;

pub(crate) use draft::publish as publish_draft;
pub(crate) use truncate::is_delete_of_all;

use crate::catalog::{Contents, RelationName, is_reserved};
use crate::context::StatementContext;
use crate::context::no_schema_hint;
use crate::error::position::Excerpt;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::text::parse::place_of;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName};

/// Runs a statement that defines something; `None` if it is none of these.
pub(crate) async fn run(
    context: &StatementContext,
    tree: ast::Statement,
    statement: &Statement,
) -> Result<Option<Begun>, SqlError> {
    let context = &context.for_change();
    // The largest of them are kept off the stack.
    let begun = match tree {
        ast::Statement::CreateTable(create) => {
            Box::pin(create_table::create(context, create, statement)).await
        }
        ast::Statement::CreateIndex(create) => index::create(context, create, statement).await,
        ast::Statement::CreateView(create) => view::create(context, create, statement).await,
        tree @ ast::Statement::CreateSchema { .. } => {
            schema::create(context, tree, statement).await
        }
        ast::Statement::AlterTable(alter) => {
            Box::pin(alter::alter(context, alter, statement)).await
        }
        ast::Statement::Truncate(truncate) => {
            Box::pin(truncate::truncate(context, truncate, statement)).await
        }
        ast::Statement::Delete(delete) if is_delete_of_all(&delete) => {
            Box::pin(truncate::delete_all(context, delete, statement)).await
        }
        ast::Statement::Comment {
            object_type,
            object_name,
            comment,
            if_exists,
        } => {
            let (name, text) = (&object_name, comment);
            comment::comment(context, object_type, name, text, if_exists, statement).await
        }
        ast::Statement::CreateSequence {
            temporary,
            if_not_exists,
            name,
            data_type,
            sequence_options: options,
            owned_by,
        } => {
            let written = sequence::WrittenSequence {
                temporary,
                if_not_exists,
                name,
                data_type,
                options,
                owned_by,
            };
            sequence::create(context, written, statement).await
        }
        tree @ ast::Statement::Drop { .. } => Box::pin(drop::drop(context, tree, statement)).await,
        _ => return Ok(None),
    };
    begun.map(Some)
}

/// Rejects to put something into a schema that does not exist, or that is not for users.
fn check_schema(
    contents: &Contents,
    full: &RelationName,
    name: &ObjectName,
    statement: &Statement,
) -> Result<(), SqlError> {
    let schema = &full.schema;
    let rejected = if full.is_temporary() {
        return Ok(());
    } else if is_reserved(schema) {
        SqlError::invalid(
            Mistake::InsufficientPrivilege,
            format!("schema \"{schema}\" is reserved for system tables"),
        )
    } else if !contents.has_schema(schema) {
        SqlError::invalid(
            Mistake::UndefinedSchema,
            format!("schema \"{schema}\" does not exist"),
        )
        .with_hint(Some(no_schema_hint(contents, schema)))
    } else {
        return Ok(());
    };
    Err(rejected.at(excerpt(name, statement)))
}

/// The error of a name that is taken.
pub(crate) fn exists(kind: &str, name: &RelationName, hint: Option<&str>) -> SqlError {
    SqlError::invalid(
        Mistake::DuplicateTable,
        format!("{kind} \"{name}\" exists already"),
    )
    .with_hint(hint)
}

/// The place of a name.
fn excerpt(name: &ObjectName, statement: &Statement) -> Option<Excerpt> {
    place_of(name).map(|place| statement.excerpt(place))
}

/// The place of a name.
fn excerpt_of(name: &Ident, statement: &Statement) -> Option<Excerpt> {
    excerpt(&ObjectName::from(vec![name.clone()]), statement)
}
