//! Who has asked an owner for something.

use super::answers::{Batch, Panicked, Rejected};
use super::callback::Callback;
use super::keys::{ExecuteKeys, HandOver};
use super::lists::ToClient;
use super::message::{Context, Listed, Message, send_answer};
use super::request::Request;
use super::runs::Scan;
use crate::error::EngineError;
use arrow_array::RecordBatch;
use eris_route::{Endpoint, Header};
use eris_types::ObjectId;

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
    /// By the header of a request of this type.
    pub fn of(header: &Header) -> Self {
        Asked {
            sender: header.sender,
            object: header.object,
            callback: R::Callback::from_bits(header.callback),
        }
    }

    /// By this request's header.
    pub fn by(_request: &R, header: &Header) -> Self {
        Self::of(header)
    }

    /// Sends the answer.
    pub fn answer<T>(&self, reply: R::Reply, cx: &mut Context<'_, T>)
    where
        R::Reply: Message,
    {
        self.send(reply, cx);
    }

    /// Says why there is none.
    pub fn reject<T>(&self, error: EngineError, cx: &mut Context<'_, T>)
    where
        R::Reply: Listed<ToClient>,
    {
        self.send(Rejected(error), cx);
    }

    /// Says that the owner has panicked over it.
    pub fn panicked<T>(&self, message: &str, cx: &mut Context<'_, T>)
    where
        R::Reply: Listed<ToClient>,
    {
        self.send(Panicked(message.to_owned()), cx);
    }

    fn send<T>(&self, answer: impl Message, cx: &mut Context<'_, T>) {
        send_answer(cx, self.sender, self.object, self.callback, answer);
    }
}

impl Asked<Scan> {
    /// Sends a part of the answer.
    pub fn batch<T>(&self, batch: RecordBatch, cx: &mut Context<'_, T>) {
        self.send(Batch(batch), cx);
    }
}

impl Asked<HandOver> {
    /// Who wants a batch executed that was handed over.
    pub fn of_batch(&self) -> Asked<ExecuteKeys> {
        Asked {
            sender: self.sender,
            object: self.object,
            callback: self.callback.part(),
        }
    }
}
