//! Questions to the owners of a data object: a command to each, and an answer of each.

use super::engine::Engine;
use crate::error::EngineError;
use crate::protocol::answers::Panicked;
use crate::protocol::callback::QuestionId;
use crate::protocol::lists::ToClient;
use crate::protocol::message::{Listed, Message};
use crate::protocol::request::Request;
use eris_route::Endpoint;
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::task::Poll;

impl Engine {
    /// Everybody who may have a part of an object.
    pub(crate) fn owners(&self) -> impl Iterator<Item = AeuId> + '_ {
        self.topology().aeus().iter().map(|place| place.aeu)
    }

    /// Asks these AEUs, and returns what they say, in no order. `name` is the object's, for messages.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    pub(crate) async fn ask<R>(
        &self,
        aeus: impl IntoIterator<Item = AeuId>,
        id: ObjectId,
        name: &str,
        question: R,
    ) -> Result<Vec<R::Reply>, EngineError>
    where
        R: Request<Callback = QuestionId> + Message + Copy,
        R::Reply: Listed<ToClient>,
    {
        let mut client = self.client()?;
        let callback = self.next_question();
        let mut open: Vec<Endpoint> = Vec::new();
        for aeu in aeus {
            client.send(aeu, id, callback, question);
            open.push(Endpoint::aeu(aeu));
        }
        client.flush();
        let (mut answers, mut failure) = (Vec::with_capacity(open.len()), None);
        poll_fn(|cx| {
            while !open.is_empty() {
                let received = client.poll(cx, |received| {
                    let from = open.iter().position(|aeu| *aeu == received.sender);
                    let is_answer = received.callback::<QuestionId>() == callback;
                    // Whoever panics answers for a whole group, also for what was answered before.
                    let (true, Some(from)) = (is_answer, from) else {
                        return;
                    };
                    open.swap_remove(from);
                    match received.answer {
                        ToClient::Panicked(Panicked(message)) => failure = Some(message),
                        answer => {
                            let answer = R::Reply::of_list(answer);
                            answers.push(answer.expect("owners answer what they are asked"));
                        }
                    }
                });
                if !received {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        self.give_back(&mut client);
        match failure {
            None => Ok(answers),
            Some(message) => Err(EngineError::Panicked {
                worker: "an owner".to_owned(),
                table: name.to_owned(),
                message,
            }),
        }
    }
}
