//! Slots in slabs: the memory of an index, addressed by 32-bit numbers instead of pointers.
//!
//! ```text
//! place (27 or 31 bits)   slab number | unit in the slab          a unit is 16, 32 or 64 bytes
//!                              │             │
//! bases   [ ─, ─, ■, ─ ] ◄─────┘             │
//!                 │                          ▼
//! slab, 2 MiB     └──► [ slot ][ slot ][ slot ][ free ─┐ ][ slot ][ free ◄┘ ][ fresh ……………… ]
//! ```
//!
//! A slab is one [`Buffer`] of the node's memory manager and holds slots of one size. It is one huge page, but the
//! first of its size begins with a kilobyte and doubles: because nobody holds a pointer, it is moved by copying. For
//! the same reason an index can be handed to another owner as it is. A slab in which nothing is left goes back to its
//! node, except one per size, lest an insert and a remove in turn cost a system call each.
//!
//! *Hot slabs*: by a reorganisation, slots that are used much are moved, hottest first, into slabs of their own, so
//! that they share lines of the translation buffer. A hot slab is filled by nobody else until the next reorganisation
//! begins.
//!
//! What is free is chained through the first bytes of the free slots, newest first, for it is the likeliest to be
//! cached.

use crate::IndexError;
use eris_numa::{Buffer, Extent, NodeMemory};
use eris_types::ObjectId;
use std::ptr::NonNull;

/// Log2 of the bytes of a whole slab: one huge page.
pub(crate) const SLAB_BITS: u32 = 21;
const SLAB: usize = 1 << SLAB_BITS;
const FIRST_SLAB: usize = 1 << 10;
/// The first hot slab of a size; it does not grow.
const FIRST_HOT_SLAB: usize = 64 << 10;
/// What ends a chain of free slots: the unit of no slot.
const END: u32 = u32::MAX;

/// Where the memory of an index comes from.
#[derive(Clone, Debug)]
pub(crate) struct IndexMemory {
    pub(crate) memory: NodeMemory,
    pub(crate) object: ObjectId,
}

/// The slabs of one kind of slots; with several slot sizes if the kind has them.
pub(crate) struct Slabs {
    /// By slab number; dangling where there is no slab.
    bases: Vec<NonNull<u8>>,
    slabs: Vec<Option<Slab>>,
    sizes: Vec<SlotSize>,
    /// Log2 of the bytes of a unit.
    unit: u32,
    /// The most slabs that places can tell apart.
    most: usize,
}

struct SlotSize {
    slot: usize,
    /// Slabs of this size with room; slots are taken from the last.
    open: Vec<u32>,
    /// Slabs of this size that are not hot, and that are.
    slabs: usize,
    hot: Vec<u32>,
}

struct Slab {
    buffer: Buffer,
    size: u32,
    used: u32,
    /// First free unit of the chain.
    free: u32,
    /// Slots from here on were never handed out: bytes.
    fresh: u32,
    hot: bool,
}

impl Slab {
    fn is_full(&self, slot: usize) -> bool {
        self.free == END && self.fresh as usize + slot > self.buffer.len()
    }
}

// SAFETY: the pointers lead into buffers that the slabs own; shared, they are only read through.
unsafe impl Send for Slabs {}
// SAFETY: as above.
unsafe impl Sync for Slabs {}

/// Bytes of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of nodes and entries.
    pub used: usize,
    /// Bytes of the slabs that they lie in, all of which are taken from the node's memory and its budget.
    pub held: usize,
}

impl Slabs {
    /// No slab yet. `unit` is log2 of the bytes of a unit, `place_bits` the width of a place, and `slots` the sizes in
    /// bytes: multiples of the unit, ascending.
    pub(crate) fn new(unit: u32, place_bits: u32, slots: impl IntoIterator<Item = usize>) -> Self {
        let size = |slot: usize| {
            assert!(slot.is_multiple_of(1 << unit) && slot <= SLAB / 4);
            SlotSize {
                slot,
                open: Vec::new(),
                slabs: 0,
                hot: Vec::new(),
            }
        };
        Slabs {
            bases: Vec::new(),
            slabs: Vec::new(),
            sizes: slots.into_iter().map(size).collect(),
            unit,
            most: 1 << (place_bits - (SLAB_BITS - unit)),
        }
    }

    /// The bases by slab number, for those who compute many addresses at once.
    pub(crate) fn bases(&self) -> *const NonNull<u8> {
        self.bases.as_ptr()
    }

