//! One budget for tables and operators, and files for what does not fit into it.

pub(crate) mod cut;
pub(crate) mod growth;
pub(crate) mod pool;
pub(crate) mod spill;
mod widths;
pub(crate) mod windows;
