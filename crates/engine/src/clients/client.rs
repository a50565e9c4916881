//! A session's port as the engine uses it: typed parcels out, commands in.

use crate::error::EngineError;
use crate::protocol::commands::{PANICKED, REFUSED, header};
use eris_aeu::Session;
use eris_route::{Command, Endpoint, FlushState, Parcel};
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How often a thread that is to block looks for commands before it sleeps: for some microseconds, after which an AEU that
/// is awake would have answered.
const SPINS: usize = 50;
/// Pauses of the processor between two looks.
const PAUSES: usize = 16;
/// How long a thread sleeps at a time.
const PATIENCE: Duration = Duration::from_secs(60);

/// One statement's way to the AEUs. Kept for the next statement when it is done.
pub(crate) struct Client {
    /// `None` once it was given back.
    session: Option<Session>,
}

impl Client {
    pub fn new(session: Session) -> Self {
        Client {
            session: Some(session),
        }
    }

    /// Takes the session out, for the next statement.
    pub fn take(&mut self) -> Option<Session> {
        self.session.take()
    }

    fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("used before it is given back")
    }

    pub fn endpoint(&mut self) -> Endpoint {
        self.session().endpoint()
    }

    /// Sends a value to one AEU.
    pub fn send<T: Send + 'static>(
        &mut self,
        aeu: AeuId,
        kind: u16,
        object: ObjectId,
        callback: u64,
        value: T,
    ) {
        let header = header(kind, object, self.endpoint(), callback);
        let parcel = Some(Parcel::owned(value));
        (self.session()).send(Endpoint::aeu(aeu), header, &[], parcel);
    }

    /// Sends a parcel to one AEU.
    pub fn send_parcel(
        &mut self,
        aeu: AeuId,
        kind: u16,
        object: ObjectId,
        callback: u64,
        parcel: Parcel,
    ) {
        let header = header(kind, object, self.endpoint(), callback);
        (self.session()).send(Endpoint::aeu(aeu), header, &[], Some(parcel));
    }

    /// Sends a few words to one AEU.
    pub fn tell(&mut self, aeu: AeuId, kind: u16, object: ObjectId, callback: u64, words: &[u64]) {
        let header = header(kind, object, self.endpoint(), callback);
        (self.session()).send(Endpoint::aeu(aeu), header, words, None);
    }

    /// Waits for an answer of each owner that was asked with this callback: none of them has more to say than that it is done.
    ///
    /// # Errors
    /// The first of those that refused, or panicked.
    pub async fn answered(
        &mut self,
        callback: u64,
        owners: usize,
        table: &str,
    ) -> Result<(), EngineError> {
        let mut open = owners;
        let mut failure = None;
        poll_fn(|cx| {
            while open > 0 {
                let received = self.poll(cx, |command: Command<'_>| {
                    if command.header.callback != callback {
                        return;
                    }
                    open -= 1;
                    let parcel = command.parcel;
                    let error = match command.header.kind {
                        REFUSED => parcel.and_then(|parcel| parcel.into_owned().ok()),
                        PANICKED => {
                            let message =
                                parcel.and_then(|parcel| parcel.into_owned::<String>().ok());
                            Some(Box::new(EngineError::Panicked {
                                worker: format!("{:?}", command.header.sender),
                                table: table.to_owned(),
                                message: message.map(|message| *message).unwrap_or_default(),
                            }))
                        }
                        _ => None,
                    };
                    failure = failure.take().or(error);
                });
                if !received {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        failure.map_or(Ok(()), |error: Box<EngineError>| Err(*error))
    }

    /// Sends one shared value to several AEUs.
    pub fn multicast<T: Send + Sync + 'static>(
        &mut self,
        aeus: &[AeuId],
        kind: u16,
        object: ObjectId,
        callback: u64,
        value: Arc<T>,
    ) {
        let header = header(kind, object, self.endpoint(), callback);
        (self.session()).multicast(aeus.iter().copied(), header, &[], Some(value));
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

    /// Blocks the thread until commands have arrived, and passes them to `take`.
    pub fn wait(&mut self, mut take: impl FnMut(Command<'_>)) {
        let session = self.session();
        for _ in 0..SPINS {
            let _ = session.flush();
            let mut received = session.try_receive().into_iter().flatten().peekable();
            if received.peek().is_some() {
                return received.for_each(take);
            }
            drop(received);
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        loop {
            if let Some(received) = session.receive(PATIENCE) {
                return received.for_each(&mut take);
            }
        }
    }

    /// Passes every command that has arrived to `take`. Without any it says so, and `cx` is woken when there is one.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut take: impl FnMut(Command<'_>)) -> bool {
        let session = self.session();
        // What is held goes on when there is room: a pending session is woken then, too.
        let _ = session.flush();
        if session.poll_ready(cx).is_pending() {
            return false;
        }
        for command in session.try_receive().into_iter().flatten() {
            take(command);
        }
        true
    }
}
