//! A node: 64 words of 64 bits, each of them atomic.
//!
//! ```text
//! word  0      state: version 63 bits │ held
//!       1      meta: right 32 │ count 8 │ level 8 │ flags 8
//!       2      low fence, exclusive         of the first node of its level: none
//!       3      high fence, inclusive        of the last one: none
//!       4…33   keys, in order; behind the last one the greatest number
//!       34…63  values of a leaf, numbers of an inner node's children
//! ```
//! An inner node with `count` children has a key for each but the last: the high fence of the child. Its last child
//! reaches as far as itself.
//!
//! **Who writes** holds the node: the state's lowest bit. When it lets go, the version is another one.
//!
//! **Who reads** writes nothing. It notes the version, reads words, and looks at the version again: if that is the
//! same, all words were of one time. The writer's fence behind taking the hold, and the reader's fence before its
//! second look, see to it that who has read a new word does not find the old version (Boehm, *Can seqlocks get along
//! with programming language memory models?*, MSPC 2012). No word is read that somebody writes without both being
//! atomic, so that a mixture is no data race, and nobody acts on one.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, fence, spin_loop, yield_now};
use std::hint::select_unpredictable;

/// Words of a node; of the model checker's very small ones.
pub(crate) const WORDS: usize = KEYS + 2 * ROOM;
/// Keys of a leaf, or children of an inner node.
pub(crate) const ROOM: usize = if cfg!(loom) { 3 } else { 30 };
/// How far a search goes in each of its steps, if the key is there: together as many as there is room.
const STEPS: &[usize] = if cfg!(loom) {
    &[2, 1]
} else {
    &[15, 8, 4, 2, 1]
};

const STATE: usize = 0;
const META: usize = 1;
const LOW: usize = 2;
const HIGH: usize = 3;
const KEYS: usize = 4;
const VALUES: usize = KEYS + ROOM;

const HELD: u64 = 1;
const FIRST: u64 = 1;
const LAST: u64 = 2;
const ALIVE: u64 = 4;

/// Turns of waiting for somebody who holds a node, before the core is given to others.
const SPINS: u32 = 64;

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(u64);

impl Meta {
    pub fn new(level: u8, count: usize, right: u32) -> Self {
        Meta(u64::from(right) << 32 | (count as u64) << 24 | u64::from(level) << 16 | ALIVE)
    }

    pub fn first(self, is_first: bool) -> Self {
        Meta(self.0 & !FIRST | if is_first { FIRST } else { 0 })
    }

    pub fn last(self, is_last: bool) -> Self {
        Meta(self.0 & !LAST | if is_last { LAST } else { 0 })
    }

    pub fn with_count(self, count: usize) -> Self {
        Meta(self.0 & !(0xFF << 24) | (count as u64) << 24)
    }

    pub fn dead() -> Self {
        Meta(0)
    }

    pub fn right(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Keys of a leaf, children of an inner node. Of words that are no node's it may be anything up to the room.
    pub fn count(self) -> usize {
        ((self.0 >> 24) as u8 as usize).min(ROOM)
    }

    pub fn level(self) -> u8 {
        (self.0 >> 16) as u8
    }

    pub fn is_first(self) -> bool {
        self.0 & FIRST != 0
    }

    pub fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    pub fn is_alive(self) -> bool {
        self.0 & ALIVE != 0
    }
}

/// Where a key is, seen from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Here,
    /// Behind the right link.
    Right,
    /// Somewhere else: the number that led here is an old one.
    Elsewhere,
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(&'a [AtomicU64; WORDS]);

impl<'a> Node<'a> {
    pub fn new(words: &'a [AtomicU64; WORDS]) -> Self {
        Node(words)
    }

    /// Asks for its memory.
    pub fn prefetch(self) {
        eris_kernels::prefetch(self.0);
    }

    #[inline]
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Relaxed)
    }

    #[inline]
    fn set(self, at: usize, word: u64) {
        self.0[at].store(word, Relaxed);
    }

    pub fn meta(self) -> Meta {
        Meta(self.word(META))
    }

    pub fn low(self) -> u64 {
        self.word(LOW)
    }

    pub fn high(self) -> u64 {
        self.word(HIGH)
    }

    pub fn key(self, at: usize) -> u64 {
        self.word(KEYS + at)
    }

    pub fn value(self, at: usize) -> u64 {
        self.word(VALUES + at)
    }

    /// Where a key of a level is.
    #[inline]
    pub fn side(self, key: u64, level: u8) -> Side {
        let meta = self.meta();
        let is_node = meta.is_alive() && meta.level() == level;
        if !is_node || (key <= self.low() && !meta.is_first()) {
            return Side::Elsewhere;
        }
        match key <= self.high() || meta.is_last() {
            true => Side::Here,
            false => Side::Right,
        }
    }

