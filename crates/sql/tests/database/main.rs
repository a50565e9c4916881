//! A database from the outside. One program, for each links all of DataFusion.

mod about_files;
mod changes;
mod checkpoints;
mod common;
mod ddl;
mod duckdb_exports;
mod explain;
mod explain_path;
mod file_kinds;
mod file_rows;
mod files;
mod formats;
mod frames;
mod indexes;
mod introspection;
#[path = "../keeping_home/mod.rs"]
mod keeping_home;
mod killed;
mod macros;
mod memory;
mod on_disk;
mod parameters;
mod race;
mod read_only;
mod references;
mod reopened;
mod sequences;
mod session;
mod short_locks;
mod short_writes;
mod temporary;
mod types;
mod wrong;
