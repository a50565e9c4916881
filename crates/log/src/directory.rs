//! The directory of a database: what makes it one, and who has it open.
//!
//! ```text
//! DIR/
//!   eris.db              the manifest: which database this is, and where its log begins
//!   eris.db.new          the next manifest, until it gets its name
//!   lock                 the process that writes
//!   log/000000000001.log
//!
//! manifest   "ERISDB\n\0" ▪ format: 4 ▪ zeros: 4 ▪ database: 16 ▪ log: file, group, through: 8 each ▪ checksum: 8
//! ```
//!
//! A database is there from the moment when its manifest has its name. What lies there without one is left of a
//! database that was never made, if it is nothing but what Eris makes; anything else is somebody's, and is not touched.

use crate::buffers::LogBuffer;
use crate::error::LogError;
use crate::file::{FIRST_GROUP, LOG};
use crate::group::Group;
use crate::header::FORMAT;
use crate::place::{DatabaseId, Place};
use crate::reader::{LogRead, LogStart, read_log, remove_others};
use crate::writer::{LogSettings, LogWriter};
use eris_disk::{Access, Disk, Entry, EntryKind, HeldLock, Lock, Reason};
use eris_types::Timestamp;
use std::collections::BTreeSet;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MANIFEST: &str = "eris.db";
const NEXT_MANIFEST: &str = "eris.db.new";
const LOCK: &str = "lock";
const MAGIC: [u8; 8] = *b"ERISDB\n\0";
const LENGTH: usize = 64;
const CHECKSUM: usize = LENGTH - 8;

/// What a manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The database.
    pub database: DatabaseId,
    /// Where its log begins.
    pub start: LogStart,
}

/// A database that is open for writing.
#[derive(Debug)]
pub struct OpenLog {
    /// Which one.
    pub manifest: Manifest,
    /// What was read; `None`: it was made.
    pub read: Option<LogRead>,
    /// Writes on.
    pub writer: LogWriter,
    /// One for each that has something to say.
    pub buffers: Vec<LogBuffer>,
    /// Until it is dropped, nobody else opens the database.
    pub lock: HeldLock,
}

