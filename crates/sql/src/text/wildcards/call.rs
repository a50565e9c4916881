//! `COLUMNS(…)`, as it is written.

use datafusion::sql::sqlparser::ast::Expr;

/// The function that stands for several columns.
pub(crate) const COLUMNS: &str = "columns";

/// Whether it is `COLUMNS(…)`.
pub(crate) fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => match &function.name.0[..] {
            [name] => name.as_ident().is_some_and(|name| {
                name.quote_style.is_none() && name.value.eq_ignore_ascii_case(COLUMNS)
            }),
            _ => false,
        },
        _ => false,
    }
}
