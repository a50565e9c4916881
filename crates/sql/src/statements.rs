//! The statements, a module for each kind.

pub(crate) mod analyze;
pub(crate) mod ddl;
pub(crate) mod dml;
pub(crate) mod files;
pub(crate) mod insert;
pub(crate) mod opening;
pub(crate) mod set;
pub(crate) mod show;
