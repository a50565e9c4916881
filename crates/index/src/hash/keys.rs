//! What a slot holds of a key, and where it belongs.

use crate::art::KeyLayout;
use foldhash::quality::FixedState;
use std::hash::{BuildHasher, Hasher};

/// How the hash index handles a type of keys; not for use from outside.
pub trait Hashed: KeyLayout {
    /// What a slot holds: a number itself, the hash of a string of bytes, which is never zero.
    fn word(key: Self::View<'_>, hasher: &FixedState) -> u64;
    /// The key of a word. Numbers only.
    fn key<'a>(word: u64) -> Self::View<'a>;
    /// The hash of the key of a word.
    fn spread(word: u64, hasher: &FixedState) -> u64;
}

impl Hashed for u64 {
    #[inline(always)]
    fn word(key: u64, _: &FixedState) -> u64 {
        key
    }

    fn key<'a>(word: u64) -> Self::View<'a> {
        word
    }

    #[inline(always)]
    fn spread(word: u64, hasher: &FixedState) -> u64 {
        hasher.hash_one(word)
    }
}

impl Hashed for [u8] {
    #[inline(always)]
    fn word(key: &[u8], hasher: &FixedState) -> u64 {
        let mut hasher = hasher.build_hasher();
        hasher.write(key);
        hasher.finish().max(1)
    }

    fn key<'a>(_: u64) -> Self::View<'a> {
        unreachable!("strings of bytes lie in records")
    }

    #[inline(always)]
    fn spread(word: u64, _: &FixedState) -> u64 {
        word
    }
}
