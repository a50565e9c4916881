//! What an engine is started with.

use eris_numa::{HugePages, Topology};

/// The machine as the engine shall use it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes and AEUs.
    pub topology: Topology,
    /// Whether column data lies on huge pages.
    pub huge_pages: HugePages,
    /// The memory budget in bytes; `None` for 80 % of what the machine or the control group allows.
    pub memory_limit: Option<u64>,
}
