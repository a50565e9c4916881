//! What a statement says of each row must be of that row alone: SET, and RETURNING. A subquery may look at others. And
//! conditions on which several values of a row depend must say the same each time.

use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::text::identifier::last_name;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::Volatility;
use datafusion::sql::sqlparser::ast::{Expr, Query, Visitor};
use eris_syntax::{Tree, walk};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Rejects aggregates and window functions outside of subqueries. `place` is for the message.
pub(super) fn check<'a>(
    context: &StatementContext,
    parts: impl Iterator<Item = &'a (impl Tree + 'a)>,
    place: &str,
) -> Result<(), SqlError> {
    let mut functions = Functions {
        aggregates: context.state().udafs(),
        subqueries: 0,
    };
    for part in parts {
        if let ControlFlow::Break((mistake, name)) = walk(part, &mut functions) {
            return Err(SqlError::invalid(mistake, format!(
                "{place}: {name}() is computed over several rows, but a value of each row is wanted"
            ))
            .with_hint(Some(
                "a subquery can look at other rows: (SELECT max(x) FROM …)",
            )));
        }
    }
    Ok(())
}

/// Rejects functions that give another value each time, such as random().
pub(super) fn check_repeatable(
    context: &StatementContext,
    condition: &Expr,
) -> Result<(), SqlError> {
    let ControlFlow::Break(name) = walk(condition, &mut VolatileFunctions(context.state())) else {
        return Ok(());
    };
    Err(SqlError::invalid(Mistake::InvalidObjectDefinition, format!(
        "{name}() gives another value each time, but the condition is asked again for each column of a row"
    ))
    .with_hint(Some(format!(
        "compute it in the source: (SELECT …, {name}() AS drawn FROM …)"
    ))))
}

struct VolatileFunctions<'a>(&'a SessionState);

impl Visitor for VolatileFunctions<'_> {
    type Break = String;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let name = last_name(&function.name).unwrap_or_default();
        match self.0.udf(&name) {
            Ok(known) if known.signature().volatility == Volatility::Volatile => {
                ControlFlow::Break(name)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Functions {
    aggregates: HashSet<String>,
    subqueries: usize,
}

impl Visitor for Functions {
    type Break = (Mistake, String);

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Self::Break> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let name = last_name(&function.name).unwrap_or_default();
        if self.subqueries > 0 {
            return ControlFlow::Continue(());
        }
        match function.over {
            Some(_) => ControlFlow::Break((Mistake::Windowing, name)),
            None if self.aggregates.contains(&name) => {
                ControlFlow::Break((Mistake::Grouping, name))
            }
            None => ControlFlow::Continue(()),
        }
    }
}
