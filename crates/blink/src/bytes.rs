//! Nodes of byte strings: 512 words.
//!
//! ```text
//! word  0, 1   state, meta: see node.rs
//!       2      bytes of the prefix 16 │ of the low fence 16 │ of the high fence 16 │ capacity 16
//!       3      where the records begin 16 │ words of those that are in use, and of the fences 16
//!       4, 5   heads of the low fence, exclusive, and of the high one, inclusive
//!       6, 7   the first 16 bytes of the prefix
//!       8…     heads of the keys, in order         as many places as the capacity
//!       …      slots: bytes behind the prefix 16 │ where the record is 16 │ an inner node's child 32      likewise
//!       …      free
//!       …      records: a leaf's value, and what of the key is behind its head
//!       … 511  the high fence, and the low one
//! ```
//! All keys between both fences begin as both do. This *prefix* is not stored with the keys. A *head* is the eight
//! bytes behind it as a number, with zeros behind the end (Graefe and Larson, *B-tree indexes and CPU caches*, ICDE
//! 2001).
//! Most searches look at heads, and at one record. Where a fence may lie anywhere between two keys, it is a short one
//! (Bayer and Unterauer, *Prefix B-trees*, TODS 1977). So the prefix of a leaf is all that its neighbours share.
//!
//! In an inner node each child has the high fence as its key, but for the last one, which has none.
//!
//! A record is put before the others. One that is taken out leaves its words unused until the node is written anew,
//! which is when there is no room before them.
//!
//! Who reads may find words of two times. So no number in a word is believed: lengths and places are cut to what a node
//! can have, and a word behind its end is none.

mod divide;
mod header;
mod plan;
mod search;
mod strings;

use crate::entries::{Buffer, Entries};
use crate::error::PutError;
use crate::key::Key;
#[cfg(not(loom))]
use crate::long_keys::KEY_WORDS;
use crate::node::{Held, Meta, Node, Side};
use crate::sync::AtomicU64;
use divide::{division, insert_anew};
use header::{Heap, Shape, Slot};
use plan::{Fences, Plan, Whole, put_record, words_of};
use search::{compare_at, compare_prefix, compare_rest, heads_below, keys, peek};
use std::cmp::Ordering;
use std::ops::Range;
use strings::{common, separator, word_at, words};

/// The most bytes of a key. A node has room for both fences and another key.
pub const KEY_BYTES: usize = if cfg!(loom) { 8 } else { 1024 };

/// Words of a node; of the model checker's very small ones.
const WORDS: usize = if cfg!(loom) { 19 } else { 512 };
/// Words behind the header.
const SPACE: usize = WORDS - HEADS;
/// The most entries: each has a head and a slot.
const ROOM: usize = SPACE / 2;
/// A node that is written anew and then has fewer free words is divided: it would soon be full again.
const SPARE: usize = WORDS / 16;
/// A node is built as full as this.
const BUILT: usize = SPACE * 9 / 10;

const SHAPE: usize = 2;
const HEAP: usize = 3;
const LOW_HEAD: usize = 4;
const HIGH_HEAD: usize = 5;
const PREFIX: usize = 6;
const HEADS: usize = 8;

type Bytes<'a> = Node<'a, [u8]>;

/// What of a leaf's record, or of an inner node's, is its own.
fn record_words(level: u8, slot: Slot) -> usize {
    words_of(level, slot.bytes(), 0) - 2
}

impl Key for [u8] {
    type Ref<'k> = &'k [u8];
    type Owned = Vec<u8>;
    type Entries = Entries;
    type Error = PutError;
    type Words = [AtomicU64; WORDS];
    /// The prefix, and words of all entries.
    type Filling = (usize, usize);
    const ROOM: usize = ROOM;
    const SPACE: usize = SPACE;
    /// The header and the heads.
    const AHEAD: usize = if cfg!(loom) { WORDS } else { HEADS + 128 };

    #[inline]
    fn nodes(words: &[AtomicU64]) -> &[Self::Words] {
        words.as_chunks().0
    }

    #[inline]
    fn check(key: &[u8]) -> Result<(), PutError> {
        match key.len() > KEY_BYTES {
            true => Err(PutError::TooLong(key.len())),
            false => Ok(()),
        }
    }

    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn own(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }

    fn lend(key: &Vec<u8>) -> &[u8] {
        key
    }

