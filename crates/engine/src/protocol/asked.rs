//! Who has asked an owner for something.

use super::answers::Rejected;
use super::callback::Callback;
use super::message::{Context, Message, send};
use super::request::Request;
use crate::error::EngineError;
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
