//! How deep an expression may be: whatever looks at it later calls itself for every level, and a stack has an end.
//!
//! `a = 1 OR a = 2 OR …` leans to the left, as many levels deep as it has terms. AND and OR do not care, so their
//! chains are put upright; what is too deep even then is rejected.
//!
//! ```text
//!        OR                     OR
//!      OR  d                 OR    OR
//!    OR  c          ──►     a  b  c  d
//!   a  b
//! ```
//!
//! So do long chains of UNION and of UNION ALL. The planner looks at all of a chain for each of its queries.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, SetOperator, SetQuantifier, Statement, Values,
    Visitor, VisitorMut,
};
use eris_syntax::{walk, walk_mut};
use std::ops::ControlFlow;

/// Levels of an expression. The planner asks for the type of each, and makes up a name from all below it to tell.
pub(crate) const LEVELS: usize = 300;
/// Expressions of a statement, literals and names included. So many are planned in about two seconds.
pub(crate) const PARTS: usize = 250_000;
/// What a SELECT counts beside the expressions in it.
const PARTS_OF_SELECT: usize = 50;
/// Chains from this length on are balanced.
const CHAIN: usize = 16;

/// What a statement has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Levels,
    Parts,
}

/// Balances long chains.
///
/// # Errors
/// There is still too much of something.
pub(crate) fn level(tree: &mut Statement) -> Result<(), Excess> {
    let _ = walk_mut(tree, &mut Balance);
    let mut size = Size {
        level: 0,
        parts: 0,
        // Rows of literals are not planned.
        most: match tree {
            Statement::Insert(_) => usize::MAX,
            _ => PARTS,
        },
    };
    match walk(tree, &mut size) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(excess) => Err(excess),
    }
}

struct Size {
    level: usize,
    parts: usize,
    most: usize,
}

impl Size {
    fn add(&mut self, parts: usize) -> ControlFlow<Excess> {
        self.parts += parts;
        match self.parts > self.most {
            true => ControlFlow::Break(Excess::Parts),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Size {
    type Break = Excess;

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<Excess> {
        self.add(PARTS_OF_SELECT)
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<Excess> {
        self.level += 1;
        match self.level > LEVELS {
            true => ControlFlow::Break(Excess::Levels),
            false => self.add(1),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<Excess> {
        self.level -= 1;
        ControlFlow::Continue(())
    }
}

struct Balance;

/// What stands in the place of a query while it is taken apart.
fn nothing() -> SetExpr {
    SetExpr::Values(Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    })
}

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if union_length(&query.body) >= CHAIN {
            let body = std::mem::replace(&mut *query.body, nothing());
            let (terms, quantifier) = union_terms(body);
            let union = |left, right| SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: quantifier,
                left: Box::new(left),
                right: Box::new(right),
            };
            *query.body = balanced(terms, union);
        }
        ControlFlow::Continue(())
    }

    /// Before its operands are visited, so that a chain is seen from its top.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        for op in [BinaryOperator::And, BinaryOperator::Or] {
            if length(expr, &op) >= CHAIN {
                let chain = std::mem::replace(expr, Expr::Tuple(Vec::new()));
                let pair = |left, right| Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                };
                *expr = balanced(terms(chain, &op), pair);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Terms of the chain of `op` that leans to the left from here; a balanced one has few.
fn length(expr: &Expr, op: &BinaryOperator) -> usize {
    let mut at = expr;
    let mut terms = 1;
    while let Expr::BinaryOp {
        left, op: other, ..
    } = at
        && other == op
    {
        at = left;
        terms += 1;
    }
    terms
}

fn terms(chain: Expr, op: &BinaryOperator) -> Vec<Expr> {
    let mut terms = Vec::new();
    let mut rest = chain;
    loop {
        match rest {
            Expr::BinaryOp {
                left,
                op: other,
                right,
            } if other == *op => {
                terms.push(*right);
                rest = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                return terms;
            }
        }
    }
}

/// Queries of the chain of one kind of UNION that leans to the left from here.
fn union_length(body: &SetExpr) -> usize {
    let (mut at, mut terms) = (body, 1);
    let mut kind = None;
    while let SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier,
        left,
        ..
    } = at
        && kind.is_none_or(|kind| kind == *set_quantifier)
        && is_of_all(*set_quantifier)
    {
        kind = Some(*set_quantifier);
        at = left;
        terms += 1;
    }
    terms
}

/// Whether it makes no difference which two queries are united first. BY NAME, it decides the order of columns.
fn is_of_all(quantifier: SetQuantifier) -> bool {
    matches!(
        quantifier,
        SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None
    )
}

/// The queries of a chain, and which kind of UNION it is.
fn union_terms(chain: SetExpr) -> (Vec<SetExpr>, SetQuantifier) {
    let mut terms = Vec::new();
    let mut kind = None;
    let mut rest = chain;
    loop {
        match rest {
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier,
                left,
                right,
            } if kind.is_none_or(|kind| kind == set_quantifier) => {
                kind = Some(set_quantifier);
                terms.push(*right);
                rest = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                return (terms, kind.unwrap_or(SetQuantifier::None));
            }
        }
    }
}

/// The terms as a tree whose sides are equally deep.
fn balanced<T>(mut terms: Vec<T>, pair: impl Fn(T, T) -> T) -> T {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut single = terms.into_iter();
        while let Some(left) = single.next() {
            pairs.push(match single.next() {
                Some(right) => pair(left, right),
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop().expect("a chain has terms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;

    fn parse(sql: &str) -> Statement {
        let mut trees = Parser::parse_sql(&ErisDialect, sql).unwrap();
        trees.remove(0)
    }

    #[test]
    fn chains_keep_their_terms_in_order_and_lose_their_depth() {
        let terms: Vec<String> = (0..400).map(|i| format!("a = {i}")).collect();
        let sql = format!("SELECT {}", terms.join(" OR "));
        let mut tree = parse(&sql);
        level(&mut tree).unwrap();
        assert_eq!(tree.to_string(), sql);
        let mut size = Size {
            level: LEVELS - 20,
            parts: 0,
            most: PARTS,
        };
        assert!(walk(&tree, &mut size).is_continue());
    }

    #[test]
    fn long_unions_are_balanced() {
        for kind in ["UNION", "UNION ALL", "UNION DISTINCT"] {
            let queries: Vec<String> = (0..40).map(|i| format!("SELECT {i}")).collect();
            let sql = queries.join(&format!(" {kind} "));
            let mut tree = parse(&sql);
            level(&mut tree).unwrap();
            // A tree that leans nowhere is written like the chain.
            assert_eq!(tree.to_string(), sql);
            let Statement::Query(query) = &tree else {
                panic!("it is a query");
            };
            assert_eq!(union_length(&query.body), 7);
        }
    }

    #[test]
    fn what_has_to_be_deep_is_rejected() {
        let sum = |terms: usize| parse(&format!("SELECT {}", vec!["a"; terms].join(" + ")));
        assert_eq!(level(&mut sum(LEVELS)), Ok(()));
        assert_eq!(level(&mut sum(LEVELS + 1)), Err(Excess::Levels));
        let list = |items: usize| parse(&format!("SELECT a IN ({}1)", "1, ".repeat(items)));
        assert_eq!(level(&mut list(1000)), Ok(()));
        assert_eq!(level(&mut list(PARTS)), Err(Excess::Parts));
    }
}