impl Manifest {
    fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database.0);
        let LogStart {
            file,
            group,
            through,
        } = self.start;
        for (at, number) in [file, group, through.0].into_iter().enumerate() {
            let at = 32 + 8 * at;
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let checksum = self.place().checksum([&bytes[..CHECKSUM]]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// No other file has this number.
    fn place(&self) -> Place {
        LOG.place(self.database, 0, 0)
    }

    /// Reads the manifest of a directory; `None`: there is none.
    ///
    /// # Errors
    /// It is none of ours, or not what was written.
    fn read(disk: &dyn Disk) -> Result<Option<Self>, LogError> {
        let file = match disk.open(Path::new(MANIFEST), Access::Read) {
            Ok(file) => file,
            Err(error) if error.reason == Reason::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let path = file.path().to_owned();
        let length = file.len()?;
        let mut bytes = vec![0; length.min(LENGTH as u64) as usize];
        file.read_at(&mut bytes, 0)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(LogError::Foreign { path });
        }
        let format = bytes.get(8..12).map_or(FORMAT, |bytes| {
            u32::from_le_bytes(bytes.try_into().expect("four bytes"))
        });
        if format > FORMAT {
            let newest = FORMAT;
            return Err(LogError::Newer {
                path,
                format,
                newest,
            });
        }
        let word = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        let manifest = (|| {
            Some(Manifest {
                database: DatabaseId(bytes.get(16..32)?.try_into().expect("sixteen bytes")),
                start: LogStart {
                    file: word(32)?,
                    group: word(40)?,
                    through: Timestamp(word(48)?),
                },
            })
        })();
        match manifest
            .filter(|manifest| length == LENGTH as u64 && manifest.bytes()[..] == bytes[..])
        {
            Some(manifest) => Ok(Some(manifest)),
            None => {
                let what = "it is not the manifest that was written";
                Err(LogError::damaged(&path, 0, what))
            }
        }
    }

    /// Puts the manifest into the place of the one that is there.
    fn write(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let next = Path::new(NEXT_MANIFEST);
        remove_if_there(disk, next)?;
        let file = disk.create(next)?;
        file.write_at(&[IoSlice::new(&self.bytes())], 0)?;
        file.flush()?;
        disk.rename(next, Path::new(MANIFEST))?;
        Ok(disk.flush_directory(Path::new(""))?)
    }
}

fn remove_if_there(disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
    match disk.remove(path) {
        Err(error) if error.reason != Reason::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Opens the database of a directory for writing, or makes one of this identity if the directory is empty or not there.
/// `take` gets all groups of its log, in their order. There are log buffers for as many as have something to say.
///
/// # Errors
/// The directory has other files, another process has the database open, it is damaged, or `take` says no: then nothing
/// was written.
pub fn open_log<E: From<LogError>>(
    disk: Arc<dyn Disk>,
    new: DatabaseId,
    buffers: usize,
    settings: LogSettings,
    take: impl FnMut(Group) -> Result<(), E>,
) -> Result<OpenLog, E> {
    if !is_database(&*disk)? {
        disk.create_directory(Path::new(""))
            .map_err(LogError::from)?;
    }
    let lock = disk.lock(Path::new(LOCK), Lock::Exclusive);
    let lock = lock.map_err(LogError::from)?;
    let Some(manifest) = Manifest::read(&*disk)? else {
        return Ok(make(disk, new, buffers, settings, lock)?);
    };
    let database = manifest.database;
    let read = read_log(&*disk, database, manifest.start, take)?;
    let files = read.files.clone();
    // If the flush of its name has failed, it is shown and may never be stored. So its name is given once more.
    manifest.write(&*disk)?;
    let (writer, buffers) = LogWriter::go_on(disk.clone(), database, read.end, buffers, settings)?;
    let in_use = writer.file_number();
    remove_others(&*disk, |number| files.contains(&number) || number == in_use)?;
    Ok(OpenLog {
        manifest,
        read: Some(read),
        writer,
        buffers,
        lock,
    })
}

/// Makes a database, in the place of what is left of one that was never made.
fn make(
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    buffers: usize,
    settings: LogSettings,
    lock: HeldLock,
) -> Result<OpenLog, LogError> {
    if listed(&*disk, "")?
        .iter()
        .any(|entry| entry.name == LOG.directory)
    {
        if has_been_in_use(&*disk)? {
            let path = disk.root().join(MANIFEST);
            return Err(LogError::NoManifest { path });
        }
        remove_others(&*disk, |_| false)?;
    }
    let start = LogStart {
        file: 1,
        group: 1,
        through: Timestamp::ZERO,
    };
    let manifest = Manifest { database, start };
    let (writer, buffers) =
        LogWriter::create(disk.clone(), database, start.file, buffers, settings)?;
    manifest.write(&*disk)?;
    Ok(OpenLog {
        manifest,
        read: None,
        writer,
        buffers,
        lock,
    })
}

/// Whether a log has more than what is left when a database was never made: its first file, with nothing in it.
fn has_been_in_use(disk: &dyn Disk) -> Result<bool, LogError> {
    let [number] = LOG.numbers(disk)?[..] else {
        return Ok(!LOG.numbers(disk)?.is_empty());
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

/// What a directory has; nothing, if it is not there.
fn listed(disk: &dyn Disk, directory: &str) -> Result<Vec<Entry>, LogError> {
    match disk.list(Path::new(directory)) {
        Ok(entries) => Ok(entries),
        Err(error) if error.reason == Reason::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a directory is a database. One that is none must have no files of others.
fn is_database(disk: &dyn Disk) -> Result<bool, LogError> {
    let entries = listed(disk, "")?;
    let names: BTreeSet<_> = entries.iter().map(|entry| entry.name.as_os_str()).collect();
    if names.contains(Path::new(MANIFEST).as_os_str()) {
        return Ok(true);
    }
    let ours = |entry: &Entry| {
        matches!(
            (entry.name.to_str(), entry.kind),
            (Some(NEXT_MANIFEST | LOCK), EntryKind::File(_))
        ) || entry.name == LOG.directory && entry.kind == EntryKind::Directory
    };
    let mut foreign: Option<PathBuf> = (entries.iter())
        .find(|entry| !ours(entry))
        .map(|entry| PathBuf::from(&entry.name));
    if foreign.is_none() && names.contains(Path::new(LOG.directory).as_os_str()) {
        let files = listed(disk, LOG.directory)?;
        let other = files
            .iter()
            .find(|entry| LOG.number_of(&entry.name).is_none());
        foreign = other.map(|entry| Path::new(LOG.directory).join(&entry.name));
    }
    match foreign {
        None => Ok(false),
        Some(path) => Err(LogError::OtherFiles {
            directory: disk.root().to_owned(),
            path,
        }),
    }
}
