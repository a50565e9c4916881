//! The manifest: what a database consists of.
//!
//! ```text
//!  0  "ERISDB\n\0"                               8
//!  8  format                                     4
//! 12  zeros                                      4
//! 16  database                                  16
//! 32  the log begins: file, group, through      24
//! 56  snapshot: number of its file, at          16    zeros: there is none
//! 72  chunks had numbers below                   8
//! 80  checksum                                   8
//! ```
//!
//! A manifest gets its name when it is on the medium. So there is the old one or the new one, and each is whole.

use crate::ends::LogStart;
use crate::error::LogError;
use crate::file::LOG;
use crate::header::FORMAT;
use crate::place::DatabaseId;
use crate::snapshot::SnapshotStart;
use eris_disk::{Access, Disk, Reason};
use eris_types::Timestamp;
use std::io::IoSlice;
use std::path::Path;

pub(super) const MANIFEST: &str = "eris.db";
pub(super) const NEXT_MANIFEST: &str = "eris.db.new";
const MAGIC: [u8; 8] = *b"ERISDB\n\0";
const LENGTH: usize = 88;
/// Where its words are.
const WORDS: usize = 32;
const CHECKSUM: usize = LENGTH - 8;

/// What a manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The database.
    pub database: DatabaseId,
    /// Where its log begins.
    pub start: LogStart,
    /// What there was before. `None`: nothing.
    pub snapshot: Option<SnapshotStart>,
    /// No chunk had this number, or a greater one, when the manifest was written.
    pub next_chunk: u64,
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
        let (number, at) =
            (self.snapshot).map_or((0, 0), |snapshot| (snapshot.number, snapshot.at.0));
        let words = [file, group, through.0, number, at, self.next_chunk];
        for (at, word) in bytes[WORDS..].chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        // No file of the log has this number.
        let place = LOG.place(self.database, 0, 0);
        let checksum = place.checksum([&bytes[..CHECKSUM]]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What bytes of the right length say, be they right or wrong.
    fn of(bytes: &[u8; LENGTH]) -> Self {
        let word = |nth: usize| {
            let at = WORDS + 8 * nth;
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        let snapshot = SnapshotStart {
            number: word(3),
            at: Timestamp(word(4)),
        };
        Manifest {
            database: DatabaseId(bytes[16..32].try_into().expect("sixteen bytes")),
            start: LogStart {
                file: word(0),
                group: word(1),
                through: Timestamp(word(2)),
            },
            snapshot: (snapshot.number > 0).then_some(snapshot),
            next_chunk: word(5),
        }
    }

    /// Reads the manifest of a directory; `None`: there is none.
    ///
    /// # Errors
    /// It is none of ours, or not what was written.
    pub(super) fn read(disk: &dyn Disk) -> Result<Option<Self>, LogError> {
        let file = match disk.open(Path::new(MANIFEST), Access::Read) {
            Ok(file) => file,
            Err(error) if error.reason == Reason::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let path = file.path().to_owned();
        let length = file.len()?;
        let mut bytes = [0; LENGTH];
        file.read_at(&mut bytes[..length.min(LENGTH as u64) as usize], 0)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(LogError::Foreign { path });
        }
        let format = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        let manifest = Manifest::of(&bytes);
        let written = manifest.bytes();
        // If all else is as we write it, the format alone is damaged.
        if format > FORMAT && bytes[12..] != written[12..] {
            let newest = FORMAT;
            return Err(LogError::Newer {
                path,
                format,
                newest,
            });
        }
        match length == LENGTH as u64 && written == bytes {
            true => Ok(Some(manifest)),
            false => {
                let what = "it is not the manifest that was written";
                Err(LogError::damaged(&path, 0, what))
            }
        }
    }

    /// Puts the manifest into the place of the one that is there. If that fails, nobody knows which of the two is on
    /// the medium.
    pub(super) fn write(&self, disk: &dyn Disk) -> Result<(), LogError> {
        self.prepare(disk)?;
        put_into_place(disk)
    }

    /// Writes the manifest beside the one that is there, which stays in place.
    pub(super) fn prepare(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let next = Path::new(NEXT_MANIFEST);
        match disk.remove(next) {
            Err(error) if error.reason != Reason::NotFound => return Err(error.into()),
            _ => {}
        }
        let file = disk.create(next)?;
        file.write_at(&[IoSlice::new(&self.bytes())], 0)?;
        Ok(file.flush()?)
    }
}

/// Puts the manifest that was prepared into the place of the one that is there. If that fails, nobody knows which of
/// the two is on the medium.
pub(super) fn put_into_place(disk: &dyn Disk) -> Result<(), LogError> {
    disk.rename(Path::new(NEXT_MANIFEST), Path::new(MANIFEST))?;
    Ok(disk.flush_directory(Path::new(""))?)
}
