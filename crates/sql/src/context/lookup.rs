//! What names mean in a session, and what to say of those that mean nothing.

use super::StatementContext;
use crate::catalog::{
    CATALOG, Contents, RelationName, SCHEMA, Sequence, TEMPORARY, Table, TableOrView, is_reserved,
    is_temporary, temporary_schema,
};
use crate::error::{Mistake, SqlError};
use crate::text::identifier::normalize;
use crate::text::mistakes::is_table_function;
use crate::text::parse::place_of;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::ObjectName;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use eris_syntax::ErisDialect;
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
            false if !is_reserved(&name.schema) && !name.is_temporary() => {
                Some(no_schema_hint(&contents, &name.schema))
            }
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
        if kind == "table" && is_reserved(&full.schema) && full.schema != TEMPORARY {
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
            [name] => Some(self.name_in(None, name)),
            [schema, name] => Some(self.name_in(Some(schema), name)),
            [catalog, schema, name] if catalog == CATALOG => Some(self.name_in(Some(schema), name)),
            _ => None,
        }
    }

    /// The full name of a table or view as it is written. A temporary one hides others of its name.
    pub fn name_in(&self, schema: Option<&str>, name: &str) -> RelationName {
        self.name_among(schema, name, |contents, name| contents.get(name).is_some())
    }

    pub(super) fn name_among(
        &self,
        schema: Option<&str>,
        name: &str,
        exists: impl Fn(&Contents, &RelationName) -> bool,
    ) -> RelationName {
        match (schema, &self.variables.temporary) {
            (Some(schema), _) => RelationName::new(self.schema_meant(schema), name),
            (None, None) => RelationName::new(&*self.current_schema, name),
            (None, Some(temporary)) => {
                let hiding = RelationName::new(&**temporary, name);
                match exists(&self.catalog.contents(), &hiding) {
                    true => hiding,
                    false => RelationName::new(&*self.current_schema, name),
                }
            }
        }
    }

    /// The schema that a name means in this session: nobody gets at temporary tables of others.
    pub fn schema_meant(&self, schema: &str) -> String {
        match schema {
            TEMPORARY => temporary_schema(self.session.id),
            other if is_temporary(other) => TEMPORARY.to_owned(),
            other => other.to_owned(),
        }
    }

    /// The full name of a table, view or sequence that is to be created, and `temporary` or not.
    ///
    /// # Errors
    /// A schema that is not for such ones.
    pub fn new_name(
        &self,
        name: &ObjectName,
        temporary: bool,
        statement: &Statement,
    ) -> Result<RelationName, SqlError> {
        let wrong = |mistake, message: String| {
            let place = place_of(name).map(|place| statement.excerpt(place));
            Err(SqlError::invalid(mistake, message).at(place))
        };
        let mut full = self.resolve(name, statement)?;
        if name.0.len() == 1 {
            full.schema = match temporary {
                true => temporary_schema(self.session.id),
                false => self.current_schema.to_string(),
            };
        }
        match (temporary, full.is_temporary()) {
            (true, false) => wrong(
                Mistake::InvalidTableDefinition,
                format!(
                    "\"{full}\" cannot be temporary: what is temporary is in schema \"{TEMPORARY}\""
                ),
            ),
            (false, true) => wrong(
                Mistake::InvalidTableDefinition,
                format!(
                    "schema \"{TEMPORARY}\" is for what is temporary: CREATE TEMP TABLE, CREATE TEMP VIEW"
                ),
            ),
            _ => Ok(full),
        }
    }

    /// The sequence of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn sequence(
        &self,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<Arc<Sequence>, SqlError> {
        let mut full = self.resolve(name, statement)?;
        if let [part] = &name.0[..] {
            let plain = part.as_ident().map(normalize).unwrap_or_default();
            let is_one =
                |contents: &Contents, name: &RelationName| contents.sequence(name).is_some();
            full = self.name_among(None, &plain, is_one);
        }
        let contents = self.catalog.contents();
        contents.sequence(&full).cloned().ok_or_else(|| {
            let all = contents.sequences().filter(|other| self.sees(&other.name));
            let all: Vec<String> = all.map(|other| other.name.to_string()).collect();
            let similar =
                eris_types::most_similar(&full.to_string(), all.iter().map(String::as_str));
            let message = format!("sequence \"{full}\" does not exist");
            SqlError::invalid(Mistake::UndefinedTable, message)
                .at(place_of(name).map(|place| statement.excerpt(place)))
                .with_hint(similar.map(|similar| format!("did you mean \"{similar}\"?")))
        })
    }

    /// The sequence that a string names, as PostgreSQL reads it.
    ///
    /// # Errors
    /// There is none, or it is no name.
    pub fn sequence_of(&self, text: &str) -> Result<Arc<Sequence>, SqlError> {
        let parser = Parser::new(&ErisDialect).try_with_sql(text);
        let name = parser.and_then(|mut parser| {
            let name = parser.parse_object_name(false)?;
            parser.expect_token(&Token::EOF)?;
            Ok(name)
        });
        let name = name.map_err(|_| {
            let message = format!("'{text}' is not the name of a sequence");
            SqlError::invalid(Mistake::Syntax, message)
        })?;
        self.sequence(&name, &Statement::from(""))
    }

    /// Whether this session sees what has this name: not temporary tables of others.
    pub fn sees(&self, name: &RelationName) -> bool {
        !name.is_temporary() || self.variables.temporary.as_deref() == Some(&name.schema)
    }

    /// Makes the schema of the session's temporary tables, if there is none yet.
    pub async fn make_temporary_schema(&self) {
        let schema = temporary_schema(self.session.id);
        if !self.catalog.contents().has_schema(&schema) {
            let mut change = self.catalog.change().await;
            change.add_schema(&schema);
            change.publish();
        }
        self.session.keep_temporary(&self.catalog, &schema);
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
