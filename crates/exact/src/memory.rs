//! One budget for tables and operators, and files for what does not fit into it.

pub(crate) mod pool;
pub(crate) mod spill;
pub(crate) mod windows;
