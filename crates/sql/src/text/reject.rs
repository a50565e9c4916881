//! What DataFusion would pass over in silence, and so answer another question than was asked.

use crate::error::{SqlError, SqlErrorKind};
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Query, SetExpr, TableFactor, Visitor,
};
use eris_syntax::walk;
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

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Box<SqlError>> {
        match table {
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => ControlFlow::Break(Box::new(SqlError::not_supported("TABLESAMPLE"))),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<SqlError>> {
        match &*query.body {
            SetExpr::Select(select) => {
                let joins = select.from.iter().flat_map(|from| &from.joins);
                match joins.map(join).find(Option::is_some).flatten() {
                    Some(error) => ControlFlow::Break(Box::new(error)),
                    None => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
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
