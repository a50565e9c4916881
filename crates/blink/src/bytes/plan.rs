//! A node that is written anew: from its fences, and entries in order.

use super::header::{Heap, Shape, Slot};
use super::strings::{common, word_at, words};
use super::{HEADS, HEAP, HIGH_HEAD, LOW_HEAD, PREFIX, ROOM, SHAPE, SPACE, WORDS};
use crate::entries::Entries;
use crate::key::Key;
use crate::node::{Held, Meta, Node};
use std::ops::Range;

/// The range of a node: its low fence, exclusive, and its high fence, inclusive.
#[derive(Clone, Copy)]
pub struct Fences<'f> {
    pub low: Option<&'f [u8]>,
    pub high: Option<&'f [u8]>,
}

impl Fences<'_> {
    /// How many bytes all keys between them have in common.
    fn prefix(self) -> usize {
        self.low
            .zip(self.high)
            .map_or(0, |(low, high)| common(low, high))
    }

    fn words(self) -> usize {
        let of = |fence: Option<&[u8]>| fence.map_or(0, |fence| words(fence.len()));
        of(self.low) + of(self.high)
    }
}

/// How many words an entry takes, with its head and slot.
#[inline]
pub fn words_of(level: u8, key: usize, prefix: usize) -> usize {
    2 + usize::from(level == 0) + words(key.saturating_sub(prefix + 8))
}

/// What a node will have.
pub struct Plan<'e> {
    level: u8,
    fences: Fences<'e>,
    entries: &'e Entries,
    range: Range<usize>,
    prefix: usize,
    /// Words of all entries.
    words: usize,
}

impl<'e> Plan<'e> {
    /// A node of a level with some of these entries. An inner node's last child has no key; what stands there is left
    /// out.
    pub fn new(level: u8, fences: Fences<'e>, entries: &'e Entries, range: Range<usize>) -> Self {
        let prefix = fences.prefix();
        let mut plan = Plan {
            level,
            fences,
            entries,
            range,
            prefix,
            words: 0,
        };
        plan.words = (plan.range.clone())
            .map(|at| words_of(level, plan.key(at).len(), prefix))
            .sum();
        plan
    }

    fn key(&self, at: usize) -> &'e [u8] {
        match self.level > 0 && at + 1 == self.range.end {
            true => &[],
            false => self.entries.get(at).0,
        }
    }

    /// How much of [`SPACE`] it takes.
    pub fn size(&self) -> usize {
        self.words + self.fences.words()
    }

    pub fn fits(&self) -> bool {
        self.size() <= SPACE && self.range.len() <= ROOM
    }

    pub fn write(self, node: &mut Held<'_, [u8]>, right: u32) {
        let Fences { low, high } = self.fences;
        let count = self.range.len();
        let lengths = [low, high].map(|fence| fence.map_or(0, <[u8]>::len));
        // As many places for heads as there will be entries, if those that come are like those that are there.
        let usual = if count == 0 {
            4
        } else {
            self.words.div_ceil(count)
        };
        let capacity = (count + (SPACE - self.size()) / usual).min(ROOM);
        let shape = Shape::new(self.prefix, lengths, capacity);
        for (at, fence) in [(shape.low_at(), low), (shape.high_at(), high)] {
            put(node, at, fence.unwrap_or(&[]), 0);
        }
        for (at, fence) in [(LOW_HEAD, low), (HIGH_HEAD, high)] {
            node.set(at, word_at(fence.unwrap_or(&[]), self.prefix));
        }
        for word in 0..2 {
            node.set(PREFIX + word, word_at(low.unwrap_or(&[]), 8 * word));
        }
        let mut start = shape.high_at();
        for (place, at) in self.range.clone().enumerate() {
            let (key, value) = (self.key(at), self.entries.get(at).1);
            start -= words_of(self.level, key.len(), self.prefix) - 2;
            let slot = put_record(node, self.level, start, (key, self.prefix), value);
            node.set(HEADS + place, word_at(key, self.prefix));
            node.set(HEADS + capacity + place, slot.0);
        }
        node.set(SHAPE, shape.0);
        node.set(HEAP, Heap::new(start, WORDS - start).0);
        let meta = Meta::new(self.level, count, right);
        node.set_meta(meta.first(low.is_none()).last(high.is_none()));
    }
}

/// Writes a string from a byte on.
fn put(node: &mut Held<'_, [u8]>, at: usize, bytes: &[u8], from: usize) {
    for word in 0..words(bytes.len().saturating_sub(from)) {
        node.set(at + word, word_at(bytes, from + 8 * word));
    }
}

/// Writes what of an entry is not in its head: the leaf's value, and the rest of the key.
#[inline]
pub fn put_record(
    node: &mut Held<'_, [u8]>,
    level: u8,
    start: usize,
    (key, prefix): (&[u8], usize),
    value: u64,
) -> Slot {
    let behind = key.len().saturating_sub(prefix);
    match level {
        0 => {
            node.set(start, value);
            put(node, start + 1, key, prefix + 8);
            Slot::new(start, behind, 0)
        }
        _ => {
            put(node, start, key, prefix + 8);
            Slot::new(start, behind, value as u32)
        }
    }
}

/// All that a node has, to write it anew.
pub struct Whole {
    pub level: u8,
    pub right: u32,
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    pub entries: Entries,
}

impl Whole {
    pub fn of(node: Node<'_, [u8]>) -> Self {
        let meta = node.meta();
        let (low, high) = <[u8]>::fences(node);
        let mut entries = Entries::default();
        <[u8]>::read(node, 0..node.count(), &mut entries);
        Whole {
            level: meta.level(),
            right: meta.right(),
            low: (!meta.is_first()).then_some(low),
            high: (!meta.is_last()).then_some(high),
            entries,
        }
    }

    pub fn low(&self) -> Option<&[u8]> {
        self.low.as_deref()
    }

    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// How many entries are half of it, and not all.
    pub fn middle(&self) -> usize {
        let words = |at: usize| {
            words_of(
                self.level,
                self.entries.get(at).0.len(),
                self.fences().prefix(),
            )
        };
        let all: usize = (0..self.entries.len()).map(words).sum();
        let mut before = 0;
        let below = (0..self.entries.len()).take_while(|&at| {
            before += words(at);
            2 * before <= all
        });
        below.count().clamp(1, self.entries.len() - 1)
    }

    pub fn fences(&self) -> Fences<'_> {
        Fences {
            low: self.low(),
            high: self.high(),
        }
    }
}
