//! The functions that rank.

use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::windows::WindowUDFExpr;
use std::sync::Arc;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    /// Rows before it, and itself.
    RowNumber,
    /// Rows before all of its peers, and one.
    Rank,
    /// Different rows before it, and itself.
    DenseRank,
}

impl Ranking {
    /// What a window function is, if it is one of them.
    pub fn of(function: &Arc<dyn WindowExpr>) -> Option<Self> {
        let standard = function.as_any().downcast_ref::<StandardWindowExpr>()?;
        let standard = standard.get_standard_func_expr();
        let function = standard.as_any().downcast_ref::<WindowUDFExpr>()?;
        match function.fun().name() {
            "row_number" => Some(Ranking::RowNumber),
            "rank" => Some(Ranking::Rank),
            "dense_rank" => Some(Ranking::DenseRank),
            _ => None,
        }
    }
}

/// Whether two functions have the same windows, but for their frames.
pub(super) fn have_same_window(one: &Arc<dyn WindowExpr>, other: &Arc<dyn WindowExpr>) -> bool {
    one.partition_by() == other.partition_by() && one.order_by() == other.order_by()
}
