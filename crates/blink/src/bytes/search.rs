//! Where a key is among those of a node.

use super::header::{Shape, Slot};
use super::strings::{word_at, words};
use super::{Bytes, HEADS, PREFIX};
use crate::sync::Ordering::Relaxed;
use std::cmp::Ordering;
use std::hint::select_unpredictable;

/// A word, if the node has it.
#[inline]
pub fn peek(node: Bytes<'_>, at: usize) -> u64 {
    node.words().get(at).map_or(0, |word| word.load(Relaxed))
}

/// How a key is ordered that is compared with a string in a node.
#[inline]
pub fn compare_at(node: Bytes<'_>, at: usize, bytes: usize, key: &[u8]) -> Ordering {
    for word in 0..words(bytes.min(key.len())) {
        let (own, other) = (word_at(key, 8 * word), peek(node, at + word));
        if own != other {
            return own.cmp(&other);
        }
    }
    key.len().cmp(&bytes)
}

/// How a key is ordered beside all that begin as the node's do. `Equal`: it does.
#[inline]
pub fn compare_prefix(node: Bytes<'_>, shape: Shape, key: &[u8]) -> Ordering {
    let prefix = shape.prefix();
    for word in 0..words(prefix) {
        let of_node = match word {
            0 | 1 => node.word(PREFIX + word),
            _ => peek(node, shape.low_at() + word),
        };
        let differ = word_at(key, 8 * word) ^ of_node;
        if (differ.leading_zeros() as usize) < 64.min(8 * (prefix - 8 * word)) {
            return word_at(key, 8 * word).cmp(&of_node);
        }
    }
    match key.len() < prefix {
        true => Ordering::Less,
        false => Ordering::Equal,
    }
}

/// How many of a node's first heads are less.
#[inline]
pub fn heads_below(node: Bytes<'_>, head: u64, count: usize) -> usize {
    let (mut below, mut left) = (0, count);
    while left > 1 {
        let half = left / 2;
        let is_less = node.word(HEADS + below + half - 1) < head;
        below = select_unpredictable(is_less, below + half, below);
        left -= half;
    }
    below + usize::from(left == 1 && node.word(HEADS + below) < head)
}

/// Keys of a node. An inner node's last child has none.
#[inline]
pub fn keys(node: Bytes<'_>) -> usize {
    node.count()
        .saturating_sub(usize::from(node.meta().level() > 0))
}

/// How a key is ordered beside the one at a position that has the same head.
#[inline]
pub fn compare_rest(node: Bytes<'_>, shape: Shape, at: usize, key: &[u8]) -> Ordering {
    let slot = Slot::of(node, shape, at);
    let rest = slot.record() + usize::from(node.meta().level() == 0);
    let behind = key.get(shape.prefix()..).unwrap_or(&[]);
    let of_key = behind.get(8..).unwrap_or(&[]);
    compare_at(node, rest, slot.bytes().saturating_sub(8), of_key)
        .then(behind.len().cmp(&slot.bytes()))
}
