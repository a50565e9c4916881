//! Slots of small buffers in slabs of 64 KiB. A slab holds slots of one class and is a run of the page heap.
//!
//! A slab lies at a multiple of its size, so that a slot's address tells its slab. A slab without a slot in use goes
//! back to the page heap at once.

use crate::classes::{CLASSES, Class};
use crate::heap::{Empty, PageHeap, UNIT, UnitRun};
use std::collections::HashMap;
use std::ptr::NonNull;

const SLAB: usize = 64 << 10;

/// The memory of one node that its lock guards: regions, and slabs in them.
pub(crate) struct Heap {
    pub(crate) pages: PageHeap,
    /// By address.
    slabs: HashMap<usize, Slab>,
    /// Per class the addresses of slabs that may have room.
    open: [Vec<usize>; CLASSES],
}

struct Slab {
    start: NonNull<u8>,
    run: UnitRun,
    class: Class,
    /// Slots given back, by number.
    free: Vec<u16>,
    /// Slots from here on were never handed out.
    fresh: usize,
    used: usize,
}

// SAFETY: `start` is owned by the heap and only used as a number here.
unsafe impl Send for Slab {}

impl Heap {
    pub(crate) fn new() -> Self {
        Heap {
            pages: PageHeap::default(),
            slabs: HashMap::new(),
            open: [const { Vec::new() }; CLASSES],
        }
    }

    /// A slot of a class, of any content. `None` if no region has room for another slab, as in [`PageHeap::take`].
    pub(crate) fn take_slot(&mut self, class: Class) -> Option<NonNull<u8>> {
        let open = &mut self.open[class.index()];
        let address = match open.last() {
            Some(&address) => address,
            None => {
                let taken = self.pages.take(SLAB / UNIT, SLAB / UNIT)?;
                let address = taken.start.addr().get();
                let slab = Slab {
                    start: taken.start,
                    run: taken.run,
                    class,
                    free: Vec::new(),
                    fresh: 0,
                    used: 0,
                };
                self.slabs.insert(address, slab);
                open.push(address);
                address
            }
        };
        let slab = self
            .slabs
            .get_mut(&address)
            .expect("an open slab is a slab");
        let slot = slab.free.pop().map_or_else(
            || {
                slab.fresh += 1;
                slab.fresh - 1
            },
            usize::from,
        );
        slab.used += 1;
        if slab.is_full() {
            open.pop();
        }
        // SAFETY: a slot's number times its size lies inside of the slab.
        Some(unsafe { slab.start.add(slot * class.bytes()) })
    }

    /// Gives a slot back. Returns a mapping in which nothing is left.
    pub(crate) fn give_slot(&mut self, slot: NonNull<u8>) -> Option<Empty> {
        let address = slot.addr().get() / SLAB * SLAB;
        let slab = self.slabs.get_mut(&address).expect("a slot of a live slab");
        let open = &mut self.open[slab.class.index()];
        if slab.is_full() {
            open.push(address);
        }
        slab.free
            .push(((slot.addr().get() - address) / slab.class.bytes()) as u16);
        slab.used -= 1;
        if slab.used > 0 {
            return None;
        }
        open.retain(|&other| other != address);
        let slab = self.slabs.remove(&address).expect("found above");
        self.pages.give(slab.run, false)
    }
}

impl Slab {
    fn is_full(&self) -> bool {
        self.used == SLAB / self.class.bytes()
    }
}
