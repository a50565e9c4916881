//! Comparisons of what DataFusion would first make equal in type, and so lose a part of.

pub(crate) mod coalesce;
pub(crate) mod common_type;
mod interval;
pub(crate) mod interval_keys;
pub(crate) mod membership;
pub(crate) mod mixed;
pub(crate) mod nan;
pub(crate) mod pattern;
pub(crate) mod quantified;
pub(crate) mod timestamp;
pub(crate) mod values;
pub(crate) mod zero;

pub(crate) use interval::counted as interval_length;

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Case;

/// Functions whose value is one of their arguments.
pub(crate) const ONE_OF: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// What a CASE may yield.
fn results(case: &Case) -> impl Iterator<Item = &Expr> {
    let branches = case.when_then_expr.iter().map(|(_, then)| &**then);
    branches.chain(case.else_expr.as_deref())
}
