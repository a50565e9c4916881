//! The statements, a module for each kind.

pub(crate) mod ddl;
pub(crate) mod dml;
pub(crate) mod explain;
pub(crate) mod insert;
pub(crate) mod prepare;
pub(crate) mod show;
