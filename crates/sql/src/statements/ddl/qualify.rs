//! A view's query as text that means the same in every session: the schema that was current is written out.

use crate::catalog::RelationName;
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Query, VisitorMut};
use eris_syntax::walk_mut;
use std::ops::ControlFlow;

/// The query with the names of these relations qualified.
pub(super) fn qualified(query: &Query, current_schema: &str, reads: &[RelationName]) -> Query {
    let mut query = query.clone();
    let mut visitor = Qualify {
        current_schema,
        reads,
        with: Vec::new(),
    };
    // The visitor never breaks off.
    let _ = walk_mut(&mut query, &mut visitor);
    query
}

struct Qualify<'a> {
    current_schema: &'a str,
    reads: &'a [RelationName],
    /// Names that WITH gives, innermost last: they hide tables.
    with: Vec<String>,
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(with) = &mut query.with else {
            return ControlFlow::Continue(());
        };
        for table in &mut with.cte_tables {
            if !with.recursive {
                // In its own query the name means a table still.
                walk_mut(table, self)?;
            }
            self.with.push(normalize(&table.alias.name));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let names = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        self.with.truncate(self.with.len() - names);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        let [ObjectNamePart::Identifier(name)] = &relation.0[..] else {
            return ControlFlow::Continue(());
        };
        let full = RelationName::new(self.current_schema, normalize(name));
        if !self.with.contains(&full.name) && self.reads.contains(&full) {
            let schema = Ident::with_quote('"', self.current_schema);
            relation.0.insert(0, ObjectNamePart::Identifier(schema));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    #[test]
    fn tables_are_qualified_and_names_of_with_are_not() {
        for (query, expected) in [
            (
                "SELECT t.a FROM t JOIN s.t AS b ON true WHERE x IN (SELECT a FROM T)",
                "SELECT t.a FROM \"m\".t JOIN s.t AS b ON true WHERE x IN (SELECT a FROM \"m\".T)",
            ),
            (
                "WITH t AS (SELECT * FROM t), u AS (SELECT * FROM t) SELECT * FROM t, u, v",
                "WITH t AS (SELECT * FROM \"m\".t), u AS (SELECT * FROM t) SELECT * FROM t, u, v",
            ),
            (
                "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) UNION SELECT * FROM t",
                "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) UNION SELECT * FROM \"m\".t",
            ),
        ] {
            let parser = Parser::new(&ErisDialect).try_with_sql(query);
            let parsed = parser.unwrap().parse_query().unwrap();
            let reads = [RelationName::new("m", "t")];
            assert_eq!(qualified(&parsed, "m", &reads).to_string(), expected);
        }
    }
}
