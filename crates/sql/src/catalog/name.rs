//! Names of relations, and how they are written.

use datafusion::sql::sqlparser::keywords::{
    ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_IDENTIFIER,
    RESERVED_FOR_TABLE_ALIAS,
};
use std::fmt;

/// The only catalogue's name.
pub(crate) const CATALOG: &str = "eris";
/// The schema that is always there, and where unqualified names are looked up unless the session says otherwise.
pub(crate) const SCHEMA: &str = "public";
/// Schemas in which users create nothing: system tables, the standard's views, PostgreSQL's catalogue.
const RESERVED: [&str; 3] = ["eris", "information_schema", "pg_catalog"];

/// The schema of a session's temporary tables and views, as statements call it.
pub(crate) const TEMPORARY: &str = "temp";
/// With what the name begins that it has in the catalogue, where each session has its own.
const TEMPORARY_OF: &str = "pg_temp_";

/// Whether users can neither create nor drop a schema of this name, nor anything in it.
pub(crate) fn is_reserved(schema: &str) -> bool {
    RESERVED.contains(&schema) || schema == TEMPORARY
}

/// The name that a session's temporary schema has in the catalogue.
pub(crate) fn temporary_schema(session: u64) -> String {
    format!("{TEMPORARY_OF}{session}")
}

/// Whether a schema of the catalogue is that of a session's temporary tables.
pub(crate) fn is_temporary(schema: &str) -> bool {
    schema.starts_with(TEMPORARY_OF)
}

/// The full name of a table or view within the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RelationName {
    pub schema: String,
    pub name: String,
}

impl RelationName {
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        RelationName {
            schema: schema.into(),
            name: name.into(),
        }
    }

    /// The name as SQL that is read back as this name, whatever it consists of.
    pub fn sql(&self) -> String {
        if self.schema == SCHEMA {
            quoted(&self.name)
        } else {
            format!("{}.{}", quoted(self.shown_schema()), quoted(&self.name))
        }
    }

    /// The name with its schema, whatever that is, as SQL.
    pub fn full(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    /// The schema as statements call it.
    pub fn shown_schema(&self) -> &str {
        match self.is_temporary() {
            true => TEMPORARY,
            false => &self.schema,
        }
    }

    /// Whether it is a session's own.
    pub fn is_temporary(&self) -> bool {
        is_temporary(&self.schema)
    }
}

/// For messages: the schema is left out where it goes without saying.
impl fmt::Display for RelationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.schema != SCHEMA {
            write!(f, "{}.", self.shown_schema())?;
        }
        f.write_str(&self.name)
    }
}

/// Words that mean something else where a column's name could stand, beside those that the parser itself reserves.
const SPECIAL: [&str; 45] = [
    "all",
    "any",
    "array",
    "between",
    "case",
    "cast",
    "check",
    "constraint",
    "convert",
    "current_catalog",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "distinct",
    "exclude",
    "exists",
    "extract",
    "false",
    "foreign",
    "in",
    "index",
    "interval",
    "is",
    "like",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "overlay",
    "position",
    "primary",
    "prior",
    "session_user",
    "struct",
    "substring",
    "table",
    "true",
    "trim",
    "try_cast",
    "unique",
    "unnest",
    "user",
    "xmltable",
];

/// An identifier as SQL: bare if that means the same name, else in quotes.
pub fn quoted(name: &str) -> String {
    let mut characters = name.chars();
    let plain = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !is_special(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn is_special(name: &str) -> bool {
    let upper = name.to_uppercase();
    let keyword = ALL_KEYWORDS.binary_search(&upper.as_str());
    let keyword = keyword.map(|position| ALL_KEYWORDS_INDEX[position]);
    SPECIAL.contains(&name)
        || keyword.is_ok_and(|keyword| {
            RESERVED_FOR_COLUMN_ALIAS.contains(&keyword)
                || RESERVED_FOR_TABLE_ALIAS.contains(&keyword)
                || RESERVED_FOR_IDENTIFIER.contains(&keyword)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Statement, TableFactor};
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    /// What the parser makes of the name in the places where scripts of the catalogue write it.
    fn read_back(written: &str) -> Option<Vec<String>> {
        let sql = format!(
            "CREATE TABLE {written} ({written} INTEGER NOT NULL, {written} VARCHAR); \
             SELECT {written}, 1 AS {written} FROM {written}"
        );
        let statements = Parser::parse_sql(&ErisDialect, &sql).ok()?;
        let [Statement::CreateTable(create), Statement::Query(query)] = &statements[..] else {
            return None;
        };
        let mut names = vec![create.name.0[0].as_ident()?.value.clone()];
        names.extend(
            create
                .columns
                .iter()
                .map(|column| column.name.value.clone()),
        );
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        for item in &select.projection {
            names.push(match item {
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.clone(),
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                _ => return None,
            });
        }
        let TableFactor::Table {
            name, args: None, ..
        } = &select.from.first()?.relation
        else {
            return None;
        };
        names.push(name.0[0].as_ident()?.value.clone());
        (names.len() == 6).then_some(names)
    }

    #[test]
    fn every_name_is_read_back() {
        let odd = ["Quoted", "", "1a", "a b", "a\"b", "é", "a-b", "ok", "_x1"];
        let keywords = ALL_KEYWORDS.iter().map(|keyword| keyword.to_lowercase());
        let names = odd.iter().map(|name| (*name).to_owned()).chain(keywords);
        let read = |name: &String| read_back(&quoted(name)) == Some(vec![name.clone(); 6]);
        let lost: Vec<_> = names
            .filter(|name| !name.is_empty() && !read(name))
            .collect();
        assert_eq!(lost, [""; 0]);
        assert_eq!(quoted("name"), "name");
        assert_eq!(quoted("date"), "date");
    }
}
