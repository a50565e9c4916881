//! The files of a database, for whoever wants to know how many there are, and how long.

use super::ballast::BALLAST;
use super::found::listed;
use super::manifest::MANIFEST;
use crate::chunks::CHUNKS;
use crate::error::LogError;
use crate::file::LOG;
use crate::snapshot::SNAPSHOTS;
use eris_disk::{Disk, EntryKind};
use std::path::PathBuf;

/// A file of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// What it is.
    pub kind: ListedKind,
    /// Its number; manifest and ballast have none.
    pub number: Option<u64>,
    /// Its path in the database's directory.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedKind {
    /// The manifest.
    Manifest,
    /// Room for a checkpoint.
    Ballast,
    /// A file of the log.
    Log,
    /// A snapshot file.
    Snapshot,
    /// A chunk file.
    Chunks,
}

/// The files that are there, by kind and number. Some may come or go meanwhile.
///
/// # Errors
/// The disk cannot list them.
pub(super) fn list_files(disk: &dyn Disk) -> Result<Vec<ListedFile>, LogError> {
    let mut files = Vec::new();
    for entry in listed(disk, "")? {
        let kind = match entry.name.to_str() {
            Some(MANIFEST) => ListedKind::Manifest,
            Some(BALLAST) => ListedKind::Ballast,
            _ => continue,
        };
        if let EntryKind::File(bytes) = entry.kind {
            files.push(ListedFile {
                kind,
                number: None,
                path: PathBuf::from(entry.name),
                bytes,
            });
        }
    }
    let kinds = [
        (ListedKind::Log, &LOG),
        (ListedKind::Snapshot, &SNAPSHOTS),
        (ListedKind::Chunks, &CHUNKS),
    ];
    for (kind, of) in kinds {
        for (number, bytes) in of.lengths(disk)? {
            files.push(ListedFile {
                kind,
                number: Some(number),
                path: of.path_of(number),
                bytes,
            });
        }
    }
    Ok(files)
}
