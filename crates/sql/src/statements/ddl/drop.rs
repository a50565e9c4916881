//! DROP TABLE, DROP VIEW, DROP SCHEMA.

use crate::catalog::{RelationName, TableOrView};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::ddl::dependents::in_use;
use crate::statements::ddl::{excerpt, index, references, schema, sequence};
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::locks::retire_all;
use datafusion::sql::sqlparser::ast::{self, ObjectName, ObjectType};
use std::sync::Arc;

/// DROP of one or several things: all of them, or none.
pub(super) async fn drop(
    context: &StatementContext,
    tree: ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let ast::Statement::Drop {
        object_type,
        if_exists,
        names,
        cascade,
        temporary,
        table,
        ..
    } = tree
    else {
        unreachable!("called for DROP only");
    };
    if temporary || table.is_some() {
        return Err(SqlError::not_supported("DROP TEMPORARY, or DROP … ON"));
    }
    match object_type {
        ObjectType::Table => {
            let kind = Droppable {
                word: "table",
                other: "DROP VIEW",
                is: |relation| matches!(relation, TableOrView::Table(_)),
            };
            relations(context, &names, kind, if_exists, cascade, statement).await?;
            Ok(Begun::Done { tag: "DROP TABLE" })
        }
        ObjectType::View => {
            let kind = Droppable {
                word: "view",
                other: "DROP TABLE",
                is: |relation| matches!(relation, TableOrView::View(_)),
            };
            relations(context, &names, kind, if_exists, cascade, statement).await?;
            Ok(Begun::Done { tag: "DROP VIEW" })
        }
        ObjectType::Schema => schema::drop(context, &names, if_exists, cascade, statement).await,
        ObjectType::Sequence => {
            sequence::drop(context, &names, if_exists, cascade, statement).await
        }
        ObjectType::Index => index::drop(context, &names, if_exists, statement).await,
        other => Err(SqlError::not_supported(format!("DROP {other}"))),
    }
}

/// What may be dropped by this statement.
struct Droppable {
    word: &'static str,
    /// The statement for what is not of this kind.
    other: &'static str,
    is: fn(&TableOrView) -> bool,
}

async fn relations(
    context: &StatementContext,
    names: &[ObjectName],
    kind: Droppable,
    if_exists: bool,
    cascade: bool,
    statement: &Statement,
) -> Result<(), SqlError> {
    let find = || -> Result<Vec<TableOrView>, SqlError> {
        let contents = context.catalog.contents();
        let mut found = Vec::new();
        for name in names {
            let full = context.resolve(name, statement)?;
            match contents.get(&full) {
                Some(relation) if (kind.is)(relation) => found.push(relation.clone()),
                Some(relation) => {
                    let message =
                        format!("\"{full}\" is a {}, not a {}", relation.kind(), kind.word);
                    return Err(SqlError::invalid(Mistake::WrongObjectType, message)
                        .at(excerpt(name, statement))
                        .with_hint(Some(format!("{} {}", kind.other, full.sql()))));
                }
                None if if_exists => {}
                None => return Err(context.missing(kind.word, &full, name, statement)),
            }
        }
        Ok(found)
    };
    let tables = || {
        let tables = find()?.into_iter().filter_map(|relation| match relation {
            TableOrView::Table(table) => Some(table),
            TableOrView::View(_) => None,
        });
        let mut tables: Vec<_> = tables.collect();
        if cascade {
            let contents = context.catalog.contents();
            let names: Vec<_> = tables.iter().map(|table| table.name.clone()).collect();
            let referencing = names
                .iter()
                .map(|name| references::referencing(&contents, name));
            tables.extend(referencing.flatten());
        }
        Ok(tables)
    };
    let locked = locks::exclusive(context, tables).await?;
    let mut change = context.catalog.change().await;
    // Tables stay what they are as long as they are locked; views may have gone. What came only now stays.
    let mut found = find()?;
    found.retain(|relation| match relation {
        TableOrView::Table(table) => {
            let mut locked = locked.iter();
            locked.any(|locked| Arc::ptr_eq(&locked.table.lock, &table.lock))
        }
        TableOrView::View(_) => true,
    });
    let dropped: Vec<RelationName> = found
        .iter()
        .map(|relation| relation.name().clone())
        .collect();
    std::mem::drop(found);
    match references::first_to(&change, &dropped) {
        Some(found) if !cascade => return Err(found.error("dropped")),
        Some(_) => references::release(&mut change, &dropped)?,
        None => {}
    }
    for name in &dropped {
        if cascade {
            for view in change.dependents(name) {
                change.remove(&view.name);
            }
            continue;
        }
        let views = change.dependents(name);
        if let Some(view) = views.iter().find(|view| !dropped.contains(&view.name)) {
            return Err(in_use(kind.word, name, view));
        }
    }
    let own = dropped.iter().filter_map(|name| change.table(name));
    let own = own.flat_map(|table| sequence::own(table));
    let own: Vec<RelationName> = own.map(|own| own.name.clone()).collect();
    sequence::check_unused(&change, &own, |table| dropped.contains(&table.name))?;
    for name in &dropped {
        change.drop_relation(name);
    }
    change.commit().await?;
    retire_all(locked).await
}
