//! Equal expressions in a select list. SQL allows them, DataFusion wants names to be unique: the second `a` becomes `a_1`.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, Statement, VisitMut, VisitorMut,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Names the repeated expressions of every select list.
pub(crate) fn make_unique(tree: &mut Statement) {
    // The visitor never breaks off.
    let _ = tree.visit(&mut Lists);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        body(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn body(expr: &mut SetExpr) {
    match expr {
        SetExpr::Select(select) => list(&mut select.projection),
        SetExpr::SetOperation { left, right, .. } => {
            body(left);
            body(right);
        }
        // A query in parentheses is visited itself.
        _ => {}
    }
}

fn list(items: &mut [SelectItem]) {
    let mut seen = HashMap::<String, usize>::new();
    for item in items {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        let shown = match &*expr {
            // DataFusion shows all of them alike.
            Expr::Subquery(_) => "subquery".to_owned(),
            expr => expr.to_string(),
        };
        let times = seen.entry(shown.clone()).or_insert(0);
        if *times > 0 {
            let alias = Ident::with_quote('"', format!("{shown}_{times}"));
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias,
            };
        }
        *times += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn only_repetitions_are_named() {
        for (sql, expected) in [
            (
                "SELECT a, a, b, a FROM t",
                "SELECT a, a AS \"a_1\", b, a AS \"a_2\" FROM t",
            ),
            (
                "SELECT a, t.a, a AS b FROM t",
                "SELECT a, t.a, a AS b FROM t",
            ),
            (
                "SELECT * FROM (SELECT 1, 1) UNION SELECT 2, 2",
                "SELECT * FROM (SELECT 1, 1 AS \"1_1\") UNION SELECT 2, 2 AS \"2_1\"",
            ),
        ] {
            let mut tree = Parser::parse_sql(&PostgreSqlDialect {}, sql)
                .unwrap()
                .remove(0);
            make_unique(&mut tree);
            assert_eq!(tree.to_string(), expected);
        }
    }
}
