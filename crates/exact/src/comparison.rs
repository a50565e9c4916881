//! Comparisons of what DataFusion would first make equal in type, and so lose a part of.

pub(crate) mod coalesce;
pub(crate) mod common_type;
mod in_list;
mod interval;
pub(crate) mod interval_keys;
pub(crate) mod membership;
pub(crate) mod mixed;
pub(crate) mod nan;
pub(crate) mod nested;
pub(crate) mod pattern;
pub(crate) mod quantified;
pub(crate) mod timestamp;
pub(crate) mod turned;
pub(crate) mod values;
pub(crate) mod zero;

pub(crate) use interval::counted as interval_length;

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList};

/// Functions whose value is one of their arguments.
pub(crate) const ONE_OF: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// What a CASE may yield.
fn results(case: &Case) -> impl Iterator<Item = &Expr> {
    let branches = case.when_then_expr.iter().map(|(_, then)| &**then);
    branches.chain(case.else_expr.as_deref())
}

/// The operands of such operators and functions, and of BETWEEN, IN and CASE. Those are together that are to be of one
/// type.
pub(crate) fn of_one_type<'a>(
    expr: &'a mut Expr,
    is_operator: &dyn Fn(&BinaryExpr) -> bool,
    is_function: &dyn Fn(&str) -> bool,
) -> Vec<Vec<&'a mut Expr>> {
    match expr {
        Expr::BinaryExpr(binary) if is_operator(binary) => {
            vec![vec![&mut *binary.left, &mut *binary.right]]
        }
        Expr::ScalarFunction(function) if is_function(function.func.name()) => {
            vec![function.args.iter_mut().collect()]
        }
        Expr::Between(Between {
            expr, low, high, ..
        }) => vec![vec![expr, low, high]],
        Expr::InList(InList { expr, list, .. }) => {
            vec![std::iter::once(&mut **expr).chain(list).collect()]
        }
        Expr::Case(case) => {
            let (mut whens, mut results) = (Vec::new(), Vec::new());
            for (when, then) in &mut case.when_then_expr {
                whens.push(&mut **when);
                results.push(&mut **then);
            }
            results.extend(case.else_expr.as_deref_mut());
            match case.expr.as_deref_mut() {
                Some(operand) => whens.push(operand),
                None => whens.clear(),
            }
            vec![whens, results]
        }
        _ => Vec::new(),
    }
}
