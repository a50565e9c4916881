//! What an engine is started with.

pub use eris_home::Synchronous;

use eris_numa::{HugePages, Topology};
use std::path::PathBuf;

/// The machine as the engine shall use it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes and AEUs.
    pub topology: Topology,
    /// Whether column data lies on huge pages.
    pub huge_pages: HugePages,
    /// The memory budget in bytes; `None` for 80 % of what the machine or the control group allows.
    pub memory_limit: Option<u64>,
    /// Where what is committed outlives the process; `None`: it ends with it.
    pub database: Option<DatabaseSettings>,
}

/// A database on a disk.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    /// Its directory. It is made if it is not there, unless it is opened for reading only.
    pub directory: PathBuf,
    /// When commits are durable, for as long as it is open. `None`: as the database has it, which is `on` unless it was
    /// set.
    pub synchronous: Option<Synchronous>,
    /// Whether it is opened for reading only, as any number of processes may do at the same time. Nothing is changed
    /// on the disk. What ends with the process can be written.
    pub read_only: bool,
}
