//! A query of WITH that has the name of one around it:
//!
//! ```text
//! WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT 2 AS x) SELECT * FROM a) SELECT …
//!                                  WITH a_1 AS (SELECT 2 AS x) SELECT * FROM a_1 AS a       planned as
//! ```
//!
//! DataFusion rejects the name, for it knows all of them at once. So the inner one gets another.

use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectName, Query, TableAlias, TableFactor, VisitorMut,
};
use eris_syntax::walk_mut;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Gives inner queries of WITH names that none around them has.
pub(super) fn rename(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Scopes::default());
}

#[derive(Default)]
struct Scopes {
    /// The names of WITH, of the outermost query first.
    around: Vec<HashSet<String>>,
    /// Names that were made up.
    made_up: usize,
}

impl VisitorMut for Scopes {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut names = HashSet::new();
        if let Some(mut with) = query.with.take() {
            for place in 0..with.cte_tables.len() {
                let name = normalize(&with.cte_tables[place].alias.name);
                if self.around.iter().any(|names| names.contains(&name)) {
                    self.made_up += 1;
                    let fresh = Ident::with_quote('"', format!("{name}_{}", self.made_up));
                    let mut renaming = Renaming {
                        name: &name,
                        fresh: &fresh,
                        shadowed: 0,
                    };
                    // Only a recursive query sees itself.
                    let first = if with.recursive { place } else { place + 1 };
                    for cte in &mut with.cte_tables[first..] {
                        let _ = walk_mut(&mut *cte.query, &mut renaming);
                    }
                    let _ = walk_mut(query, &mut renaming);
                    with.cte_tables[place].alias.name = fresh.clone();
                }
                names.insert(normalize(&with.cte_tables[place].alias.name));
            }
            query.with = Some(with);
        }
        self.around.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

/// Makes references to one name references to another, where no query within has the name for itself.
struct Renaming<'a> {
    name: &'a str,
    fresh: &'a Ident,
    shadowed: usize,
}

impl Renaming<'_> {
    fn shadows(&self, query: &Query) -> bool {
        let is_it = |cte: &Cte| normalize(&cte.alias.name) == self.name;
        query
            .with
            .as_ref()
            .is_some_and(|with| with.cte_tables.iter().any(is_it))
    }
}

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.shadowed += usize::from(self.shadows(query));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.shadowed -= usize::from(self.shadows(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = table
            && self.shadowed == 0
            && let [part] = &name.0[..]
            && let Some(old) = part.as_ident()
            && normalize(old) == self.name
        {
            alias.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: old.clone(),
                columns: Vec::new(),
                at: None,
            });
            *name = ObjectName::from(vec![self.fresh.clone()]);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::rename;
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    #[test]
    fn inner_names_are_others() {
        for (sql, expected) in [
            (
                "WITH a AS (SELECT 1), b AS (WITH a AS (SELECT 2) SELECT a.x FROM a) SELECT * FROM a, b",
                "WITH a AS (SELECT 1), b AS (WITH \"a_1\" AS (SELECT 2) SELECT a.x FROM \"a_1\" AS a) SELECT * FROM a, b",
            ),
            (
                "WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT * FROM a) SELECT * FROM a AS c)",
                "WITH a AS (SELECT 1) SELECT * FROM (WITH \"a_1\" AS (SELECT * FROM a) SELECT * FROM \"a_1\" AS c)",
            ),
            (
                "WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT 2) SELECT * FROM (WITH a AS (SELECT 3) SELECT * FROM a), a)",
                "WITH a AS (SELECT 1) SELECT * FROM (WITH \"a_1\" AS (SELECT 2) SELECT * FROM (WITH \"a_2\" AS (SELECT 3) \
                 SELECT * FROM \"a_2\" AS a), \"a_1\" AS a)",
            ),
            (
                "SELECT * FROM (WITH a AS (SELECT 1) SELECT x FROM a), (WITH a AS (SELECT 2) SELECT * FROM a)",
                "SELECT * FROM (WITH a AS (SELECT 1) SELECT x FROM a), (WITH a AS (SELECT 2) SELECT * FROM a)",
            ),
        ] {
            let mut trees = Parser::parse_sql(&ErisDialect, sql).unwrap();
            let Statement::Query(mut query) = trees.remove(0) else {
                panic!("{sql} is a query")
            };
            rename(&mut query);
            assert_eq!(query.to_string(), expected);
        }
    }
}
