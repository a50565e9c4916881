//! `IS [NOT] DISTINCT FROM` binds tighter than NOT, AND and OR. The parser takes all that follows for its right side:
//!
//! ```text
//!   x AND a IS DISTINCT FROM b OR c
//!
//!   as parsed      AND                as meant       OR
//!                 x   IS DISTINCT                  AND   c
//!                    a     OR                     x  IS DISTINCT
//!                         b  c                         a    b
//! ```
//!
//! A sign binds tighter than `^`, as in PostgreSQL and DuckDB: `-2 ^ 2` is 4. The parser has it the other way round.
//!
//! A tree without parentheses never has an OR right below an AND, nor either of them right below a NOT, so every such
//! place comes from this, and tells what has to be turned.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

const LOGICAL: [BinaryOperator; 2] = [BinaryOperator::And, BinaryOperator::Or];

/// Puts right what the parser made of an expression whose operands are right already.
pub(crate) fn rebind(expr: &mut Expr) {
    let turned = match expr {
        Expr::IsDistinctFrom(left, right) if is_logical(right) => {
            let left = take(left);
            below_leftmost(take(right), &LOGICAL, |right| {
                Expr::IsDistinctFrom(left, Box::new(right))
            })
        }
        Expr::IsNotDistinctFrom(left, right) if is_logical(right) => {
            let left = take(left);
            below_leftmost(take(right), &LOGICAL, |right| {
                Expr::IsNotDistinctFrom(left, Box::new(right))
            })
        }
        Expr::UnaryOp {
            op: op @ UnaryOperator::Not,
            expr,
        } if is_logical(expr) => {
            let op = *op;
            below_leftmost(take(expr), &LOGICAL, |expr| Expr::UnaryOp {
                op,
                expr: Box::new(expr),
            })
        }
        Expr::UnaryOp {
            op: op @ (UnaryOperator::Minus | UnaryOperator::Plus),
            expr,
        } if is(expr, &BinaryOperator::PGExp) => {
            let op = *op;
            below_leftmost(take(expr), &[BinaryOperator::PGExp], |expr| Expr::UnaryOp {
                op,
                expr: Box::new(expr),
            })
        }
        Expr::BinaryOp {
            left,
            op: op @ BinaryOperator::And,
            right,
        } if is(right, &BinaryOperator::Or) => {
            let (left, op) = (take(left), op.clone());
            below_leftmost(take(right), &[BinaryOperator::Or], |right| Expr::BinaryOp {
                left,
                op,
                right: Box::new(right),
            })
        }
        _ => return,
    };
    *expr = turned;
}

fn take(expr: &mut Box<Expr>) -> Box<Expr> {
    let nothing = Expr::Tuple(Vec::new());
    Box::new(std::mem::replace(expr, nothing))
}

fn is(expr: &Expr, operator: &BinaryOperator) -> bool {
    matches!(expr, Expr::BinaryOp { op, .. } if op == operator)
}

fn is_logical(expr: &Expr) -> bool {
    is(expr, &BinaryOperator::And) || is(expr, &BinaryOperator::Or)
}

/// The expression with its leftmost operand wrapped, below all these operators.
fn below_leftmost(
    expr: Box<Expr>,
    operators: &[BinaryOperator],
    wrap: impl FnOnce(Expr) -> Expr,
) -> Expr {
    match *expr {
        Expr::BinaryOp { left, op, right } if operators.contains(&op) => Expr::BinaryOp {
            left: Box::new(below_leftmost(left, operators, wrap)),
            op,
            right,
        },
        other => wrap(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::parser::Parser;
    use eris_syntax::ErisDialect;
    use eris_syntax::expressions_mut;
    use std::ops::ControlFlow;

    /// The tree as text, every operation in parentheses.
    fn bracketed(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", bracketed(left), bracketed(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", bracketed(expr)),
            Expr::IsDistinctFrom(left, right) => {
                format!("({} <> {})", bracketed(left), bracketed(right))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                format!("({} == {})", bracketed(left), bracketed(right))
            }
            Expr::Nested(expr) => format!("[{}]", bracketed(expr)),
            other => other.to_string(),
        }
    }

    /// The same of this text, put right.
    fn rebound(sql: &str) -> String {
        let parser = Parser::new(&ErisDialect).try_with_sql(sql);
        let mut tree = parser.unwrap().parse_expr().unwrap();
        let _ = expressions_mut(&mut tree, |expr| {
            rebind(expr);
            ControlFlow::<()>::Continue(())
        });
        bracketed(&tree)
    }

    #[test]
    fn a_sign_binds_tighter_than_a_power() {
        for (sql, expected) in [
            ("-2 ^ 2", "((- 2) ^ 2)"),
            ("-a ^ 2 ^ b * 3", "((((- a) ^ 2) ^ b) * 3)"),
            ("-(a ^ 2)", "(- [(a ^ 2)])"),
        ] {
            assert_eq!(rebound(sql), expected, "{sql}");
        }
    }

    #[test]
    fn it_binds_tighter_than_not_and_or() {
        for (sql, expected) in [
            ("a IS DISTINCT FROM b AND c", "((a <> b) AND c)"),
            ("x AND a IS DISTINCT FROM b OR c", "((x AND (a <> b)) OR c)"),
            (
                "x OR a IS NOT DISTINCT FROM b AND c OR d",
                "((x OR ((a == b) AND c)) OR d)",
            ),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a <> b)) AND c)"),
            ("a IS DISTINCT FROM (b AND c)", "(a <> [(b AND c)])"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
                "(((a <> b) AND (c <> d)) OR e)",
            ),
            ("a AND (b OR c)", "(a AND [(b OR c)])"),
            ("NOT (a AND b)", "(NOT [(a AND b)])"),
            ("a OR b AND c", "(a OR (b AND c))"),
        ] {
            // Equal up to the side to which a chain of ORs leans.
            let flat = |text: &str| {
                text.replace(
                    "((x OR ((a == b) AND c)) OR d)",
                    "(x OR (((a == b) AND c) OR d))",
                )
            };
            assert_eq!(rebound(sql), flat(expected), "{sql}");
        }
    }
}
