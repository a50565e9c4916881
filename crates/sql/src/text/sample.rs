//! `TABLESAMPLE`: some rows of a table, chosen at random.
//!
//! ```text
//! t TABLESAMPLE BERNOULLI (10)      (SELECT * FROM t WHERE random() * 100 < 10) AS t
//! t TABLESAMPLE (10 ROWS)           (SELECT * FROM t ORDER BY random() LIMIT 10) AS t
//! ```
//!
//! Rows are chosen one by one, whatever the method's name, so that any part is a fair one.

use crate::error::{Mistake, SqlError};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, LimitClause, Query, SetExpr, TableAlias, TableFactor, TableSampleKind,
    TableSampleUnit, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, walk_mut};
use std::ops::ControlFlow;

/// Writes samples out.
///
/// # Errors
/// A sample of another kind.
pub(super) fn write_out(query: &mut Query) -> Result<(), SqlError> {
    match walk_mut(query, &mut Samples) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Samples;

impl VisitorMut for Samples {
    type Break = Box<SqlError>;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Box<SqlError>> {
        match sampled(table) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn sampled(table: &mut TableFactor) -> Result<(), SqlError> {
    let (sample, alias, own_name) = match table {
        TableFactor::Table {
            sample,
            alias,
            name,
            ..
        } => {
            let last = name.0.last().and_then(|part| part.as_ident().cloned());
            (sample.take(), alias.take(), last)
        }
        TableFactor::Derived { sample, alias, .. } if sample.is_some() => {
            (sample.take(), alias.take(), None)
        }
        _ => return Ok(()),
    };
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) =
        sample
    else {
        if let TableFactor::Table { alias: place, .. } = table {
            *place = alias;
        }
        return Ok(());
    };
    let (Some(quantity), None, None, None) = (
        sample.quantity,
        &sample.seed,
        &sample.bucket,
        &sample.offset,
    ) else {
        return Err(rejected(sample.seed.is_some()));
    };
    let is_too_much = match &quantity.value {
        Expr::Value(value) => value
            .to_string()
            .parse()
            .is_ok_and(|percent: f64| percent > 100.0),
        Expr::UnaryOp { .. } => true,
        _ => false,
    };
    if is_too_much && quantity.unit != Some(TableSampleUnit::Rows) {
        let message = "TABLESAMPLE takes a percentage from 0 to 100".to_owned();
        return Err(SqlError::invalid(Mistake::InvalidParameterValue, message));
    }
    let is_number = quantity.unit == Some(TableSampleUnit::Rows);
    let mut subquery = template(if is_number { ROWS } else { PERCENT });
    let SetExpr::Select(select) = &mut *subquery.body else {
        unreachable!("the template is a SELECT");
    };
    std::mem::swap(&mut select.from[0].relation, table);
    match (&mut select.selection, &mut subquery.limit_clause) {
        (Some(Expr::BinaryOp { right, .. }), _) => **right = quantity.value,
        (_, Some(LimitClause::LimitOffset { limit, .. })) => *limit = Some(quantity.value),
        _ => unreachable!("the template has a condition or a limit"),
    }
    *table = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(subquery),
        alias: alias.or_else(|| own_name.map(named)),
        sample: None,
    };
    Ok(())
}

const PERCENT: &str = "SELECT * FROM sampled WHERE random() * 100 < 0";
const ROWS: &str = "SELECT * FROM sampled ORDER BY random() LIMIT 0";

fn template(text: &str) -> Query {
    let parser = Parser::new(&ErisDialect).try_with_sql(text);
    let query = parser.and_then(|mut parser| parser.parse_query());
    *query.expect("a template is a query")
}

fn rejected(is_repeated: bool) -> SqlError {
    SqlError::not_supported(match is_repeated {
        true => "TABLESAMPLE … REPEATABLE",
        false => "TABLESAMPLE of buckets",
    })
}

fn named(name: Ident) -> TableAlias {
    TableAlias {
        explicit: true,
        name,
        columns: Vec::new(),
        at: None,
    }
}
