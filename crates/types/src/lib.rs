//! Identifiers that every crate shares, as newtypes, so that no two kinds of number can be confused.
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
identifier!(
    /// A statement that writes or reads; names its staged rows and its messages. Never reused.
    StatementId(u64), "statement ");
identifier!(
    /// A dictionary code: the stable, unordered number of a string in its column's dictionary.
    Code(u32), "code ");

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
    fn never_is_later_than_every_snapshot() {
        assert!(Timestamp::NEVER > Timestamp(u64::MAX - 1));
        assert!(Timestamp::ZERO < Timestamp(1));
    }
}
