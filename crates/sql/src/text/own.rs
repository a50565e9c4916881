//! Queries that the engine itself has written.

use crate::text::identifier::without_places;
use datafusion::sql::sqlparser::ast::Query;
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::ErisDialect;

/// The query of a text, which has no place in the statement's.
pub(super) fn query_of(text: &str) -> Query {
    let parser = Parser::new(&ErisDialect).try_with_sql(text);
    let query = parser.and_then(|mut parser| parser.parse_query());
    let mut query = *query.expect("the text is a query");
    without_places(&mut query);
    query
}
