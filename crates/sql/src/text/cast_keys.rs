//! `GROUP BY x, CAST(x AS VARCHAR)`: keys that differ by a cast have names that differ.
//!
//! ```text
//! SELECT x, CAST(x AS DATE) FROM t GROUP BY 1, 2
//! SELECT x, replaced(CAST(x AS DATE), 'CAST(x AS DATE)') FROM t GROUP BY 1, 2
//! ```
//!
//! The planner's names of expressions leave casts out, and no two keys may have one name. The function is its first
//! argument, and vanishes before anything runs. Aggregates are told apart in `exact`.

use crate::text::identifier::normalize;
use crate::text::shorthand::with_name;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, OrderBy, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use eris_syntax::{are_equal, walk_mut};
use std::ops::ControlFlow;

/// Tells such keys apart anywhere in a query.
pub(super) fn tell_apart(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Keys);
}

struct Keys;

impl VisitorMut for Keys {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        of_body(&mut query.body, query.order_by.as_mut());
        ControlFlow::Continue(())
    }
}

fn of_body(body: &mut SetExpr, order_by: Option<&mut OrderBy>) {
    match body {
        SetExpr::Select(select) => of_select(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            of_body(left, None);
            of_body(right, None);
        }
        _ => {}
    }
}

fn of_select(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let keys = keys(select);
    let is_like_another = |key: &&Expr| {
        let mut others = keys.iter().filter(|other| !are_equal(**other, *key));
        let value = without_casts(key);
        value_of_cast(key).is_some() && others.any(|other| are_equal(without_casts(other), value))
    };
    let casts = keys.iter().copied().filter(is_like_another);
    let casts: Vec<Expr> = casts.cloned().collect();
    if casts.is_empty() {
        return;
    }
    let mut naming = Naming {
        casts,
        around: Vec::new(),
        deep: 0,
    };
    // The visitor never breaks off.
    let _ = walk_mut(select, &mut naming);
    if let Some(order_by) = order_by {
        let _ = walk_mut(order_by, &mut naming);
    }
}

/// What a list is grouped by, without what names a column of the tables.
fn keys(select: &Select) -> Vec<&Expr> {
    let items = || {
        select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        })
    };
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return items().collect();
    };
    let mut all = Vec::new();
    for key in keys {
        match key {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                all.extend(sets.iter().flatten());
            }
            key => all.push(meant(key, select)),
        }
    }
    all
}

/// The item that a key names by its number or its alias, or the key itself.
fn meant<'a>(key: &'a Expr, select: &'a Select) -> &'a Expr {
    let item = match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let number = number.parse::<usize>().ok();
                number.and_then(|number| select.projection.get(number.checked_sub(1)?))
            }
            _ => None,
        },
        Expr::Identifier(name) => select.projection.iter().find(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => normalize(alias) == normalize(name),
            _ => false,
        }),
        _ => None,
    };
    match item {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => expr,
        _ => key,
    }
}

fn value_of_cast(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { expr, .. } => Some(expr),
        Expr::Nested(expr) => value_of_cast(expr),
        _ => None,
    }
}

fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => without_casts(expr),
        other => other,
    }
}

/// Gives each of these casts a name.
struct Naming {
    casts: Vec<Expr>,
    /// Whether the expressions around are such casts. Within one, none gets a name.
    around: Vec<bool>,
    deep: usize,
}

impl VisitorMut for Naming {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.deep += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.deep -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_outermost = self.deep == 0 && !self.around.contains(&true);
        let found = is_outermost && self.casts.iter().any(|cast| are_equal(cast, &*expr));
        self.around.push(found);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.around.pop() == Some(true) {
            let name = expr.to_string();
            let cast = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = with_name(cast, name);
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
    fn only_casts_of_a_value_that_is_a_key_too_get_a_name() {
        for (sql, expected) in [
            (
                "SELECT x, CAST(x AS DATE) FROM t GROUP BY 1, 2 ORDER BY CAST(x AS DATE)",
                "SELECT x, (replaced((CAST(x AS DATE)), ('CAST(x AS DATE)'))) FROM t GROUP BY 1, 2 \
                 ORDER BY (replaced((CAST(x AS DATE)), ('CAST(x AS DATE)')))",
            ),
            (
                "SELECT CAST(x AS INT) AS i, CAST(y AS INT) FROM t GROUP BY i, CAST(y AS INT)",
                "SELECT CAST(x AS INT) AS i, CAST(y AS INT) FROM t GROUP BY i, CAST(y AS INT)",
            ),
            (
                "SELECT CAST(x AS INT) AS i FROM t GROUP BY ROLLUP (x), i",
                "SELECT (replaced((CAST(x AS INT)), ('CAST(x AS INT)'))) AS i FROM t GROUP BY ROLLUP (x), i",
            ),
            (
                "SELECT sum(CAST(x AS INT)), x FROM t GROUP BY x",
                "SELECT sum(CAST(x AS INT)), x FROM t GROUP BY x",
            ),
        ] {
            let parser = Parser::new(&ErisDialect).try_with_sql(sql);
            let mut query = *parser.unwrap().parse_query().unwrap();
            tell_apart(&mut query);
            assert_eq!(query.to_string(), expected);
        }
    }
}
