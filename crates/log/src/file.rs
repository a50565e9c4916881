//! A file of the log.
//!
//! ```text
//!  0  "ERISLOG\n"                          8
//!  8  format                               4
//! 12  zeros                                4
//! 16  database                            16
//! 32  number of the file                   8
//! 40  checksum of all that                 8
//! 48  zeros up to 64
//! 64  groups, one behind the other; allocated in advance, so behind them there are zeros
//! ```
//!
//! A file is made in advance. It becomes part of the log with the group that says that the log goes on there.

use crate::error::LogError;
use crate::place::{DatabaseId, Place};
use eris_disk::{Access, Disk, File};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"ERISLOG\n";
/// The newest format of all files together.
pub const FORMAT: u32 = 1;
/// Where groups begin.
pub(crate) const FIRST_GROUP: u64 = 64;
const CHECKSUM: usize = 40;

/// The directory of the log.
pub(crate) const DIRECTORY: &str = "log";

/// The path of a file of the log, by its number.
pub(crate) fn path_of(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{number:012}.log"))
}

/// The number of a file of the log, by its name.
pub(crate) fn number_of(name: &std::ffi::OsStr) -> Option<u64> {
    let number = name.to_str()?.strip_suffix(".log")?;
    (number.len() == 12).then(|| number.parse().ok()).flatten()
}

/// A file of the log, and where it ends.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub file: Box<dyn File>,
    pub number: u64,
    pub database: DatabaseId,
    /// Where the next group goes.
    pub end: u64,
    /// Up to where room is allocated.
    pub length: u64,
}

fn header(database: DatabaseId, number: u64) -> [u8; FIRST_GROUP as usize] {
    let mut header = [0; FIRST_GROUP as usize];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    header[16..32].copy_from_slice(&database.0);
    header[32..40].copy_from_slice(&number.to_le_bytes());
    let place = Place {
        database,
        file: number,
        offset: 0,
    };
    let checksum = place.checksum([&header[..CHECKSUM]]);
    header[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
    header
}

impl LogFile {
    /// Makes a file in which the log may go on, and has it on the medium with its name.
    pub fn create(
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        length: u64,
    ) -> Result<Self, LogError> {
        let path = path_of(number);
        let file = disk.create(&path)?;
        let made = LogFile::fill(&*file, database, number, length)
            .and_then(|()| Ok(disk.flush_directory(Path::new(DIRECTORY))?));
        if let Err(error) = made {
            // What is left of it would take room, and is no part of the log.
            drop(file);
            let _ = disk.remove(&path);
            return Err(error);
        }
        Ok(LogFile {
            file,
            number,
            database,
            end: FIRST_GROUP,
            length,
        })
    }

    fn fill(
        file: &dyn File,
        database: DatabaseId,
        number: u64,
        length: u64,
    ) -> Result<(), LogError> {
        file.allocate(length)?;
        let header = header(database, number);
        file.write_at(&[IoSlice::new(&header)], 0)?;
        Ok(file.flush()?)
    }

    /// Opens a file that the log is known to go on in.
    pub fn open(
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        access: Access,
    ) -> Result<Self, LogError> {
        let path = path_of(number);
        let file = disk.open(&path, access).map_err(|error| {
            let path = disk.root().join(&path);
            match error.reason {
                eris_disk::Reason::NotFound => LogError::Missing { path },
                _ => error.into(),
            }
        })?;
        let path = file.path().to_owned();
        let length = file.len()?;
        let damaged = |what: &str| LogError::Damaged {
            path: path.clone(),
            offset: 0,
            what: what.to_owned(),
        };
        if length < FIRST_GROUP {
            return Err(damaged("it is cut off"));
        }
        let mut found = [0; FIRST_GROUP as usize];
        file.read_at(&mut found, 0)?;
        if found[..8] != MAGIC {
            return Err(LogError::Foreign { path });
        }
        let format = u32::from_le_bytes(found[8..12].try_into().expect("four bytes"));
        if format > FORMAT {
            let newest = FORMAT;
            return Err(LogError::Newer {
                path,
                format,
                newest,
            });
        }
        if found != header(database, number) {
            let of = DatabaseId(found[16..32].try_into().expect("sixteen bytes"));
            let number = u64::from_le_bytes(found[32..40].try_into().expect("eight bytes"));
            return Err(match found == header(of, number) && of != database {
                true => LogError::OfAnother { path },
                false => damaged("its header is not what was written"),
            });
        }
        Ok(LogFile {
            file,
            number,
            database,
            end: FIRST_GROUP,
            length,
        })
    }

    /// Bytes that are left for groups.
    pub fn rest(&self) -> u64 {
        self.length.saturating_sub(self.end)
    }

    /// Where the next group goes.
    pub fn place(&self) -> Place {
        Place {
            database: self.database,
            file: self.number,
            offset: self.end,
        }
    }

    /// Gives back the room behind the last group: nothing more comes. It need not be durable, and may fail: the file
    /// says the same with it and without.
    pub fn give_back_rest(&mut self) {
        if self.file.set_len(self.end).is_ok() {
            self.length = self.end;
        }
    }

    /// Writes a group, without a flush.
    pub fn write(&mut self, group: &[u8]) -> Result<(), LogError> {
        self.file.write_at(&[IoSlice::new(group)], self.end)?;
        self.end += group.len() as u64;
        self.length = self.length.max(self.end);
        Ok(())
    }
}
