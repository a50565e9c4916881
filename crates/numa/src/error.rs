//! Why there is no topology.

use crate::profile::ProfileError;
use std::path::PathBuf;

/// The environment variable that replaces the real topology: `4x2` is 4 logical nodes with 2 AEUs each.
pub const TOPOLOGY_VARIABLE: &str = "ERIS_TOPOLOGY";

/// AEUs of a made-up topology: as many as are tested. Each takes up to 3 MB, and threads of the system.
pub(crate) const MOST_AEUS: u16 = 128;

/// The topology cannot be read, or what was asked of it cannot be.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A file is there but cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file's content is not what the kernel documents.
    #[error("cannot understand {path}: expected {expected}, found {found:?}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What should stand there.
        expected: &'static str,
        /// What stands there (at most its first 80 characters).
        found: String,
    },
    /// The process's affinity mask cannot be read.
    #[error("cannot read the CPU affinity mask of the process: {0}")]
    Affinity(std::io::Error),
    /// No CPU is left for an AEU.
    #[error("found no CPU that this process may use")]
    NoCpus,
    /// The environment variable's value is no topology.
    #[error(
        "{variable}={value:?} is no topology: expected NODESxCORES, as in {variable}=4x2, \
         both from 1, and at most {most} AEUs in all",
        variable = TOPOLOGY_VARIABLE,
        most = MOST_AEUS
    )]
    Variable {
        /// The value found.
        value: String,
    },
    /// A number of AEUs that cannot be.
    #[error("{asked} AEUs cannot be: there must be from 1 to {most}", most = u16::MAX)]
    AeuCount {
        /// The number asked for.
        asked: usize,
    },
    /// The machine that shall be imitated.
    #[error(transparent)]
    Machine(#[from] ProfileError),
}
