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

use crate::inbox::{Inbox, Rejected};
use crate::multicast::{Multicast, SharedCommand};
use crate::rank_buffer::{RankBuffer, Reference};
use crate::wire::{self, HEADER_WORDS, PARCEL, SPILLED};
use crate::{Endpoint, Header, Rank, Router};
use eris_types::AeuId;
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
    #[inline(always)]
    pub fn send(
        &mut self,
        target: Endpoint,
        header: Header,
        words: &[u64],
        parcel: Option<Box<P>>,
    ) {
        // In registers: behind a reference, a load of 16 bytes would follow two stores of 8, which the processor cannot
        // forward. That was a third of what sending takes.
        let [sender, callback, kind] = wire::header_words(header);
        match parcel {
            None => self.send_words(target, header.rank, sender, callback, kind, words),
            Some(parcel) => self.send_parcel(target, header, words, parcel),
        }
    }

    /// The same of a command without a parcel, whose first word lies elsewhere than the others.
    #[inline(always)]
    pub fn send_with_first(&mut self, target: Endpoint, header: Header, first: u64, rest: &[u64]) {
        let [sender, callback, kind] = wire::header_words(header);
        let needed = HEADER_WORDS + 1 + rest.len();
        let size = self.buffers.size;
        let Some(to) = self.towards(target) else {
            return;
        };
        let buffer = &mut to.by_rank[header.rank as usize];
        if buffer.words.len() + buffer.referenced + needed <= size {
            let [sender, callback, kind] = wire::complete([sender, callback, kind], 0, needed);
            return buffer.push([sender, callback, kind, first], rest);
        }
        self.push_first_slowly(target, header, first, rest);
    }

    #[cold]
    fn push_first_slowly(&mut self, target: Endpoint, header: Header, first: u64, rest: &[u64]) {
        let words: Vec<u64> = std::iter::once(first).chain(rest.iter().copied()).collect();
        let (rank, header) = (header.rank, wire::header_words(header));
        self.push_slowly(target, rank, header, &words, None);
    }

    #[inline]
    fn send_words(
        &mut self,
        target: Endpoint,
        rank: Rank,
        sender: u64,
        callback: u64,
        kind: u64,
        words: &[u64],
    ) {
        let header = [sender, callback, kind];
        let needed = HEADER_WORDS + words.len();
        let size = self.buffers.size;
        let Some(to) = self.towards(target) else {
            return;
        };
        let buffer = &mut to.by_rank[rank as usize];
        if buffer.words.len() + buffer.referenced + needed <= size {
            buffer.push(wire::complete(header, 0, needed), words);
        } else {
            self.push_slowly(target, rank, header, words, None);
        }
    }

    fn send_parcel(&mut self, target: Endpoint, header: Header, words: &[u64], parcel: Box<P>) {
        if self.towards(target).is_some() {
            let (rank, header) = (header.rank, wire::header_words(header));
            self.push_slowly(target, rank, header, words, Some(parcel));
        }
    }

    /// The buffers of a target to which a command is sent. `None`: it is gone.
    #[inline(always)]
    fn towards(&mut self, target: Endpoint) -> Option<&mut EndpointBuffers<P>> {
        let found = match target.as_aeu() {
            Some(aeu) => self.aeus.get_mut(aeu.index()),
            None => session(&self.router, &mut self.buffers, &mut self.sessions, target),
        };
        let Some(to) = found else {
            self.buffers.traffic.rejected += 1;
            return None;
        };
        self.buffers.traffic.commands += 1;
        if !to.dirty {
            to.dirty = true;
            self.dirty.push(target);
        }
        Some(to)
    }

    /// A command that has a parcel, is too large to be inline, or finds its buffer full. Its target is there.
    #[cold]
    fn push_slowly(
        &mut self,
        target: Endpoint,
        rank: Rank,
        header: [u64; HEADER_WORDS],
        words: &[u64],
        parcel: Option<Box<P>>,
    ) {
        let Outgoing {
            router,
            buffers,
            aeus,
            sessions,
            congested,
            ..
        } = self;
        let to = match target.as_aeu() {
            Some(aeu) => &mut aeus[aeu.index()],
            None => session(router, buffers, sessions, target).expect("it was just found"),
        };
        buffers.push_slowly(to, rank, header, words, parcel, congested);
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
    /// See [`Outgoing::push_slowly`].
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
