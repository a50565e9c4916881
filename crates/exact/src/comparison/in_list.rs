//! `x IN (…)` whose elements are computed from columns.
//!
//! **Stands for** DataFusion's search for lists of constants: it evaluates the elements on no rows. CASE has a value
//! then, too, and is taken for a constant.
//!
//! ```text
//! x IN (1, 2, c, CASE WHEN a THEN 3 END)      x IN (1, 2, c) OR x = CASE WHEN a THEN 3 END
//! ```

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{Expr, not};

/// The same as comparisons; `None` if all elements are constants or columns. What is random may have other values the
/// second time, and stays.
pub(super) fn written_out(expr: &Expr) -> Option<Expr> {
    let Expr::InList(membership) = expr else {
        return None;
    };
    if membership.list.iter().all(is_plain) || membership.expr.is_volatile() {
        return None;
    }
    let (plain, computed): (Vec<Expr>, Vec<Expr>) =
        membership.list.iter().cloned().partition(is_plain);
    let of = &*membership.expr;
    let plain = match plain.is_empty() {
        true => None,
        false => Some(Expr::InList(InList::new(
            Box::new(of.clone()),
            plain,
            false,
        ))),
    };
    let computed = computed.into_iter().map(|element| of.clone().eq(element));
    let any = disjunction(plain.into_iter().chain(computed))?;
    Some(match membership.negated {
        true => not(any),
        false => any,
    })
}

/// Whether an element is a constant, a column or a cast of one.
fn is_plain(element: &Expr) -> bool {
    match element {
        Expr::Cast(cast) => is_plain(&cast.expr),
        Expr::Column(_) => true,
        other => !other.any_column_refs() && !other.contains_outer(),
    }
}
