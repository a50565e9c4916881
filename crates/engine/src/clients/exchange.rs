//! One operation's parts, each at an owner and back: in place where the owner is parked, by command otherwise.
//!
//! ```text
//! part ──┬── AEU is parked: its run token is taken, and the part executed in place
//!        ├── another client is in it: tried again a moment later
//!        └── AEU is at work: command ─▶ inbox ─▶ answer
//! ```

use crate::clients::client::Client;
use crate::clients::engine::Engine;
use crate::protocol::commands::{PANICKED, header};
use crate::tasks::owner::Owner;
use eris_aeu::{Aeu, Runtime};
use eris_route::{Command, Parcel};
use eris_types::{AeuId, ObjectId};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// So long a client goes without AEUs' threads: it waits for another client to leave an AEU, or does an AEU's work itself. To wake a thread
/// and be woken by it takes some 20 µs, or 100 of a virtual machine, and it takes its core from somebody each time.
const PATIENCE: Duration = Duration::from_micros(100);
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

/// Parts that are under way or back.
pub(crate) struct Exchange<T> {
    /// The kind of the command that carries a part. Every part is answered with itself.
    kind: u16,
    object: ObjectId,
    /// The callback of the first part; the others follow.
    callback: u64,
    parts: Vec<Part<T>>,
    /// Parts whose answers have not been taken.
    open: usize,
    panic: Option<String>,
}

struct Part<T> {
    aeu: AeuId,
    object: ObjectId,
    batch: Option<Box<T>>,
    /// Whether it is still to be executed.
    is_waiting: bool,
    is_answered: bool,
}

impl<T: Send + 'static> Exchange<T> {
    pub fn new(kind: u16, object: ObjectId) -> Self {
        Exchange {
            kind,
            object,
            callback: 0,
            parts: Vec::new(),
            open: 0,
            panic: None,
        }
    }

    /// Adds a part for an owner.
    pub fn push(&mut self, aeu: AeuId, batch: Box<T>) {
        self.push_of(self.object, aeu, batch);
    }

    /// The same for an owner of another data object.
    pub fn push_of(&mut self, object: ObjectId, aeu: AeuId, batch: Box<T>) {
        self.parts.push(Part {
            aeu,
            object,
            batch: Some(batch),
            is_waiting: true,
            is_answered: false,
        });
    }

    /// Executes what parts it can in place, and sends the others.
    pub fn begin(&mut self, engine: &Engine, client: &mut Client) {
        self.callback = engine.callbacks(self.parts.len() as u64);
        self.open = self.parts.len();
        self.execute_in_place(engine, client);
        let kind = self.kind;
        for (callback, part) in (self.callback..).zip(&mut self.parts) {
            if part.is_waiting
                && let Some(batch) = part.batch.take()
            {
                client.send_parcel(
                    part.aeu,
                    kind,
                    part.object,
                    callback,
                    Parcel::from_box(batch),
                );
            }
        }
        client.flush();
    }

    fn execute_in_place(&mut self, engine: &Engine, client: &mut Client) {
        let Some(runtime) = engine.runtime() else {
            return;
        };
        let sender = client.endpoint();
        let until = patience();
        loop {
            let mut is_held = false;
            for (callback, part) in (self.callback..).zip(&mut self.parts) {
                if !part.is_waiting {
                    continue;
                }
                let header = header(self.kind, part.object, sender, callback);
                let batch = &mut part.batch;
                let taken = runtime.try_run_in_place(part.aeu, |aeu| {
                    let parcel = batch.take().map(Parcel::from_box);
                    aeu.execute_in_place(header, &[], parcel);
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
            client.wait(|command| self.take(command));
        }
    }

    /// Waits until all parts are back.
    pub async fn answered(&mut self, client: &mut Client) {
        poll_fn(|cx| {
            while self.open > 0 {
                if !client.poll(cx, |command| self.take(command)) {
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
    pub fn finish(&mut self) -> Result<impl Iterator<Item = Box<T>> + use<T>, String> {
        let parts = std::mem::take(&mut self.parts);
        match self.panic.take() {
            Some(message) => Err(message),
            None => Ok((parts.into_iter()).map(|part| part.batch.expect("it was answered"))),
        }
    }

    fn take(&mut self, command: Command<'_>) {
        // Others are answers to an operation that was given up.
        let number = command.header.callback.checked_sub(self.callback);
        let Some(part) = number.and_then(|number| self.parts.get_mut(number as usize)) else {
            return;
        };
        // Whoever panics answers for a whole group, also for parts that were done before.
        if std::mem::replace(&mut part.is_answered, true) {
            return;
        }
        self.open -= 1;
        let parcel = command.parcel.expect("every answer has one");
        if command.header.kind == PANICKED {
            let message: Result<Box<String>, _> = parcel.into_owned();
            self.panic = Some(message.map_or_else(|_| String::new(), |message| *message));
        } else {
            part.batch = parcel.into_owned().ok();
        }
    }
}
