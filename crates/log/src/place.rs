//! Checksums that know where they are.
//!
//! Files are recycled, copied and restored. So a checksum is of the bytes *and* of their place: the database, the file
//! and the offset. What was right in another place, or in an older use of the file, is not taken for what should be
//! here.

use std::fmt;
use std::hash::Hasher;
use twox_hash::XxHash64;

/// Which database files belong to: drawn by chance when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database.
    pub database: DatabaseId,
    /// The number of the file, which none of its kind has twice; in the highest byte the kind.
    pub file: u64,
    /// In bytes from the file's beginning.
    pub offset: u64,
}

impl Place {
    /// The checksum of bytes that lie here, in pieces one after the other.
    pub fn checksum<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let mut place = [0; 32];
        place[..16].copy_from_slice(&self.database.0);
        place[16..24].copy_from_slice(&self.file.to_le_bytes());
        place[24..].copy_from_slice(&self.offset.to_le_bytes());
        let mut hasher = XxHash64::with_seed(XxHash64::oneshot(0, &place));
        pieces.into_iter().for_each(|piece| hasher.write(piece));
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_own_checksum() {
        let here = Place {
            database: DatabaseId([7; 16]),
            file: 3,
            offset: 64,
        };
        let others = [
            Place {
                database: DatabaseId([8; 16]),
                ..here
            },
            Place { file: 4, ..here },
            Place { offset: 65, ..here },
        ];
        let bytes = b"the same bytes";
        let right = here.checksum([&bytes[..]]);
        assert_eq!(right, here.checksum([&bytes[..4], &bytes[4..]]));
        for other in others {
            assert_ne!(right, other.checksum([&bytes[..]]));
        }
        assert_ne!(right, here.checksum([&b"the same byteS"[..]]));
    }
}
