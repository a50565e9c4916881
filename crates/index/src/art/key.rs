//! What keys can be: numbers of 64 bits, or strings of bytes.
//!
//! Both are strings of bytes to the tree; a number is its eight bytes from the most significant on. They differ in what
//! a record looks like. The last level of a tree of numbers needs no records: where the path is seven bytes long, the
//! eighth leads to the value itself.
//!
//! ```text
//! record of a number        [key, 8][value, 8]
//! record of a byte string   [value, 8][length, 4][bytes …]      in slots of 16, 32, … bytes
//! ```

use super::node::Prefix;
use crate::hash::Hashed;
use std::cmp::Ordering;
use std::fmt;
use std::ptr::NonNull;

/// A type of keys of [`crate::Art`] and [`crate::HashIndex`]: `u64` or `[u8]`.
pub trait Key: KeyLayout + Hashed {}

impl Key for u64 {}
impl Key for [u8] {}

/// The longest key in bytes.
pub const MAX_KEY: usize = 64 << 10;

/// How the tree handles a type of keys; not for use from outside.
pub trait KeyLayout: 'static {
    /// A key as it is passed: `u64` or `&[u8]`.
    type View<'a>: Copy + Ord + fmt::Debug;
    /// A key that is kept.
    type Owned: Clone + Ord + fmt::Debug + Send + Sync;
    /// As much of a key as is needed to put it together from the way to it.
    type Path: Copy + Default;
    /// Whether every key is eight bytes long, so that the last level holds values.
    const INLINE: bool;

    /// A copy to keep.
    fn own(key: Self::View<'_>) -> Self::Owned;
    /// A kept key as it is passed.
    fn view(key: &Self::Owned) -> Self::View<'_>;
    /// The length in bytes.
    fn length(key: Self::View<'_>) -> usize;
    /// The byte at a depth; `None` beyond the end.
    fn byte(key: Self::View<'_>, depth: usize) -> Option<u8>;
    /// The order of keys. Unlike `Ord` of the views, also for views of different lifetimes.
    fn compare(a: Self::View<'_>, b: Self::View<'_>) -> Ordering;
    /// How many bytes two keys have in common at their beginning.
    fn common(a: Self::View<'_>, b: Self::View<'_>) -> usize;
    /// Whether two keys differ in their last byte at most, if that is quickly told.
    fn adjoin(a: Self::View<'_>, b: Self::View<'_>) -> bool;
    /// How many of the prefix's bytes the key has at `depth`.
    fn matching(prefix: &Prefix, key: Self::View<'_>, depth: usize) -> usize;
    /// The key with another last byte. Keys of eight bytes only.
    fn with_last<'a>(key: Self::View<'a>, byte: u8) -> Self::View<'a>;

    /// The path with the byte at `depth`.
    fn step(path: Self::Path, depth: usize, byte: u8) -> Self::Path;
    /// The key of a whole path. Keys of eight bytes only.
    fn whole<'a>(path: Self::Path) -> Self::View<'a>;

    /// The sizes of records in bytes, ascending.
    fn record_sizes() -> Vec<usize>;
    /// The number of the size of a key's record.
    fn record_size(key: Self::View<'_>) -> usize;
    /// Writes a record.
    ///
    /// # Safety
    /// The slot is the caller's alone, 16-byte aligned and of the size of the key's record.
    unsafe fn write(slot: NonNull<u8>, key: Self::View<'_>, value: u64);
    /// Reads a record's key.
    ///
    /// # Safety
    /// The slot holds a record that nobody changes during `'a`.
    unsafe fn read<'a>(slot: NonNull<u8>) -> Self::View<'a>;
    /// Where a record's value is.
    fn value(slot: NonNull<u8>) -> NonNull<u64>;
}

impl KeyLayout for u64 {
    type View<'a> = u64;
    type Owned = u64;
    type Path = u64;
    const INLINE: bool = true;

    fn own(key: u64) -> u64 {
        key
    }

    fn view(key: &u64) -> Self::View<'_> {
        *key
    }

    #[inline(always)]
    fn length(_: u64) -> usize {
        8
    }

    #[inline(always)]
    fn byte(key: u64, depth: usize) -> Option<u8> {
        // The tree is never deeper than its keys are long.
        Some((key >> (56 - 8 * depth)) as u8)
    }

    #[inline(always)]
    fn compare(a: u64, b: u64) -> Ordering {
        a.cmp(&b)
    }

    #[inline(always)]
    fn common(a: u64, b: u64) -> usize {
        (a ^ b).leading_zeros() as usize / 8
    }

    #[inline(always)]
    fn adjoin(a: u64, b: u64) -> bool {
        (a ^ b) >> 8 == 0
    }

    #[inline(always)]
    fn matching(prefix: &Prefix, key: u64, depth: usize) -> usize {
        let differing = prefix.word() ^ (key << (8 * depth));
        (differing.leading_zeros() as usize / 8).min(prefix.bytes().len())
    }

    fn with_last<'a>(key: Self::View<'a>, byte: u8) -> Self::View<'a> {
        key & !0xFF | u64::from(byte)
    }

    #[inline(always)]
    fn step(path: u64, depth: usize, byte: u8) -> u64 {
        path | u64::from(byte) << (56 - 8 * depth)
    }

    #[inline(always)]
    fn whole<'a>(path: u64) -> Self::View<'a> {
        path
    }

    fn record_sizes() -> Vec<usize> {
        vec![16]
    }

    #[inline(always)]
    fn record_size(_: u64) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn write(slot: NonNull<u8>, key: u64, value: u64) {
        // SAFETY: by contract 16 aligned bytes.
        unsafe { slot.cast::<[u64; 2]>().write([key, value]) }
    }

    #[inline(always)]
    unsafe fn read<'a>(slot: NonNull<u8>) -> Self::View<'a> {
        // SAFETY: by contract written by `write`.
        unsafe { slot.cast::<u64>().read() }
    }

    #[inline(always)]
    fn value(slot: NonNull<u8>) -> NonNull<u64> {
        slot.cast().map_addr(|start| start.saturating_add(8))
    }
}

/// Bytes before the key in the record of a byte string.
const HEADER: usize = 12;
/// Records are multiples of 16 bytes up to this, then there are four sizes per doubling.
const FINE: usize = 128;

impl KeyLayout for [u8] {
    type View<'a> = &'a [u8];
    type Owned = Box<[u8]>;
    type Path = ();
    const INLINE: bool = false;

    fn own(key: &[u8]) -> Box<[u8]> {
        key.into()
    }

    fn view(key: &Box<[u8]>) -> Self::View<'_> {
        key
    }

    fn length(key: &[u8]) -> usize {
        key.len()
    }

    #[inline(always)]
    fn byte(key: &[u8], depth: usize) -> Option<u8> {
        key.get(depth).copied()
    }

    #[inline(always)]
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn common(a: &[u8], b: &[u8]) -> usize {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    }

    fn adjoin(_: &[u8], _: &[u8]) -> bool {
        false
    }

    fn matching(prefix: &Prefix, key: &[u8], depth: usize) -> usize {
        <[u8]>::common(prefix.bytes(), key.get(depth..).unwrap_or_default())
    }

    fn with_last<'a>(_: Self::View<'a>, _: u8) -> Self::View<'a> {
        unreachable!("only the last level of numbers holds values")
    }

    fn step((): (), _: usize, _: u8) {}

    fn whole<'a>((): ()) -> Self::View<'a> {
        unreachable!("only the last level of numbers holds values")
    }

    fn record_sizes() -> Vec<usize> {
        let fine = (16..=FINE).step_by(16);
        let coarse = (FINE.ilog2()..).flat_map(|bits| (5..=8).map(move |step| step << (bits - 2)));
        let mut sizes: Vec<usize> = fine.collect();
        sizes.extend(
            coarse.take_while(|&size| size <= (MAX_KEY + HEADER).next_power_of_two() * 5 / 8),
        );
        sizes
    }

    fn record_size(key: &[u8]) -> usize {
        let bytes = key.len() + HEADER;
        if bytes <= FINE {
            return bytes.div_ceil(16) - 1;
        }
        // The size is step << (bits - 2) for the smallest step of 5 to 8 that is enough.
        let bits = (bytes - 1).ilog2();
        let step = bytes.div_ceil(1 << (bits - 2));
        FINE / 16 + (bits - FINE.ilog2()) as usize * 4 + step - 5
    }

    unsafe fn write(slot: NonNull<u8>, key: &[u8], value: u64) {
        // SAFETY: by contract the slot has room for the header and the key's bytes, and is aligned to 16.
        unsafe {
            slot.cast::<u64>().write(value);
            slot.add(8).cast::<u32>().write(key.len() as u32);
            slot.add(HEADER)
                .copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
        }
    }

    unsafe fn read<'a>(slot: NonNull<u8>) -> Self::View<'a> {
        // SAFETY: by contract written by `write` and unchanged during the lifetime.
        unsafe {
            let length = slot.add(8).cast::<u32>().read() as usize;
            std::slice::from_raw_parts(slot.add(HEADER).as_ptr(), length)
        }
    }

    fn value(slot: NonNull<u8>) -> NonNull<u64> {
        slot.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_fits_its_size_with_little_waste() {
        let sizes = <[u8]>::record_sizes();
        assert!(sizes.is_sorted() && sizes.iter().all(|size| size % 16 == 0));
        let key = vec![0; MAX_KEY];
        for length in (0..2000).chain([9000, 40_000, MAX_KEY - 1, MAX_KEY]) {
            let size = <[u8]>::record_size(&key[..length]);
            assert!(
                sizes[size] >= length + HEADER,
                "{length} bytes in {}",
                sizes[size]
            );
            assert!(
                size == 0 || sizes[size - 1] < length + HEADER,
                "{length} bytes in {}",
                sizes[size]
            );
        }
    }
}
