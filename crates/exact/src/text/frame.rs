//! Window frames over rows that are ordered by times, bytes, UUIDs or intervals.
//!
//! **Stands for** DataFusion's frames of RANGE, which count from a value even where a frame ends with the row's peers.
//! It cannot count with these types. A frame of whole groups of peers is the same one then.

use super::has_own_text;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, ExprSchemable, WindowFrameBound, WindowFrameUnits};

/// RANGE as GROUPS, where both mean the same and DataFusion knows one.
///
/// # Errors
/// The frame has a distance in it.
pub(crate) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(function) = &mut expr else {
        return Ok(Transformed::no(expr));
    };
    let params = &mut function.params;
    let Some(key) = params.order_by.first() else {
        return Ok(Transformed::no(expr));
    };
    let of = key.expr.get_type(schema);
    let Some(of) = of.ok().filter(has_own_text) else {
        return Ok(Transformed::no(expr));
    };
    let frame = &mut params.window_frame;
    if frame.units != WindowFrameUnits::Range {
        return Ok(Transformed::no(expr));
    }
    if !(is_peer(&frame.start_bound) && is_peer(&frame.end_bound)) {
        return plan_err!(
            "Cannot infer common argument type for comparison operation RANGE of {of}"
        );
    }
    frame.units = WindowFrameUnits::Groups;
    Ok(Transformed::yes(expr))
}

/// The row's peers, or all rows on one side of it.
fn is_peer(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            distance.is_null()
        }
    }
}
