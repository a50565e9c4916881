//! Requests that come back as their own answers.

use super::answers::{KeysDone, RowsDone};
use super::callback::PartId;
use super::keys::{ExecuteKeys, ExecuteRows};
use super::lists::ToClient;
use super::message::Message;
use super::request::Request;
use super::rows::RowBatch;
use crate::key_index::batch::KeyBatch;

/// A request that comes back as its own answer, with what was done.
pub(crate) trait RoundTrip: Message + Request<Callback = PartId> {
    /// What goes there and comes back, in the box in which it went.
    type Batch;

    fn carry(batch: Box<Self::Batch>) -> Self;

    /// The batch of an answer.
    fn returned(answer: ToClient) -> Option<Box<Self::Batch>>;
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
}
