//! The memory manager of one node.

use crate::accounts::{Accounts, NodeAccount};
use crate::budget::{Budget, Cause, OutOfMemory};
use crate::buffer::{Buffer, BufferPlace};
use crate::classes::Class;
use crate::heap::{Empty, Taken, UNIT, UnitRun};
use crate::local;
use crate::placement::{Extent, Placement};
use crate::slabs::Heap;
use crate::source::{HUGE, MemorySource};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest buffer that is a run in a shared region; larger ones have a mapping of their own.
pub(crate) const MAX_RUN: usize = 512 << 10;

/// The memory manager of one node: allocates buffers there. Cheap to clone; usable from every thread, although the
/// memory is near to the threads of its node alone.
#[derive(Clone)]
pub struct NodeMemory(pub(crate) Arc<NodeState>);

/// What the manager, its buffers and (weakly) the threads' caches share.
pub(crate) struct NodeState {
    /// Unlike every other manager's in this process, ever.
    pub(crate) id: u64,
    pub(crate) node: NodeId,
    pub(crate) accounts: Accounts,
    pub(crate) budget: Budget,
    pub(crate) source: Box<dyn MemorySource>,
    /// Mappings are a multiple of this: the base page, or the huge page where everything is to be huge.
    pub(crate) granule: usize,
    heap: Mutex<Heap>,
    /// All mappings, by address, with their bytes.
    mappings: Mutex<BTreeMap<usize, usize>>,
    /// Bytes of all mappings. Written by who maps and unmaps; Relaxed, for reports only.
    mapped: AtomicU64,
}

impl NodeMemory {
    pub(crate) fn new(
        node: NodeId,
        budget: Budget,
        source: Box<dyn MemorySource>,
        granule: usize,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NodeMemory(Arc::new(NodeState {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            node,
            accounts: Accounts::default(),
            budget,
            source,
            granule,
            heap: Mutex::new(Heap::new()),
            mappings: Mutex::default(),
            mapped: AtomicU64::new(0),
        }))
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The budget that its buffers count in.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Whether it asks the system for huge pages; it may not get them.
    pub fn asks_for_huge_pages(&self) -> bool {
        self.0.source.asks_for_huge_pages()
    }

    /// `bytes` zeroed bytes, aligned to 64, accounted to `object` on this node until the buffer is dropped. Zero bytes
    /// are allowed and occupy nothing.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they do not fit in the budget or the system denies them; nothing is taken then.
    pub fn allocate(&self, object: ObjectId, bytes: usize) -> Result<Buffer, OutOfMemory> {
        let state = &self.0;
        let occupied = state
            .occupied(bytes)
            .ok_or_else(|| state.denied(bytes as u64, Cause::Budget))?;
        let on_node = |denied| OutOfMemory {
            node: Some(state.node),
            ..denied
        };
        state.budget.take(occupied as u64).map_err(on_node)?;
        match state.place(bytes, occupied) {
            Ok((start, home)) => {
                let account = state.accounts.of(object);
                account.add(occupied as u64);
                Ok(Buffer::new(
                    start,
                    bytes,
                    occupied,
                    home,
                    state.clone(),
                    account,
                ))
            }
            Err(errno) => {
                state.budget.give(occupied as u64);
                Err(state.denied(occupied as u64, Cause::System(errno)))
            }
        }
    }

    /// The account of a data object on this node, for memory that lies in no buffer.
    pub fn account(&self, object: ObjectId) -> NodeAccount {
        let state = &self.0;
        NodeAccount::new(state.accounts.of(object), state.budget.clone(), state.node)
    }

    /// Bytes of address space that are mapped for this node: what its buffers occupy, and what lies between them.
    pub fn mapped_bytes(&self) -> u64 {
        self.0.mapped.load(Ordering::Relaxed)
    }

    /// Where the pages of all that is mapped for this node really are, [those](Placement::of) that are looked at.
    pub fn placement(&self) -> Option<Placement> {
        let mappings = self.0.mappings().clone();
        // Outside of the lock: what is unmapped meanwhile counts as untouched.
        Placement::of(
            mappings
                .into_iter()
                .map(|(start, bytes)| Extent::new(start, bytes)),
        )
    }

    /// Returns to the operating system what no buffer uses: the calling thread's cached slots, regions that become
    /// empty by it, and the pages between buffers. Bounded amounts of these are kept otherwise.
    pub fn trim(&self) {
        local::flush(&self.0);
        let idle = self.0.lock().pages.take_idle();
        for Taken { run, start, .. } in idle {
            // SAFETY: a run of a live region that this function alone holds.
            let clean = unsafe { self.0.source.discard(start, run.bytes()) };
            let empty = self.0.lock().pages.give(run, clean);
            self.0.unmap(empty);
        }
    }
}

impl fmt::Debug for NodeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mapped = self.mapped_bytes();
        f.debug_struct("NodeMemory")
            .field("node", &self.node())
            .field("mapped", &mapped)
            .finish()
    }
}

impl NodeState {
    /// Bytes that a buffer of `bytes` really occupies; `None` beyond the address space.
    fn occupied(&self, bytes: usize) -> Option<usize> {
        match bytes {
            0 => Some(0),
            _ if Class::of(bytes).is_some() => Class::of(bytes).map(Class::bytes),
            _ if bytes <= MAX_RUN => Some(bytes.next_multiple_of(UNIT)),
            _ => bytes
                .checked_next_multiple_of(self.granule)
                .filter(|&rounded| isize::try_from(rounded).is_ok()),
        }
    }

