//! Foreign keys in definitions: as they are written, and what becomes of them when the tables at their ends change.

use crate::catalog::{CatalogChange, Contents, Definition, ForeignKey, RelationName, Table};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::statements::ddl::columns::constraint_name;
use crate::statements::ddl::{excerpt, excerpt_of, generated};
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{
    ConstraintReferenceMatchKind, DeferrableInitial, ForeignKeyConstraint, Ident, ObjectName,
    ReferentialAction,
};
use eris_exact::types::sql_name;
use eris_types::most_similar;
use std::sync::Arc;

/// A FOREIGN KEY, or REFERENCES of a column, as it is written.
pub(super) struct WrittenKey {
    name: Option<Ident>,
    columns: Vec<Ident>,
    table: ObjectName,
    /// None of them: the PRIMARY KEY.
    referenced: Vec<Ident>,
}

impl WrittenKey {
    /// A constraint of a table.
    ///
    /// # Errors
    /// It says what would not hold.
    pub fn of_table(
        key: &ForeignKeyConstraint,
        statement: &Statement,
    ) -> Result<WrittenKey, SqlError> {
        let rejected = |what: String, hint: &str| {
            Err(SqlError::not_supported(format!("FOREIGN KEY … {what}"))
                .at(excerpt(&key.foreign_table, statement))
                .with_hint(Some(hint)))
        };
        for (when, action) in [("DELETE", &key.on_delete), ("UPDATE", &key.on_update)] {
            match action {
                None | Some(ReferentialAction::NoAction | ReferentialAction::Restrict) => {}
                Some(action) => {
                    let hint = "without it, taking away a row to which others refer is rejected; change those first, in a statement of their own";
                    return rejected(format!("ON {when} {action}"), hint);
                }
            }
        }
        match &key.match_kind {
            None | Some(ConstraintReferenceMatchKind::Simple) => {}
            Some(kind) => {
                let hint = "a row with a NULL in the foreign key refers to none; NOT NULL or CHECK say more";
                return rejected(kind.to_string(), hint);
            }
        }
        if let Some(more) = &key.characteristics
            && (more.deferrable == Some(true)
                || more.initially == Some(DeferrableInitial::Deferred)
                || more.enforced == Some(false))
        {
            let hint = "foreign keys are checked at the end of every statement";
            return rejected(more.to_string(), hint);
        }
        if let Some(index) = &key.index_name {
            return rejected(format!("{index} (…)"), "CONSTRAINT name FOREIGN KEY (…)");
        }
        Ok(WrittenKey {
            name: key.name.clone(),
            columns: key.columns.clone(),
            table: key.foreign_table.clone(),
            referenced: key.referred_columns.clone(),
        })
    }

    /// REFERENCES of a column, perhaps with a name before it.
    ///
    /// # Errors
    /// As of a table.
    pub fn of_column(
        column: &Ident,
        name: Option<&Ident>,
        key: &ForeignKeyConstraint,
        statement: &Statement,
    ) -> Result<WrittenKey, SqlError> {
        let written = WrittenKey::of_table(key, statement)?;
        Ok(WrittenKey {
            name: name.cloned().or(written.name),
            columns: vec![column.clone()],
            ..written
        })
    }
}

/// Adds a foreign key to a table's definition.
///
/// # Errors
/// There are no such columns, they are of other types, or no key of the other table; the name is taken.
pub(super) fn add(
    context: &StatementContext,
    definition: &mut Definition,
    written: &WrittenKey,
    statement: &Statement,
) -> Result<(), SqlError> {
    let full = context.resolve(&written.table, statement)?;
    if full.is_temporary() != definition.name.is_temporary() {
        let message = "FOREIGN KEY: a temporary table and another one cannot refer to each other";
        return Err(SqlError::invalid(Mistake::InvalidTableDefinition, message)
            .at(excerpt(&written.table, statement)));
    }
    let other = match full == definition.name {
        true => None,
        false => Some(context.table(&written.table, statement)?.definition()),
    };
    let other = other.as_ref().unwrap_or(definition);
    let columns = columns(&written.columns, &definition.schema, "", statement)?;
    generated::reject(
        "FOREIGN KEY",
        &columns,
        &definition.schema,
        &definition.rules,
    )?;
    let referenced = match (&other.key, written.referenced.is_empty()) {
        (_, false) => {
            let of = format!("table \"{full}\" has ");
            self::columns(&written.referenced, &other.schema, &of, statement)?
        }
        (Some(key), true) => key.columns.clone(),
        (None, true) => {
            let message = format!("FOREIGN KEY: table \"{full}\" has no PRIMARY KEY");
            return Err(SqlError::invalid(Mistake::UndefinedObject, message)
                .at(excerpt(&written.table, statement))
                .with_hint(Some("name the columns of one of its UNIQUE constraints")));
        }
    };
    if columns.len() != referenced.len() {
        let message = format!(
            "FOREIGN KEY: ({}) refers to ({}), which are not as many columns",
            columns.join(", "),
            referenced.join(", ")
        );
        return Err(SqlError::invalid(Mistake::InvalidForeignKey, message)
            .at(excerpt(&written.table, statement)));
    }
    let name = constraint_name(
        definition,
        written.name.as_ref(),
        &columns,
        "fkey",
        statement,
    )?;
    let key = ForeignKey {
        name,
        columns,
        table: full,
        referenced,
    };
    if !key.has_key(other) {
        let columns = key.referenced.join(", ");
        let message = format!(
            "FOREIGN KEY: table \"{}\" has no PRIMARY KEY or UNIQUE constraint of ({columns})",
            key.table
        );
        let hint = format!("ALTER TABLE {} ADD UNIQUE ({columns})", key.table.sql());
        return Err(SqlError::invalid(Mistake::InvalidForeignKey, message)
            .at(excerpt(&written.table, statement))
            .with_hint(Some(hint)));
    }
    check_types(&key, &definition.schema, &other.schema)
        .map_err(|error| error.at(excerpt(&written.table, statement)))?;
    definition.foreign_keys.push(key);
    Ok(())
}

