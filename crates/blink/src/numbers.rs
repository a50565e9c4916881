//! Nodes of 64-bit keys: 64 words.
//!
//! ```text
//! word  0, 1   state, meta: see node.rs
//!       2      low fence, exclusive         of the first node of its level: none
//!       3      high fence, inclusive        of the last one: none
//!       4…33   keys, in order; behind the last one the greatest number
//!       34…63  values of a leaf, numbers of an inner node's children
//! ```
//! An inner node with `count` children has a key for each but the last: the high fence of the child. Its last child
//! reaches as far as itself.
//!
//! Of 256 bytes to 4 KiB these were the fastest for single keys.

use crate::key::Key;
use crate::node::{Held, Meta, Node, Side};
use crate::sync::AtomicU64;
use eris_numa::OutOfMemory;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;

/// Words of a node; of the model checker's very small ones.
const WORDS: usize = KEYS + 2 * ROOM;
/// Keys of a leaf, or children of an inner node.
const ROOM: usize = if cfg!(loom) { 3 } else { 30 };
/// How far a search goes in each of its steps, if the key is there: together as many as there is room.
const STEPS: &[usize] = if cfg!(loom) {
    &[2, 1]
} else {
    &[15, 8, 4, 2, 1]
};

const LOW: usize = 2;
const HIGH: usize = 3;
const KEYS: usize = 4;
const VALUES: usize = KEYS + ROOM;

type Number<'a> = Node<'a, u64>;

#[inline]
fn key(node: Number<'_>, at: usize) -> u64 {
    node.word(KEYS + at)
}

/// How many keys are less. The steps are the same for all nodes and keys: no branch is guessed wrong.
#[inline]
fn position(node: Number<'_>, key: u64) -> usize {
    let mut below = 0;
    for step in STEPS {
        let next = below + step;
        // The keys behind the last one are the greatest number, which is not less than any.
        below = select_unpredictable(node.word(KEYS + next - 1) < key, next, below);
    }
    below
}

/// Of so many keys only these are left.
fn truncate(node: &mut Held<'_, u64>, keys: usize) {
    (keys..ROOM).for_each(|at| node.set(KEYS + at, u64::MAX));
}

impl Key for u64 {
    type Ref<'k> = u64;
    type Owned = u64;
    type Entries = Vec<(u64, u64)>;
    type Error = OutOfMemory;
    type Words = [AtomicU64; WORDS];
    type Filling = ();
    const ROOM: usize = ROOM;
    const SPACE: usize = ROOM;
    /// All of it at once: a search would wait for one line after the other.
    const AHEAD: usize = WORDS;

    #[inline]
    fn nodes(words: &[AtomicU64]) -> &[Self::Words] {
        words.as_chunks().0
    }

    #[inline]
    fn check(_: u64) -> Result<(), OutOfMemory> {
        Ok(())
    }

    #[inline]
    fn compare(a: u64, b: u64) -> Ordering {
        a.cmp(&b)
    }

    #[inline]
    fn own(key: u64) -> u64 {
        key
    }

    #[inline]
    fn lend(key: &u64) -> u64 {
        *key
    }

    fn least() -> u64 {
        0
    }

    fn greatest() -> u64 {
        u64::MAX
    }

    fn successor(key: u64) -> Option<u64> {
        key.checked_add(1)
    }

    fn separator(last: u64, _: u64) -> u64 {
        last
    }

    #[cfg(not(loom))]
    #[inline]
    fn pack(key: u64, words: &mut [u64]) -> Option<(usize, u64)> {
        words[0] = key;
        Some((1, 8))
    }

    #[cfg(not(loom))]
    #[inline]
    fn unpack<R>(words: &[u64], _: usize, found: impl FnOnce(u64) -> R) -> R {
        found(words[0])
    }

    #[inline]
    fn side(node: Number<'_>, key: u64, level: u8) -> Side {
        let meta = node.meta();
        let is_node = meta.is_alive() && meta.level() == level;
        if !is_node || (key <= node.word(LOW) && !meta.is_first()) {
            return Side::Elsewhere;
        }
        match key <= node.word(HIGH) || meta.is_last() {
            true => Side::Here,
            false => Side::Right,
        }
    }

    #[inline]
    fn find(node: Number<'_>, key: u64) -> (usize, bool) {
        let at = position(node, key);
        (at, at < node.count() && node.word(KEYS + at) == key)
    }

    #[inline]
    fn child(node: Number<'_>, key: u64) -> u32 {
        // An inner node has fewer keys than children. A leaf that has taken its place may have one more.
        node.word(VALUES + position(node, key).min(ROOM - 1)) as u32
    }

    #[inline]
    fn child_at(node: Number<'_>, at: usize) -> u32 {
        Self::value(node, at) as u32
    }

