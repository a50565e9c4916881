//! A chunk file ([its header](crate::header)): [entries](super::entry), one behind the other, from byte 64 on.
//!
//! ```text
//! 48  what it is            8    0: chunks; 1: copies of chunks, from files that are written anew
//! 56  zeros                 8
//! ```
//!
//! Copies count once all of them are on the medium. Then a mark is appended, which says so. It is no part of the
//! header, for a write over what is there may leave a half of each.

use super::entry::{ALIGNMENT, HEAD, Head, complete};
use crate::error::LogError;
use crate::header::{FileKind, HEADER_BYTES, Own};
use crate::place::{DatabaseId, Place};
use eris_disk::{Access, Disk, File};
use std::io::IoSlice;

/// Where entries begin.
pub(super) const FIRST_ENTRY: u64 = HEADER_BYTES;
/// Bytes that are looked through at once for an entry behind damage.
const BLOCK: u64 = 1 << 16;

/// The files of chunks.
pub(crate) const CHUNKS: FileKind = FileKind {
    magic: *b"ERISCHK\n",
    directory: "chunks",
    suffix: "chunks",
    kind: 1,
    own: &[Contents::Chunks.own(), Contents::Copies.own()],
};

/// A file that is being written.
#[derive(Debug)]
pub(super) struct ChunkFile {
    pub file: Box<dyn File>,
    pub number: u64,
    database: DatabaseId,
    /// Where the next entry goes.
    pub end: u64,
    length: u64,
    /// Bytes that were written since the last flush, and the most that there may be.
    dirty: u64,
    most_dirty: u64,
    pub flushes: u64,
}

/// What a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Chunks,
    Copies,
}

/// What was found in a file.
#[derive(Debug)]
pub(super) struct Found {
    pub is_copies: bool,
    /// Whether all is there that was to be in it.
    pub is_complete: bool,
    pub length: u64,
    /// Its entries, with their places.
    pub entries: Vec<(u64, Head)>,
    /// Where no entry follows.
    pub end: u64,
}

impl Contents {
    const fn own(self) -> Own {
        let mut own = [0; 16];
        own[0] = self as u8;
        own
    }
}

impl ChunkFile {
    /// Makes a file, and has it on the medium with its name.
    pub fn create(
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        length: u64,
        contents: Contents,
    ) -> Result<Self, LogError> {
        Ok(ChunkFile {
            file: CHUNKS.create(disk, database, number, length, contents.own())?,
            number,
            database,
            end: FIRST_ENTRY,
            length,
            dirty: 0,
            most_dirty: u64::MAX,
            flushes: 0,
        })
    }

    /// No more bytes than these are written between two flushes, so that nobody else's flush has to wait for many.
    pub fn flushing_every(self, most_dirty: u64) -> Self {
        ChunkFile {
            most_dirty: most_dirty.max(1),
            ..self
        }
    }

    /// Bytes that are left for entries.
    pub fn rest(&self) -> u64 {
        self.length.saturating_sub(self.end)
    }

    /// Whether half of it is full.
    pub fn is_half_full(&self) -> bool {
        2 * self.end > self.length
    }

    /// Where the next entry goes.
    pub fn place(&self) -> Place {
        CHUNKS.place(self.database, self.number, self.end)
    }

    /// Appends an entry, whose form comes in pieces. Large ones are flushed on the way. Returns where it lies, with the
    /// checksum that its form has there.
    pub fn append(&mut self, head: Head, form: &[&[u8]]) -> Result<(u64, Head), LogError> {
        let place = self.place();
        let checksum = place.checksum(form.iter().copied());
        let head = Head { checksum, ..head };
        let bytes = head.bytes(place);
        let padding = head.entry_bytes() - HEAD as u64 - head.info.bytes;
        let zeros = [0; ALIGNMENT as usize];
        let pieces = [&bytes[..]].into_iter().chain(form.iter().copied());
        let pieces = pieces.chain([&zeros[..padding as usize]]);
        let mut portion: Vec<IoSlice<'_>> = Vec::with_capacity(form.len() + 2);
        let (mut portion_bytes, mut at) = (0, place.offset);
        for mut piece in pieces {
            while !piece.is_empty() {
                let some = piece
                    .len()
                    .min((self.most_dirty - self.dirty - portion_bytes) as usize);
                let (now, later) = piece.split_at(some);
                portion.push(IoSlice::new(now));
                portion_bytes += some as u64;
                piece = later;
                if self.dirty + portion_bytes == self.most_dirty {
                    self.write(&portion, at, portion_bytes)?;
                    self.flush()?;
                    at += portion_bytes;
                    portion_bytes = 0;
                    portion.clear();
                }
            }
        }
        self.write(&portion, at, portion_bytes)?;
        self.end += head.entry_bytes();
        self.length = self.length.max(self.end);
        Ok((place.offset, head))
    }

