//! The directory of a database: what makes it one, who has it open, and opening it in stages.
//!
//! ```text
//! DIR/
//!   eris.db                            the manifest: the database is this snapshot, and the log from there on
//!   eris.db.new                        the next manifest, until it gets its name
//!   lock                               the process that writes
//!   ballast                            room for a checkpoint on a disk that is full
//!   log/000000000007.log               what commits did
//!   chunks/000000000003.chunks         large chunks, which the log and the snapshot refer to
//!   snapshots/000000000002.snapshot    all that there was when the log began
//!
//! Directory::open ──▶ read ──▶ write ──▶ log writer, chunk writer, OpenDirectory ──▶ begin_from: the next manifest
//! takes the lock      changes nothing
//! ```
//!
//! A database is there from the moment when its manifest has its name. What lies there without one is left of a
//! database that was never made, if it is nothing but what Eris makes; anything else is somebody's, and is not touched.
//!
//! The snapshot comes first, then the log. The log begins with commits that the snapshot has, too: it went on in a new
//! file before the snapshot was taken.
//!
//! | module | |
//! |---|---|
//! | `manifest` | what a database consists of |
//! | `found` | what lies in a directory, and its lock |
//! | `open` | how another manifest takes the place of the one that is there |
//! | `check` | looking at all of it |
//! | `remains` | the same if it may be damaged, or its manifest gone |
//! | `ballast` | room that is kept for a checkpoint |
//! | `listed` | its files, and how long they are |

mod ballast;
mod check;
mod findings;
mod found;
mod listed;
mod manifest;
mod open;
mod remains;

pub use ballast::BallastInUse;
pub use check::check;
pub use findings::{Checked, Counted, Finding, Look, Part};
pub use listed::{ListedFile, ListedKind};
pub use manifest::Manifest;
pub use open::OpenDirectory;
pub use remains::Remains;

use crate::buffers::LogBuffer;
use crate::chunks::{ChunkBuffer, ChunkFiles, ChunkSettings, ChunkWriter};
use crate::ends::LogStart;
use crate::error::LogError;
use crate::file::LOG;
use crate::group::{Group, Origin};
use crate::place::DatabaseId;
use crate::reader::{LogRead, read_log};
use crate::snapshot::{SNAPSHOTS, read_snapshot};
use crate::writer::{LogSettings, LogWriter};
use ballast::Ballast;
use eris_disk::{Disk, HeldLock, Lock};
use eris_types::Timestamp;
use found::{has_been_in_use, has_manifest, lock, without_manifest};
use listed::list_files;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The directory of a database, locked. Nothing of the database was changed yet.
#[derive(Debug)]
pub struct Directory {
    disk: Arc<dyn Disk>,
    access: Lock,
    /// `None`: whoever reads has found no file to lock.
    lock: Option<HeldLock>,
    manifest: Option<Manifest>,
    database: DatabaseId,
    /// Whether a new database gets its manifest later.
    is_unfinished: bool,
}

/// A database that is open for writing.
#[derive(Debug)]
pub struct OpenDatabase {
    /// Where it is.
    pub directory: OpenDirectory,
    /// Writes the log.
    pub log: LogWriter,
    /// One for each that has something to say.
    pub buffers: Vec<LogBuffer>,
    /// Writes chunk files. The log writer has it flush the chunks that a group refers to.
    pub chunks: ChunkWriter,
    /// Where chunks are pushed.
    pub chunk_buffer: ChunkBuffer,
}

impl Directory {
    /// Opens the directory of a database.
    ///
    /// [`Lock::Exclusive`] is for writing: the directory is made if it is not there. If it is empty, a database of the
    /// identity `new` will be made in it. [`Lock::Shared`] is for reading, and changes nothing at all.
    ///
    /// # Errors
    /// The directory has files of others, another process has the database open, or the manifest is missing or damaged;
    /// for reading, there must be a database.
    pub fn open(disk: Arc<dyn Disk>, access: Lock, new: DatabaseId) -> Result<Self, LogError> {
        if access == Lock::Exclusive && !has_manifest(&*disk)? {
            disk.create_directory(Path::new(""))?;
        }
        let lock = lock(&*disk, access)?;
        let manifest = Manifest::read(&*disk)?;
        if manifest.is_none() && (access == Lock::Shared || has_been_in_use(&*disk)?) {
            return Err(without_manifest(&*disk)?);
        }
        let database = manifest.map_or(new, |manifest| manifest.database);
        Ok(Directory {
            disk,
            access,
            lock,
            manifest,
            database,
            is_unfinished: false,
        })
    }

    /// A new database is none until it [begins from](OpenDirectory::begin_from) a snapshot: so it is there as a whole
    /// or not at all.
    pub fn unfinished(self) -> Self {
        Directory {
            is_unfinished: true,
            ..self
        }
    }

    /// What the database consists of. `None`: a new one will be made here.
    pub fn manifest(&self) -> Option<Manifest> {
        self.manifest
    }

    /// Where its files are.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The files that are there, by kind and number.
    ///
    /// # Errors
    /// The disk cannot list them.
    pub fn files(&self) -> Result<Vec<ListedFile>, LogError> {
        list_files(&*self.disk)
    }

    /// The chunk files of the database. A new one has none.
    ///
    /// # Errors
    /// As [`ChunkFiles::open`].
    pub fn chunk_files(&self) -> Result<ChunkFiles, LogError> {
        ChunkFiles::open(self.disk.clone(), self.database)
    }

