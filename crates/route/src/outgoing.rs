//! The sender's side: outgoing buffers, and how they are emptied into inboxes.
//!
//! ```text
//!  per target, per rank        unicast   [c1][c2]·[c3]          words, ready to copy
//!                              references   (#0 after word 14)  which multicast command goes where between them
//!  per port                    multicast [ #0 ][ #1 ]           words, once, however many targets
//! ```
//!
//! A flush reserves room for a whole buffer, copies the unicast words up to a reference, the multicast command it
//! names, and so on. It writes sequentially only. For one sender, target and rank it keeps the order of sending. A
//! buffer that finds no room is kept; the references in it are then replaced by copies, so that the multicast buffer
//! can be used again.

use crate::inbox::{Inbox, Rejected, ReservedSlot};
use crate::multicast::{Multicast, SharedCommand};
use crate::wire::{self, HEADER_WORDS, PARCEL, SPILLED};
use crate::{Endpoint, Header, Rank, Router};
use eris_types::AeuId;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a flush left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushState {
    /// Everything is in the inboxes.
    Empty,
    /// Some target had no room; its commands are kept for the next flush.
    Held,
}

/// What went through one port, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Commands sent, one per target of a multicast.
    pub commands: u64,
    /// Words copied into inboxes.
    pub words: u64,
    /// Buffers copied into inboxes.
    pub flushes: u64,
    /// Flushes that found too little room.
    pub held: u64,
    /// Commands dropped because their target was gone.
    pub rejected: u64,
}

/// The sending half of a [`crate::Port`].
pub struct Outgoing<P = ()> {
    pub(crate) router: Arc<Router<P>>,
    buffers: Buffers,
    aeus: Vec<EndpointBuffers<P>>,
    /// By slot; made at the first command to a session of that slot.
    sessions: Vec<Option<Box<EndpointBuffers<P>>>>,
    /// Targets that have something to flush, each once.
    dirty: Vec<Endpoint>,
    congested: Option<Rank>,
}

/// What the buffers of all targets share.
struct Buffers {
    /// Size of one outgoing buffer in words.
    size: usize,
    multicast: Multicast,
    traffic: Traffic,
}

/// The buffers for one endpoint, one per rank.
struct EndpointBuffers<P> {
    endpoint: Endpoint,
    inbox: Arc<Inbox<P>>,
    by_rank: [RankBuffer<P>; 4],
    dirty: bool,
}

/// What waits for one endpoint and has one rank.
struct RankBuffer<P> {
    words: Vec<u64>,
    /// Words at the front that were delivered when there was no room for all.
    delivered: usize,
    /// How many commands own pointers, at most.
    pointers: usize,
    references: Vec<Reference>,
    /// Words of the multicast commands that the references name.
    referenced: usize,
    /// Of what the words own.
    parcels: PhantomData<fn(P) -> P>,
}

/// Multicast command number `entry` belongs between the buffer's words before and after `at`.
struct Reference {
    at: usize,
    entry: usize,
}

enum Delivery {
    Done,
    Held,
}

impl<P> Outgoing<P> {
    pub(crate) fn new(router: Arc<Router<P>>) -> Self {
        let target = |id| {
            let endpoint = Endpoint::aeu(AeuId(id as u16));
            router
                .inbox(endpoint)
                .map(|inbox| EndpointBuffers::new(endpoint, inbox.clone()))
        };
        let aeus = (0..router.aeus()).filter_map(target).collect();
        let size = router.sizes().outgoing;
        let buffers = Buffers {
            size,
            multicast: Multicast::default(),
            traffic: Traffic::default(),
        };
        Outgoing {
            router,
            buffers,
            aeus,
            sessions: Vec::new(),
            dirty: Vec::new(),
            congested: None,
        }
    }

    /// Sends a command. Never blocks and never fails: the command is buffered here, the buffer is flushed when it is
    /// full, and what finds no room is kept. A command to an endpoint that is gone is dropped with its parcel. Commands
    /// of one rank reach one target in the order in which they were sent.
    #[inline]
    pub fn send(
        &mut self,
        target: Endpoint,
        header: Header,
        words: &[u64],
        parcel: Option<Box<P>>,
    ) {
        let (rank, header) = (header.rank, wire::header_words(header));
        let Outgoing {
            router,
            buffers,
            aeus,
            sessions,
            dirty,
            congested,
        } = self;
        let found = match target.as_aeu() {
            Some(aeu) => aeus.get_mut(aeu.index()),
            None => session(router, buffers, sessions, target),
        };
        let Some(to) = found else {
            buffers.traffic.rejected += 1;
            return;
        };
        buffers.traffic.commands += 1;
        if !to.dirty {
            to.dirty = true;
            dirty.push(target);
        }
        let buffer = &mut to.by_rank[rank as usize];
        let needed = HEADER_WORDS + words.len();
        if parcel.is_none() && buffer.words.len() + buffer.referenced + needed <= buffers.size {
            buffer.push(wire::complete(header, 0, needed), words);
        } else {
            buffers.push_slowly(to, rank, header, words, parcel, congested);
        }
    }