    /// The slot at a place.
    ///
    /// # Safety
    /// The place was given by [`Slabs::take`] of these slabs and not given back since. The pointer is good until the
    /// next `take` or `give`.
    #[inline(always)]
    pub(crate) unsafe fn at(&self, place: u32) -> NonNull<u8> {
        let in_slab = SLAB_BITS - self.unit;
        let offset = (place as usize & ((1 << in_slab) - 1)) << self.unit;
        // SAFETY: by contract the place is that of a live slot, so its slab exists and reaches beyond the offset.
        unsafe {
            self.bases
                .get_unchecked((place >> in_slab) as usize)
                .add(offset)
        }
    }

    /// A slot of the `size`-th size, with any content.
    ///
    /// # Errors
    /// No memory, or no place left to number it by; nothing is changed then.
    pub(crate) fn take(&mut self, home: &IndexMemory, size: usize) -> Result<u32, IndexError> {
        if self.sizes[size].open.is_empty() {
            self.extend(home, size)?;
        }
        let number = *self.sizes[size].open.last().expect("a slab with room");
        let (place, full) = self.take_in(number);
        if full {
            self.sizes[size].open.pop();
        }
        Ok(place)
    }

    /// A slot in a slab with room, and whether it was the last.
    fn take_in(&mut self, number: u32) -> (u32, bool) {
        let slab = self.slabs[number as usize].as_mut().expect("a live slab");
        let slot = self.sizes[slab.size as usize].slot;
        let unit = if slab.free == END {
            slab.fresh += slot as u32;
            (slab.fresh - slot as u32) >> self.unit
        } else {
            let base = self.bases[number as usize];
            let free = (slab.free as usize) << self.unit;
            // SAFETY: a free slot of this slab, which begins with the chain's next unit.
            let next = unsafe { base.add(free).cast().read() };
            std::mem::replace(&mut slab.free, next)
        };
        slab.used += 1;
        (number << (SLAB_BITS - self.unit) | unit, slab.is_full(slot))
    }

    /// From now on, what was hot is so no more.
    pub(crate) fn cool(&mut self) {
        for size in &mut self.sizes {
            for number in size.hot.drain(..) {
                let slab = self.slabs[number as usize].as_mut().expect("a live slab");
                slab.hot = false;
                size.slabs += 1;
                if !slab.is_full(size.slot) {
                    size.open.push(number);
                }
            }
        }
    }

    /// Whether a slot lies in a hot slab.
    pub(crate) fn is_hot(&self, place: u32) -> bool {
        let number = place >> (SLAB_BITS - self.unit);
        self.slabs[number as usize]
            .as_ref()
            .is_some_and(|slab| slab.hot)
    }

    /// A copy of a slot in a hot slab, behind the one that was copied before.
    ///
    /// # Errors
    /// As [`Slabs::take`].
    ///
    /// # Safety
    /// The place was given by [`Slabs::take`] and not given back since.
    pub(crate) unsafe fn copy_hot(
        &mut self,
        home: &IndexMemory,
        place: u32,
    ) -> Result<u32, IndexError> {
        let old = self.slabs[(place >> (SLAB_BITS - self.unit)) as usize].as_ref();
        let size = old.expect("a live slab").size as usize;
        let SlotSize { slot, hot, .. } = &self.sizes[size];
        let room = hot.last().copied().filter(|&number| {
            let slab = self.slabs[number as usize].as_ref().expect("a live slab");
            !slab.is_full(*slot)
        });
        let number = match room {
            Some(number) => number,
            None => {
                let bytes = if hot.is_empty() {
                    FIRST_HOT_SLAB.max(*slot)
                } else {
                    SLAB
                };
                let number = self.add(home, size, bytes, true)?;
                self.sizes[size].hot.push(number);
                number
            }
        };
        let slot = self.sizes[size].slot;
        let (copy, _) = self.take_in(number);
        // SAFETY: two live slots of this size.
        unsafe { self.at(copy).copy_from_nonoverlapping(self.at(place), slot) };
        Ok(copy)
    }

    /// Gives a slot back.
    ///
    /// # Safety
    /// The place was given by [`Slabs::take`], is given back once and not used any more.
    pub(crate) unsafe fn give(&mut self, place: u32) {
        let in_slab = SLAB_BITS - self.unit;
        let number = place >> in_slab;
        let slab = self.slabs[number as usize].as_mut().expect("a live slab");
        let size = &mut self.sizes[slab.size as usize];
        if slab.is_full(size.slot) && !slab.hot {
            size.open.push(number);
        }
        let next = std::mem::replace(&mut slab.free, place & ((1 << in_slab) - 1));
        slab.used -= 1;
        if slab.used == 0 && size.open.len() > 1 && !slab.hot {
            size.open.retain(|&other| other != number);
            self.remove(number);
            return;
        }
        // SAFETY: by contract the slot is live, hence of this slab, and nobody uses it any more.
        unsafe { self.at(place).cast().write(next) };
    }

