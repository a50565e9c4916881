//! Requests that come back as their own answers.

use super::answers::{KeysDone, RowsDone};
use super::callback::PartId;
use super::keys::{ExecuteKeys, ExecuteRows};
use super::lists::ToClient;
use super::message::Message;
use super::request::Request;
use super::rows::RowBatch;
use crate::key_index::batch::KeyBatch;
use crate::object::keys::Keys;

/// A request that comes back as its own answer, with what was done.
pub(crate) trait RoundTrip: Message + Request<Callback = PartId> {
    /// What goes there and comes back, in the box in which it went.
    type Batch;

    fn carry(batch: Box<Self::Batch>) -> Self;

    /// The batch of an answer.
    fn returned(answer: ToClient) -> Option<Box<Self::Batch>>;

    /// How many keys a batch names, as far as that says how long it takes.
    fn keys(batch: &Self::Batch) -> usize;
}

impl RoundTrip for ExecuteKeys {
    type Batch = KeyBatch;

    fn carry(batch: Box<KeyBatch>) -> Self {
        ExecuteKeys(batch)
    }

    fn returned(answer: ToClient) -> Option<Box<KeyBatch>> {
        match answer {
            ToClient::KeysDone(KeysDone(batch)) => Some(batch),
            _ => None,
        }
    }

    fn keys(batch: &KeyBatch) -> usize {
        batch.keys.len() + batch.entries.len()
    }
}

impl RoundTrip for ExecuteRows {
    type Batch = RowBatch;

    fn carry(batch: Box<RowBatch>) -> Self {
        ExecuteRows(batch)
    }

    fn returned(answer: ToClient) -> Option<Box<RowBatch>> {
        match answer {
            ToClient::RowsDone(RowsDone(batch)) => Some(batch),
            _ => None,
        }
    }

    fn keys(batch: &RowBatch) -> usize {
        batch.operation.keys().map_or(0, Keys::len)
    }
}
