//! What owners answer.

use super::request::Reply;
use super::rows::RowBatch;
use super::words::{Words, without_words};
use crate::error::EngineError;
use crate::held::located::Located;
use crate::held::partition::{OfferedChunk, OfferedRows};
use crate::held::segment_view::{FrozenSegment, SegmentView};
use crate::key_index::batch::KeyBatch;
use crate::key_index::measure::Measurement;
use crate::key_index::transfer::MovedOut;
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use eris_home::IndexReorganization;

/// It is done, and there is no more to say.
pub(crate) struct Done;

/// So many of the rows are here.
pub(crate) struct Deleted(pub u64);

/// It cannot be done; nothing was.
pub(crate) struct Rejected(pub EngineError);

/// The owner panicked over a group of commands; those of them that await an answer get this, with the panic's message.
pub(crate) struct Panicked(pub String);

/// A part of a fragment's result.
pub(crate) struct Batch(pub RecordBatch);

/// The sender has no more of a fragment's result, or the fragment has failed.
pub(crate) struct End(pub Result<(), FragmentError>);

pub(crate) struct KeysDone(pub Box<KeyBatch>);

pub(crate) struct RowsDone(pub Box<RowBatch>);

/// Rows that another owner can get as they are, and up to which number of their keys they are all.
pub(crate) enum OfferedKeys {
    Rows(Box<OfferedRows>, i64),
    /// There are none.
    Nothing,
    /// They can only be copied.
    OnlyCopied,
}

pub(crate) struct OfferedChunks(pub Vec<OfferedChunk>);

pub(crate) struct Segments(pub Vec<SegmentView>);

pub(crate) struct Frozen(pub Vec<FrozenSegment>);

pub(crate) struct LocatedParts(pub Vec<Located>);

pub(crate) struct Indexes(pub Vec<IndexReorganization>);

without_words!(Done);

impl Words for Deleted {
    const LEN: usize = 1;

    fn to_words(&self) -> [u64; 2] {
        [self.0, 0]
    }

    fn of(words: &[u64]) -> Self {
        Deleted(words[0])
    }
}

macro_rules! replies {
    ($($name:ident),* $(,)?) => {
        $(impl<C> Reply<C> for $name {})*
    };
}

replies!(
    Done,
    Deleted,
    OfferedKeys,
    End,
    KeysDone,
    RowsDone,
    MovedOut,
    Measurement,
    OfferedChunks,
    Segments,
    Frozen,
    LocatedParts,
    Indexes,
);
