//! What DataFusion would pass over in silence, and so answer another question than was asked.

use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::text::identifier::{last_name, normalize};
use crate::text::limits;
use crate::text::shorthand::repeats;
use crate::text::wildcards::call::is_call;
use datafusion::sql::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, TableFactor,
    TableWithJoins, Visitor,
};
use eris_syntax::walk;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Rejects such clauses anywhere in a query.
pub(crate) fn ignored(query: &Query) -> Result<(), SqlError> {
    match walk(query, &mut Clauses) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Clauses;

impl Visitor for Clauses {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<SqlError>> {
        heed(limits::with(query))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<SqlError>> {
        heed(is_call(expr).then(|| {
            let what = "COLUMNS elsewhere than in WHERE and the list of SELECT";
            SqlError::not_supported(what)
        }))?;
        heed(repeats(expr).map(|name| {
            let what = format!("an argument of {name} that has another value each time");
            let hint = "write what it yields into a table first";
            SqlError::not_supported(what).with_hint(Some(hint))
        }))
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Box<SqlError>> {
        let (TableFactor::Table {
            with_ordinality, ..
        }
        | TableFactor::Function {
            with_ordinality, ..
        }
        | TableFactor::UNNEST {
            with_ordinality, ..
        }) = table
        else {
            return ControlFlow::Continue(());
        };
        heed(with_ordinality.then(|| {
            let error = SqlError::not_supported("WITH ORDINALITY");
            error.with_hint(Some(
                "row_number() OVER () in the list of SELECT numbers rows",
            ))
        }))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Box<SqlError>> {
        let joins = || {
            let mut joins = select.from.iter().flat_map(|from| &from.joins);
            joins.find_map(join)
        };
        heed(
            limits::list(select)
                .or_else(|| same_name(select))
                .or_else(joins),
        )
    }
}

fn heed(error: Option<SqlError>) -> ControlFlow<Box<SqlError>> {
    match error {
        Some(error) => ControlFlow::Break(Box::new(error)),
        None => ControlFlow::Continue(()),
    }
}

/// A table `t` beside a table `s.t`: `t.a` would be a column of either.
fn same_name(select: &Select) -> Option<SqlError> {
    fn relations(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
        let joined = from.joins.iter().map(|join| &join.relation);
        joined.chain([&from.relation])
    }
    let mut bare = HashSet::new();
    let mut qualified = Vec::new();
    for relation in select.from.iter().flat_map(relations) {
        match relation {
            TableFactor::Table {
                name, alias: None, ..
            } if name.0.len() > 1 => qualified.push(name),
            TableFactor::Table {
                name, alias: None, ..
            } => bare.extend(last_name(name)),
            TableFactor::Table {
                alias: Some(alias), ..
            }
            | TableFactor::Derived {
                alias: Some(alias), ..
            } => {
                bare.insert(normalize(&alias.name));
            }
            _ => {}
        }
    }
    let is_same = |name: &&&ObjectName| last_name(name).is_some_and(|name| bare.contains(&name));
    let name = qualified.iter().find(is_same)?;
    let message = format!("{name} and another table in FROM have the same name");
    let error = SqlError::invalid(Mistake::DuplicateAlias, message);
    Some(error.with_hint(Some("give one of them another with AS")))
}

fn join(join: &Join) -> Option<SqlError> {
    let (JoinOperator::Join(JoinConstraint::None)
    | JoinOperator::Inner(JoinConstraint::None)
    | JoinOperator::Left(JoinConstraint::None)
    | JoinOperator::LeftOuter(JoinConstraint::None)
    | JoinOperator::Right(JoinConstraint::None)
    | JoinOperator::RightOuter(JoinConstraint::None)
    | JoinOperator::FullOuter(JoinConstraint::None)) = join.join_operator
    else {
        return None;
    };
    let message = format!("JOIN {} has neither ON nor USING", join.relation);
    let error = SqlError::new(SqlErrorKind::Syntax(message));
    Some(error.with_hint(Some("CROSS JOIN joins every row with every row")))
}
