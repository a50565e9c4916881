//! A log group: the records of some commits, written and flushed together. Snapshots consist of groups, too.
//!
//! ```text
//!  0  magic "EGRP"                 4
//!  4  flags                        4    1: it was closed behind it; 2: the log goes on in the file of the record
//!  8  its number                   8    one more than that of the group before
//! 16  through                      8    all commits up to this timestamp are in it, or in groups before
//! 24  length of the records        8
//! 32  checksum                     8    of all else, in this place
//! 40  records, and zeros up to a multiple of 8
//!
//! record    length of what follows ▪ through - at, plus one; 0: of no commit ▪ body
//! ```
//!
//! Timestamps are dense and finish in order. So the records of all owners up to one timestamp are what the database was
//! then: a statement is in the log whole or not at all, without any mark of its own.

use crate::bytes::{BadBytes, Bytes, put_number};
use crate::place::Place;
use eris_types::Timestamp;

/// The first bytes of each group.
pub(crate) const MAGIC: [u8; 4] = *b"EGRP";
const CLOSED: u32 = 1;
const CONTINUED: u32 = 2;
/// Bytes before the records.
pub(crate) const HEADER: usize = 40;
const CHECKSUM: std::ops::Range<usize> = 32..40;
/// Groups begin at a multiple of this.
pub(crate) const ALIGNMENT: usize = 8;
/// No group has more bytes of records, so that a wrong length asks for no memory.
pub(crate) const MOST: usize = 1 << 32;

/// A group on its way into a file.
#[derive(Debug)]
pub(crate) struct GroupBytes {
    bytes: Vec<u8>,
    through: Timestamp,
}

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// Records of commits.
    Records,
    /// The log was closed.
    Closed,
    /// The log goes on in another file, whose number is the body of its record.
    Continued,
}

/// A group that was read.
#[derive(Debug)]
pub struct Group {
    /// Its number.
    pub number: u64,
    /// All commits up to here are in it, or before.
    pub through: Timestamp,
    pub(crate) kind: GroupKind,
    /// All of it, as it was read.
    bytes: Vec<u8>,
    /// Bytes of its records.
    length: usize,
}

/// A record of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The commit that it belongs to; zero: to none.
    pub at: Timestamp,
    /// What it says.
    pub body: &'a [u8],
}

/// Where a group was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the snapshot.
    Snapshot,
    /// In the log.
    Log,
}

impl GroupBytes {
    /// None yet, of commits up to `through`, in a buffer that was used before.
    pub fn new(mut buffer: Vec<u8>, through: Timestamp) -> Self {
        buffer.clear();
        buffer.resize(HEADER, 0);
        GroupBytes {
            bytes: buffer,
            through,
        }
    }

    /// Adds a record.
    ///
    /// # Panics
    /// If it belongs to a later commit.
    pub fn push(&mut self, at: Timestamp, body: &[u8]) {
        let behind = match at {
            Timestamp::ZERO => 0,
            at => {
                let behind = self.through.0.checked_sub(at.0);
                behind.expect("the group has commits up to a later one") + 1
            }
        };
        let mut number = Vec::with_capacity(10);
        put_number(&mut number, behind);
        put_number(&mut self.bytes, (number.len() + body.len()) as u64);
        self.bytes.extend_from_slice(&number);
        self.bytes.extend_from_slice(body);
    }

    /// Bytes of records so far.
    pub fn len(&self) -> usize {
        self.bytes.len() - HEADER
    }

