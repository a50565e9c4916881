//! The adaptive radix tree: ordered, batched, of one owner.
//!
//! ```text
//! keys 61 62 63 ·, 61 62 64 65 ·, 61 70 ·                     (· bytes that no branch looks at)
//!
//!   root ─► Inner6 at byte 0 … one child only, so a Prefix instead:
//!   root ─► Prefix 61 ─► Inner6 ┬ 62 ─► Inner6 ┬ 63 ─► record 61 62 63 ·
//!                               │              └ 64 ─► record 61 62 64 65 ·
//!                               └ 70 ─► record 61 70 ·
//! ```
//!
//! A node branches on one byte; its class grows and shrinks with the number of its children ([`node`]). *Lazy
//! expansion*: a key that no other shares its beginning with is a record, however many of its bytes are left. *Path
//! compression*: where all keys have bytes in common there is a prefix node instead of nodes with one child. For keys
//! of 64 bits the last level holds the values themselves instead of references to records.
//!
//! References are 32 bits: a kind and a place in the slabs of that kind ([`mod@reference`], [`crate::slabs`]). The kind
//! lies in the reference, so that it is known before the node's memory has arrived; this is what batches live on
//! ([`descent`]).
//!
//! No key may be the beginning of another. All keys of one length have that property, and all that [`crate::key`]
//! makes.

mod batch;
mod build;
mod check;
mod cursor;
mod descent;
mod insert;
mod key;
mod lookup;
mod node;
mod range;
mod reference;
mod remove;
mod reorganize;
mod space;

pub use build::Build;
pub use check::NodeClass;
pub use key::{Key, KeyLayout, MAX_KEY};
pub use range::Range;
pub use reorganize::{Reorganization, Samples, Visit};

pub(crate) use insert::Present;
pub(crate) use reference::{NodeKind, Ref};
pub(crate) use space::Space;

use crate::slabs::{Footprint, IndexMemory};
use eris_numa::{Extent, NodeMemory};
use eris_types::ObjectId;
use node::{BranchNode, Prefix, with_inner};

use std::fmt;
use std::marker::PhantomData;

/// An ordered map from keys, `u64` or `[u8]`, to 64-bit values.
///
/// ```
/// use eris_index::Art;
/// use eris_numa::{HugePages, Memory, Topology};
/// use eris_types::{NodeId, ObjectId};
///
/// let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, Some(64 << 20))?;
/// let mut tree: Art<u64> = Art::new(memory.node(NodeId(0)), ObjectId(1));
/// assert_eq!(tree.insert(7, 70)?, None);
/// assert_eq!(tree.insert(7, 71)?, Some(70), "it is there already, and stays");
/// assert_eq!(tree.upsert(7, 72)?, Some(70), "it is replaced");
/// assert_eq!(tree.get(7), Some(72));
/// assert_eq!(tree.remove(7), Some(72));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Art<K: Key + ?Sized> {
    root: Ref,
    len: usize,
    space: Space,
    keys: PhantomData<fn(&K)>,
}

/// The place of a reference: in the root, or in a node as the child of a byte.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// [`Ref::NONE`]: the root.
    node: Ref,
    byte: u8,
}

impl Link {
    const ROOT: Link = Link {
        node: Ref::NONE,
        byte: 0,
    };
}

impl<K: Key + ?Sized> Art<K> {
    /// An empty tree, whose nodes will lie in this memory and be accounted to this data object.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        Art {
            root: Ref::NONE,
            len: 0,
            space: Space::new::<K>(IndexMemory { memory, object }),
            keys: PhantomData,
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory that its nodes lie in.
    pub fn memory(&self) -> &NodeMemory {
        &self.space.home().memory
    }

    /// The data object that its memory is accounted to.
    pub fn object(&self) -> ObjectId {
        self.space.home().object
    }

    /// Bytes of nodes and records, and of the slabs in which they lie.
    pub fn footprint(&self) -> Footprint {
        self.space.footprint()
    }

    /// The slabs' memory.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.space.extents(all);
    }

    /// Gives back the slabs in which nothing is left; up to one per kind of nodes is kept otherwise.
    pub fn trim(&mut self) {
        self.space.trim();
    }

    /// Removes everything and gives all memory back.
    pub fn clear(&mut self) {
        self.space.clear();
        self.root = Ref::NONE;
        self.len = 0;
    }

    /// Makes a link lead elsewhere.
    ///
    /// # Safety
    /// The link is one of the live tree.
    unsafe fn set(&mut self, link: Link, to: Ref) {
        if link.node.is_none() {
            self.root = to;
            return;
        }
        // SAFETY: by contract the node is live; its kind says its type.
        unsafe {
            with_inner!(link.node.kind(), N => {
                *self.space.node_mut::<N>(link.node).find_mut(link.byte).expect("a link's child") = to;
            }, _ => self.space.node_mut::<Prefix>(link.node).child = to)
        }
    }
}

impl<K: Key + ?Sized> fmt::Debug for Art<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Art({} keys of {})", self.len, self.object())
    }
}
