//! What a check finds, and who tells it what groups and chunks say.

use super::manifest::Manifest;
use crate::chunks::ChunkInfo;
use crate::group::{Group, Origin};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Who knows what groups and chunks say. An error is what is wrong, for whoever reads the findings.
pub trait Look {
    /// Looks at a group: first those of the snapshot, then those of the log. Some may be missing between two.
    fn group(&mut self, origin: Origin, group: &Group) -> Result<(), String>;

    /// Groups are missing between the one before and the next one, or at the end.
    fn lost(&mut self, _origin: Origin) {}

    /// The chunks that groups refer to, at the time when all groups were looked at.
    fn referred_to(&mut self) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    /// Looks at the stored form of a chunk.
    fn form(&mut self, _number: u64, _info: ChunkInfo, _form: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// So many bytes of so many were looked at.
    fn passed(&mut self, _done: u64, _total: u64) {}
}

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// `None`: it is damaged. Then nothing else can be told.
    pub manifest: Option<Manifest>,
    /// The snapshot: its file, and groups.
    pub snapshot: Counted,
    /// The log: its files, and groups.
    pub log: Counted,
    /// Chunk files, and chunks that are referred to.
    pub chunks: Counted,
    /// Chunks that nothing refers to, and the bytes of these.
    pub unused: Counted,
    /// All that is wrong, in this order.
    pub findings: Vec<Finding>,
    /// What is no damage, but of no use: the next start removes it, or cuts it off. And dead chunks that are not whole.
    pub remarks: Vec<Finding>,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Files.
    pub files: u64,
    /// Bytes that these have.
    pub bytes: u64,
    /// Groups or chunks that are whole.
    pub parts: u64,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file; or the directory, if a file is missing whose name nobody knows.
    pub path: PathBuf,
    /// Where, in bytes from the file's beginning.
    pub offset: u64,
    /// What.
    pub what: String,
    /// The part of the database that is hit.
    pub part: Part,
}

/// A part of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nobody knows which.
    Unknown,
    /// The snapshot.
    Snapshot,
    /// What commits have done: those behind one commit, and up to another if that is known.
    Commits {
        /// The last one before.
        behind: Timestamp,
        /// The last one.
        up_to: Option<Timestamp>,
    },
    /// A chunk, by its number.
    Chunk(u64),
}
