//! What a node does differently for each kind of keys.
//!
//! ```text
//! Tree<K>   way down, splits, merges, batches, ranges     the same for all keys
//! Node<K>   version, who holds it, level, right link      the same for all keys
//! K         fences, search, entries in words              numbers: numbers.rs    byte strings: bytes.rs
//! ```

use crate::entries::Buffer;
use crate::node::{Held, Node, Side};
use crate::sync::AtomicU64;
use eris_numa::OutOfMemory;
use std::cmp::Ordering;
use std::fmt::{Debug, Display};
use std::ops::Range;

/// Kinds of keys are those of this crate.
pub trait Sealed {}

impl Sealed for u64 {}
impl Sealed for [u8] {}

/// What keys are: `u64`, or byte strings, `[u8]`.
pub trait Key: Sealed + 'static {
    /// A key as it is given: a number, or `&[u8]`.
    type Ref<'k>: Copy + Debug;
    /// A key as it is kept: a number, or `Vec<u8>`.
    type Owned: Clone + Debug + Send + Sync;
    /// Entries in the order of their keys, copied from a leaf.
    type Entries: Buffer<Self>;
    /// Why an entry is not put in.
    type Error: From<OutOfMemory> + Display;

    /// The words of a node.
    #[doc(hidden)]
    type Words: AsRef<[AtomicU64]> + Send + Sync + 'static;
    /// What is known of a node while it is filled.
    #[doc(hidden)]
    type Filling: Default;
    /// The most entries of a node, whatever its words say.
    #[doc(hidden)]
    const ROOM: usize;
    /// The size of a full node; see [`size`](Self::size).
    #[doc(hidden)]
    const SPACE: usize;

    /// So many words of a node are asked for before it is searched. What else a search needs is told by these.
    #[doc(hidden)]
    const AHEAD: usize;

    /// Words as nodes.
    #[doc(hidden)]
    fn nodes(words: &[AtomicU64]) -> &[Self::Words];
    /// Whether a key can be put in.
    #[doc(hidden)]
    fn check(key: Self::Ref<'_>) -> Result<(), Self::Error>;
    #[doc(hidden)]
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
    #[doc(hidden)]
    fn own(key: Self::Ref<'_>) -> Self::Owned;
    #[doc(hidden)]
    fn lend(key: &Self::Owned) -> Self::Ref<'_>;
    /// A key that no other one is less than.
    #[doc(hidden)]
    fn least() -> Self::Ref<'static>;
    /// A key that no other one is greater than.
    #[doc(hidden)]
    fn greatest() -> Self::Ref<'static>;
    /// The key behind a key, if there is one.
    #[doc(hidden)]
    fn successor(key: Self::Ref<'_>) -> Option<Self::Owned>;
    /// A short key that is not less than the first one, and less than the second one.
    #[doc(hidden)]
    fn separator(last: Self::Ref<'_>, next: Self::Ref<'_>) -> Self::Owned;

    /// Writes a key to words, if these are enough: how many it takes, and how many bytes it has.
    #[doc(hidden)]
    #[cfg(not(loom))]
    fn pack(key: Self::Ref<'_>, words: &mut [u64]) -> Option<(usize, u64)>;
    /// Lends a key of so many bytes that was written to words.
    #[doc(hidden)]
    #[cfg(not(loom))]
    fn unpack<R>(words: &[u64], bytes: usize, found: impl FnOnce(Self::Ref<'_>) -> R) -> R;

    /// Where a key of a level is.
    #[doc(hidden)]
    fn side(node: Node<'_, Self>, key: Self::Ref<'_>, level: u8) -> Side;
    /// How many keys of a node are less than one in its range, and whether that one follows them.
    #[doc(hidden)]
    fn find(node: Node<'_, Self>, key: Self::Ref<'_>) -> (usize, bool);
    /// The number of an inner node's child in whose range a key is. Of words that are no inner node's it is any number.
    #[doc(hidden)]
    fn child(node: Node<'_, Self>, key: Self::Ref<'_>) -> u32;
    /// The number of an inner node's child.
    #[doc(hidden)]
    fn child_at(node: Node<'_, Self>, at: usize) -> u32;
    /// The value of a leaf's entry.
    #[doc(hidden)]
    fn value(node: Node<'_, Self>, at: usize) -> u64;
    /// The low and the high fence of a node that has them.
    #[doc(hidden)]
    fn fences(node: Node<'_, Self>) -> (Self::Owned, Self::Owned);
    /// Which part of [`SPACE`](Self::SPACE) a node's entries take.
    #[doc(hidden)]
    fn size(node: Node<'_, Self>) -> usize;
    /// Copies entries of a node. An inner node's last child has no key.
    #[doc(hidden)]
    fn read(node: Node<'_, Self>, range: Range<usize>, entries: &mut Self::Entries);

    #[doc(hidden)]
    fn set_value(node: &mut Held<'_, Self>, at: usize, value: u64);
    /// Puts an entry into a leaf, or a fence into an inner node and a child behind it. Whether there is room.
    #[doc(hidden)]
    fn insert(node: &mut Held<'_, Self>, at: usize, key: Self::Ref<'_>, value: u64) -> bool;
    /// Takes an entry out of a leaf, or a fence out of an inner node and the child behind it.
    #[doc(hidden)]
    fn take_out(node: &mut Held<'_, Self>, at: usize);
    /// Moves the last entries of a node that has no room for a key at a position to a new one, which gets the number.
    /// The fence between them. If neither has room then, it is divided again.
    #[doc(hidden)]
    fn divide(
        left: &mut Held<'_, Self>,
        right: &mut Held<'_, Self>,
        number: u32,
        new: (usize, Self::Ref<'_>),
    ) -> Self::Owned;
    /// Takes all that the node behind the right link has, and its range, if it is then no larger than this. That one
    /// is dead.
    #[doc(hidden)]
    fn take_all(left: &mut Held<'_, Self>, right: &mut Held<'_, Self>, most: usize) -> bool;
    /// Writes a node of a level with a right link anew, if the entries fit. It is the first or the last of its level if
    /// it has no such fence. Whether they fit.
    #[doc(hidden)]
    fn write(
        node: &mut Held<'_, Self>,
        at: (u8, u32),
        fences: (Option<Self::Ref<'_>>, Option<Self::Ref<'_>>),
        entries: &Self::Entries,
    ) -> bool;
    /// Counts another entry of a node of a level with this low fence. Whether it is not too full with it.
    #[doc(hidden)]
    fn has_room(
        filling: &mut Self::Filling,
        low: Option<Self::Ref<'_>>,
        entries: &Self::Entries,
        key: Self::Ref<'_>,
        level: u8,
    ) -> bool;
}
