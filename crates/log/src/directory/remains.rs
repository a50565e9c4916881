//! What is left of a database whose files may be damaged, or missing.
//!
//! ```text
//! eris.db    whole ───────────────────▶ the snapshot, and the log from there on
//!            gone, damaged ─ guessed ─▶ the newest snapshot that was finished, and all files of the log
//!                            └─ headers of files say which database it is
//! ```
//!
//! Groups and chunks know where they are, and which database they are of. So each is taken that is whole, whatever has
//! become of the bytes around it.

use super::check::Check;
use super::findings::{Checked, Look};
use super::found::{KINDS, lock, without_manifest};
use super::manifest::Manifest;
use crate::chunks::ChunkFiles;
use crate::ends::LogStart;
use crate::error::LogError;
use crate::file::LOG;
use crate::group::GroupKind;
use crate::groups::Groups;
use crate::header::HEADER_BYTES;
use crate::place::DatabaseId;
use crate::snapshot::{SNAPSHOTS, SnapshotStart};
use eris_disk::{Disk, HeldLock, Lock};
use eris_types::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A directory in which a database is, or was. Nothing is changed there.
#[derive(Debug)]
pub struct Remains {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    /// What is wrong with the manifest, so that this one was guessed.
    wrong: Option<LogError>,
    /// `None`: its file is gone.
    _lock: Option<HeldLock>,
}

impl Remains {
    /// Finds out which database it is.
    ///
    /// # Errors
    /// There is none, nothing says which one it is, a later version has written it, or another process writes it.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self, LogError> {
        let lock = lock(&*disk, Lock::Shared)?;
        let read = Manifest::read(&*disk);
        if let Err(newer @ LogError::Newer { .. }) = read {
            return Err(newer);
        }
        let files = files_of_databases(&*disk)?;
        let (manifest, wrong) = match read {
            Ok(Some(manifest)) => (manifest, None),
            wrong => {
                let wrong = match wrong {
                    Err(wrong) => wrong,
                    Ok(_) => without_manifest(&*disk)?,
                };
                let most = files.iter().max_by_key(|(_, files)| **files);
                let (database, _) = most.ok_or_else(|| wrong.clone())?;
                (guessed(&*disk, DatabaseId(*database))?, Some(wrong))
            }
        };
        Ok(Remains {
            disk,
            manifest,
            wrong,
            _lock: lock,
        })
    }

    /// Whether the manifest is damaged or missing, so that only the files tell what the database was.
    pub fn is_guessed(&self) -> bool {
        self.wrong.is_some()
    }

    /// Looks at all of it, as [`check`](super::check::check) does.
    ///
    /// # Errors
    /// The disk cannot list its files.
    pub fn check(&self, look: &mut dyn Look) -> Result<Checked, LogError> {
        let mut check = Check::new(&self.disk, look)?;
        check.note::<()>(self.wrong.clone().map_or(Ok(()), Err));
        check.all(self.manifest, self.first_group());
        Ok(check.checked)
    }

    /// Gives all whole groups to `look` once more.
    ///
    /// # Errors
    /// As [`Remains::check`].
    pub fn groups(&self, look: &mut dyn Look) -> Result<(), LogError> {
        let mut check = Check::new(&self.disk, look)?;
        check.all_groups(self.manifest, self.first_group());
        Ok(())
    }

    /// All chunks whose heads are whole.
    ///
    /// # Errors
    /// The disk cannot list the files.
    pub fn chunk_files(&self) -> Result<ChunkFiles, LogError> {
        ChunkFiles::open_remains(Arc::clone(&self.disk), self.manifest.database)
    }

    fn first_group(&self) -> Option<u64> {
        let is_known = self.wrong.is_none();
        is_known.then_some(self.manifest.start.group)
    }
}

/// How many files belong to which databases.
fn files_of_databases(disk: &dyn Disk) -> Result<BTreeMap<[u8; 16], usize>, LogError> {
    let mut files = BTreeMap::new();
    for kind in KINDS {
        for number in kind.numbers(disk)? {
            if let Some(database) = kind.database_of(disk, number)? {
                *files.entry(database.0).or_default() += 1;
            }
        }
    }
    Ok(files)
}

/// What the manifest of a database may have said.
fn guessed(disk: &dyn Disk, database: DatabaseId) -> Result<Manifest, LogError> {
    let logs = LOG.numbers(disk)?;
    let mut snapshots = Vec::new();
    for number in SNAPSHOTS.numbers(disk)? {
        let (at, is_finished) = snapshot_of(disk, database, number);
        snapshots.extend(at.map(|at| (is_finished, SnapshotStart { number, at })));
    }
    let newest = |(is_finished, start): &(bool, SnapshotStart)| (*is_finished, start.number);
    let snapshot = snapshots.into_iter().max_by_key(newest);
    Ok(Manifest {
        database,
        start: LogStart {
            file: logs.first().copied().unwrap_or(1),
            group: 1,
            through: Timestamp::ZERO,
        },
        snapshot: snapshot.map(|(_, snapshot)| snapshot),
        next_chunk: 1,
    })
}

/// The timestamp that the groups of a snapshot say, if there is a whole one, and whether the last one closes it.
fn snapshot_of(disk: &dyn Disk, database: DatabaseId, number: u64) -> (Option<Timestamp>, bool) {
    let Ok(open) = SNAPSHOTS.open_any(disk, number) else {
        return (None, false);
    };
    let mut groups = Groups::of(&SNAPSHOTS, &open, database, number);
    let (mut offset, mut at, mut is_finished) = (HEADER_BYTES, None, false);
    loop {
        match groups.at(offset) {
            Ok(Some((group, length))) => {
                at = Some(group.through);
                is_finished = group.kind == GroupKind::Closed;
                offset += length;
            }
            _ => match groups.behind(offset) {
                Some(next) => offset = next,
                None => return (at, is_finished),
            },
        }
    }
}
