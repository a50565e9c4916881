//! Tuples in IN, and lists in ANY, with NULL as SQL has it. Lists are calls: within `[…]`, the planner does not know
//! the tables around a subquery.
//!
//! ```text
//! (a, b) IN ((1, 2), (3, 4))    (a = 1 AND b = 2) OR (a = 3 AND b = 4)
//! (a, b) IN (SELECT c, d …)     EXISTS (SELECT 1 FROM (SELECT c, d …) AS q(x, y) WHERE x = a AND y = b)
//! (a, b) NOT IN (SELECT …)      NOT EXISTS (… WHERE (x = a AND y = b) IS NOT FALSE)
//! … elsewhere than in WHERE     CASE WHEN EXISTS (…) THEN TRUE WHEN EXISTS (… IS NULL) THEN NULL ELSE FALSE END
//! [a, b]                        make_array(a, b)
//! x = ANY (list)                CASE WHEN x = ANY (list) THEN TRUE WHEN list has NULL THEN NULL ELSE …
//! ```
//!
//! `IN (SELECT …)` is NULL, too, if a row of the query might be the tuple, were it not for a NULL. Between the ANDs of
//! WHERE, NULL is as good as FALSE.

use crate::text::identifier::without_places;
use crate::text::series::call;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    Query, Select, SetExpr, TableFactor, UnaryOperator, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, walk_mut};
use std::ops::ControlFlow;

/// Writes them out anywhere in a query.
pub(super) fn write_out(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Tuples);
}

struct Tuples;

impl VisitorMut for Tuples {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if let Some(condition) = &mut select.selection {
            conjuncts(condition);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let longer = match expr {
            Expr::InList {
                expr: tuple,
                list,
                negated,
            } => in_list(tuple, list, *negated),
            Expr::InSubquery {
                expr: tuple,
                subquery,
                negated,
            } => parts(tuple).map(|parts| member(&parts, subquery, *negated)),
            Expr::AnyOp { right, .. } if !matches!(**right, Expr::Subquery(_)) => {
                let list = (**right).clone();
                Some(any_of(expr.clone(), &list))
            }
            Expr::Array(list) if !list.elem.is_empty() => {
                let name = ObjectName::from(vec![Ident::new("make_array")]);
                let elements = std::mem::take(&mut list.elem).into_iter();
                let elements =
                    elements.map(|element| FunctionArg::Unnamed(FunctionArgExpr::Expr(element)));
                Some(call(name, elements.collect()))
            }
            _ => None,
        };
        if let Some(longer) = longer {
            *expr = longer;
        }
        ControlFlow::Continue(())
    }
}

/// Conditions all of which have to be TRUE: there NULL is as good as FALSE.
fn conjuncts(condition: &mut Expr) {
    match condition {
        Expr::Nested(inner) => conjuncts(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(left);
            conjuncts(right);
        }
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => {
            if let Some(parts) = parts(expr) {
                *condition = match negated {
                    true => not(exists(&parts, subquery, " IS NOT FALSE")),
                    false => exists(&parts, subquery, ""),
                };
            }
        }
        _ => {}
    }
}

/// The parts of a tuple.
fn parts(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(parts) if parts.len() > 1 => Some(parts.clone()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            let FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let parts = list.args.iter().map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(part)) => Some(part.clone()),
                _ => None,
            });
            (parts.collect::<Option<Vec<_>>>()).filter(|parts| parts.len() > 1)
        }
        Expr::Nested(inner) => parts_of_nested(inner),
        _ => None,
    }
}

fn parts_of_nested(inner: &Expr) -> Option<Vec<Expr>> {
    match inner {
        Expr::Tuple(_) | Expr::Nested(_) => parts(inner),
        _ => None,
    }
}

fn in_list(tuple: &Expr, list: &[Expr], negated: bool) -> Option<Expr> {
    let parts = parts(tuple)?;
    let rows: Option<Vec<_>> = list
        .iter()
        .map(|row| self::parts(row).filter(|row| row.len() == parts.len()))
        .collect();
    let rows = rows?.into_iter().map(|row| {
        let pairs = parts.iter().cloned().zip(row);
        let equal =
            pairs.map(|(left, right)| binary(nested(left), BinaryOperator::Eq, nested(right)));
        nested(balanced(equal.collect(), &BinaryOperator::And))
    });
    let any = nested(balanced(rows.collect(), &BinaryOperator::Or));
    Some(match negated {
        true => not(any),
        false => any,
    })
}

/// A tree of one operator that is no deeper than it has to be.
fn balanced(mut parts: Vec<Expr>, operator: &BinaryOperator) -> Expr {
    match parts.len() {
        1 => parts.remove(0),
        several => {
            let right = parts.split_off(several / 2);
            let [left, right] = [parts, right].map(|part| match part.len() {
                1 => balanced(part, operator),
                _ => nested(balanced(part, operator)),
            });
            binary(left, operator.clone(), right)
        }
    }
}

/// Whether the query has a row that is the tuple, or, with these words behind the comparison, may be.
fn exists(parts: &[Expr], subquery: &Query, behind: &str) -> Expr {
    let names: Vec<_> = (0..parts.len())
        .map(|number| format!("\"in({number}\""))
        .collect();
    let compared = parts.iter().zip(&names);
    let compared = compared.map(|(part, name)| format!("{name} = ({part})"));
    let compared: Vec<_> = compared.collect();
    let text = format!(
        "EXISTS (SELECT 1 FROM (SELECT 1) AS \"in(\"({}) WHERE ({}){behind})",
        names.join(", "),
        compared.join(" AND ")
    );
    let mut expr = expression(&text);
    if let Expr::Exists {
        subquery: around, ..
    } = &mut expr
        && let SetExpr::Select(select) = &mut *around.body
        && let TableFactor::Derived {
            subquery: inner, ..
        } = &mut select.from[0].relation
    {
        **inner = subquery.clone();
    }
    expr
}

/// Whether the tuple is a row of the query, or NULL where it may be one.
fn member(parts: &[Expr], subquery: &Query, negated: bool) -> Expr {
    let found = exists(parts, subquery, "");
    let perhaps = exists(parts, subquery, " IS NULL");
    let text = format!(
        "CASE WHEN TRUE THEN {} WHEN TRUE THEN NULL ELSE {negated} END",
        !negated
    );
    let mut member = expression(&text);
    if let Expr::Case { conditions, .. } = &mut member {
        conditions[0].condition = found;
        conditions[1].condition = perhaps;
    }
    nested(member)
}

/// ANY over a list that may have a NULL. Its element 0 is a NULL of the right type, which NULL itself is not for all.
fn any_of(any: Expr, list: &Expr) -> Expr {
    let null = format!("array_position({list}, array_element({list}, 0), 1)");
    let text =
        format!("CASE WHEN {any} THEN TRUE WHEN {null} IS NOT NULL THEN NULL ELSE {any} END");
    nested(expression(&text))
}

fn expression(text: &str) -> Expr {
    let parser = Parser::new(&ErisDialect).try_with_sql(text);
    let parsed = parser.and_then(|mut parser| parser.parse_expr());
    let mut parsed = parsed.expect("expressions of a tree are expressions as text");
    without_places(&mut parsed);
    parsed
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(expr),
    }
}