    #[inline]
    fn value(node: Number<'_>, at: usize) -> u64 {
        node.word(VALUES + at)
    }

    #[inline]
    fn fences(node: Number<'_>) -> (u64, u64) {
        (node.word(LOW), node.word(HIGH))
    }

    #[inline]
    fn size(node: Number<'_>) -> usize {
        node.count()
    }

    #[inline]
    fn read(node: Number<'_>, range: Range<usize>, entries: &mut Vec<(u64, u64)>) {
        let range = range.start..range.end.min(ROOM);
        entries.extend(range.map(|at| (key(node, at), Self::value(node, at))));
    }

    #[inline]
    fn set_value(node: &mut Held<'_, u64>, at: usize, value: u64) {
        node.set(VALUES + at, value);
    }

    #[inline]
    fn insert(node: &mut Held<'_, u64>, at: usize, key: u64, value: u64) -> bool {
        let (meta, count) = (node.node.meta(), node.node.count());
        if count == ROOM {
            return false;
        }
        let value_at = at + usize::from(meta.level() > 0);
        node.move_up(KEYS + at, KEYS + ROOM - 1);
        node.set(KEYS + at, key);
        node.move_up(VALUES + value_at, VALUES + ROOM - 1);
        node.set(VALUES + value_at, value);
        node.set_meta(meta.with_count(count + 1));
        true
    }

    #[inline]
    fn take_out(node: &mut Held<'_, u64>, at: usize) {
        let (meta, count) = (node.node.meta(), node.node.count());
        let value_at = at + usize::from(meta.level() > 0);
        node.move_down(KEYS + at + 1, KEYS + ROOM);
        node.set(KEYS + ROOM - 1, u64::MAX);
        node.move_down(VALUES + value_at + 1, VALUES + ROOM);
        node.set_meta(meta.with_count(count - 1));
    }

    fn divide(
        left: &mut Held<'_, u64>,
        right: &mut Held<'_, u64>,
        number: u32,
        (at, _): (usize, u64),
    ) -> u64 {
        let (meta, count) = (left.node.meta(), left.node.count());
        let above = usize::from(meta.level() > 0);
        // Keys that ascend leave full nodes behind.
        let is_at_end = meta.is_last() && at + above == count;
        let kept = if is_at_end { count - 1 } else { count / 2 };
        let fence = key(left.node, kept - 1);
        truncate(right, 0);
        for at in kept..ROOM {
            right.set(KEYS + at - kept, key(left.node, at));
            right.set(VALUES + at - kept, Self::value(left.node, at));
        }
        right.set(LOW, fence);
        right.set(HIGH, left.node.word(HIGH));
        let of_right = Meta::new(meta.level(), count - kept, meta.right());
        right.set_meta(of_right.last(meta.is_last()));
        // An inner node's last child has no key.
        truncate(left, kept - above);
        left.set(HIGH, fence);
        let of_left = Meta::new(meta.level(), kept, number);
        left.set_meta(of_left.first(meta.is_first()));
        fence
    }

    fn take_all(left: &mut Held<'_, u64>, right: &mut Held<'_, u64>, most: usize) -> bool {
        let (meta, other) = (left.node.meta(), right.node.meta());
        let (count, more) = (left.node.count(), right.node.count());
        if count + more > most {
            return false;
        }
        if meta.level() > 0 {
            // Its last child has had no key.
            left.set(KEYS + count - 1, left.node.word(HIGH));
        }
        for at in 0..more {
            left.set(KEYS + count + at, key(right.node, at));
            left.set(VALUES + count + at, Self::value(right.node, at));
        }
        left.set(HIGH, right.node.word(HIGH));
        let all = Meta::new(meta.level(), count + more, other.right());
        left.set_meta(all.first(meta.is_first()).last(other.is_last()));
        right.set_meta(Meta::dead());
        true
    }

    fn write(
        node: &mut Held<'_, u64>,
        (level, right): (u8, u32),
        (low, high): (Option<u64>, Option<u64>),
        entries: &Vec<(u64, u64)>,
    ) -> bool {
        if entries.len() > ROOM {
            return false;
        }
        let keys = entries.len() - usize::from(level > 0);
        for (at, &(key, value)) in entries.iter().enumerate() {
            node.set(KEYS + at, key);
            node.set(VALUES + at, value);
        }
        truncate(node, keys);
        node.set(LOW, low.unwrap_or(0));
        node.set(HIGH, high.unwrap_or(u64::MAX));
        let meta = Meta::new(level, entries.len(), right);
        node.set_meta(meta.first(low.is_none()).last(high.is_none()));
        true
    }

    fn has_room((): &mut (), _: Option<u64>, entries: &Vec<(u64, u64)>, _: u64, _: u8) -> bool {
        entries.len() < ROOM * 9 / 10
    }
}