    /// Gives all groups of the snapshot to `take`, and then those of the log. It changes nothing. `None`: the database
    /// will be new.
    ///
    /// Commits up to the snapshot's timestamp are in the snapshot, and perhaps once more in the log. What was read goes
    /// through that timestamp at least.
    ///
    /// # Errors
    /// The database is damaged, or `take` says no.
    pub fn read<E: From<LogError>>(
        &self,
        mut take: impl FnMut(Origin, Group) -> Result<(), E>,
    ) -> Result<Option<LogRead>, E> {
        let Some(manifest) = self.manifest else {
            return Ok(None);
        };
        let (disk, database) = (&*self.disk, self.database);
        if let Some(snapshot) = manifest.snapshot {
            let take = |group| take(Origin::Snapshot, group);
            read_snapshot(disk, database, snapshot, take)?;
        }
        let take = |group| take(Origin::Log, group);
        let mut read = read_log(disk, database, manifest.start, take)?;
        // The newest commits of the snapshot may have done nothing that the log says. No other gets their timestamps.
        if let Some(snapshot) = manifest.snapshot {
            read.end.through = read.end.through.max(snapshot.at);
        }
        Ok(Some(read))
    }

    /// Begins to write, behind what was read, or makes the database. Files that are of no use any more are removed. So
    /// are chunks that nothing refers to. There are log buffers for as many as have something to say.
    ///
    /// # Errors
    /// A chunk that is referred to is not there: then nothing was changed. Or the disk has failed.
    ///
    /// # Panics
    /// If the directory was opened for reading, or `read` is not what [`Directory::read`] has said.
    pub fn write(
        self,
        read: Option<LogRead>,
        chunks: &ChunkFiles,
        referred_to: &BTreeSet<u64>,
        next_chunk: u64,
        buffers: usize,
        settings: (LogSettings, ChunkSettings),
    ) -> Result<OpenDatabase, LogError> {
        assert_eq!(self.access, Lock::Exclusive, "it is open for reading");
        referred_to
            .iter()
            .try_for_each(|number| chunks.info(*number).map(drop))?;
        let disk = &self.disk;
        // A disk that is full has room again, with what a killed process had taken and not used.
        chunks.cut_off()?;
        ballast::shorten(&**disk, settings.0.file_bytes);
        // What is removed below may come back after a crash. So no other chunk gets a number that was found there.
        let next_chunk = next_chunk.max(chunks.next_chunk());
        let last_snapshot = SNAPSHOTS.numbers(&**disk)?.last().copied().unwrap_or(0);
        let (manifest, (mut log, starts)) = match (self.manifest, read) {
            (Some(manifest), Some(read)) => {
                // If the flush of its name has failed, it is shown and may never be stored. So its name is given once
                // more, before anything is removed that the one before refers to.
                let manifest = Manifest {
                    next_chunk: next_chunk.max(manifest.next_chunk),
                    ..manifest
                };
                manifest.write(&**disk)?;
                let written = self.go_on(read, buffers, settings.0)?;
                let snapshot = manifest.snapshot.map(|snapshot| snapshot.number);
                SNAPSHOTS.remove_others(&**disk, |number| Some(number) == snapshot)?;
                (manifest, written)
            }
            (None, None) => self.make(next_chunk, buffers, settings.0)?,
            _ => panic!("something else was read"),
        };
        // Behind the log: what its last group no longer refers to is removed here.
        let (chunks, chunk_buffer) =
            ChunkWriter::go_on(chunks, referred_to, manifest.next_chunk, settings.1)?;
        log.refer_to(chunks.clone());
        let in_use = manifest.snapshot.map_or(0, |snapshot| snapshot.number);
        let next_snapshot = last_snapshot.max(in_use) + 1;
        let rooms = [log.room().clone(), chunks.room().clone()];
        let ballast = Ballast::new(Arc::clone(&self.disk), settings.0.file_bytes, rooms);
        if !self.is_unfinished {
            ballast.make();
        }
        let directory = OpenDirectory::new(self.disk, self.lock, ballast, manifest, next_snapshot);
        Ok(OpenDatabase {
            directory,
            log,
            buffers: starts,
            chunks,
            chunk_buffer,
        })
    }

    /// Goes on with the log that was read, and removes files that are not of it.
    fn go_on(
        &self,
        read: LogRead,
        buffers: usize,
        settings: LogSettings,
    ) -> Result<(LogWriter, Vec<LogBuffer>), LogError> {
        let disk = self.disk.clone();
        let (log, buffers) = LogWriter::go_on(disk, self.database, read.end, buffers, settings)?;
        let is_of_it = |number| read.files.contains(&number) || number == log.file_number();
        LOG.remove_others(&*self.disk, is_of_it)?;
        Ok((log, buffers))
    }

    /// Makes the database, in the place of what is left of one that was never made.
    fn make(
        &self,
        next_chunk: u64,
        buffers: usize,
        settings: LogSettings,
    ) -> Result<(Manifest, (LogWriter, Vec<LogBuffer>)), LogError> {
        LOG.remove_others(&*self.disk, |_| false)?;
        let log = LogWriter::create(self.disk.clone(), self.database, 1, buffers, settings)?;
        let manifest = Manifest {
            database: self.database,
            start: LogStart {
                file: log.0.file_number(),
                group: 1,
                through: Timestamp::ZERO,
            },
            snapshot: None,
            next_chunk,
        };
        if !self.is_unfinished {
            manifest.write(&*self.disk)?;
        }
        Ok((manifest, log))
    }
}
