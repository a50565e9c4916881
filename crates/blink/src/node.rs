//! A node: words of 64 bits, each of them atomic.
//!
//! ```text
//! word  0   state: version 63 bits │ held
//!       1   meta: right 32 │ count 8 │ level 8 │ flags 8
//!       2…  fences and entries: see numbers.rs and bytes.rs
//! ```
//! **Who writes** holds the node: the state's lowest bit. When it lets go, the version is another one.
//!
//! **Who reads** writes nothing. It notes the version, reads words, and looks at the version again: if that is the
//! same, all words were of one time. The writer's fence behind taking the hold, and the reader's fence before its
//! second look, see to it that who has read a new word does not find the old version (Boehm, *Can seqlocks get along
//! with programming language memory models?*, MSPC 2012). No word is read that somebody writes without both being
//! atomic, so that a mixture is no data race, and nobody acts on one.

use crate::key::Key;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, fence, spin_loop, yield_now};

const STATE: usize = 0;
const META: usize = 1;

const HELD: u64 = 1;
const FIRST: u64 = 1;
const LAST: u64 = 2;
const ALIVE: u64 = 4;

/// Turns of waiting for somebody who holds a node, before the core is given to others.
const SPINS: u32 = 64;

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta(u64);

impl Meta {
    #[inline]
    pub fn new(level: u8, count: usize, right: u32) -> Self {
        Meta(u64::from(right) << 32 | (count as u64) << 24 | u64::from(level) << 16 | ALIVE)
    }

    pub fn first(self, is_first: bool) -> Self {
        Meta(self.0 & !FIRST | if is_first { FIRST } else { 0 })
    }

    pub fn last(self, is_last: bool) -> Self {
        Meta(self.0 & !LAST | if is_last { LAST } else { 0 })
    }

    #[inline]
    pub fn with_count(self, count: usize) -> Self {
        Meta(self.0 & !(0xFF << 24) | (count as u64) << 24)
    }

    pub fn dead() -> Self {
        Meta(0)
    }

    #[inline]
    pub fn right(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub fn level(self) -> u8 {
        (self.0 >> 16) as u8
    }

    #[inline]
    pub fn is_first(self) -> bool {
        self.0 & FIRST != 0
    }

    #[inline]
    pub fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    #[inline]
    pub fn is_alive(self) -> bool {
        self.0 & ALIVE != 0
    }
}

/// Where a key is, seen from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Here,
    /// Behind the right link.
    Right,
    /// Somewhere else: the number that led here is an old one.
    Elsewhere,
}

pub struct Node<'a, K: Key + ?Sized>(&'a K::Words);

impl<K: Key + ?Sized> Clone for Node<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + ?Sized> Copy for Node<'_, K> {}

impl<'a, K: Key + ?Sized> Node<'a, K> {
    #[inline]
    pub fn new(words: &'a K::Words) -> Self {
        Node(words)
    }

    #[inline]
    pub fn words(self) -> &'a [AtomicU64] {
        self.0.as_ref()
    }

    #[inline]
    pub fn word(self, at: usize) -> u64 {
        self.words()[at].load(Relaxed)
    }

    #[inline]
    pub fn meta(self) -> Meta {
        Meta(self.word(META))
    }

    /// Keys of a leaf, children of an inner node. Of words that are no node's it may be anything up to the room.
    #[inline]
    pub fn count(self) -> usize {
        ((self.meta().0 >> 24) as u8 as usize).min(K::ROOM)
    }

    /// What `read` finds, all of one time. `None`: somebody holds it, or has changed it meanwhile.
    #[inline]
    fn try_read<T>(self, read: impl FnOnce(Self) -> T) -> Option<T> {
        let state = self.words()[STATE].load(Acquire);
        if state & HELD != 0 {
            return None;
        }
        let found = read(self);
        fence(Acquire);
        (self.words()[STATE].load(Relaxed) == state).then_some(found)
    }

    /// The same, as often as it takes.
    #[inline]
    pub fn read<T>(self, mut read: impl FnMut(Self) -> T) -> T {
        let mut turns = 0;
        loop {
            if let Some(found) = self.try_read(&mut read) {
                return found;
            }
            wait(&mut turns);
        }
    }

    /// Waits for the right to write.
    #[inline]
    pub fn hold(self) -> Held<'a, K> {
        let mut turns = 0;
        loop {
            if let Some(held) = self.try_hold() {
                return held;
            }
            wait(&mut turns);
        }
    }

    /// The right to write, if nobody has it.
    #[inline]
    pub fn try_hold(self) -> Option<Held<'a, K>> {
        let word = &self.words()[STATE];
        let state = word.load(Relaxed);
        if state & HELD != 0 {
            return None;
        }
        let taken = word.compare_exchange(state, state | HELD, AcqRel, Relaxed);
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

#[inline]
fn wait(turns: &mut u32) {
    *turns += 1;
    match *turns % SPINS {
        0 => yield_now(),
        _ => spin_loop(),
    }
}

/// The right to write a node. Readers that came before read again, if anything is written.
pub struct Held<'a, K: Key + ?Sized> {
    pub node: Node<'a, K>,
    state: u64,
    is_changed: bool,
}

impl<K: Key + ?Sized> Held<'_, K> {
    #[inline]
    pub fn set(&mut self, at: usize, word: u64) {
        self.is_changed = true;
        self.node.words()[at].store(word, Relaxed);
    }

    #[inline]
    pub fn set_meta(&mut self, meta: Meta) {
        self.set(META, meta.0);
    }

    /// Moves words to the place behind the one where they begin.
    #[inline]
    pub fn move_up(&mut self, first: usize, end: usize) {
        for at in (first..end).rev() {
            let moved = self.node.word(at);
            self.set(at + 1, moved);
        }
    }

    /// Moves words to the place before the one where they begin.
    #[inline]
    pub fn move_down(&mut self, first: usize, end: usize) {
        for at in first..end {
            let moved = self.node.word(at);
            self.set(at - 1, moved);
        }
    }
}

impl<K: Key + ?Sized> Drop for Held<'_, K> {
    #[inline]
    fn drop(&mut self) {
        let state = match self.is_changed {
            true => self.state.wrapping_add(2),
            false => self.state,
        };
        self.node.words()[STATE].store(state, Release);
    }
}
