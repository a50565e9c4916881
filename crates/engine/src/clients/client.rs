//! A session's port as the engine uses it: typed requests out, answers in.

use crate::error::EngineError;
use crate::protocol::answers::{Panicked, Rejected};
use crate::protocol::callback::{Callback, QuestionId};
use crate::protocol::lists::Parcel;
use crate::protocol::lists::ToClient;
use crate::protocol::message::{List, Message, command_bytes, header};
use crate::protocol::request::Request;
use crate::remote::clients::ClientCrossing;
use eris_aeu::{Aeu, Handler, Session};
use eris_route::{Command, Endpoint, FlushState};
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// How often a thread that is to block looks for commands before it sleeps: for some microseconds, after which an AEU
/// that is awake would have answered.
const SPINS: usize = 50;
/// Pauses of the processor between two looks.
const PAUSES: usize = 16;
/// How long a thread sleeps at a time.
const PATIENCE: Duration = Duration::from_secs(60);

/// One statement's way to the AEUs. Kept for the next statement when it is done.
pub(crate) struct Client {
    /// `None` once it was given back.
    session: Option<Box<Session<Parcel>>>,
    /// Where there is more than one node.
    crossing: Option<ClientCrossing>,
}

/// An answer that has come.
pub(crate) struct ReceivedAnswer {
    pub sender: Endpoint,
    callback: u64,
    pub answer: ToClient,
}

impl ReceivedAnswer {
    fn of(command: Command<'_, Parcel>, crossing: Option<&ClientCrossing>) -> Self {
        let header = command.header;
        let (words, has_parcel) = (command.words.len(), command.parcel.is_some());
        let answer = ToClient::unpack(header.kind, command.words, command.parcel);
        if let Some(crossing) = crossing
            && let Some(node) = header.sender.as_aeu().and_then(|aeu| crossing.other(aeu))
        {
            let (kind, payload) = answer.traffic();
            crossing.received(node, kind, command_bytes(words, has_parcel) + payload);
        }
        ReceivedAnswer {
            sender: header.sender,
            callback: header.callback,
            answer,
        }
    }

    /// What it is the answer to, if that was asked with callbacks of this meaning.
    pub fn callback<C: Callback>(&self) -> C {
        C::from_bits(self.callback)
    }

    /// Why a statement about this table has failed, if this says so.
    pub fn failure(self, table: &str) -> Option<EngineError> {
        match self.answer {
            ToClient::Rejected(Rejected(error)) => Some(error),
            ToClient::Panicked(Panicked(message)) => Some(EngineError::Panicked {
                worker: format!("{:?}", self.sender),
                table: table.to_owned(),
                message,
            }),
            _ => None,
        }
    }
}

impl Client {
    pub fn new(session: Box<Session<Parcel>>, crossing: Option<ClientCrossing>) -> Self {
        Client {
            session: Some(session),
            crossing,
        }
    }

    /// Takes the session out, for the next statement.
    pub fn take(&mut self) -> Option<Box<Session<Parcel>>> {
        self.session.take()
    }

    fn session(&mut self) -> &mut Session<Parcel> {
        self.session.as_mut().expect("used before it is given back")
    }

    pub fn endpoint(&mut self) -> Endpoint {
        self.session().endpoint()
    }

    /// Sends a request to one AEU.
    pub fn send<R: Request + Message>(
        &mut self,
        aeu: AeuId,
        object: ObjectId,
        callback: R::Callback,
        request: R,
    ) {
        let header = header::<R>(object, self.endpoint(), callback);
        let crossing = self.crossing.as_ref();
        let crosses = crossing.and_then(|crossing| Some((crossing, crossing.other(aeu)?)));
        let payload = crosses.map_or(0, |_| request.payload());
        let mut packed = request.pack();
        let (words, parcel) = packed.take();
        if let Some((crossing, node)) = crosses {
            let bytes = command_bytes(words.len(), parcel.is_some()) + payload;
            crossing.sent(node, R::TRAFFIC, bytes);
        }
        let outgoing = self.session().port().outgoing();
        outgoing.send(Endpoint::aeu(aeu), header, words, parcel);
    }

    /// Sends one request to several AEUs.
    pub fn multicast<R: Request + Message + Clone>(
        &mut self,
        aeus: &[AeuId],
        object: ObjectId,
        callback: R::Callback,
        request: &R,
    ) {
        for aeu in aeus {
            self.send(*aeu, object, callback, request.clone());
        }
    }

    /// Has an AEU that this thread holds execute a request at once.
    pub fn execute_in_place<R: Request + Message>(
        &mut self,
        aeu: &mut Aeu<impl Handler<Parcel = Parcel>>,
        object: ObjectId,
        callback: R::Callback,
        request: R,
    ) {
        let header = header::<R>(object, self.endpoint(), callback);
        let mut packed = request.pack();
        let (words, parcel) = packed.take();
        aeu.execute_in_place(header, words, parcel);
    }

    /// Waits until each owner that was asked with this callback has said that it is done.
    ///
    /// # Errors
    /// The first of those that rejected it, or panicked.
    pub async fn done(
        &mut self,
        question: QuestionId,
        owners: usize,
        table: &str,
    ) -> Result<(), EngineError> {
        let mut open = owners;
        let mut failure = None;
        poll_fn(|cx| {
            while open > 0 {
                let received = self.poll(cx, |received| {
                    if received.callback::<QuestionId>() == question {
                        open -= 1;
                        failure = failure.take().or(received.failure(table));
                    }
                });
                if !received {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        failure.map_or(Ok(()), Err)
    }

    /// Hands over what was sent, as far as there is room; the rest goes with the next poll.
    pub fn flush(&mut self) {
        let _ = self.session().flush();
    }

    /// Hands over what was sent, for callers that cannot come back later. AEUs never wait for a session, so that their
    /// inboxes have room again after a few of their steps.
    pub fn flush_all(&mut self) {
        while self.session().flush() == FlushState::Held {
            std::thread::yield_now();
        }
    }

    /// Blocks the thread until answers have come, and passes them to `take`.
    pub fn wait(&mut self, mut take: impl FnMut(ReceivedAnswer)) {
        let Client { session, crossing } = self;
        let session = session.as_mut().expect("used before it is given back");
        let crossing = crossing.as_ref();
        for _ in 0..SPINS {
            let _ = session.flush();
            let mut received = session.try_receive().into_iter().flatten().peekable();
            if received.peek().is_some() {
                return received
                    .map(|command| ReceivedAnswer::of(command, crossing))
                    .for_each(take);
            }
            drop(received);
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        loop {
            if let Some(received) = session.receive(PATIENCE) {
                return received
                    .map(|command| ReceivedAnswer::of(command, crossing))
                    .for_each(&mut take);
            }
        }
    }

    /// Passes every answer that has come to `take`. Without any it says so, and `cx` is woken when there is one.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut take: impl FnMut(ReceivedAnswer)) -> bool {
        let Client { session, crossing } = self;
        let session = session.as_mut().expect("used before it is given back");
        // What is held goes on when there is room: a pending session is woken then, too.
        let _ = session.flush();
        if session.poll_ready(cx).is_pending() {
            return false;
        }
        for command in session.try_receive().into_iter().flatten() {
            take(ReceivedAnswer::of(command, crossing.as_ref()));
        }
        true
    }
}
