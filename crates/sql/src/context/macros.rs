//! The macros that names mean in a session.

use super::StatementContext;
use crate::catalog::{Contents, Macro, RelationName, TableOrView};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::macros::{Definition, Macros, expand};
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;
use eris_syntax::Tree;
use std::collections::HashSet;
use std::sync::Arc;

impl StatementContext {
    /// Puts in the macros that a tree calls; whether it calls any.
    ///
    /// # Errors
    /// A macro does not take its arguments.
    pub fn put_macros_in(
        &self,
        tree: &mut impl Tree,
        statement: &Statement,
    ) -> Result<bool, SqlError> {
        // Most databases have none.
        if self.catalog.contents().macros().next().is_none() {
            return Ok(false);
        }
        expand(tree, self, statement)
    }

    /// The macro of this name.
    pub fn macro_named(&self, name: &ObjectName, is_table: bool) -> Option<Arc<Macro>> {
        let mut full = self.full_name(name)?;
        if let [part] = &name.0[..] {
            let plain = part.as_ident().map(normalize)?;
            let is_one = |contents: &Contents, name: &RelationName| {
                contents.macro_named(name, is_table).is_some()
            };
            full = self.name_among(None, &plain, is_one);
        }
        let contents = self.catalog.contents();
        contents.macro_named(&full, is_table).cloned()
    }

    /// The error of a macro that does not exist.
    pub fn no_macro(&self, name: &ObjectName, is_table: bool) -> SqlError {
        let (kind, other) = match is_table {
            true => ("table macro", "DROP MACRO"),
            false => ("macro", "DROP MACRO TABLE"),
        };
        let message = format!("{kind} \"{name}\" does not exist");
        let hint = self
            .macro_named(name, !is_table)
            .map(|found| format!("{other} {}", found.name.sql()));
        SqlError::invalid(Mistake::UndefinedFunction, message).with_hint(hint)
    }

    fn of_schema(&self, schema: Option<&str>) -> Self {
        match schema {
            Some(schema) => self.clone().in_schema(schema),
            None => self.clone(),
        }
    }
}

impl Macros for StatementContext {
    fn find(
        &self,
        name: &ObjectName,
        is_table: bool,
        schema: Option<&str>,
    ) -> Option<Arc<Definition>> {
        let found = self.of_schema(schema).macro_named(name, is_table)?;
        Some(Arc::clone(&found.definition))
    }

    fn columns(&self, relation: &ObjectName, schema: Option<&str>) -> Option<HashSet<String>> {
        let full = self.of_schema(schema).full_name(relation)?;
        let contents = self.catalog.contents();
        Some(match contents.get(&full)? {
            TableOrView::Table(table) => table.column_names().map(str::to_owned).collect(),
            TableOrView::View(view) => view.column_names().map(str::to_owned).collect(),
        })
    }
}