    /// Sends one command to several AEUs. Its words are stored once and copied to each target at the flush. With
    /// parcels, of which `parcel` makes one for each target, it is as many commands.
    pub fn multicast(
        &mut self,
        targets: impl IntoIterator<Item = AeuId>,
        header: Header,
        words: &[u64],
        parcel: Option<impl Fn() -> P>,
    ) {
        if let Some(parcel) = parcel {
            for aeu in targets {
                self.send(Endpoint::aeu(aeu), header, words, Some(Box::new(parcel())));
            }
            return;
        }
        let spill = HEADER_WORDS + words.len() > self.buffers.size;
        let flags = if spill { SPILLED } else { 0 };
        let inline = if spill { &[0; 2] } else { words };
        let needed = HEADER_WORDS + inline.len();
        if self.buffers.multicast.words.len() + needed > self.buffers.size {
            self.flush();
        }
        let multicast = &mut self.buffers.multicast;
        let (start, entry) = (multicast.words.len(), multicast.entries.len());
        multicast
            .words
            .extend(wire::complete(wire::header_words(header), flags, needed));
        multicast.words.extend(inline);
        let spilled = spill.then(|| words.into());
        multicast.entries.push(SharedCommand {
            start,
            end: start + needed,
            spilled,
        });

        for aeu in targets {
            let Some(to) = self.aeus.get_mut(aeu.index()) else {
                self.buffers.traffic.rejected += 1;
                continue;
            };
            self.buffers.traffic.commands += 1;
            if !to.dirty {
                to.dirty = true;
                self.dirty.push(to.endpoint);
            }
            let buffer = &mut to.by_rank[header.rank as usize];
            buffer.references.push(Reference {
                at: buffer.words.len(),
                entry,
            });
            buffer.referenced += needed;
            self.buffers.multicast.references += 1;
            if buffer.len() > self.buffers.size {
                self.buffers
                    .flush_full(to, header.rank, &mut self.congested);
            }
        }
        self.buffers.multicast.reset_if_unused();
    }

    /// Copies every buffer into its target's inbox, higher ranks first. What finds no room is kept.
    pub fn flush(&mut self) -> FlushState {
        self.flush_some(usize::MAX)
    }

    /// Like [`Outgoing::flush`], but visits at most so many targets: for schedules that stop between two of them.
    pub fn flush_some(&mut self, targets: usize) -> FlushState {
        if self.dirty.is_empty() {
            return FlushState::Empty;
        }
        let Outgoing {
            buffers,
            aeus,
            sessions,
            dirty,
            congested,
            ..
        } = self;
        *congested = None;
        let mut visited = 0;
        dirty.retain(|&endpoint| {
            let found = match endpoint.as_aeu() {
                Some(aeu) => aeus.get_mut(aeu.index()),
                None => sessions[endpoint.slot()].as_deref_mut(),
            };
            // A session's successor has taken over the slot, and has an entry of its own.
            let Some(to) = found.filter(|to| to.endpoint == endpoint) else {
                return false;
            };
            for &rank in Rank::ALL.iter().rev() {
                if visited < targets {
                    buffers.flush_rank(to, rank);
                }
                raise_if_congested(buffers.size, to, rank, congested);
            }
            visited += 1;
            to.dirty = to.by_rank.iter().any(|buffer| buffer.len() > 0);
            to.dirty
        });
        self.buffers.multicast.reset_if_unused();
        if self.dirty.is_empty() {
            FlushState::Empty
        } else {
            FlushState::Held
        }
    }

    /// Words that wait here for a target: the back-pressure a sender can look at.
    pub fn pending(&self, target: Endpoint) -> usize {
        let found = match target.as_aeu() {
            Some(aeu) => self.aeus.get(aeu.index()),
            None => self
                .sessions
                .get(target.slot())
                .and_then(|slot| slot.as_deref()),
        };
        let found = found.filter(|to| to.endpoint == target);
        found.map_or(0, |to| to.by_rank.iter().map(RankBuffer::len).sum())
    }

    /// Whether nothing waits to be flushed.
    pub fn is_empty(&self) -> bool {
        self.dirty.is_empty()
    }

    /// The highest rank of which more than one buffer is held for some AEU. Work of a strictly lower rank should be
    /// put off until the next flush says otherwise. Sessions do not count; see the crate's page.
    pub fn congested(&self) -> Option<Rank> {
        self.congested
    }

