//! The memory of one tree: slabs for every kind of node and for records.

use super::key::Key;
use super::node::{Inner6, Inner12, Inner25, Inner51, Inner256, Node, Prefix};
use super::node::{Value7, Value14, Value28, Value56, Value256};
use super::reference::{KINDS, NODE_BITS, NodeKind, RECORD_BITS, Ref};
use crate::IndexError;
use crate::slabs::{Footprint, IndexMemory, Slabs};
use eris_numa::Extent;
use std::ptr::NonNull;

pub(crate) struct Space {
    home: IndexMemory,
    kinds: [Slabs; KINDS],
}

/// Log2 of the unit in which places of a kind count: the smaller, the fewer bytes can be addressed, and no slot is
/// smaller.
pub(crate) const fn unit(kind: NodeKind) -> u32 {
    match kind {
        NodeKind::Record => 4,
        NodeKind::Prefix | NodeKind::Inner6 => 5,
        _ => 6,
    }
}

impl Space {
    pub(crate) fn new<K: Key + ?Sized>(home: IndexMemory) -> Self {
        fn nodes<T: Node>() -> Slabs {
            Slabs::new(unit(T::KIND), NODE_BITS, [size_of::<T>()])
        }
        let kinds = [
            // Of nothing; so that a kind is an index.
            Slabs::new(unit(NodeKind::None), NODE_BITS, []),
            nodes::<Prefix>(),
            nodes::<Inner6>(),
            nodes::<Inner12>(),
            nodes::<Inner25>(),
            nodes::<Inner51>(),
            nodes::<Inner256>(),
            nodes::<Value7>(),
            nodes::<Value14>(),
            nodes::<Value28>(),
            nodes::<Value56>(),
            nodes::<Value256>(),
            Slabs::new(unit(NodeKind::Record), RECORD_BITS, K::record_sizes()),
        ];
        Space { home, kinds }
    }

    pub(crate) fn home(&self) -> &IndexMemory {
        &self.home
    }

    pub(crate) fn slabs(&self, kind: NodeKind) -> &Slabs {
        &self.kinds[kind as usize]
    }

    /// The node that a reference leads to.
    ///
    /// # Safety
    /// The reference is one of this space's to a live node, of the kind of `T`.
    #[inline(always)]
    pub(crate) unsafe fn node<T: Node>(&self, r: Ref) -> &T {
        // SAFETY: by contract the place is live, and slots of a kind are as large and aligned as its type, of which any
        // bytes are a value. Nothing in the space changes while it is borrowed.
        unsafe { self.pointer(T::KIND, r).cast().as_ref() }
    }

