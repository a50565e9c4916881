//! What lies in a directory before it is open: a database; or without a manifest nothing, what is left of a database
//! that was never made, one that has lost its manifest, or somebody's files.

use super::ballast::BALLAST;
use super::manifest::{MANIFEST, NEXT_MANIFEST};
use crate::chunks::CHUNKS;
use crate::error::LogError;
use crate::file::{FIRST_GROUP, LOG};
use crate::header::FileKind;
use crate::snapshot::SNAPSHOTS;
use eris_disk::{Access, Disk, Entry, EntryKind, HeldLock, Lock, Reason};
use std::path::{Path, PathBuf};

pub(super) const LOCK: &str = "lock";
pub(super) const KINDS: [&FileKind; 3] = [&LOG, &CHUNKS, &SNAPSHOTS];

/// What a directory has; nothing, if it is not there.
pub(super) fn listed(disk: &dyn Disk, directory: &str) -> Result<Vec<Entry>, LogError> {
    match disk.list(Path::new(directory)) {
        Err(error) if error.reason == Reason::NotFound => Ok(Vec::new()),
        entries => Ok(entries?),
    }
}

/// Whether a directory has a manifest. If not, it must have no files of others.
pub(super) fn has_manifest(disk: &dyn Disk) -> Result<bool, LogError> {
    let entries = listed(disk, "")?;
    if entries.iter().any(|entry| entry.name == MANIFEST) {
        return Ok(true);
    }
    for entry in &entries {
        let foreign = match (entry.name.to_str(), entry.kind) {
            (Some(NEXT_MANIFEST | LOCK | BALLAST), EntryKind::File(_)) => None,
            (Some(name), EntryKind::Directory) => foreign_in(disk, name)?,
            _ => Some(PathBuf::from(&entry.name)),
        };
        if let Some(path) = foreign {
            let directory = disk.root().to_owned();
            return Err(LogError::OtherFiles { directory, path });
        }
    }
    Ok(false)
}

/// A file of a directory that no database has there; or the directory, if it is none of a database.
fn foreign_in(disk: &dyn Disk, directory: &str) -> Result<Option<PathBuf>, LogError> {
    let Some(kind) = KINDS.iter().find(|kind| kind.directory == directory) else {
        return Ok(Some(PathBuf::from(directory)));
    };
    let entries = listed(disk, directory)?;
    let mut foreign = entries
        .iter()
        .filter(|entry| kind.number_of(&entry.name).is_none());
    let path = |entry: &Entry| Path::new(directory).join(&entry.name);
    Ok(foreign.next().map(path))
}

/// Whether there is more than what is left when a database was never made: the first file of its log, with nothing in
/// it. Then its manifest is missing.
pub(super) fn has_been_in_use(disk: &dyn Disk) -> Result<bool, LogError> {
    let is_there = |kind: &FileKind| Ok::<_, LogError>(!kind.numbers(disk)?.is_empty());
    if is_there(&CHUNKS)? || is_there(&SNAPSHOTS)? {
        return Ok(true);
    }
    let [number] = LOG.numbers(disk)?[..] else {
        return is_there(&LOG);
    };
    let file = disk.open(&LOG.path_of(number), Access::Read)?;
    let (length, mut at) = (file.len()?, FIRST_GROUP);
    let mut bytes = vec![0; 1 << 20];
    while at < length {
        let some = bytes.len().min((length - at) as usize);
        file.read_at(&mut bytes[..some], at)?;
        if bytes[..some].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        at += some as u64;
    }
    Ok(false)
}

/// Takes the lock of the database. `None`: whoever reads finds no file to lock, as in a copy of the database. It makes
/// none, for there it may not be allowed to. So a process that writes later is not held off; what that removes in the
/// midst of reading is found missing.
pub(super) fn lock(disk: &dyn Disk, access: Lock) -> Result<Option<HeldLock>, LogError> {
    match disk.lock(Path::new(LOCK), access) {
        Err(error) if error.reason == Reason::NotFound && access == Lock::Shared => Ok(None),
        lock => Ok(Some(lock?)),
    }
}

/// What is wrong with a directory that has no manifest.
pub(super) fn without_manifest(disk: &dyn Disk) -> Result<LogError, LogError> {
    Ok(match has_been_in_use(disk)? {
        true => LogError::NoManifest {
            path: disk.root().join(MANIFEST),
        },
        false => LogError::NoDatabase {
            directory: disk.root().to_owned(),
        },
    })
}