    /// Finds the place of a buffer and zeroes it.
    fn place(
        self: &Arc<Self>,
        bytes: usize,
        occupied: usize,
    ) -> Result<(NonNull<u8>, BufferPlace), i32> {
        if bytes == 0 {
            return Ok((Buffer::nowhere(), BufferPlace::Nowhere));
        }
        if let Some(class) = Class::of(bytes) {
            let start = local::take(self, class)?;
            // SAFETY: the slot is of that many bytes and nobody else's.
            unsafe { start.write_bytes(0, occupied) };
            return Ok((start, BufferPlace::Slot(class)));
        }
        if bytes <= MAX_RUN {
            let taken = self.with_room(|heap| heap.pages.take(occupied / UNIT, 1))?;
            if taken.dirty {
                // SAFETY: the run is of that many bytes and nobody else's.
                unsafe { taken.start.write_bytes(0, occupied) };
            }
            return Ok((taken.start, BufferPlace::UnitRun(taken.run)));
        }
        self.map(occupied)
            .map(|start| (start, BufferPlace::Mapping))
    }

    /// Slots of a class, at least one and at most `most`, of any content.
    pub(crate) fn take_slots(&self, class: Class, most: usize) -> Result<Vec<NonNull<u8>>, i32> {
        let mut slots = Vec::with_capacity(most);
        slots.push(self.with_room(|heap| heap.take_slot(class))?);
        let mut heap = self.lock();
        // What follows comes from regions that are there anyway.
        slots.extend(std::iter::from_fn(|| heap.take_slot(class)).take(most - 1));
        Ok(slots)
    }

    /// Gives slots back.
    pub(crate) fn give_slots(&self, slots: impl Iterator<Item = NonNull<u8>>) {
        let mut heap = self.lock();
        let empty: Vec<Empty> = slots.filter_map(|slot| heap.give_slot(slot)).collect();
        drop(heap);
        self.unmap(empty);
    }

    /// Gives a run back. Its pages go to the system if enough others lie idle.
    pub(crate) fn give_run(&self, start: NonNull<u8>, run: UnitRun) {
        let enough = self.lock().pages.has_enough_idle(run);
        // SAFETY: the run is still the caller's, who does not use it any more.
        let clean = enough && unsafe { self.source.discard(start, run.bytes()) };
        let empty = self.lock().pages.give(run, clean);
        self.unmap(empty);
    }

    /// Gives a mapping of its own back.
    pub(crate) fn give_mapping(&self, start: NonNull<u8>, bytes: usize) {
        self.unmap([Empty { start, bytes }]);
    }

    /// Tries `take`; maps another region and tries again while there is no room.
    fn with_room<T>(&self, mut take: impl FnMut(&mut Heap) -> Option<T>) -> Result<T, i32> {
        loop {
            let mut heap = self.lock();
            if let Some(taken) = take(&mut heap) {
                return Ok(taken);
            }
            let bytes = heap.pages.next_region_bytes();
            drop(heap);
            // Outside of the lock: a system call that others need not wait for.
            let start = self.map(bytes)?;
            heap = self.lock();
            if let Some(taken) = take(&mut heap) {
                // Others have made room meanwhile. A region that nothing ever lay in would not become empty, and stay.
                drop(heap);
                self.unmap([Empty { start, bytes }]);
                return Ok(taken);
            }
            heap.pages.add(start, bytes);
            // Under the same lock, or others could take the room, or the region's only buffer and unmap it, forever.
            if let Some(taken) = take(&mut heap) {
                return Ok(taken);
            }
        }
    }

    fn map(&self, bytes: usize) -> Result<NonNull<u8>, i32> {
        let start = self.source.map(bytes)?;
        self.mapped.fetch_add(bytes as u64, Ordering::Relaxed);
        self.mappings().insert(start.addr().get(), bytes);
        Ok(start)
    }

    fn unmap(&self, empty: impl IntoIterator<Item = Empty>) {
        for Empty { start, bytes } in empty {
            // Before somebody else's may be there.
            self.mappings().remove(&start.addr().get());
            // SAFETY: a whole mapping of this source that is in nobody's use and in no list any more.
            unsafe { self.source.unmap(start, bytes) };
            self.mapped.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heap> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mappings(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn denied(&self, asked: u64, cause: Cause) -> OutOfMemory {
        OutOfMemory {
            asked,
            used: self.budget.used(),
            limit: self.budget.limit(),
            node: Some(self.node),
            cause,
        }
    }

    /// The mapping's size of a large buffer's neighbourhood: huge pages everywhere need whole ones.
    pub(crate) fn granule_of(huge: crate::HugePages, page_bytes: usize) -> usize {
        match huge {
            crate::HugePages::Always => HUGE,
            crate::HugePages::Auto | crate::HugePages::Never => page_bytes,
        }
    }
}

impl Drop for NodeState {
    fn drop(&mut self) {
        // No buffer is left, for each holds this state. What slots remain are cached by threads, which find out through
        // their weak reference and forget them.
        let regions = self.lock().pages.drain();
        self.unmap(regions);
    }
}
