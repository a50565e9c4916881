//! Questions to the owners of a data object: a command to each, and an answer of each.

use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::protocol::commands::PANICKED;
use eris_route::{Command, Endpoint};
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::task::Poll;

/// A kind of command that owners answer, and that of the answers.
pub(crate) struct Question {
    pub kind: u16,
    pub answer: u16,
}

impl Engine {
    /// Everybody who may have a part of an object.
    pub(crate) fn owners(&self) -> impl Iterator<Item = AeuId> + '_ {
        self.topology().aeus().iter().map(|place| place.aeu)
    }

    /// Asks these AEUs, and returns what they say, in no order. `name` is the object's, for messages.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    ///
    /// # Panics
    /// If answers are something else than `T`.
    pub(crate) async fn ask<T: 'static>(
        &self,
        aeus: impl IntoIterator<Item = AeuId>,
        id: ObjectId,
        name: &str,
        question: Question,
        words: &[u64],
    ) -> Result<Vec<T>, EngineError> {
        let mut client = self.client()?;
        let callback = self.next_callback();
        let mut open: Vec<Endpoint> = Vec::new();
        for aeu in aeus {
            client.tell(aeu, question.kind, id, callback, words);
            open.push(Endpoint::aeu(aeu));
        }
        client.flush();
        let (mut answers, mut failure) = (Vec::with_capacity(open.len()), None);
        poll_fn(|cx| {
            while !open.is_empty() {
                let received = client.poll(cx, |command: Command<'_>| {
                    let from = open.iter().position(|aeu| *aeu == command.header.sender);
                    // Whoever panics answers for a whole group, also for what was answered before.
                    let (true, Some(from)) = (command.header.callback == callback, from) else {
                        return;
                    };
                    open.swap_remove(from);
                    let parcel = command.parcel.expect("every answer has one");
                    match command.header.kind {
                        PANICKED => failure = parcel.into_owned::<String>().ok(),
                        kind if kind == question.answer => {
                            let answer = parcel.into_owned::<T>();
                            answers.push(*answer.expect("the kind says what is in the parcel"));
                        }
                        other => unreachable!("no AEU answers so with kind {other}"),
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
                message: *message,
            }),
        }
    }
}
