//! The groups of a file, read one at a time: files may be longer than memory.

use crate::error::LogError;
use crate::group::{ALIGNMENT, Found, Group, HEADER, MAGIC, group_bytes};
use crate::header::{FileKind, OpenFile};
use crate::place::DatabaseId;
use eris_disk::File;

/// Bytes that are looked through at once for a group behind damage.
const BLOCK: u64 = 1 << 16;

/// A file that has groups.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    pub kind: &'a FileKind,
    pub database: DatabaseId,
    pub number: u64,
    pub file: &'a dyn File,
    pub length: u64,
    /// What groups are read into.
    pub buffer: Vec<u8>,
}

impl<'a> Groups<'a> {
    /// Those of a file that was opened.
    pub fn of(kind: &'a FileKind, open: &'a OpenFile, database: DatabaseId, number: u64) -> Self {
        Groups {
            kind,
            database,
            number,
            file: &*open.file,
            length: open.length,
            buffer: Vec::new(),
        }
    }

    /// The group in a place, and the bytes that it takes. `None`: there is no whole one.
    pub fn at(&mut self, offset: u64) -> Result<Option<(Group, u64)>, LogError> {
        let left = self.length.saturating_sub(offset);
        let mut header = [0; HEADER];
        if left < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_at(&mut header, offset)?;
        // A wrong length asks for no more memory than the file has bytes.
        let Some(bytes) = group_bytes(&header).filter(|bytes| *bytes <= left) else {
            return Ok(None);
        };
        self.buffer.resize(bytes as usize, 0);
        self.file.read_at(&mut self.buffer, offset)?;
        let place = self.kind.place(self.database, self.number, offset);
        Ok(match Group::find(&self.buffer, place) {
            Found::Group(group, length) => Some((group, length as u64)),
            Found::Nothing => None,
        })
    }

    /// Where the first group is that follows a place where none is. What cannot be read is passed over.
    pub fn behind(&mut self, offset: u64) -> Option<u64> {
        let mut at = offset + ALIGNMENT as u64;
        let mut block = Vec::new();
        while at < self.length {
            block.resize((self.length - at).min(BLOCK) as usize, 0);
            if self.file.read_at(&mut block, at).is_err() {
                block.fill(0);
            }
            let places = (at..).step_by(ALIGNMENT).zip(block.chunks(ALIGNMENT));
            for (place, _) in places.filter(|(_, bytes)| bytes.starts_with(&MAGIC)) {
                if let Ok(Some(_)) = self.at(place) {
                    return Some(place);
                }
            }
            at += block.len() as u64;
        }
        None
    }
}
