//! A B-link tree: from 64-bit keys to 64-bit values, for any number of threads that read and write at a time.
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
//! *Batches.* [`Tree::get_many`] goes down for many keys side by side, so that their cache misses overlap.
//!
//! *Deletes merge.* A node that is a quarter full is merged with a neighbour if both fit into one; see `merge.rs`.
//!
//! Nodes have 512 bytes: of 256 bytes to 4 KiB these were the fastest for single keys. What this crate must not know:
//! tables, rows, versions of rows.

#![forbid(unsafe_code)]

mod counts;
mod merge;
#[cfg(all(test, loom))]
mod model;
mod node;
mod range;
mod slab;
mod space;
mod split;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod tree;

pub use counts::Statistics;
pub use range::Range;
pub use tree::Tree;
