//! A B-link tree: from 64-bit keys or byte strings to 64-bit values, for any number of threads that read and write at a
//! time.
//!
//! ```text
//! level 1              [ ≤ 40 │ ≤ 90 │ all ]──────────────────────────▶ right
//!                        │       │      │
//! level 0   [ 10 20 40 ]─▶[ 50 90 ]─▶[ 95 ]─▶[ 120 130 ]      split just now: its parent does not know it yet
//! ```
//! *High fences and right links* (Lehman and Yao, TODS 1981). A node that is split is whole at once, with one link that
//! leads from its left half to its right one. The entry in the parent is a step of its own. Whoever comes by the old
//! way sees that the key is beyond the high fence, and goes right. So who splits a node holds that and the new one, and
//! who reads holds none.
//!
//! *Optimistic readers.* A node has a version; see `node.rs`. Who looks something up writes nothing, so that cores do
//! not take cache lines from each other.
//!
//! *Numbers instead of pointers.* A node's number is a hint: what it leads to is checked by its level and both fences;
//! see `space.rs` and docs/decisions/0039. The crate has no `unsafe`.
//!
//! *Two kinds of nodes.* The tree is the same for both. What differs is [`Key`]: how a node has its fences and entries.
//!
//! ```text
//! Tree        512 bytes   state meta │ fences │ 30 keys │ 30 values                                         numbers.rs
//! Tree<[u8]>  4 KiB       state meta │ lengths, heads of the fences, prefix │ heads │ slots │ ─▶ … ◀─ records │ fences
//!                                                                                                       bytes.rs
//! ```
//! Byte strings are compared by their heads, eight bytes behind what all keys of the node begin with. Only where these
//! are equal, the rest is looked at.
//!
//! *Batches.* [`Tree::get_many`] goes down for many keys side by side, so that their cache misses overlap.
//! [`Tree::put_many`] and [`Tree::remove_many`] find leaves likewise, and hold one once for a run of keys.
//!
//! *An empty tree is built* from entries that ascend: [`Tree::build`]. Several threads make the leaves of a
//! [`Part`] each: [`Tree::parts`].
//!
//! *Deletes merge.* A node that is a quarter full is merged with a neighbour if both fit into one; see `merge.rs`.
//!
//! What this crate must not know: tables, rows, versions of rows, what the bytes of a key mean.

#![forbid(unsafe_code)]

mod batch;
mod build;
mod bytes;
mod counts;
mod entries;
mod error;
mod key;
#[cfg(not(loom))]
mod long_keys;
mod merge;
#[cfg(all(test, loom))]
mod model;
mod node;
mod numbers;
mod range;
mod slab;
mod space;
mod split;
mod sync;
#[cfg(not(loom))]
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod tree;

pub use build::{Leaves, Part};
pub use bytes::KEY_BYTES;
pub use counts::Statistics;
pub use entries::{Buffer, Entries};
pub use error::{BuildError, PutError};
pub use key::Key;
pub use range::Range;
#[cfg(not(loom))]
pub use tasks::{Operation, Outcome, outcome_of};
pub use tree::Tree;
