//! CREATE SCHEMA and DROP SCHEMA.

use crate::catalog::{CATALOG, SCHEMA, TEMPORARY, Table, TableOrView, is_reserved, is_temporary};
use crate::context::StatementContext;
use crate::context::no_schema_hint;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::ddl::dependents::remove_with_dependents;
use crate::statements::ddl::{excerpt, references, sequence};
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::locks::retire_all;
use datafusion::sql::sqlparser::ast::{self, ObjectName, SchemaName};
use std::sync::Arc;

/// CREATE SCHEMA [IF NOT EXISTS] name.
pub(super) async fn create(
    context: &StatementContext,
    tree: ast::Statement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let ast::Statement::CreateSchema {
        schema_name: SchemaName::Simple(name),
        if_not_exists,
        with: None,
        options: None,
        default_collate_spec: None,
        clone: None,
    } = tree
    else {
        return Err(SqlError::not_supported(
            "CREATE SCHEMA with other clauses than its name",
        ));
    };
    let plain = schema_name(&name, statement)?;
    if is_reserved(&plain) || is_temporary(&plain) {
        let message = match is_reserved(&plain) && plain != TEMPORARY {
            true => format!("schema \"{plain}\" is reserved for system tables"),
            false => format!("schema \"{plain}\" is reserved for temporary tables"),
        };
        return Err(SqlError::invalid(Mistake::ReservedName, message).at(excerpt(&name, statement)));
    }
    let mut change = context.catalog.change().await;
    if change.has_schema(&plain) {
        if !if_not_exists {
            return Err(SqlError::invalid(
                Mistake::DuplicateSchema,
                format!("schema \"{plain}\" exists already"),
            )
            .at(excerpt(&name, statement))
            .with_hint(Some("CREATE SCHEMA IF NOT EXISTS")));
        }
    } else {
        change.add_schema(&plain);
        change.commit().await?;
    }
    Ok(Begun::Done {
        tag: "CREATE SCHEMA",
    })
}

/// DROP SCHEMA: with CASCADE also of one that is not empty.
pub(super) async fn drop(
    context: &StatementContext,
    names: &[ObjectName],
    if_exists: bool,
    cascade: bool,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let find = || -> Result<Vec<String>, SqlError> {
        let contents = context.catalog.contents();
        let mut schemas = Vec::new();
        for name in names {
            let plain = schema_name(name, statement)?;
            let rejected = if plain == SCHEMA || is_reserved(&plain) || is_temporary(&plain) {
                SqlError::invalid(
                    Mistake::DependentObjects,
                    format!("schema \"{plain}\" cannot be dropped"),
                )
            } else if contents.has_schema(&plain) {
                schemas.push(plain);
                continue;
            } else if if_exists {
                continue;
            } else {
                SqlError::invalid(
                    Mistake::UndefinedSchema,
                    format!("schema \"{plain}\" does not exist"),
                )
                .with_hint(Some(no_schema_hint(&contents, &plain)))
            };
            return Err(rejected.at(excerpt(name, statement)));
        }
        Ok(schemas)
    };
    loop {
        let tables_of = |schemas: &[String]| -> Vec<Arc<Table>> {
            let contents = context.catalog.contents();
            let tables = contents.tables();
            let tables = tables.filter(|table| schemas.contains(&table.name.schema));
            let tables: Vec<Arc<Table>> = tables.cloned().collect();
            let names = tables.iter().map(|table| &table.name);
            let referencing = names.flat_map(|name| references::referencing(&contents, name));
            tables.iter().cloned().chain(referencing).collect()
        };
        // Without CASCADE there is nothing to be locked: what is there is a reason to reject.
        let locked = match cascade {
            true => locks::exclusive(context, || Ok(tables_of(&find()?))).await?,
            false => Vec::new(),
        };
        let mut change = context.catalog.change().await;
        let schemas = find()?;
        let all_locked = tables_of(&schemas).iter().all(|table| {
            let same = |other: &Arc<Table>| Arc::ptr_eq(&other.lock, &table.lock);
            locked.iter().any(|locked| same(&locked.table))
        });
        if cascade && !all_locked {
            continue;
        }
        for schema in &schemas {
            let relations: Vec<TableOrView> = change.relations_in(schema).cloned().collect();
            if let (Some(relation), false) = (relations.first(), cascade) {
                let what = format!("{} \"{}\"", relation.kind(), relation.name());
                return Err(SqlError::invalid(
                    Mistake::DependentObjects,
                    format!("schema \"{schema}\" is not empty: it has {what}"),
                )
                .with_hint(Some("DROP SCHEMA … CASCADE drops all that is in it")));
            }
            let dropped: Vec<_> = relations.iter().map(TableOrView::name).cloned().collect();
            let sequences = change.sequences();
            let sequences = sequences.filter(|sequence| sequence.name.schema == *schema);
            let sequences: Vec<_> = sequences.map(|sequence| sequence.name.clone()).collect();
            if let (Some(sequence), false) = (sequences.first(), cascade) {
                return Err(SqlError::invalid(
                    Mistake::DependentObjects,
                    format!("schema \"{schema}\" is not empty: it has sequence \"{sequence}\""),
                )
                .with_hint(Some("DROP SCHEMA … CASCADE drops all that is in it")));
            }
            let mut macros = change.macros();
            let named = macros.find(|named| named.name.schema == *schema);
            if let (Some(named), false) = (named, cascade) {
                let name = &named.name;
                return Err(SqlError::invalid(
                    Mistake::DependentObjects,
                    format!("schema \"{schema}\" is not empty: it has macro \"{name}\""),
                )
                .with_hint(Some("DROP SCHEMA … CASCADE drops all that is in it")));
            }
            std::mem::drop(macros);
            sequence::check_unused(&change, &sequences, |table| {
                schemas.contains(&table.name.schema)
            })?;
            references::release(&mut change, &dropped)?;
            for relation in &relations {
                remove_with_dependents(&mut change, relation.name());
            }
            change.remove_schema(schema);
        }
        change.commit().await?;
        retire_all(locked).await?;
        return Ok(Begun::Done { tag: "DROP SCHEMA" });
    }
}

/// The name of a schema, which may be qualified by that of the catalogue.
pub(super) fn schema_name(name: &ObjectName, statement: &Statement) -> Result<String, SqlError> {
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| part.as_ident().map(normalize))
        .collect();
    match parts.as_deref() {
        Some([schema]) => Ok(schema.clone()),
        Some([catalog, schema]) if catalog == CATALOG => Ok(schema.clone()),
        _ => Err(SqlError::invalid(
            Mistake::UndefinedCatalog,
            format!("\"{name}\": the only catalogue is {CATALOG}"),
        )
        .at(excerpt(name, statement))),
    }
}
