//! The columns in a fragment's expressions.

use eris_fragment::{Expr, Output};

/// All expressions of an output.
pub(super) fn expressions(output: &mut Output) -> Vec<&mut Expr> {
    match output {
        Output::Rows { columns, .. } => columns.iter_mut().collect(),
        Output::Groups { keys, aggregates } => {
            let arguments = aggregates.iter_mut().flat_map(|aggregate| {
                aggregate
                    .input
                    .iter_mut()
                    .chain(aggregate.filter.iter_mut())
            });
            keys.iter_mut().chain(arguments).collect()
        }
    }
}

/// Replaces every column.
pub(super) fn replace_columns(expr: &mut Expr, replacement: &impl Fn(usize) -> Expr) {
    match expr {
        Expr::Column(position) => *expr = replacement(*position),
        Expr::Literal(_) => {}
        Expr::Binary { left, right, .. } => {
            replace_columns(left, replacement);
            replace_columns(right, replacement);
        }
        Expr::Not(operand)
        | Expr::Negate(operand)
        | Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::InList { operand, .. }
        | Expr::Like { operand, .. }
        | Expr::Cast { operand, .. } => replace_columns(operand, replacement),
        Expr::Case {
            branches,
            otherwise,
        } => {
            for (condition, then) in branches {
                replace_columns(condition, replacement);
                replace_columns(then, replacement);
            }
            if let Some(otherwise) = otherwise {
                replace_columns(otherwise, replacement);
            }
        }
    }
}