    /// The number of an inner node's child in whose range a key is. Of words that are no inner node's it is any number.
    #[inline]
    pub fn child(self, key: u64) -> u32 {
        // An inner node has fewer keys than children. A leaf that has taken its place may have one more.
        self.value(self.position(key).min(ROOM - 1)) as u32
    }

    /// How many of its keys are less. The steps are the same for all nodes and keys: no branch is guessed wrong.
    #[inline]
    pub fn position(self, key: u64) -> usize {
        let mut below = 0;
        for step in STEPS {
            let next = below + step;
            // The keys behind the last one are the greatest number, which is not less than any.
            below = select_unpredictable(self.word(KEYS + next - 1) < key, next, below);
        }
        below
    }

    /// What `read` finds, all of one time. `None`: somebody holds it, or has changed it meanwhile.
    #[inline]
    pub fn try_read<T>(self, read: impl FnOnce(Self) -> T) -> Option<T> {
        let state = self.0[STATE].load(Acquire);
        if state & HELD != 0 {
            return None;
        }
        let found = read(self);
        fence(Acquire);
        (self.0[STATE].load(Relaxed) == state).then_some(found)
    }

    /// The same, as often as it takes.
    #[inline]
    pub fn read<T>(self, read: impl Fn(Self) -> T) -> T {
        let mut turns = 0;
        loop {
            if let Some(found) = self.try_read(&read) {
                return found;
            }
            wait(&mut turns);
        }
    }

    /// Waits for the right to write.
    pub fn hold(self) -> Held<'a> {
        let mut turns = 0;
        loop {
            if let Some(held) = self.try_hold() {
                return held;
            }
            wait(&mut turns);
        }
    }

    /// The right to write, if nobody has it.
    pub fn try_hold(self) -> Option<Held<'a>> {
        let state = self.0[STATE].load(Relaxed);
        if state & HELD != 0 {
            return None;
        }
        let taken = self.0[STATE].compare_exchange(state, state | HELD, AcqRel, Relaxed);
        taken.ok()?;
        // Before any word is written.
        fence(Release);
        Some(Held {
            node: self,
            state,
            is_changed: false,
        })
    }
}

fn wait(turns: &mut u32) {
    *turns += 1;
    match *turns % SPINS {
        0 => yield_now(),
        _ => spin_loop(),
    }
}

/// The right to write a node. Readers that came before read again, if anything is written.
pub(crate) struct Held<'a> {
    pub node: Node<'a>,
    state: u64,
    is_changed: bool,
}

impl Held<'_> {
    fn set(&mut self, at: usize, word: u64) {
        self.is_changed = true;
        self.node.set(at, word);
    }

    pub fn set_meta(&mut self, meta: Meta) {
        self.set(META, meta.0);
    }

    pub fn set_low(&mut self, low: u64) {
        self.set(LOW, low);
    }

    pub fn set_high(&mut self, high: u64) {
        self.set(HIGH, high);
    }

    pub fn set_key(&mut self, at: usize, key: u64) {
        self.set(KEYS + at, key);
    }

    pub fn set_value(&mut self, at: usize, value: u64) {
        self.set(VALUES + at, value);
    }

    /// Puts a key in before those from a position on, and a value before those from another one on.
    pub fn insert(&mut self, key: (usize, u64), value: (usize, u64)) {
        for (first, (at, word)) in [(KEYS, key), (VALUES, value)] {
            for place in (first + at..first + ROOM - 1).rev() {
                let moved = self.node.word(place);
                self.set(place + 1, moved);
            }
            self.set(first + at, word);
        }
    }

    /// Takes out the key at a position, and the value at another one.
    pub fn take_out(&mut self, key: usize, value: usize) {
        for (first, at) in [(KEYS, key), (VALUES, value)] {
            for place in first + at..first + ROOM - 1 {
                let moved = self.node.word(place + 1);
                self.set(place, moved);
            }
        }
        self.set(KEYS + ROOM - 1, u64::MAX);
    }

    /// Takes all that the node behind its right link has, and its range. That one is dead.
    pub fn take_all(&mut self, right: &mut Held<'_>) {
        let (meta, other) = (self.node.meta(), right.node.meta());
        let count = meta.count();
        if meta.level() > 0 {
            // Its last child has had no key.
            self.set_key(count - 1, self.node.high());
        }
        for at in 0..other.count() {
            self.set_key(count + at, right.node.key(at));
            self.set_value(count + at, right.node.value(at));
        }
        self.set_high(right.node.high());
        let all = Meta::new(meta.level(), count + other.count(), other.right());
        self.set_meta(all.first(meta.is_first()).last(other.is_last()));
        right.set_meta(Meta::dead());
    }

    /// Of so many keys only these are left.
    pub fn truncate(&mut self, keys: usize) {
        (keys..ROOM).for_each(|at| self.set_key(at, u64::MAX));
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let state = match self.is_changed {
            true => self.state.wrapping_add(2),
            false => self.state,
        };
        self.node.0[STATE].store(state, Release);
    }
}
