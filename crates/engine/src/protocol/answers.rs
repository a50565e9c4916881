//! What a client may get: the answers of owners.

use super::message::{Context, Message, Parcel, Words, messages, send, without_words};
use super::requests::Request;
use super::rows::RowBatch;
use crate::error::EngineError;
use crate::held::located::Located;
use crate::held::partition::OfferedChunk;
use crate::held::segment_view::SegmentView;
use crate::key_index::batch::KeyBatch;
use crate::key_index::measure::Measurement;
use crate::key_index::transfer::MovedOut;
use crate::protocol::callback::Callback;
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use eris_home::IndexReorganization;
use eris_route::{Endpoint, Header};
use eris_types::ObjectId;

messages! {
    /// What a client may get.
    enum ToClient from 128 {
        Done: words Reply,
        Deleted: words Reply,
        Rejected: parcel Reply,
        Panicked: parcel Control,
        Batch: parcel Reply,
        End: parcel Reply,
        KeysDone: parcel Reply,
        RowsDone: parcel Reply,
        MovedOut: parcel Reply,
        Measurement: parcel Reply,
        OfferedChunks: parcel Reply,
        Segments: parcel Reply,
        LocatedParts: parcel Reply,
        Indexes: parcel Reply,
    }
}

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

pub(crate) struct OfferedChunks(pub Vec<OfferedChunk>);

pub(crate) struct Segments(pub Vec<SegmentView>);

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

/// Who has asked an owner for something: where the answer goes.
pub(crate) struct Asked<R: Request> {
    pub sender: Endpoint,
    pub object: ObjectId,
    pub callback: R::Callback,
}

impl<R: Request> Clone for Asked<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Request> Copy for Asked<R> {}

impl<R: Request> Asked<R> {
    /// By the request's header.
    pub fn of(header: &Header) -> Self {
        Asked {
            sender: header.sender,
            object: header.object,
            callback: R::Callback::from_bits(header.callback),
        }
    }

    /// Sends the answer.
    pub fn answer<T>(&self, reply: R::Reply, cx: &mut Context<'_, T>)
    where
        R::Reply: Message,
    {
        send(cx, self.sender, self.object, self.callback, reply);
    }

    /// Says why there is none.
    pub fn reject<T>(&self, error: EngineError, cx: &mut Context<'_, T>)
    where
        R::Reply: Message,
    {
        send(cx, self.sender, self.object, self.callback, Rejected(error));
    }
}
