//! Names that mean the same whatever schema is current: that of a view or a macro is written out.

use crate::text::identifier::{last_name, normalize};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, TableFactor, VisitorMut,
};
use eris_syntax::{Tree, walk_mut};
use std::ops::ControlFlow;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Relation,
    Function,
    TableFunction,
}

/// Qualifies names without a schema by the one that `schema_of` tells, if it tells one.
pub(crate) fn qualify(
    tree: &mut impl Tree,
    schema_of: impl Fn(Kind, &ObjectName) -> Option<String>,
) {
    let mut visitor = Qualify {
        schema_of,
        with: Vec::new(),
    };
    // The visitor never breaks off.
    let _ = walk_mut(tree, &mut visitor);
}

struct Qualify<F> {
    schema_of: F,
    /// Names that WITH gives, innermost last: they hide tables.
    with: Vec<String>,
}

impl<F: Fn(Kind, &ObjectName) -> Option<String>> Qualify<F> {
    fn put(&self, kind: Kind, name: &mut ObjectName) -> ControlFlow<()> {
        if name.0.len() == 1
            && let Some(schema) = (self.schema_of)(kind, name)
        {
            let schema = Ident::with_quote('"', schema);
            name.0.insert(0, ObjectNamePart::Identifier(schema));
        }
        ControlFlow::Continue(())
    }
}

impl<F: Fn(Kind, &ObjectName) -> Option<String>> VisitorMut for Qualify<F> {
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

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::Table {
                name,
                args: Some(_),
                ..
            }
            | TableFactor::Function { name, .. } => self.put(Kind::TableFunction, name),
            TableFactor::Table {
                name, args: None, ..
            } => match last_name(name) {
                Some(last) if self.with.contains(&last) => ControlFlow::Continue(()),
                _ => self.put(Kind::Relation, name),
            },
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => self.put(Kind::Function, &mut function.name),
            _ => ControlFlow::Continue(()),
        }
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
            let mut query = *parser.unwrap().parse_query().unwrap();
            qualify(&mut query, |kind, name| {
                let is_t = kind == Kind::Relation && last_name(name).as_deref() == Some("t");
                is_t.then(|| "m".to_owned())
            });
            assert_eq!(query.to_string(), expected);
        }
    }
}
