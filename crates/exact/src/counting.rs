//! Nodes that repairs add to plans, and that change no row.

use crate::memory::windows::AccountExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// The input of a node that only counts what it passes on: a yield point, or the account of a window's memory.
pub fn counted_input(node: &dyn ExecutionPlan) -> Option<&Arc<dyn ExecutionPlan>> {
    let yielding = node.downcast_ref::<CooperativeExec>();
    let accounting = node.downcast_ref::<AccountExec>();
    yielding
        .map(CooperativeExec::input)
        .or(accounting.map(AccountExec::input))
}
