//! Files of a database: numbered, in a directory of their kind, each with a header that says whose it is.
//!
//! ```text
//!  0  magic of its kind                    8
//!  8  format                               4
//! 12  zeros                                4
//! 16  database                            16
//! 32  number of the file                   8
//! 40  checksum of all that, and of the rest if it is not zeros
//! 48  what its kind says, or zeros        16
//! ```
//!
//! The header is on the medium, with the file's name, before anything else is written into the file. So a file that has
//! only the beginning of a header, or nothing of it, was only begun.

use crate::error::LogError;
use crate::place::{DatabaseId, Place};
use eris_disk::{Access, Disk, Entry, EntryKind, File, Reason};
use std::ffi::OsStr;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

/// The newest format of all files together.
pub const FORMAT: u32 = 1;
/// Bytes of a header.
pub(crate) const HEADER_BYTES: u64 = 64;
/// What is wrong with a file that was only begun, and should have been filled.
pub(crate) const NO_HEADER: &str = "it has no header";
const CHECKSUM: usize = 40;
const OWN: usize = 48;

type Header = [u8; HEADER_BYTES as usize];

/// What a kind of files says in headers.
pub(crate) type Own = [u8; 16];

/// Files that are alike: those of the log, for one.
#[derive(Debug)]
pub(crate) struct FileKind {
    pub magic: [u8; 8],
    pub directory: &'static str,
    pub suffix: &'static str,
    /// Files of every kind have numbers of their own. So the kind is a part of their place.
    pub kind: u8,
    /// All that its headers may say; none: anything.
    pub own: &'static [Own],
}

/// A file that was opened, which has a header.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub file: Box<dyn File>,
    pub length: u64,
    /// `None`: the file was only begun.
    pub own: Option<Own>,
}

impl FileKind {
    /// The path of a file by its number.
    pub fn path_of(&self, number: u64) -> PathBuf {
        let suffix = self.suffix;
        Path::new(self.directory).join(format!("{number:012}.{suffix}"))
    }

    /// The number of a file by its name.
    pub fn number_of(&self, name: &OsStr) -> Option<u64> {
        let (number, suffix) = name.to_str()?.split_once('.')?;
        let is_ours = number.len() == 12 && suffix == self.suffix;
        is_ours.then(|| number.parse().ok()).flatten()
    }

    /// A place in a file.
    pub fn place(&self, database: DatabaseId, number: u64, offset: u64) -> Place {
        Place {
            database,
            file: number | u64::from(self.kind) << 56,
            offset,
        }
    }

    /// The numbers of the files that are there, ascending; none, if there is no directory.
    pub fn numbers(&self, disk: &dyn Disk) -> Result<Vec<u64>, LogError> {
        let entries = self.entries(disk)?;
        Ok(entries.into_iter().map(|(number, _)| number).collect())
    }

    /// The numbers and lengths of the files that are there, likewise.
    pub fn lengths(&self, disk: &dyn Disk) -> Result<Vec<(u64, u64)>, LogError> {
        let entries = self.entries(disk)?.into_iter();
        let lengths = entries.filter_map(|(number, entry)| match entry.kind {
            EntryKind::File(length) => Some((number, length)),
            EntryKind::Directory | EntryKind::Other => None,
        });
        Ok(lengths.collect())
    }