    /// As [`Space::node`], to change it.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn node_mut<T: Node>(&mut self, r: Ref) -> &mut T {
        // SAFETY: as in `node`; the exclusive borrow makes it the only view.
        unsafe { self.pointer(T::KIND, r).cast().as_mut() }
    }

    /// The slot that a reference leads to.
    ///
    /// # Safety
    /// The reference is one of this space's to a live node or record, of this kind. The pointer is good until something
    /// is taken or given back.
    #[inline(always)]
    pub(crate) unsafe fn pointer(&self, kind: NodeKind, r: Ref) -> NonNull<u8> {
        debug_assert_eq!(r.kind(), kind);
        // SAFETY: by contract.
        unsafe { self.kinds[kind as usize].at(r.place()) }
    }

    /// A new node of any content.
    ///
    /// # Errors
    /// As [`Slabs::take`]; nothing is changed then. So for all functions here that take.
    pub(crate) fn take<T: Node>(&mut self) -> Result<Ref, IndexError> {
        let place = self.kinds[T::KIND as usize].take(&self.home, 0)?;
        Ok(Ref::node(T::KIND, place))
    }

    /// A new node of another class, with the children of `old`.
    ///
    /// # Safety
    /// As [`Space::node`], for `A` and `old`.
    pub(crate) unsafe fn convert<A, B>(&mut self, old: Ref) -> Result<Ref, IndexError>
    where
        A: super::node::BranchNode,
        B: super::node::BranchNode<Child = A::Child>,
    {
        let new = self.take::<B>()?;
        // SAFETY: by contract, and just taken; two slots, so that one may be changed while the other is read.
        unsafe {
            let from = self.pointer(A::KIND, old).cast::<A>().as_ref();
            let to = self.pointer(B::KIND, new).cast::<B>().as_mut();
            to.fill(from.entries());
        }
        Ok(new)
    }

    /// A new record.
    pub(crate) fn take_record<K: Key + ?Sized>(
        &mut self,
        key: K::View<'_>,
        value: u64,
    ) -> Result<Ref, IndexError> {
        let place = self.kinds[NodeKind::Record as usize].take(&self.home, K::record_size(key))?;
        let record = Ref::record(place);
        // SAFETY: just taken, in the size of this key.
        unsafe { K::write(self.pointer(NodeKind::Record, record), key, value) };
        Ok(record)
    }

    /// The key of a record.
    ///
    /// # Safety
    /// The reference is one of this space's to a live record, written with this type of keys.
    #[inline(always)]
    pub(crate) unsafe fn record_key<K: Key + ?Sized>(&self, r: Ref) -> K::View<'_> {
        // SAFETY: by contract; the space is borrowed as long as the key is.
        unsafe { K::read(self.pointer(NodeKind::Record, r)) }
    }

    /// The value of a record.
    ///
    /// # Safety
    /// As [`Space::record_key`].
    #[inline(always)]
    pub(crate) unsafe fn record_value<K: Key + ?Sized>(&self, r: Ref) -> u64 {
        // SAFETY: by contract.
        unsafe { K::value(self.pointer(NodeKind::Record, r)).read() }
    }

    /// Where the value of a record is, to change it.
    ///
    /// # Safety
    /// As [`Space::record_key`].
    pub(crate) unsafe fn record_value_mut<K: Key + ?Sized>(&mut self, r: Ref) -> &mut u64 {
        // SAFETY: by contract; the exclusive borrow makes it the only view.
        unsafe { K::value(self.pointer(NodeKind::Record, r)).as_mut() }
    }

    /// Gives back a node or record.
    ///
    /// # Safety
    /// The reference is one of this space's to something live, which nothing refers to any more.
    pub(crate) unsafe fn give(&mut self, r: Ref) {
        // SAFETY: by contract.
        unsafe { self.kinds[r.kind() as usize].give(r.place()) }
    }

    /// From now on, what was hot is so no more.
    pub(crate) fn cool(&mut self) {
        self.kinds.iter_mut().for_each(Slabs::cool);
    }

    /// Whether a node or record lies in a hot slab.
    pub(crate) fn is_hot(&self, r: Ref) -> bool {
        self.kinds[r.kind() as usize].is_hot(r.place())
    }

    /// A copy of a node or record in a hot slab.
    ///
    /// # Safety
    /// The reference is one of this space's to something live.
    pub(crate) unsafe fn copy_hot(&mut self, r: Ref) -> Result<Ref, IndexError> {
        // SAFETY: by contract.
        let place = unsafe { self.kinds[r.kind() as usize].copy_hot(&self.home, r.place())? };
        Ok(match r.kind() {
            NodeKind::Record => Ref::record(place),
            kind => Ref::node(kind, place),
        })
    }

    /// Bytes of all kinds together.
    pub(crate) fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::default();
        self.kinds
            .iter()
            .for_each(|slabs| slabs.measure(&mut footprint));
        footprint
    }

    /// The memory of all kinds together.
    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        self.kinds.iter().for_each(|slabs| slabs.extents(all));
    }

    /// Gives back slabs without content.
    pub(crate) fn trim(&mut self) {
        self.kinds.iter_mut().for_each(Slabs::trim);
    }

    /// Gives everything back; every reference becomes invalid.
    pub(crate) fn clear(&mut self) {
        self.kinds.iter_mut().for_each(Slabs::clear);
    }
}
