//! `ASOF JOIN`, as a join whose condition says so: see `eris_exact::ASOF`.
//!
//! ```text
//! l ASOF JOIN r ON l.k = r.k AND l.t >= r.t     l JOIN r ON l.k = r.k AND l.t >= r.t AND "asof("()
//! l ASOF LEFT JOIN r USING (k, t)               the same, written out with USING
//! ```
//!
//! Such joins arrive as GLOBAL ones, and POSITIONAL JOIN, which is rejected, as GLOBAL CROSS JOIN: see
//! [`clause_tokens`](super::clause_tokens).

use crate::error::{Mistake, SqlError};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, Query, Select, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_exact::ASOF;
use eris_syntax::{ErisDialect, walk_mut};
use std::ops::ControlFlow;

/// Marks such joins anywhere in a query, but for those with USING.
///
/// # Errors
/// Conditions that are no ASOF join's.
pub(super) fn mark(query: &mut Query) -> Result<(), SqlError> {
    match walk_mut(query, &mut Joins) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Joins;

impl VisitorMut for Joins {
    type Break = Box<SqlError>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<SqlError>> {
        let joins = select.from.iter_mut().flat_map(|from| &mut from.joins);
        for join in joins.filter(|join| join.global) {
            if let Err(error) = mark_join(join) {
                return ControlFlow::Break(Box::new(error));
            }
        }
        ControlFlow::Continue(())
    }
}

fn mark_join(join: &mut Join) -> Result<(), SqlError> {
    match &mut join.join_operator {
        JoinOperator::CrossJoin(_) => {
            let error = SqlError::not_supported("POSITIONAL JOIN");
            let hint =
                "number the rows of both by row_number() OVER (ORDER BY …), and join by that";
            return Err(error.with_hint(Some(hint)));
        }
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => match constraint {
            JoinConstraint::On(condition) => {
                check(condition)?;
                let condition = condition.clone();
                *constraint = JoinConstraint::On(marked(condition));
                join.global = false;
            }
            JoinConstraint::Using(_) => {}
            JoinConstraint::Natural => return Err(SqlError::not_supported("NATURAL ASOF JOIN")),
            JoinConstraint::None => return Err(wrong("ASOF JOIN has neither ON nor USING")),
        },
        _ => {
            let error = SqlError::not_supported("ASOF joins but inner and left ones");
            return Err(error.with_hint(Some("a ASOF JOIN b, or a ASOF LEFT JOIN b")));
        }
    }
    Ok(())
}

/// The condition of an ASOF join.
pub(super) fn marked(condition: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(condition))),
        op: BinaryOperator::And,
        right: Box::new(mark_of_asof()),
    }
}

fn mark_of_asof() -> Expr {
    let text = format!("\"{ASOF}\"()");
    let parser = Parser::new(&ErisDialect).try_with_sql(&text);
    let parsed = parser.and_then(|mut parser| parser.parse_expr());
    parsed.expect("it is a call")
}

/// Equalities, and one comparison that goes on.
fn check(condition: &Expr) -> Result<(), SqlError> {
    let mut comparisons = 0;
    let mut rest = vec![condition];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::Nested(inner) => rest.push(inner),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And => rest.extend([&**left, &**right]),
                BinaryOperator::Eq => {}
                BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq => comparisons += 1,
                _ => return Err(wrong("ASOF JOIN compares by =, >=, >, <= and < only")),
            },
            _ => return Err(wrong("ASOF JOIN compares by =, >=, >, <= and < only")),
        }
    }
    match comparisons {
        1 => Ok(()),
        _ => Err(wrong(
            "ASOF JOIN takes exactly one comparison by >=, >, <= or <",
        )),
    }
}

fn wrong(message: &str) -> SqlError {
    let error = SqlError::invalid(Mistake::Syntax, message);
    error.with_hint(Some("a ASOF JOIN b ON a.k = b.k AND a.t >= b.t"))
}
