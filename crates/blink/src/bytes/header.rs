//! Words of a node that have several numbers each.
//!
//! Who reads may find any words. So what is read is cut to what a node can have.

use super::search::peek;
use super::strings::words;
use super::{Bytes, HEADS, KEY_BYTES, ROOM, SHAPE, WORDS};

/// Lengths, and how many heads there are places for.
#[derive(Clone, Copy)]
pub struct Shape(pub u64);

impl Shape {
    pub fn new(prefix: usize, [low, high]: [usize; 2], capacity: usize) -> Self {
        Shape((prefix as u64) << 48 | (low as u64) << 32 | (high as u64) << 16 | capacity as u64)
    }

    #[inline]
    pub fn of(node: Bytes<'_>) -> Self {
        Shape(node.word(SHAPE))
    }

    #[inline]
    pub fn prefix(self) -> usize {
        ((self.0 >> 48) as usize).min(KEY_BYTES)
    }

    #[inline]
    pub fn low(self) -> usize {
        ((self.0 >> 32) as u16 as usize).min(KEY_BYTES)
    }

    #[inline]
    pub fn high(self) -> usize {
        ((self.0 >> 16) as u16 as usize).min(KEY_BYTES)
    }

    #[inline]
    pub fn capacity(self) -> usize {
        (self.0 as u16 as usize).min(ROOM)
    }

    #[inline]
    pub fn low_at(self) -> usize {
        WORDS - words(self.low())
    }

    #[inline]
    pub fn high_at(self) -> usize {
        self.low_at() - words(self.high())
    }
}

/// Where records begin, and how many words of them and of the fences are in use.
#[derive(Clone, Copy)]
pub struct Heap(pub u64);

impl Heap {
    pub fn new(start: usize, used: usize) -> Self {
        Heap((start as u64) << 16 | used as u64)
    }

    pub fn start(self) -> usize {
        (self.0 >> 16) as usize
    }

    pub fn used(self) -> usize {
        self.0 as u16 as usize
    }
}

/// Where the record of an entry is.
#[derive(Clone, Copy)]
pub struct Slot(pub u64);

impl Slot {
    pub fn new(record: usize, bytes: usize, child: u32) -> Self {
        Slot((bytes as u64) << 48 | (record as u64) << 32 | u64::from(child))
    }

    #[inline]
    pub fn of(node: Bytes<'_>, shape: Shape, at: usize) -> Self {
        Slot(peek(node, HEADS + shape.capacity() + at))
    }

    /// Bytes of the key behind the prefix.
    #[inline]
    pub fn bytes(self) -> usize {
        ((self.0 >> 48) as usize).min(KEY_BYTES)
    }

    #[inline]
    pub fn record(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }

    #[inline]
    pub fn child(self) -> u32 {
        self.0 as u32
    }

    pub fn with_child(self, child: u32) -> Self {
        Slot(self.0 & !0xFFFF_FFFF | u64::from(child))
    }
}
