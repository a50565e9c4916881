//! The owner's side of an inbox.

use crate::inbox::Inbox;
use crate::wire::{self, Spill};
use crate::{Command, Endpoint, Piece, Rank, Router, Stretch};
use std::marker::PhantomData;
use std::sync::Arc;

/// Where the buffer that is not writable stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Empty.
    Empty,
    /// Swapped out; writers may still be copying.
    Draining,
    /// Read, and possibly still borrowed; emptied by the next receive.
    Taken,
}

/// The receiving half of a [`crate::Port`].
pub struct Incoming<P = ()> {
    inbox: Arc<Inbox<P>>,
    router: Arc<Router<P>>,
    endpoint: Endpoint,
    writable: usize,
    phase: Phase,
    admitted: Rank,
    /// Spilled data of the commands handed out from the taken buffer.
    spills: Vec<Spill>,
}

impl<P> Incoming<P> {
    pub(crate) fn open(router: Arc<Router<P>>, inbox: Arc<Inbox<P>>, endpoint: Endpoint) -> Self {
        inbox.open(endpoint);
        if inbox.take_starving() {
            router.ring_all();
        }
        let (writable, phase, admitted) = (0, Phase::Empty, Rank::Client);
        Incoming {
            inbox,
            router,
            endpoint,
            writable,
            phase,
            admitted,
            spills: Vec::new(),
        }
    }

    /// Everything that arrived since the last receive, as one batch. Swaps the buffers, which never waits: `None` while
    /// nothing is there, and also while a sender is still copying into the buffer that was swapped out; ask again
    /// later.
    #[inline]
    pub fn receive(&mut self) -> Option<Received<'_, P>> {
        if !self.ready() {
            return None;
        }
        let words: &[u64];
        let pointers;
        // SAFETY: this is the owner. `ready` found the buffer inactive and without writers, and it is emptied only
        // by the next `ready`, for which the borrow must have ended.
        (words, pointers) = unsafe { self.inbox.read(1 - self.writable) }?;
        self.phase = Phase::Taken;
        Some(Received {
            rest: words,
            begun: Stretch::EMPTY,
            pointers,
            spills: &mut self.spills,
            parcels: PhantomData,
        })
    }

    /// Whether [`Incoming::receive`] would return something; swaps the buffers if there is reason to.
    #[inline]
    pub fn ready(&mut self) -> bool {
        if self.phase == Phase::Taken {
            self.spills.clear();
            self.inbox.empty(1 - self.writable);
            self.phase = Phase::Empty;
        }
        if self.phase == Phase::Empty {
            if !self.inbox.has_mail(self.writable) {
                return false;
            }
            let starving = self.inbox.swap(self.writable, self.endpoint);
            self.writable = 1 - self.writable;
            self.phase = Phase::Draining;
            if starving {
                self.router.ring_all();
            }
        }
        // SAFETY: this is the owner; the slice is dropped at once.
        unsafe { self.inbox.read(1 - self.writable) }.is_some()
    }

    /// Whether nothing is there and no sender is copying. An owner that sleeps must have seen this *after* it announced
    /// its sleep and passed a `SeqCst` fence; see [`crate::Bell`].
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.phase != Phase::Draining && !self.inbox.has_mail(self.writable)
    }

    /// Tells senders to keep commands below this rank for now. What is already on its way still arrives.
    pub fn admit_from(&mut self, lowest: Rank) {
        if lowest == self.admitted {
            return;
        }
        self.inbox.admit(lowest);
        let lowered = lowest < self.admitted;
        self.admitted = lowest;
        if lowered && self.inbox.take_starving() {
            self.router.ring_all();
        }
    }
}

impl<P> Drop for Incoming<P> {
    fn drop(&mut self) {
        if self.phase == Phase::Taken {
            self.inbox.empty(1 - self.writable);
        }
        self.inbox.close(self.endpoint);
        if self.inbox.take_starving() {
            self.router.ring_all();
        }
        self.router.release(self.endpoint);
    }
}

/// A batch of received commands, in the order of their arrival: per sender and rank, the order of sending. What is
/// not taken from it is dropped with it.
///
/// An iterator over commands. Who can do something with [stretches](Stretch) of them takes it in [pieces](Piece).
pub struct Received<'a, P = ()> {
    rest: &'a [u64],
    /// What was begun as commands.
    begun: Stretch<'a>,
    pointers: bool,
    spills: &'a mut Vec<Spill>,
    parcels: PhantomData<Box<P>>,
}

impl<'a, P> Received<'a, P> {
    /// Words not yet read, headers included.
    pub fn words(&self) -> usize {
        self.rest.len()
    }

    /// The next piece: as many commands as are alike, or one that owns something.
    #[inline]
    pub fn next_piece(&mut self) -> Option<Piece<'a, P>> {
        if self.begun.len() > 0 {
            return Some(Piece::Stretch(std::mem::replace(
                &mut self.begun,
                Stretch::EMPTY,
            )));
        }
        while !self.rest.is_empty() {
            if wire::is_plain(self.rest) {
                let (stretch, rest) = Stretch::take(self.rest);
                self.rest = rest;
                return Some(Piece::Stretch(stretch));
            }
            // SAFETY: `rest` begins with a command, whose pointers nobody took yet. The spills are cleared by the
            // next `ready`, for which the borrow `'a` of the port must have ended.
            let (len, command) = unsafe { wire::take(self.rest, self.spills) };
            self.rest = &self.rest[len..];
            if let Some(command) = command {
                return Some(Piece::Command(command));
            }
        }
        None
    }
}

impl<'a, P> Iterator for Received<'a, P> {
    type Item = Command<'a, P>;

    #[inline(always)]
    fn next(&mut self) -> Option<Command<'a, P>> {
        loop {
            if let Some((header, words)) = self.begun.next() {
                return Some(Command {
                    header: *header,
                    words,
                    parcel: None,
                });
            }
            match self.next_piece()? {
                Piece::Stretch(stretch) => self.begun = stretch,
                Piece::Command(command) => return Some(command),
            }
        }
    }
}

impl<P> Drop for Received<'_, P> {
    fn drop(&mut self) {
        if self.pointers {
            self.for_each(drop);
        }
    }
}
