//! What names mean in a session, and what to say of those that mean nothing.

use super::StatementContext;
use crate::catalog::{CATALOG, Contents, RelationName, SCHEMA, Table, TableOrView, is_reserved};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::mistakes::is_table_function;
use crate::text::parse::place_of;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;
use std::sync::Arc;

impl StatementContext {
    /// The error of a name that leads to nothing: its place, and the name that was probably meant.
    pub fn no_relation(
        &self,
        kind: &str,
        name: &RelationName,
        shown: &str,
        place: Option<&ObjectName>,
        statement: &Statement,
    ) -> SqlError {
        let contents = self.catalog.contents();
        let hint = match contents.has_schema(&name.schema) {
            false if !is_reserved(&name.schema) => Some(no_schema_hint(&contents, &name.schema)),
            _ => (contents.similar(name, &self.current_schema))
                .map(|similar| format!("did you mean \"{similar}\"?")),
        };
        let (mistake, kind) = match place.is_some_and(|name| is_table_function(statement, name)) {
            true => (Mistake::UndefinedFunction, "table function"),
            false => (Mistake::UndefinedTable, kind),
        };
        SqlError::invalid(mistake, format!("{kind} \"{shown}\" does not exist"))
            .at(place
                .and_then(place_of)
                .map(|place| statement.excerpt(place)))
            .with_hint(hint)
    }

    /// The table or view of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn relation(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<TableOrView, SqlError> {
        let full = self.resolve(name, statement)?;
        let found = self.catalog.contents().get(&full).cloned();
        let shown = full.to_string();
        found.ok_or_else(|| self.no_relation("table", &full, &shown, Some(name), statement))
    }

    /// The table of this name.
    ///
    /// # Errors
    /// There is none, or it is a view.
    pub fn table(&self, name: &ObjectName, statement: &Statement) -> Result<Arc<Table>, SqlError> {
        let full = self.resolve(name, statement)?;
        match self.catalog.contents().get(&full) {
            Some(TableOrView::Table(table)) => Ok(Arc::clone(table)),
            Some(TableOrView::View(_)) => Err(SqlError::invalid(
                Mistake::WrongObjectType,
                format!("\"{full}\" is a view, not a table"),
            )
            .at(place_of(name).map(|place| statement.excerpt(place)))),
            None => Err(self.missing("table", &full, name, statement)),
        }
    }

    /// The error of a name without a relation of this kind, in a statement that would change it.
    pub fn missing(
        &self,
        kind: &str,
        full: &RelationName,
        name: &ObjectName,
        statement: &Statement,
    ) -> SqlError {
        if kind == "table" && is_reserved(&full.schema) {
            let schema = &full.schema;
            return SqlError::invalid(
                Mistake::WrongObjectType,
                format!("\"{full}\": schema \"{schema}\" has only system tables, which cannot be changed"),
            )
            .at(place_of(name).map(|place| statement.excerpt(place)));
        }
        self.no_relation(kind, full, &full.to_string(), Some(name), statement)
    }

    /// The full name that a name means in this session.
    ///
    /// # Errors
    /// Too many parts, or another catalogue.
    pub fn resolve(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<RelationName, SqlError> {
        self.full_name(name).ok_or_else(|| {
            SqlError::invalid(
                Mistake::UndefinedCatalog,
                format!("\"{name}\": the only catalogue is {CATALOG}"),
            )
            .at(place_of(name).map(|place| statement.excerpt(place)))
            .with_hint(Some(format!(
                "names have the form table, schema.table or {CATALOG}.schema.table"
            )))
        })
    }

    /// The same; `None` for too many parts, or another catalogue.
    pub fn full_name(&self, name: &ObjectName) -> Option<RelationName> {
        let parts = name.0.iter().map(|part| part.as_ident().map(normalize));
        match parts.collect::<Option<Vec<String>>>()?.as_slice() {
            [name] => Some(RelationName::new(&*self.current_schema, name.as_str())),
            [schema, name] => Some(RelationName::new(schema.as_str(), name.as_str())),
            [catalog, schema, name] if catalog == CATALOG => {
                Some(RelationName::new(schema.as_str(), name.as_str()))
            }
            _ => None,
        }
    }
}

/// What to do about the name of a schema that does not exist.
pub(crate) fn no_schema_hint(contents: &Contents, schema: &str) -> String {
    match eris_types::most_similar(schema, contents.schema_names()) {
        _ if schema == "main" => format!("the default schema is \"{SCHEMA}\""),
        Some(similar) => format!("there is no schema \"{schema}\"; did you mean \"{similar}\"?"),
        None => format!("there is no schema \"{schema}\"; CREATE SCHEMA makes one"),
    }
}
