//! What waits at a sender for one target, and has one rank: words that are ready to be copied, and references to
//! multicast commands between them.

use crate::inbox::ReservedSlot;
use crate::multicast::Multicast;
use crate::wire;
use std::marker::PhantomData;

/// What waits for one endpoint and has one rank.
pub(crate) struct RankBuffer<P> {
    pub words: Vec<u64>,
    /// Words at the front that were delivered when there was no room for all.
    pub delivered: usize,
    /// How many commands own pointers, at most.
    pub pointers: usize,
    pub references: Vec<Reference>,
    /// Words of the multicast commands that the references name.
    pub referenced: usize,
    /// Of what the words own.
    parcels: PhantomData<fn(P) -> P>,
}

/// Multicast command number `entry` belongs between the buffer's words before and after `at`.
pub(crate) struct Reference {
    pub at: usize,
    pub entry: usize,
}

impl<P> RankBuffer<P> {
    pub fn new() -> Self {
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
    pub fn len(&self) -> usize {
        self.words.len() - self.delivered + self.referenced
    }

    /// Appends the first words of a command and the others.
    #[inline(always)]
    pub fn push<const FIRST: usize>(&mut self, first: [u64; FIRST], rest: &[u64]) {
        let (len, needed) = (self.words.len(), FIRST + rest.len());
        self.words.reserve(needed);
        // SAFETY: room for `needed` words behind the last one was just reserved, and all of them are written; the
        // sources are elsewhere, for this is the only reference to the buffer. One check of the capacity instead of
        // two: this is the hottest line of the crate.
        unsafe {
            let to = self.words.as_mut_ptr().add(len);
            to.cast::<[u64; FIRST]>().write(first);
            let to = to.add(FIRST);
            // Few words are copied one by one, without a call: mostly they were just written one by one.
            match *rest {
                [] => {}
                [a] => to.write(a),
                [a, b] => to.cast::<[u64; 2]>().write([a, b]),
                [a, b, c] => to.cast::<[u64; 3]>().write([a, b, c]),
                [a, b, c, d] => to.cast::<[u64; 4]>().write([a, b, c, d]),
                _ => to.copy_from_nonoverlapping(rest.as_ptr(), rest.len()),
            }
            self.words.set_len(len + needed);
        }
    }

    /// Empties the buffer into room of its length.
    pub fn copy_into(&mut self, mut slot: ReservedSlot<'_>, multicast: &mut Multicast) {
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
    pub fn materialise(&mut self, multicast: &mut Multicast) {
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
    pub fn prefix(&self, room: usize) -> usize {
        let words = &self.words[self.delivered..];
        let mut at = 0;
        while at < words.len() && at + wire::command_len(&words[at..]) <= room {
            at += wire::command_len(&words[at..]);
        }
        at
    }

    /// Forgets commands whose pointers the inbox owns now.
    pub fn remove_delivered(&mut self, len: usize) {
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
    pub fn discard(&mut self) -> u64 {
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
