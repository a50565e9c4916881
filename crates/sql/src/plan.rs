//! From a syntax tree to a plan: names are resolved, DataFusion plans, and rules move work into fragments.
//!
//! ```text
//! syntax tree ── resolve ── logical plan ── planner ──┬── filters and columns move into the scan
//!                                                     ├── aggregates move into the scan; what merges them
//!                                                     └── joins send their keys, or their rows, to the scan
//!                                                              │
//!             ProjectionExec … HashJoinExec … FragmentExec ◄───┘
//! ```

pub(crate) mod aggregate_rule;
pub(crate) mod answers;
pub(crate) mod computed_filter;
pub(crate) mod dictionary_exec;
pub(crate) mod dynamic_filter;
pub(crate) mod files;
pub(crate) mod fragment_exec;
pub(crate) mod group_keys;
mod join_order;
pub(crate) mod merge_groups;
mod one_column;
pub(crate) mod order_rule;
mod origin;
pub(crate) mod parameter;
pub(crate) mod planner;
pub(crate) mod planning;
pub(crate) mod resolve;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod star_rule;
pub(crate) mod statistics;
pub(crate) mod time;
pub(crate) mod translate;
