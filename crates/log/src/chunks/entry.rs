//! A chunk in a file: a head, and behind it the chunk's stored form.
//!
//! ```text
//!  0  magic "ECHK"                 4
//!  4  zeros                        4
//!  8  number of the chunk          8
//! 16  number of the object         8
//! 24  rows                         8
//! 32  length of the form           8
//! 40  checksum of the form         8    in this place: that of the head
//! 48  zeros                        8
//! 56  checksum of bytes 0 to 55    8    in this place
//! 64  the form, and zeros up to a multiple of 64
//! ```
//!
//! The head has a checksum of its own. So whoever opens a file reads the heads alone.
//!
//! A file of copies has a mark behind the last one: a head with the magic "EEND", the number of copies in the place of
//! the chunk's number, and zeros.

use crate::place::Place;
use eris_types::ObjectId;

const MAGIC: [u8; 4] = *b"ECHK";
const COMPLETE: [u8; 4] = *b"EEND";
/// Bytes of a head.
pub(crate) const HEAD: usize = 64;
/// Entries and forms begin at a multiple of this.
pub(crate) const ALIGNMENT: u64 = 64;
const CHECKSUM: usize = HEAD - 8;

/// What is known of a chunk without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// The data object.
    pub object: ObjectId,
    /// Rows.
    pub rows: u64,
    /// Bytes of its stored form.
    pub bytes: u64,
}

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub number: u64,
    pub info: ChunkInfo,
    /// Of the form.
    pub checksum: u64,
}

/// What a chunk takes in a file, by the bytes of its stored form. So much room is to be reserved for it.
pub const fn chunk_bytes(form: u64) -> u64 {
    HEAD as u64 + form.next_multiple_of(ALIGNMENT)
}

impl Head {
    /// Its bytes in this place.
    pub fn bytes(&self, place: Place) -> [u8; HEAD] {
        let ChunkInfo {
            object,
            rows,
            bytes,
        } = self.info;
        let words = [self.number, object.0.into(), rows, bytes, self.checksum];
        bytes_of(MAGIC, words, place)
    }

    /// The head in this place; `None`: there is none.
    pub fn find(bytes: &[u8; HEAD], place: Place) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        if bytes[..4] != MAGIC || word(CHECKSUM) != place.checksum([&bytes[..CHECKSUM]]) {
            return None;
        }
        let info = ChunkInfo {
            object: ObjectId(word(16).try_into().ok()?),
            rows: word(24),
            bytes: word(32),
        };
        let head = Head {
            number: word(8),
            info,
            checksum: word(40),
        };
        // A length that no file has would overflow what is behind it.
        (info.bytes < 1 << 48).then_some(head)
    }

    /// What the chunk takes in a file.
    pub fn entry_bytes(&self) -> u64 {
        chunk_bytes(self.info.bytes)
    }
}

/// What says, in this place, that so many copies before it are all.
pub(crate) fn complete(copies: usize, place: Place) -> [u8; HEAD] {
    bytes_of(COMPLETE, [copies as u64, 0, 0, 0, 0], place)
}

fn bytes_of(magic: [u8; 4], words: [u64; 5], place: Place) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[..4].copy_from_slice(&magic);
    for (at, word) in words.into_iter().enumerate() {
        let at = 8 + 8 * at;
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    let checksum = place.checksum([&bytes[..CHECKSUM]]);
    bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::DatabaseId;
    use proptest::prelude::*;

    const PLACE: Place = Place {
        database: DatabaseId([3; 16]),
        file: 9,
        offset: 64,
    };

    proptest! {
        #[test]
        fn a_head_comes_back_from_its_place_only(
            number: u64, object: u32, rows: u64, bytes in 0u64..1 << 48, checksum: u64, bit in 0usize..HEAD * 8,
        ) {
            let info = ChunkInfo { object: ObjectId(object), rows, bytes };
            let head = Head { number, info, checksum };
            let mut stored = head.bytes(PLACE);
            prop_assert_eq!(Head::find(&stored, PLACE), Some(head));
            for elsewhere in [
                Place { offset: 128, ..PLACE },
                Place { file: 8, ..PLACE },
                Place { database: DatabaseId([4; 16]), ..PLACE },
            ] {
                prop_assert_eq!(Head::find(&stored, elsewhere), None);
            }
            stored[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Head::find(&stored, PLACE), None);
        }
    }

    #[test]
    fn entries_are_whole_lines() {
        assert_eq!([0, 1, 64, 65].map(chunk_bytes), [64, 128, 128, 192]);
    }
}