    fn entries(&self, disk: &dyn Disk) -> Result<Vec<(u64, Entry)>, LogError> {
        let entries = match disk.list(Path::new(self.directory)) {
            Err(error) if error.reason == Reason::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let numbered = entries
            .into_iter()
            .filter_map(|entry| Some((self.number_of(&entry.name)?, entry)));
        let mut numbered: Vec<(u64, Entry)> = numbered.collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        Ok(numbered)
    }

    /// Makes the directory, and has it on the medium with its name.
    ///
    /// One without files is made anew: if a flush of its name has failed, it may be shown and never be stored.
    pub fn make_directory(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let directory = Path::new(self.directory);
        match disk.list(directory) {
            Ok(entries) if entries.is_empty() => disk.remove_directory(directory)?,
            Err(error) if error.reason != Reason::NotFound => return Err(error.into()),
            _ => {}
        }
        disk.create_directory(directory)?;
        Ok(disk.flush_directory(Path::new(""))?)
    }

    /// Removes the files that are not to be kept, and has that on the medium.
    pub fn remove_others(
        &self,
        disk: &dyn Disk,
        keep: impl Fn(u64) -> bool,
    ) -> Result<(), LogError> {
        let mut numbers = self.numbers(disk)?;
        numbers.retain(|number| !keep(*number));
        self.remove(disk, &numbers)
    }

    /// Removes files, and has that on the medium.
    pub fn remove(&self, disk: &dyn Disk, numbers: &[u64]) -> Result<(), LogError> {
        if numbers.is_empty() {
            return Ok(());
        }
        for number in numbers {
            disk.remove(&self.path_of(*number))?;
        }
        Ok(disk.flush_directory(Path::new(self.directory))?)
    }

    fn header(&self, database: DatabaseId, number: u64, own: Own) -> Header {
        let mut header = [0; HEADER_BYTES as usize];
        header[..8].copy_from_slice(&self.magic);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[16..32].copy_from_slice(&database.0);
        header[32..40].copy_from_slice(&number.to_le_bytes());
        header[OWN..].copy_from_slice(&own);
        let own = if own == Own::default() {
            &[][..]
        } else {
            &own[..]
        };
        let place = self.place(database, number, 0);
        let checksum = place.checksum([&header[..CHECKSUM], own]);
        header[CHECKSUM..OWN].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Makes a file of this length, and has it on the medium with its name. If that fails, no file is left.
    pub fn create(
        &self,
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        length: u64,
        own: Own,
    ) -> Result<Box<dyn File>, LogError> {
        let path = self.path_of(number);
        let file = disk.create(&path)?;
        let fill = || {
            file.allocate(length)?;
            let header = self.header(database, number, own);
            file.write_at(&[IoSlice::new(&header)], 0)?;
            file.flush()?;
            disk.flush_directory(Path::new(self.directory))
        };
        if let Err(error) = fill() {
            // What is left of it would take room, and nobody has heard of it.
            drop(file);
            let _ = disk.remove(&path);
            return Err(error.into());
        }
        Ok(file)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// It is not there, or it is not the file of this number and database.
    pub fn open(
        &self,
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        access: Access,
    ) -> Result<OpenFile, LogError> {
        let path = self.path_of(number);
        let file = disk.open(&path, access).map_err(|error| {
            let path = disk.root().join(&path);
            match error.reason {
                Reason::NotFound => LogError::Missing { path },
                _ => error.into(),
            }
        })?;
        let length = file.len()?;
        let mut found: Header = [0; HEADER_BYTES as usize];
        file.read_at(&mut found[..length.min(HEADER_BYTES) as usize], 0)?;
        let said = [found[OWN..].try_into().expect("sixteen bytes")];
        let may_say = match self.own {
            [] => &said[..],
            some => some,
        };
        for own in may_say {
            let header = self.header(database, number, *own);
            if found == header {
                let own = Some(*own);
                return Ok(OpenFile { file, length, own });
            }
            let same = found.iter().zip(&header).take_while(|(a, b)| a == b);
            let begun = same.count();
            if found[begun..].iter().all(|byte| *byte == 0) {
                let own = None;
                return Ok(OpenFile { file, length, own });
            }
        }
        Err(self.what_is_wrong(&found, database, file.path()))
    }

    /// Opens a file whatever its header says.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn open_any(&self, disk: &dyn Disk, number: u64) -> Result<OpenFile, LogError> {
        let file = disk.open(&self.path_of(number), Access::Read)?;
        let length = file.len()?;
        let own = None;
        Ok(OpenFile { file, length, own })
    }

    /// Why a header is none of this database and number.
    fn what_is_wrong(&self, found: &Header, database: DatabaseId, path: &Path) -> LogError {
        let path = path.to_owned();
        if found[..8] != self.magic {
            return LogError::Foreign { path };
        }
        let format = u32::from_le_bytes(found[8..12].try_into().expect("four bytes"));
        let (of, header) = self.as_it_says(found);
        // If all else is as we write it, the format alone is damaged.
        if format > FORMAT && found[12..] != header[12..] {
            let newest = FORMAT;
            return LogError::Newer {
                path,
                format,
                newest,
            };
        }
        match *found == header && of != database {
            true => LogError::OfAnother { path },
            false => LogError::damaged(&path, 0, "its header is not what was written"),
        }
    }

    /// The database that a header says, and the header that a file of it has which says the same.
    fn as_it_says(&self, found: &Header) -> (DatabaseId, Header) {
        let of = DatabaseId(found[16..32].try_into().expect("sixteen bytes"));
        let number = u64::from_le_bytes(found[32..40].try_into().expect("eight bytes"));
        let own = found[OWN..].try_into().expect("sixteen bytes");
        (of, self.header(of, number, own))
    }

    /// The database that a file belongs to. `None`: its header does not say.
    ///
    /// # Errors
    /// A later version has written it.
    pub fn database_of(
        &self,
        disk: &dyn Disk,
        number: u64,
    ) -> Result<Option<DatabaseId>, LogError> {
        let Ok(file) = disk.open(&self.path_of(number), Access::Read) else {
            return Ok(None);
        };
        let mut found: Header = [0; HEADER_BYTES as usize];
        if file.read_at(&mut found, 0).is_err() {
            return Ok(None);
        }
        let (database, header) = self.as_it_says(&found);
        if found == header {
            return Ok(Some(database));
        }
        match self.what_is_wrong(&found, database, file.path()) {
            newer @ LogError::Newer { .. } => Err(newer),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_name() {
        let kind = FileKind {
            magic: *b"whatever",
            directory: "some",
            suffix: "kind",
            kind: 1,
            own: &[],
        };
        assert_eq!(kind.path_of(7), Path::new("some/000000000007.kind"));
        let number = |name: &str| kind.number_of(OsStr::new(name));
        assert_eq!(number("000000000007.kind"), Some(7));
        for none in [
            "7.kind",
            "000000000007.log",
            "00000000000x.kind",
            "000000000007",
            "",
        ] {
            assert_eq!(number(none), None, "{none}");
        }
    }
}