/// Names of columns that a table has, each once. `of` begins the message if it has not.
fn columns(
    names: &[Ident],
    schema: &SchemaRef,
    of: &str,
    statement: &Statement,
) -> Result<Vec<String>, SqlError> {
    let mut plain: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let wrong = |mistake, message: String, hint: Option<String>| {
            Err(
                SqlError::invalid(mistake, format!("FOREIGN KEY: {message}"))
                    .at(excerpt_of(name, statement))
                    .with_hint(hint),
            )
        };
        let column = normalize(name);
        if schema.index_of(&column).is_err() {
            let all = schema.fields().iter().map(|field| field.name().as_str());
            let similar = most_similar(&column, all);
            let there = if of.is_empty() { "there is " } else { of };
            return wrong(
                Mistake::UndefinedColumn,
                format!("{there}no column \"{column}\""),
                similar.map(|name| format!("did you mean \"{name}\"?")),
            );
        }
        if plain.contains(&column) {
            return wrong(
                Mistake::DuplicateColumn,
                format!("column \"{column}\" occurs twice"),
                None,
            );
        }
        plain.push(column);
    }
    Ok(plain)
}

/// Rejects columns of other types than those to which they refer.
fn check_types(key: &ForeignKey, own: &SchemaRef, other: &SchemaRef) -> Result<(), SqlError> {
    let Some((column, referenced)) = key.mismatch(own, other) else {
        return Ok(());
    };
    let (column, referenced) = (own.field(column), other.field(referenced));
    Err(SqlError::invalid(
        Mistake::DatatypeMismatch,
        format!(
            "FOREIGN KEY \"{}\": column \"{}\" is {}, but column \"{}\" of table \"{}\" is {}",
            key.name,
            column.name(),
            sql_name(column.data_type(), None),
            referenced.name(),
            key.table,
            sql_name(referenced.data_type(), None)
        ),
    )
    .with_hint(Some("both have to be of one type")))
}

/// Makes sure that the tables to which a table refers are still there, with these keys.
pub(super) fn check(contents: &Contents, table: &Table) -> Result<(), SqlError> {
    let others = table.foreign_keys.iter();
    for key in others.filter(|key| key.table != table.name) {
        let other = contents.table(&key.table);
        let Some(other) = other.filter(|other| key.key_of(other).is_some()) else {
            return Err(SqlError::invalid(
                Mistake::NotReady,
                format!(
                    "FOREIGN KEY \"{}\": table \"{}\" was changed or dropped meanwhile",
                    key.name, key.table
                ),
            ));
        };
        check_types(key, &table.schema, &other.schema)?;
    }
    Ok(())
}

/// The tables to which a table refers, as they are now.
pub(super) fn referenced(contents: &Contents, table: &Table) -> Vec<Arc<Table>> {
    let keys = table.foreign_keys.iter();
    keys.filter_map(|key| contents.table(&key.table).cloned())
        .collect()
}

/// The tables with foreign keys that refer to a table, as they are now.
pub(super) fn referencing(contents: &Contents, name: &RelationName) -> Vec<Arc<Table>> {
    let all = contents.referencing(name);
    all.map(|(by, _)| Arc::clone(by)).collect()
}

/// The first foreign key of a table that is not among `dropped`, but refers to one of these.
pub(super) fn first_to(contents: &Contents, dropped: &[RelationName]) -> Option<InTheWay> {
    dropped.iter().find_map(|name| {
        let mut all = contents.referencing(name);
        let (by, key) = all.find(|(by, _)| !dropped.contains(&by.name))?;
        Some(InTheWay {
            table: name.clone(),
            by: by.name.clone(),
            key: key.name.clone(),
        })
    })
}

/// Why a table has to stay: another refers to it.
pub(super) struct InTheWay {
    table: RelationName,
    by: RelationName,
    key: String,
}

impl InTheWay {
    /// The error of what cannot be done to the table.
    pub fn error(&self, done: &str) -> SqlError {
        SqlError::invalid(Mistake::DependentObjects, format!(
            "table \"{}\" cannot be {done}: table \"{}\" refers to it by FOREIGN KEY \"{}\"",
            self.table, self.by, self.key
        ))
        .with_hint(Some(format!(
            "DROP TABLE … CASCADE drops the constraint too; or ALTER TABLE {} DROP CONSTRAINT {} first",
            self.by.sql(),
            crate::catalog::quoted(&self.key)
        )))
    }
}

/// Takes the foreign keys that refer to these tables away from others.
pub(super) fn release(
    change: &mut CatalogChange<'_>,
    dropped: &[RelationName],
) -> Result<(), SqlError> {
    let refers = |key: &ForeignKey| dropped.contains(&key.table);
    let tables = change.tables();
    let tables = tables.filter(|table| !dropped.contains(&table.name));
    let tables: Vec<Arc<Table>> = tables
        .filter(|table| table.foreign_keys.iter().any(refers))
        .cloned()
        .collect();
    for table in tables {
        let mut definition = table.definition();
        definition.foreign_keys.retain(|key| !refers(key));
        let without = table.redefined(definition)?;
        change.put(crate::catalog::TableOrView::Table(Arc::new(without)));
    }
    Ok(())
}