    /// Whether no multicast command is kept.
    #[cfg(test)]
    pub(crate) fn has_no_multicast(&self) -> bool {
        let multicast = &self.buffers.multicast;
        multicast.references == 0 && multicast.entries.is_empty() && multicast.words.is_empty()
    }

    /// What went through.
    pub fn traffic(&self) -> Traffic {
        self.buffers.traffic
    }
}

/// The buffers for a session; `None` if it never was, or a later session is known to have its slot.
fn session<'a, P>(
    router: &Router<P>,
    buffers: &mut Buffers,
    sessions: &'a mut Vec<Option<Box<EndpointBuffers<P>>>>,
    endpoint: Endpoint,
) -> Option<&'a mut EndpointBuffers<P>> {
    let slot = endpoint.slot();
    if sessions.len() <= slot {
        sessions.resize_with(slot + 1, || None);
    }
    let known = sessions[slot].as_ref().map(|target| target.endpoint);
    if known != Some(endpoint) {
        let inbox = router.inbox(endpoint)?;
        if inbox.generation() != endpoint.generation() {
            return None;
        }
        if let Some(mut old) =
            sessions[slot].replace(Box::new(EndpointBuffers::new(endpoint, inbox.clone())))
        {
            old.by_rank
                .iter_mut()
                .for_each(|buffer| buffers.traffic.rejected += buffer.discard());
        }
    }
    sessions[slot].as_deref_mut()
}

fn raise_if_congested<P>(
    size: usize,
    to: &EndpointBuffers<P>,
    rank: Rank,
    congested: &mut Option<Rank>,
) {
    if to.endpoint.as_aeu().is_some() && to.by_rank[rank as usize].len() > size {
        *congested = (*congested).max(Some(rank));
    }
}

impl Buffers {
    /// A command that has a parcel, is too large to be inline, or finds its buffer full.
    #[cold]
    fn push_slowly<P>(
        &mut self,
        to: &mut EndpointBuffers<P>,
        rank: Rank,
        header: [u64; HEADER_WORDS],
        words: &[u64],
        parcel: Option<Box<P>>,
        congested: &mut Option<Rank>,
    ) {
        let spill = HEADER_WORDS + parcel.is_some() as usize + words.len() > self.size;
        let inline = if spill { 2 } else { words.len() };
        let needed = HEADER_WORDS + parcel.is_some() as usize + inline;
        // Of what is held beyond one buffer, only every further buffer is worth a try.
        let len = to.by_rank[rank as usize].len();
        if len > 0 && (len - 1) % self.size + 1 + needed > self.size {
            self.flush_full(to, rank, congested);
        }
        let buffer = &mut to.by_rank[rank as usize];
        let flags = if parcel.is_some() { PARCEL } else { 0 } | if spill { SPILLED } else { 0 };
        buffer.words.extend(wire::complete(header, flags, needed));
        buffer.pointers += (flags != 0) as usize;
        buffer.words.extend(parcel.map(wire::parcel_word));
        if spill {
            buffer.words.extend(wire::spill_words(words));
        } else {
            buffer.words.extend(words);
        }
    }

    /// Flushes a buffer that has no room for the next command.
    fn flush_full<P>(
        &mut self,
        to: &mut EndpointBuffers<P>,
        rank: Rank,
        congested: &mut Option<Rank>,
    ) {
        self.flush_rank(to, rank);
        raise_if_congested(self.size, to, rank, congested);
    }

    fn flush_rank<P>(&mut self, to: &mut EndpointBuffers<P>, rank: Rank) {
        let buffer = &mut to.by_rank[rank as usize];
        if buffer.len() == 0 {
            return;
        }
        match self.deliver(to.endpoint, &to.inbox, rank, buffer) {
            Ok(Delivery::Done) => {}
            Ok(Delivery::Held) => self.traffic.held += 1,
            Err(Rejected::Full { .. } | Rejected::Dead) => {
                self.multicast.references -= buffer.references.len();
                self.traffic.rejected += buffer.discard();
            }
        }
    }

    /// Delivers a buffer, or the part of it that finds room.
    fn deliver<P>(
        &mut self,
        to: Endpoint,
        inbox: &Inbox<P>,
        rank: Rank,
        buffer: &mut RankBuffer<P>,
    ) -> Result<Delivery, Rejected> {
        let mut last_try = false;
        loop {
            let len = buffer.len();
            let room = match inbox.reserve(to, rank, len) {
                Ok(slot) => {
                    buffer.copy_into(slot, &mut self.multicast);
                    self.delivered(inbox, len);
                    return Ok(Delivery::Done);
                }
                Err(Rejected::Full { room }) => room,
                Err(dead) => return Err(dead),
            };
            buffer.materialise(&mut self.multicast);
            let part = buffer.prefix(room);
            if part > 0
                && let Ok(mut slot) = inbox.reserve(to, rank, part)
            {
                slot.write(&buffer.words[buffer.delivered..][..part]);
                slot.commit(buffer.pointers > 0);
                buffer.remove_delivered(part);
                self.delivered(inbox, part);
            }
            if last_try {
                return Ok(Delivery::Held);
            }
            inbox.mark_starving();
            last_try = true;
        }
    }