    /// Gives back every slab that nothing is in.
    pub(crate) fn trim(&mut self) {
        for number in 0..self.slabs.len() as u32 {
            let slab = self.slabs[number as usize].as_ref();
            let Some(slab) = slab.filter(|slab| slab.used == 0) else {
                continue;
            };
            let size = &mut self.sizes[slab.size as usize];
            size.open.retain(|&other| other != number);
            size.hot.retain(|&other| other != number);
            self.remove(number);
        }
    }

    /// Gives all memory back; every place becomes invalid.
    pub(crate) fn clear(&mut self) {
        self.bases.clear();
        self.slabs.clear();
        for size in &mut self.sizes {
            size.open.clear();
            size.hot.clear();
            size.slabs = 0;
        }
    }

    /// The bytes of a slot in use.
    pub(crate) fn slot_bytes(&self, place: u32) -> usize {
        let slab = self.slabs[(place >> (SLAB_BITS - self.unit)) as usize].as_ref();
        self.sizes[slab.expect("a live slab").size as usize].slot
    }

    /// How many slots are in use.
    pub(crate) fn count(&self) -> usize {
        self.slabs
            .iter()
            .flatten()
            .map(|slab| slab.used as usize)
            .sum()
    }

    /// Adds the bytes of these slabs.
    pub(crate) fn measure(&self, footprint: &mut Footprint) {
        for slab in self.slabs.iter().flatten() {
            footprint.used += slab.used as usize * self.sizes[slab.size as usize].slot;
            footprint.held += slab.buffer.len();
        }
    }

    /// Adds the memory of these slabs.
    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        let slabs = self.slabs.iter().flatten();
        all.extend(slabs.map(|slab| slab.buffer.extent()));
    }

    /// Makes room for at least one slot more of a size that has none.
    fn extend(&mut self, home: &IndexMemory, size: usize) -> Result<(), IndexError> {
        let SlotSize { slot, slabs, .. } = self.sizes[size];
        let of_size = |slab: &Option<Slab>| {
            let slab = slab.as_ref();
            slab.is_some_and(|slab| slab.size as usize == size && !slab.hot)
        };
        if slabs == 1
            && let Some(number) = self.slabs.iter().position(of_size)
            && let Some(slab) = &mut self.slabs[number]
            && slab.buffer.len() < SLAB
        {
            let mut buffer = home.memory.allocate(home.object, slab.buffer.len() * 2)?;
            let base = start(&mut buffer);
            // SAFETY: the old slab is shorter than the new one, which nobody else knows.
            unsafe { base.copy_from_nonoverlapping(self.bases[number], slab.buffer.len()) };
            self.bases[number] = base;
            slab.buffer = buffer;
            self.sizes[size].open.push(number as u32);
            return Ok(());
        }
        let bytes = match slabs {
            0 => FIRST_SLAB.max(4 * slot).next_power_of_two(),
            _ => SLAB,
        };
        let number = self.add(home, size, bytes, false)?;
        self.sizes[size].open.push(number);
        Ok(())
    }

    /// A new slab, in no list yet.
    fn add(
        &mut self,
        home: &IndexMemory,
        size: usize,
        bytes: usize,
        hot: bool,
    ) -> Result<u32, IndexError> {
        let vacant = self.slabs.iter().position(Option::is_none);
        let number = vacant.unwrap_or(self.slabs.len());
        if number == self.most {
            return Err(IndexError::Full);
        }
        let mut buffer = home.memory.allocate(home.object, bytes)?;
        if vacant.is_none() {
            self.bases.push(NonNull::dangling());
            self.slabs.push(None);
        }
        self.bases[number] = start(&mut buffer);
        self.slabs[number] = Some(Slab {
            buffer,
            size: size as u32,
            used: 0,
            free: END,
            fresh: 0,
            hot,
        });
        self.sizes[size].slabs += usize::from(!hot);
        Ok(number as u32)
    }

    /// Gives a slab back that is in no list of open ones any more.
    fn remove(&mut self, number: u32) {
        let slab = self.slabs[number as usize].take().expect("a live slab");
        self.sizes[slab.size as usize].slabs -= usize::from(!slab.hot);
        self.bases[number as usize] = NonNull::dangling();
        while let Some(None) = self.slabs.last() {
            self.slabs.pop();
            self.bases.pop();
        }
    }
}

/// The one pointer through which a slab's bytes are used until the buffer is dropped.
fn start(buffer: &mut Buffer) -> NonNull<u8> {
    NonNull::new(buffer.as_mut_slice::<u8>().as_mut_ptr()).expect("a slice's start")
}
