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
//! A slab is one [`Buffer`] of the node's memory manager and holds slots of one size. It is one huge page, but the first of
//! its size begins with a kilobyte and doubles: because nobody holds a pointer, it is moved by copying. For the same reason
//! an index can be handed to another owner as it is. A slab in which nothing is left goes back to its node, except one per
//! size, lest an insert and a remove in turn cost a system call each.
//!
//! What is free is chained through the first bytes of the free slots, newest first, for it is the likeliest to be cached.

use crate::IndexError;
use eris_numa::{Buffer, NodeMemory};
use eris_types::ObjectId;
use std::ptr::NonNull;

/// Log2 of the bytes of a whole slab: one huge page.
pub(crate) const SLAB_BITS: u32 = 21;
const SLAB: usize = 1 << SLAB_BITS;
const FIRST_SLAB: usize = 1 << 10;
/// What ends a chain of free slots: the unit of no slot.
const END: u32 = u32::MAX;

/// Where the memory of an index comes from.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) memory: NodeMemory,
    pub(crate) object: ObjectId,
}

/// The slabs of one kind of slots; with several slot sizes if the kind has them.
pub(crate) struct Slabs {
    /// By slab number; dangling where there is no slab.
    bases: Vec<NonNull<u8>>,
    slabs: Vec<Option<Slab>>,
    sizes: Vec<Size>,
    /// Log2 of the bytes of a unit.
    unit: u32,
    /// The most slabs that places can tell apart.
    most: usize,
}

struct Size {
    slot: usize,
    /// Slabs of this size with room; slots are taken from the last.
    open: Vec<u32>,
    /// Slabs of this size.
    slabs: usize,
}

struct Slab {
    buffer: Buffer,
    size: u32,
    used: u32,
    /// First free unit of the chain.
    free: u32,
    /// Slots from here on were never handed out: bytes.
    fresh: u32,
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
            Size {
                slot,
                open: Vec::new(),
                slabs: 0,
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
    /// The place was given by [`Slabs::take`] of these slabs and not given back since. The pointer is good until the next
    /// `take` or `give`.
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
    pub(crate) fn take(&mut self, home: &Home, size: usize) -> Result<u32, IndexError> {
        if self.sizes[size].open.is_empty() {
            self.extend(home, size)?;
        }
        let open = &mut self.sizes[size];
        let number = *open.open.last().expect("a slab with room");
        let slab = self.slabs[number as usize].as_mut().expect("an open slab");
        let in_slab = SLAB_BITS - self.unit;
        let unit = if slab.free == END {
            let unit = slab.fresh >> self.unit;
            slab.fresh += open.slot as u32;
            unit
        } else {
            let unit = slab.free;
            let base = self.bases[number as usize];
            // SAFETY: a free slot of this slab, which begins with the chain's next unit.
            slab.free = unsafe { base.add((unit as usize) << self.unit).cast().read() };
            unit
        };
        slab.used += 1;
        if slab.free == END && slab.fresh as usize + open.slot > slab.buffer.len() {
            open.open.pop();
        }
        Ok(number << in_slab | unit)
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
        if slab.free == END && slab.fresh as usize + size.slot > slab.buffer.len() {
            size.open.push(number);
        }
        let next = std::mem::replace(&mut slab.free, place & ((1 << in_slab) - 1));
        slab.used -= 1;
        if slab.used == 0 && size.open.len() > 1 {
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
            self.sizes[slab.size as usize]
                .open
                .retain(|&other| other != number);
            self.remove(number);
        }
    }

    /// Gives all memory back; every place becomes invalid.
    pub(crate) fn clear(&mut self) {
        self.bases.clear();
        self.slabs.clear();
        for size in &mut self.sizes {
            size.open.clear();
            size.slabs = 0;
        }
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

    /// Makes room for at least one slot more of a size that has none.
    fn extend(&mut self, home: &Home, size: usize) -> Result<(), IndexError> {
        let Size { slot, slabs, .. } = self.sizes[size];
        let of_size =
            |slab: &Option<Slab>| slab.as_ref().is_some_and(|slab| slab.size as usize == size);
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
        let vacant = self.slabs.iter().position(Option::is_none);
        let number = vacant.unwrap_or(self.slabs.len());
        if number == self.most {
            return Err(IndexError::Full);
        }
        let bytes = match slabs {
            0 => FIRST_SLAB.max(4 * slot).next_power_of_two(),
            _ => SLAB,
        };
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
        });
        self.sizes[size].open.push(number as u32);
        self.sizes[size].slabs += 1;
        Ok(())
    }

    /// Gives a slab back that is in no list of open ones any more.
    fn remove(&mut self, number: u32) {
        let slab = self.slabs[number as usize].take().expect("a live slab");
        self.sizes[slab.size as usize].slabs -= 1;
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
