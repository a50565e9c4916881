//! A database from the outside. One program, for each links all of DataFusion.

mod changes;
mod common;
mod ddl;
mod explain;
mod explain_path;
mod file_kinds;
mod files;
mod indexes;
mod introspection;
mod memory;
mod race;
mod references;
mod session;
mod short_writes;
mod wrong;