    fn write(&mut self, portion: &[IoSlice<'_>], at: u64, bytes: u64) -> Result<(), LogError> {
        if bytes > 0 {
            self.file.write_at(portion, at)?;
            self.dirty += bytes;
        }
        Ok(())
    }

    /// Has all that was appended on the medium.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.dirty > 0 {
            self.file.flush()?;
            self.dirty = 0;
            self.flushes += 1;
        }
        Ok(())
    }

    /// Has on the medium that all copies are, behind them.
    pub fn complete(&mut self, copies: usize) -> Result<(), LogError> {
        self.flush()?;
        let mark = complete(copies, self.place());
        self.write(&[IoSlice::new(&mark)], self.end, HEAD as u64)?;
        self.end += HEAD as u64;
        self.finish()
    }

    /// Nothing is appended any more: gives back what is left, and flushes.
    pub fn finish(&mut self) -> Result<(), LogError> {
        if self.rest() > 0 {
            self.file.set_len(self.end)?;
            self.dirty += 1;
        }
        self.flush()
    }
}

/// Writes the mark of copies once more, in front of what is behind the end.
pub(super) fn mark_again(
    disk: &dyn Disk,
    database: DatabaseId,
    number: u64,
    end: u64,
) -> Result<(), LogError> {
    let file = CHUNKS.open(disk, database, number, Access::ReadWrite)?.file;
    let (mut mark, at) = ([0; HEAD], end - HEAD as u64);
    file.read_at(&mut mark, at)?;
    file.write_at(&[IoSlice::new(&mark)], at)?;
    Ok(file.flush()?)
}

/// Reads the heads of a file.
pub(super) fn read_heads(
    disk: &dyn Disk,
    database: DatabaseId,
    number: u64,
) -> Result<Found, LogError> {
    let open = CHUNKS.open(disk, database, number, Access::Read)?;
    // One that was only begun has no entries.
    let is_copies = open.own == Some(Contents::Copies.own());
    let mut found = Found {
        is_copies,
        is_complete: !is_copies,
        length: open.length,
        entries: Vec::new(),
        end: if open.own.is_some() { FIRST_ENTRY } else { 0 },
    };
    while open.own.is_some() && found.end + HEAD as u64 <= found.length {
        let mut bytes = [0; HEAD];
        open.file.read_at(&mut bytes, found.end)?;
        let place = CHUNKS.place(database, number, found.end);
        let Some(head) = Head::find(&bytes, place) else {
            let is_mark = bytes == complete(found.entries.len(), place);
            if is_mark && is_copies {
                found.is_complete = true;
                found.end += HEAD as u64;
            }
            break;
        };
        found.entries.push((found.end, head));
        // A file may end before: then the chunk is damaged, which whoever reads it is told.
        found.end += head.entry_bytes();
    }
    Ok(found)
}

/// The length of a file that may be damaged, and all of its heads that are whole. Whatever else it has is passed over.
pub(super) fn find_heads(
    disk: &dyn Disk,
    database: DatabaseId,
    number: u64,
) -> Result<(u64, Vec<(u64, Head)>), LogError> {
    let open = CHUNKS.open_any(disk, number)?;
    let (mut entries, mut at) = (Vec::new(), FIRST_ENTRY);
    let mut bytes = [0; HEAD];
    while at + HEAD as u64 <= open.length {
        let is_read = open.file.read_at(&mut bytes, at).is_ok();
        let place = CHUNKS.place(database, number, at);
        if let Some(head) = Head::find(&bytes, place).filter(|_| is_read) {
            entries.push((at, head));
            at += head.entry_bytes();
            continue;
        }
        match next_head(&*open.file, open.length, database, number, at + HEAD as u64) {
            Some((offset, _)) => at = offset,
            None => break,
        }
    }
    Ok((open.length, entries))
}

/// The first head from a place on, and where it is. What cannot be read is passed over.
fn next_head(
    file: &dyn File,
    length: u64,
    database: DatabaseId,
    number: u64,
    mut at: u64,
) -> Option<(u64, Head)> {
    let mut block = Vec::new();
    while at < length {
        block.resize((length - at).min(BLOCK) as usize, 0);
        if file.read_at(&mut block, at).is_err() {
            block.fill(0);
        }
        for (offset, head) in (at..).step_by(HEAD).zip(block.as_chunks().0) {
            let place = CHUNKS.place(database, number, offset);
            if let Some(head) = Head::find(head, place) {
                return Some((offset, head));
            }
        }
        at += block.len() as u64;
    }
    None
}

/// Whether something is wrong with the end of a file: an entry follows, or bytes that are none.
pub(super) fn look_behind(
    disk: &dyn Disk,
    database: DatabaseId,
    number: u64,
    end: u64,
) -> Result<Option<String>, LogError> {
    let open = CHUNKS.open(disk, database, number, Access::Read)?;
    if open.length < end {
        return Ok(Some(format!("the file is cut off at byte {}", open.length)));
    }
    let (mut at, mut is_zeros) = (end, true);
    let mut block = Vec::new();
    while at < open.length {
        block.resize((open.length - at).min(BLOCK) as usize, 0);
        open.file.read_at(&mut block, at)?;
        for (offset, head) in (at..).step_by(HEAD).zip(block.as_chunks().0) {
            let place = CHUNKS.place(database, number, offset);
            if let Some(head) = Head::find(head, place) {
                let chunk = head.number;
                let follows =
                    format!("no chunk is here, though chunk {chunk} follows at byte {offset}");
                return Ok(Some(follows));
            }
        }
        is_zeros &= at > end || block.iter().take(HEAD).all(|byte| *byte == 0);
        at += block.len() as u64;
    }
    Ok((!is_zeros).then(|| "no chunk is here".to_owned()))
}
