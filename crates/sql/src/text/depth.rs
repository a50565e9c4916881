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

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Statement, Visitor, VisitorMut};
use eris_syntax::{walk, walk_mut};
use std::ops::ControlFlow;

/// Levels of an expression.
pub(crate) const LEVELS: usize = 500;
/// Chains from this length on are balanced.
const CHAIN: usize = 16;

/// Balances long chains of AND and OR. False if expressions are still too deep.
pub(crate) fn level(tree: &mut Statement) -> bool {
    let _ = walk_mut(tree, &mut Balance);
    let mut depth = Depth { now: 0 };
    walk(tree, &mut depth).is_continue()
}

struct Depth {
    now: usize,
}

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now += 1;
        match self.now > LEVELS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now -= 1;
        ControlFlow::Continue(())
    }
}

struct Balance;

impl VisitorMut for Balance {
    type Break = ();

    /// Before its operands are visited, so that a chain is seen from its top.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        for op in [BinaryOperator::And, BinaryOperator::Or] {
            if length(expr, &op) >= CHAIN {
                let chain = std::mem::replace(expr, Expr::Tuple(Vec::new()));
                *expr = balanced(terms(chain, &op), &op);
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

fn balanced(mut terms: Vec<Expr>, op: &BinaryOperator) -> Expr {
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut single = terms.into_iter();
        while let Some(left) = single.next() {
            pairs.push(match single.next() {
                Some(right) => Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                },
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
        assert!(level(&mut tree));
        assert_eq!(tree.to_string(), sql);
        let mut depth = Depth { now: LEVELS - 20 };
        assert!(walk(&tree, &mut depth).is_continue());
    }

    #[test]
    fn what_has_to_be_deep_is_rejected() {
        let sum = |terms: usize| parse(&format!("SELECT {}", vec!["a"; terms].join(" + ")));
        assert!(level(&mut sum(LEVELS)));
        assert!(!level(&mut sum(LEVELS + 1)));
    }
}