    fn delivered<P>(&mut self, inbox: &Inbox<P>, words: usize) {
        self.traffic.flushes += 1;
        self.traffic.words += words as u64;
        inbox.ring();
    }
}

impl<P> EndpointBuffers<P> {
    fn new(endpoint: Endpoint, inbox: Arc<Inbox<P>>) -> Self {
        EndpointBuffers {
            endpoint,
            inbox,
            by_rank: std::array::from_fn(|_| RankBuffer::new()),
            dirty: false,
        }
    }
}

impl<P> RankBuffer<P> {
    fn new() -> Self {
        RankBuffer {
            words: Vec::new(),
            delivered: 0,
            pointers: 0,
            references: Vec::new(),
            referenced: 0,
            parcels: PhantomData,
        }
    }

    /// Words to deliver, those of referenced multicast commands included.
    fn len(&self) -> usize {
        self.words.len() - self.delivered + self.referenced
    }

    #[inline]
    fn push(&mut self, header: [u64; HEADER_WORDS], words: &[u64]) {
        let (len, needed) = (self.words.len(), HEADER_WORDS + words.len());
        self.words.reserve(needed);
        // SAFETY: room for `needed` words behind the last one was just reserved, and all of them are written; the
        // sources are elsewhere, for this is the only reference to the buffer. One check of the capacity instead of
        // two: this is the hottest line of the crate.
        unsafe {
            let to = self.words.as_mut_ptr().add(len);
            to.cast::<[u64; HEADER_WORDS]>().write(header);
            to.add(HEADER_WORDS)
                .copy_from_nonoverlapping(words.as_ptr(), words.len());
            self.words.set_len(len + needed);
        }
    }

    /// Empties the buffer into room of its length.
    fn copy_into(&mut self, mut slot: ReservedSlot<'_>, multicast: &mut Multicast) {
        let mut pointers = self.pointers > 0;
        let mut from = self.delivered;
        for reference in self.references.drain(..) {
            slot.write(&self.words[from..reference.at]);
            from = reference.at;
            pointers |= multicast.copy(reference.entry, |words| slot.write(words));
        }
        slot.write(&self.words[from..]);
        slot.commit(pointers);
        // The inbox owns the pointers now.
        self.words.clear();
        (self.delivered, self.pointers, self.referenced) = (0, 0, 0);
    }

    /// Replaces references by copies of what they name.
    fn materialise(&mut self, multicast: &mut Multicast) {
        if self.references.is_empty() {
            return;
        }
        let words = std::mem::take(&mut self.words);
        let mut from = std::mem::take(&mut self.delivered);
        for reference in self.references.drain(..) {
            self.words.extend_from_slice(&words[from..reference.at]);
            from = reference.at;
            let to = &mut self.words;
            self.pointers +=
                multicast.copy(reference.entry, |words| to.extend_from_slice(words)) as usize;
        }
        self.words.extend_from_slice(&words[from..]);
        self.referenced = 0;
    }

    /// Length of the whole commands at the front that fit into `room` words.
    fn prefix(&self, room: usize) -> usize {
        let words = &self.words[self.delivered..];
        let mut at = 0;
        while at < words.len() && at + wire::command_len(&words[at..]) <= room {
            at += wire::command_len(&words[at..]);
        }
        at
    }

    /// Forgets commands whose pointers the inbox owns now.
    fn remove_delivered(&mut self, len: usize) {
        self.delivered += len;
        if self.delivered > self.words.len() / 2 {
            self.words.drain(..self.delivered);
            self.delivered = 0;
        }
        if self.words.is_empty() {
            self.pointers = 0;
        }
    }

    /// Drops all commands; says how many.
    fn discard(&mut self) -> u64 {
        let mut commands = self.references.len() as u64;
        let words = &self.words[self.delivered..];
        let mut at = 0;
        while at < words.len() {
            at += wire::command_len(&words[at..]);
            commands += 1;
        }
        if self.pointers > 0 {
            // SAFETY: the buffer holds whole commands with parcels of this type, owns the pointers of those not
            // delivered, and forgets them here.
            unsafe { wire::drop_commands::<P>(words) };
        }
        self.words.clear();
        self.references.clear();
        (self.delivered, self.pointers, self.referenced) = (0, 0, 0);
        commands
    }
}

impl<P> Drop for RankBuffer<P> {
    fn drop(&mut self) {
        self.discard();
    }
}