    /// The whole group, as it is written in this place.
    ///
    /// # Panics
    /// If it has more bytes than a reader takes.
    pub fn finish(mut self, number: u64, kind: GroupKind, place: Place) -> Vec<u8> {
        assert!(self.len() <= MOST, "nobody could read the group");
        let length = self.len() as u64;
        let padded = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(padded, 0);
        let flags = match kind {
            GroupKind::Records => 0,
            GroupKind::Closed => CLOSED,
            GroupKind::Continued => CONTINUED,
        };
        self.bytes[..4].copy_from_slice(&MAGIC);
        self.bytes[4..8].copy_from_slice(&flags.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&number.to_le_bytes());
        self.bytes[16..24].copy_from_slice(&self.through.0.to_le_bytes());
        self.bytes[24..32].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(&self.bytes, place);
        self.bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

/// What a group takes that begins with this header; `None`: it is none of a group.
pub(crate) fn group_bytes(header: &[u8; HEADER]) -> Option<u64> {
    let length = word(header, 24);
    let is_one = header[..4] == MAGIC && length <= MOST as u64;
    is_one.then(|| (HEADER as u64 + length).next_multiple_of(ALIGNMENT as u64))
}

fn checksum(bytes: &[u8], place: Place) -> u64 {
    place.checksum([&bytes[..CHECKSUM.start], &bytes[CHECKSUM.end..]])
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Group {
    /// What its records take.
    pub fn bytes(&self) -> u64 {
        self.length as u64
    }

    /// The group that all of these bytes are. `None`: they are none of this place.
    pub(crate) fn of(bytes: Vec<u8>, place: Place) -> Option<Group> {
        let length = bytes.first_chunk().and_then(group_bytes)?;
        if length != bytes.len() as u64 || word(&bytes, CHECKSUM.start) != checksum(&bytes, place) {
            return None;
        }
        let flags = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        let kind = match flags {
            0 => GroupKind::Records,
            CLOSED => GroupKind::Closed,
            CONTINUED => GroupKind::Continued,
            _ => return None,
        };
        Some(Group {
            number: word(&bytes, 8),
            through: Timestamp(word(&bytes, 16)),
            kind,
            length: word(&bytes, 24) as usize,
            bytes,
        })
    }

    /// Its records, in the order in which they were written: those of an owner in its order.
    ///
    /// # Errors
    /// It is not what was written: then its checksum was made of something wrong.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'_>, BadBytes>> {
        let records = &self.bytes[HEADER..HEADER + self.length];
        let mut left = Bytes::of(records, "a group of the log");
        std::iter::from_fn(move || {
            (!left.is_empty()).then(|| {
                let mut record = Bytes::of(left.bytes()?, "a record of the log");
                let at = match record.number()? {
                    0 => Timestamp::ZERO,
                    behind => {
                        let at = self.through.0.checked_sub(behind - 1);
                        Timestamp(at.ok_or(BadBytes::Value("a record of the log"))?)
                    }
                };
                Ok(Record {
                    at,
                    body: record.left(),
                })
            })
        })
        .scan(false, |has_failed, record| {
            // Behind an error nothing means anything.
            let is_over = std::mem::replace(has_failed, record.is_err());
            (!is_over).then_some(record)
        })
    }
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

    fn group(records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut group = GroupBytes::new(vec![1; 7], Timestamp(100));
        for (at, body) in records {
            group.push(Timestamp(*at), body);
        }
        group.finish(5, GroupKind::Closed, PLACE)
    }

    proptest! {
        #[test]
        fn records_come_back(
            records in prop::collection::vec((0u64..=100, prop::collection::vec(any::<u8>(), 0..200)), 0..40),
        ) {
            let found = Group::of(group(&records), PLACE).expect("it is whole");
            prop_assert_eq!((found.number, found.through, found.kind), (5, Timestamp(100), GroupKind::Closed));
            let read: Vec<_> = found.records().map(Result::unwrap).map(|r| (r.at.0, r.body.to_vec())).collect();
            prop_assert_eq!(read, records);
        }

        #[test]
        fn a_group_that_was_changed_is_none(
            records in prop::collection::vec((0u64..=100, prop::collection::vec(any::<u8>(), 0..50)), 1..10),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let mut bytes = group(&records);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(Group::of(bytes, PLACE).is_none());
        }
    }

    #[test]
    fn a_group_that_is_cut_or_elsewhere_is_none() {
        let bytes = group(&[(7, b"a record".to_vec())]);
        for cut in 0..bytes.len() {
            assert!(Group::of(bytes[..cut].to_vec(), PLACE).is_none());
        }
        let elsewhere = Place {
            offset: 72,
            ..PLACE
        };
        assert!(Group::of(bytes, elsewhere).is_none());
    }
}
