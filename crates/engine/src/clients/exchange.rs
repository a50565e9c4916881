//! One operation's parts, each at an owner and back: in place where the owner is parked, by command otherwise.
//!
//! ```text
//! part ──┬── one of several long ones: command ─▶ inbox ─▶ answer, so that AEUs work side by side
//!        ├── AEU is parked: its run token is taken, and the part executed in place
//!        ├── another client is in it: tried again a moment later
//!        └── AEU is at work: command ─▶ inbox ─▶ answer
//! ```

use super::client::{Client, ReceivedAnswer};
use super::engine::Engine;
use crate::protocol::answers::Panicked;
use crate::protocol::callback::PartId;
use crate::protocol::lists::ToClient;
use crate::protocol::round_trip::RoundTrip;
use crate::tasks::owner::Owner;
use eris_aeu::{Aeu, Runtime};
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// So long a client goes without AEUs' threads: it waits for another client to leave an AEU, or does an AEU's work
/// itself. To wake a thread and be woken by it takes some 20 µs, or 100 of a virtual machine, and it takes its core
/// from somebody each time.
const PATIENCE: Duration = Duration::from_micros(100);
/// Keys of a part that takes longer than it takes to wake its AEU, many times.
const LONG: usize = 8_192;
/// Pauses of the processor between two looks at an AEU.
const PAUSES: usize = 16;

/// Until when a client that begins now goes without them, however many AEUs it comes to.
pub(crate) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// Runs `work` in an AEU that sleeps, or that another client leaves in time; says whether it did.
pub(crate) fn offer(
    runtime: &Runtime<Owner>,
    aeu: AeuId,
    until: Instant,
    mut work: impl FnMut(&mut Aeu<Owner>),
) -> bool {
    loop {
        if runtime.try_run_in_place(aeu, &mut work).is_some() {
            return true;
        }
        if !runtime.is_run_in_place(aeu) || Instant::now() >= until {
            return false;
        }
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
    }
}

/// Parts that are under way or back. Every part is answered with itself.
pub(crate) struct Exchange<R: RoundTrip> {
    object: ObjectId,
    /// The number of the first part; the others follow.
    first: PartId,
    parts: Vec<ExchangedPart<R>>,
    /// Parts whose answers have not been taken.
    open: usize,
    panic: Option<String>,
}

struct ExchangedPart<R: RoundTrip> {
    aeu: AeuId,
    object: ObjectId,
    batch: Option<Box<R::Batch>>,
    /// Whether it is still to be executed.
    is_waiting: bool,
    is_answered: bool,
}

impl<R: RoundTrip> Exchange<R> {
    pub fn new(object: ObjectId) -> Self {
        Exchange {
            object,
            first: PartId(0),
            parts: Vec::new(),
            open: 0,
            panic: None,
        }
    }

    /// Adds a part for an owner.
    pub fn push(&mut self, aeu: AeuId, batch: Box<R::Batch>) {
        self.push_of(self.object, aeu, batch);
    }

    /// The same for an owner of another data object.
    pub fn push_of(&mut self, object: ObjectId, aeu: AeuId, batch: Box<R::Batch>) {
        self.parts.push(ExchangedPart {
            aeu,
            object,
            batch: Some(batch),
            is_waiting: true,
            is_answered: false,
        });
    }

    /// Executes what parts it can in place, and sends the others.
    pub fn begin(&mut self, engine: &Engine, client: &mut Client) {
        self.first = PartId(engine.next_callbacks(self.parts.len() as u64));
        self.open = self.parts.len();
        self.send_long(client);
        self.execute_in_place(engine, client);
        self.send(client, |part| part.is_waiting);
    }

    /// Sends long parts to their AEUs, but for one, which is the client's own share of the work.
    fn send_long(&mut self, client: &mut Client) {
        let is_long = |part: &ExchangedPart<R>| {
            (part.batch.as_ref()).is_some_and(|batch| R::keys(batch) >= LONG)
        };
        let mut others = self.parts.iter().filter(|part| is_long(part)).count();
        if others > 1 {
            self.send(client, |part| {
                let sent = is_long(part) && others > 1;
                others -= usize::from(sent);
                sent
            });
        }
    }

    fn send(&mut self, client: &mut Client, mut is_sent: impl FnMut(&ExchangedPart<R>) -> bool) {
        for (number, part) in (self.first.0..).zip(&mut self.parts) {
            if is_sent(part)
                && let Some(batch) = part.batch.take()
            {
                part.is_waiting = false;
                client.send(part.aeu, part.object, PartId(number), R::carry(batch));
            }
        }
        client.flush();
    }

    fn execute_in_place(&mut self, engine: &Engine, client: &mut Client) {
        let Some(runtime) = engine.runtime() else {
            return;
        };
        let until = patience();
        loop {
            let mut is_held = false;
            for (number, part) in (self.first.0..).zip(&mut self.parts) {
                if !part.is_waiting {
                    continue;
                }
                let (object, batch) = (part.object, &mut part.batch);
                let taken = runtime.try_run_in_place(part.aeu, |aeu| {
                    if let Some(batch) = batch.take() {
                        client.execute_in_place(aeu, object, PartId(number), R::carry(batch));
                    }
                });
                part.is_waiting = taken.is_none();
                is_held |= part.is_waiting && runtime.is_run_in_place(part.aeu);
            }
            if !is_held || Instant::now() >= until {
                return;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Blocks the thread until all parts are back.
    pub fn wait(&mut self, client: &mut Client) {
        // The answers of what was executed in place are there already.
        while self.open > 0 {
            client.wait(|received| self.take(received));
        }
    }

    /// Waits until all parts are back.
    pub async fn answered(&mut self, client: &mut Client) {
        poll_fn(|cx| {
            while self.open > 0 {
                if !client.poll(cx, |received| self.take(received)) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Takes the parts back, in their order, with what their owners have done to them.
    ///
    /// # Errors
    /// The message of an owner's panic.
    pub fn finish(&mut self) -> Result<impl Iterator<Item = Box<R::Batch>> + use<R>, String> {
        let parts = std::mem::take(&mut self.parts);
        match self.panic.take() {
            Some(message) => Err(message),
            None => Ok((parts.into_iter()).map(|part| part.batch.expect("it was answered"))),
        }
    }

    fn take(&mut self, received: ReceivedAnswer) {
        // Others are answers to an operation that was given up.
        let number = received.callback::<PartId>().0.checked_sub(self.first.0);
        let Some(part) = number.and_then(|number| self.parts.get_mut(number as usize)) else {
            return;
        };
        // Whoever panics answers for a whole group, also for parts that were done before.
        if std::mem::replace(&mut part.is_answered, true) {
            return;
        }
        self.open -= 1;
        match received.answer {
            ToClient::Panicked(Panicked(message)) => self.panic = Some(message),
            answer => part.batch = R::returned(answer),
        }
    }
}