    fn least() -> &'static [u8] {
        &[]
    }

    fn greatest() -> &'static [u8] {
        &[u8::MAX; KEY_BYTES + 1]
    }

    fn successor(key: &[u8]) -> Option<Vec<u8>> {
        Some([key, &[0]].concat())
    }

    fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
        separator(last, next)
    }

    #[cfg(not(loom))]
    fn pack(key: &[u8], words: &mut [u64]) -> Option<(usize, u64)> {
        let pieces = key.chunks(8);
        let count = pieces.len();
        let words = words.get_mut(..count)?;
        for (at, word) in words.iter_mut().enumerate() {
            *word = word_at(key, 8 * at);
        }
        Some((count, key.len() as u64))
    }

    #[cfg(not(loom))]
    fn unpack<R>(words: &[u64], bytes: usize, found: impl FnOnce(&[u8]) -> R) -> R {
        let mut key = [0; 8 * KEY_WORDS];
        for (word, into) in words.iter().zip(key.as_chunks_mut::<8>().0) {
            *into = word.to_be_bytes();
        }
        found(&key[..bytes])
    }

    #[inline]
    fn side(node: Bytes<'_>, key: &[u8], level: u8) -> Side {
        let meta = node.meta();
        if !meta.is_alive() || meta.level() != level {
            return Side::Elsewhere;
        }
        let shape = Shape::of(node);
        match compare_prefix(node, shape, key) {
            Ordering::Less => return Side::Elsewhere,
            Ordering::Greater => return Side::Right,
            Ordering::Equal => (),
        }
        let head = word_at(key, shape.prefix());
        let beside = |of_fence: u64, at: usize, bytes: usize| {
            head.cmp(&of_fence)
                .then_with(|| compare_at(node, at, bytes, key))
        };
        let is_above = |of_fence, at, bytes| beside(of_fence, at, bytes) == Ordering::Greater;
        if !meta.is_first() && !is_above(node.word(LOW_HEAD), shape.low_at(), shape.low()) {
            return Side::Elsewhere;
        }
        match !meta.is_last() && is_above(node.word(HIGH_HEAD), shape.high_at(), shape.high()) {
            true => Side::Right,
            false => Side::Here,
        }
    }

    #[inline]
    fn find(node: Bytes<'_>, key: &[u8]) -> (usize, bool) {
        let (shape, count) = (Shape::of(node), keys(node));
        let head = word_at(key, shape.prefix());
        let first = heads_below(node, head, count);
        let has_head = |at: usize| at < count && node.word(HEADS + at) == head;
        if !has_head(first) {
            return (first, false);
        }
        let (mut from, mut to) = (first, first + 1);
        if has_head(to) {
            let next = head.checked_add(1);
            to = next.map_or(count, |next| heads_below(node, next, count));
        }
        while from < to {
            let middle = (from + to) / 2;
            match compare_rest(node, shape, middle, key) {
                Ordering::Greater => from = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Less => to = middle,
            }
        }
        (from, false)
    }

    #[inline]
    fn child(node: Bytes<'_>, key: &[u8]) -> u32 {
        Self::child_at(node, Self::find(node, key).0)
    }

    #[inline]
    fn child_at(node: Bytes<'_>, at: usize) -> u32 {
        Slot::of(node, Shape::of(node), at).child()
    }

    #[inline]
    fn value(node: Bytes<'_>, at: usize) -> u64 {
        peek(node, Slot::of(node, Shape::of(node), at).record())
    }

    #[inline]
    fn fences(node: Bytes<'_>) -> (Vec<u8>, Vec<u8>) {
        let shape = Shape::of(node);
        let read = |at: usize, bytes: usize| {
            let words = (0..words(bytes)).flat_map(|word| peek(node, at + word).to_be_bytes());
            words.take(bytes).collect()
        };
        (
            read(shape.low_at(), shape.low()),
            read(shape.high_at(), shape.high()),
        )
    }

    #[inline]
    fn size(node: Bytes<'_>) -> usize {
        2 * node.count() + Heap(node.word(HEAP)).used()
    }

    fn read(node: Bytes<'_>, range: Range<usize>, entries: &mut Entries) {
        let (shape, level) = (Shape::of(node), node.meta().level());
        let (keys, count) = (keys(node), node.count());
        let prefix = shape.prefix();
        let mut start = [0; KEY_BYTES + 8];
        for word in 0..words(prefix) {
            let of_node = peek(node, shape.low_at() + word);
            start[8 * word..8 * word + 8].copy_from_slice(&of_node.to_be_bytes());
        }
        for at in range.start..range.end.min(count) {
            let slot = Slot::of(node, shape, at);
            let value = match level {
                0 => peek(node, slot.record()),
                _ => u64::from(slot.child()),
            };
            let bytes = if at < keys { prefix + slot.bytes() } else { 0 };
            let rest = slot.record() + usize::from(level == 0);
            entries.add_with(bytes.min(KEY_BYTES), value, |into| {
                into.extend_from_slice(&start[..prefix]);
                into.extend_from_slice(&node.word(HEADS + at).to_be_bytes());
                for word in 0..words(slot.bytes().saturating_sub(8)) {
                    into.extend_from_slice(&peek(node, rest + word).to_be_bytes());
                }
            });
        }
    }

    #[inline]
    fn set_value(node: &mut Held<'_, [u8]>, at: usize, value: u64) {
        let slot = Slot::of(node.node, Shape::of(node.node), at);
        node.set(slot.record(), value);
    }

    #[inline]
    fn insert(node: &mut Held<'_, [u8]>, at: usize, key: &[u8], value: u64) -> bool {
        let (meta, count, level) = (
            node.node.meta(),
            node.node.count(),
            node.node.meta().level(),
        );
        let (shape, heap) = (Shape::of(node.node), Heap(node.node.word(HEAP)));
        let (prefix, capacity) = (shape.prefix(), shape.capacity());
        let record = words_of(level, key.len(), prefix) - 2;
        if count == capacity || heap.start() < HEADS + 2 * capacity + record {
            return insert_anew(node, at, key, value);
        }
        let start = heap.start() - record;
        let slots = HEADS + capacity;
        let mut slot = put_record(node, level, start, (key, prefix), value);
        node.move_up(HEADS + at, HEADS + count);
        node.move_up(slots + at, slots + count);
        if level > 0 {
            // The child that was divided keeps the range below the new fence.
            let divided = Slot(node.node.word(slots + at));
            node.set(slots + at + 1, divided.with_child(value as u32).0);
            slot = slot.with_child(divided.child());
        }
        node.set(HEADS + at, word_at(key, prefix));
        node.set(slots + at, slot.0);
        node.set(HEAP, Heap::new(start, heap.used() + record).0);
        node.set_meta(meta.with_count(count + 1));
        true
    }

    #[inline]
    fn take_out(node: &mut Held<'_, [u8]>, at: usize) {
        let (meta, count, level) = (
            node.node.meta(),
            node.node.count(),
            node.node.meta().level(),
        );
        let (shape, heap) = (Shape::of(node.node), Heap(node.node.word(HEAP)));
        let slots = HEADS + shape.capacity();
        let slot = Slot(node.node.word(slots + at));
        if level > 0 {
            // The child before takes the range of the one that goes.
            let next = Slot(node.node.word(slots + at + 1));
            node.set(slots + at + 1, next.with_child(slot.child()).0);
        }
        node.move_down(HEADS + at + 1, HEADS + count);
        node.move_down(slots + at + 1, slots + count);
        let used = heap.used() - record_words(level, slot);
        node.set(HEAP, Heap::new(heap.start(), used).0);
        node.set_meta(meta.with_count(count - 1));
    }

    fn divide(
        left: &mut Held<'_, [u8]>,
        right: &mut Held<'_, [u8]>,
        number: u32,
        new: (usize, &[u8]),
    ) -> Vec<u8> {
        let whole = Whole::of(left.node);
        let (level, count) = (whole.level, whole.entries.len());
        let is_at_end = whole.high().is_none() && new.0 + usize::from(level > 0) == count;
        let (kept, fence) = division(&whole, is_at_end, new);
        let behind = Fences {
            low: Some(&fence),
            high: whole.high(),
        };
        let before = Fences {
            low: whole.low(),
            high: Some(&fence),
        };
        Plan::new(level, behind, &whole.entries, kept..count).write(right, whole.right);
        Plan::new(level, before, &whole.entries, 0..kept).write(left, number);
        fence
    }

    fn take_all(left: &mut Held<'_, [u8]>, right: &mut Held<'_, [u8]>, most: usize) -> bool {
        let sizes = [&*left, &*right].map(|node| Self::size(node.node));
        let between = words(Shape::of(left.node).high());
        if sizes[0] + sizes[1] > most + 2 * between {
            return false;
        }
        let (whole, other) = (Whole::of(left.node), Whole::of(right.node));
        let (level, count) = (whole.level, whole.entries.len());
        let mut all = Entries::default();
        for (at, (key, value)) in whole.entries.iter().enumerate() {
            // An inner node's last child has had no key.
            let has_none = level > 0 && at + 1 == count;
            let key = if has_none {
                whole.high().unwrap_or(&[])
            } else {
                key
            };
            all.add(key, value);
        }
        other
            .entries
            .iter()
            .for_each(|(key, value)| all.add(key, value));
        let fences = Fences {
            low: whole.low(),
            high: other.high(),
        };
        let plan = Plan::new(level, fences, &all, 0..all.len());
        let fits = plan.fits() && plan.size() <= most;
        if fits {
            plan.write(left, other.right);
            right.set_meta(Meta::dead());
        }
        fits
    }

    fn write(
        node: &mut Held<'_, [u8]>,
        (level, right): (u8, u32),
        (low, high): (Option<&[u8]>, Option<&[u8]>),
        entries: &Entries,
    ) -> bool {
        let plan = Plan::new(level, Fences { low, high }, entries, 0..entries.len());
        let fits = plan.fits();
        if fits {
            plan.write(node, right);
        }
        fits
    }

    fn has_room(
        (prefix, used): &mut (usize, usize),
        low: Option<&[u8]>,
        entries: &Entries,
        key: &[u8],
        level: u8,
    ) -> bool {
        // As much as all keys share with the low fence, they share with a high fence that is one of them.
        let shared = low.map_or(0, |low| common(low, key));
        if entries.is_empty() || shared < *prefix {
            *prefix = shared;
            let lengths = entries.iter().map(|(key, _)| key.len());
            *used = lengths.map(|bytes| words_of(level, bytes, shared)).sum();
        }
        *used += words_of(level, key.len(), *prefix);
        let fences = low.map_or(0, |low| words(low.len())) + words(key.len() + 1);
        entries.is_empty() || *used + fences <= BUILT
    }
}
