//! Where a log begins, and where it ends.

use eris_types::Timestamp;

/// Where a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The number of its first file.
    pub file: u64,
    /// The number of its first group.
    pub group: u64,
    /// All commits up to here are elsewhere.
    pub through: Timestamp,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// The number of the next group.
    pub group: u64,
    /// All commits up to here are in it.
    pub through: Timestamp,
    /// The file that it ends in.
    pub file: u64,
    /// Where in the file.
    pub offset: u64,
    /// A number that no file has had.
    pub next_file: u64,
    /// The last group, if there is one.
    pub last: Option<LastGroup>,
}

/// The last group of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastGroup {
    /// The file that it is in.
    pub file: u64,
    /// Where.
    pub offset: u64,
    /// What it takes.
    pub bytes: u64,
}
