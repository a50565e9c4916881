//! What every crate shares: identifiers as newtypes, so that no two kinds of number can be confused, the name that a
//! wrong one was probably meant to be, and the numbers that values of 16 bytes are.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//!                 [types: under all of them, knows none of them]
//! ```
//!
//! An identifier is a plain `Copy` number. Passing one where another is expected does not compile:
//!
//! ```compile_fail
//! use eris_types::{AeuId, NodeId};
//! fn home(_: NodeId) {}
//! home(AeuId(3));
//! ```

#![forbid(unsafe_code)]

mod similar;
mod wide;

pub use similar::most_similar;
pub use wide::{interval_of_wide, uuid_of_wide, wide_of_interval, wide_of_uuid};

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index into a slice.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

identifier!(
    /// A NUMA node (the paper's *multiprocessor*): cores that share one local memory. Dense from zero.
    NodeId(u16), "node ");
identifier!(
    /// An autonomous execution unit: one worker, one core. Dense from zero over all nodes.
    AeuId(u16), "AEU ");
identifier!(
    /// A data object: a table or an index, cut into partitions. Never reused.
    ObjectId(u32), "object ");
identifier!(
    /// A segment: the unit of ownership inside a partition. Never reused.
    SegmentId(u64), "segment ");
identifier!(
    /// A column of a data object, by its position in the object's schema.
    ColumnId(u32), "column ");
impl ColumnId {
    /// Not a column that is stored, but the [`RowId`] of the row, as a 64-bit integer.
    pub const ROW_ID: ColumnId = ColumnId(u32::MAX);
}

identifier!(
    /// A statement that writes or reads; names its uncommitted rows and its messages. Never reused.
    StatementId(u64), "statement ");
identifier!(
    /// A dictionary code: the stable, unordered number of a string in its column's dictionary.
    Code(u32), "code ");

/// A row for as long as it is stored, wherever: its segment's number above, its own number within the segment below.
/// Never reused; an updated row is a new one. Sealing and rewriting of chunks leave it alone.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RowId(pub u64);

impl RowId {
    /// The `number`-th row of a segment.
    pub const fn new(segment: SegmentId, number: u32) -> Self {
        RowId(segment.0 << 32 | number as u64)
    }

    /// The segment that has the row.
    pub const fn segment(self) -> SegmentId {
        SegmentId(self.0 >> 32)
    }

    /// The id `rows` further.
    pub const fn plus(self, rows: usize) -> Self {
        RowId(self.0 + rows as u64)
    }
}

/// A point in commit order. A snapshot at `t` sees every write with a timestamp of at most `t`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before every write.
    pub const ZERO: Timestamp = Timestamp(0);
    /// After every write that can ever be: the begin of what is not committed.
    pub const NEVER: Timestamp = Timestamp(u64::MAX);
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_speak_the_terms_of_the_glossary() {
        assert_eq!(AeuId(3).to_string(), "AEU 3");
        assert_eq!(NodeId(1).to_string(), "node 1");
        assert_eq!(Timestamp(7).to_string(), "t7");
    }

    #[test]
    fn row_ids_are_ordered_by_segment_and_number() {
        let id = RowId::new(SegmentId(7), u32::MAX);
        assert_eq!(id.segment(), SegmentId(7));
        assert_eq!(id.plus(1), RowId::new(SegmentId(8), 0));
        assert!(RowId::new(SegmentId(7), 3) < id);
    }

    #[test]
    fn never_is_later_than_every_snapshot() {
        assert!(Timestamp::NEVER > Timestamp(u64::MAX - 1));
        assert!(Timestamp::ZERO < Timestamp(1));
    }
}
