//! Views: queries with a name.

use crate::catalog::RelationName;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast;
use std::fmt;

/// A query that is planned anew wherever its name occurs, and means what it meant when it was created: its names are
/// looked up in the schema that was current then, and `*` stands for the columns that there were then.
#[derive(Clone)]
pub(crate) struct View {
    pub name: RelationName,
    /// Its columns.
    pub schema: SchemaRef,
    /// Whether CREATE VIEW named the columns; else they are called as in the query.
    pub named: bool,
    /// The query as it was written; names are qualified if another schema than `public` was current.
    pub text: String,
    pub query: ast::Query,
    /// Where the query's unqualified names are looked up.
    pub current_schema: String,
    /// What it reads directly, files and system tables apart.
    pub reads: Vec<ViewDependency>,
    /// COMMENT ON VIEW.
    pub comment: Option<String>,
    /// COMMENT ON COLUMN, of each column.
    pub column_comments: Vec<Option<String>>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} AS {}", self.name, self.query)
    }
}

/// A table or view that a view reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewDependency {
    pub name: RelationName,
    /// Its columns when the view was created.
    pub columns: Vec<String>,
}

impl View {
    /// Whether it reads this relation directly.
    pub fn reads(&self, name: &RelationName) -> bool {
        self.reads.iter().any(|read| read.name == *name)
    }

    /// The names of its columns.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
    }

    #[cfg(test)]
    pub fn parse_for_test(query: &str) -> ast::Query {
        use datafusion::sql::sqlparser::parser::Parser;
        use eris_syntax::ErisDialect;
        let parser = Parser::new(&ErisDialect).try_with_sql(query);
        *parser.unwrap().parse_query().unwrap()
    }
}
