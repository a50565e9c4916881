//! One budget for tables and operators, and files for what does not fit into it.

pub(crate) mod concatenation;
pub(crate) mod cut;
pub(crate) mod growth;
pub(crate) mod pool;
pub(crate) mod spill;
pub(crate) mod string_agg;
pub(crate) mod view_keys;
mod widths;
pub(crate) mod windows;
