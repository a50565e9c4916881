//! One table: pairs of words in a power of two of slots, each at its hash's slot or behind it.

use crate::IndexError;
use crate::prefetch::prefetch;
use crate::slabs::{IndexMemory, SLAB_BITS};
use eris_numa::{Buffer, Extent};
use std::ptr::NonNull;

/// Slots of the largest table, which is one huge page.
pub(super) const LARGEST: usize = (1 << SLAB_BITS) / size_of::<HashSlot>();

/// Word and payload; the word zero says that the slot is free.
type HashSlot = [u64; 2];

pub(super) struct SlotTable {
    slots: Buffer,
    used: usize,
    /// By how many first bits of the hash it was chosen.
    pub(super) depth: u32,
}

impl SlotTable {
    /// Slots of the smallest.
    pub(super) const SMALLEST: usize = 32;

    pub(super) fn new(home: &IndexMemory, capacity: usize, depth: u32) -> Result<Self, IndexError> {
        let slots = home
            .memory
            .allocate(home.object, capacity * size_of::<HashSlot>())?;
        Ok(SlotTable {
            slots,
            used: 0,
            depth,
        })
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn extent(&self) -> Extent {
        self.slots.extent()
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len() / size_of::<HashSlot>()
    }

    pub(super) fn is_full(&self) -> bool {
        self.used * 4 >= self.capacity() * 3
    }

    #[inline(always)]
    fn slots(&self) -> &[HashSlot] {
        self.slots.as_slice::<u64>().as_chunks().0
    }

    #[inline(always)]
    fn slots_mut(&mut self) -> &mut [HashSlot] {
        self.slots.as_mut_slice::<u64>().as_chunks_mut().0
    }

    /// Asks for the line where a hash belongs, and for the next if that is near.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        let slots = self.slots();
        for ahead in [0, 2] {
            let at = (hash as usize + ahead) & (slots.len() - 1);
            prefetch(NonNull::from(&slots[at]).cast());
        }
    }

    /// The slot of a word whose payload is the right one, or the free slot where it would be.
    #[inline(always)]
    pub(super) fn find(
        &self,
        word: u64,
        hash: u64,
        right: impl Fn(u64) -> bool,
    ) -> Result<usize, usize> {
        let slots = self.slots();
        let mut at = hash as usize & (slots.len() - 1);
        loop {
            let [found, payload] = slots[at];
            if found == word && right(payload) {
                return Ok(at);
            }
            if found == 0 {
                return Err(at);
            }
            at = (at + 1) & (slots.len() - 1);
        }
    }

    #[inline(always)]
    pub(super) fn payload(&self, slot: usize) -> u64 {
        self.slots()[slot][1]
    }

    /// Fills a free slot that [`SlotTable::find`] gave.
    pub(super) fn put(&mut self, slot: usize, word: u64, payload: u64) {
        self.slots_mut()[slot] = [word, payload];
        self.used += 1;
    }

    pub(super) fn replace(&mut self, slot: usize, payload: u64) {
        self.slots_mut()[slot][1] = payload;
    }

    /// Frees a slot and moves back those behind it that thereby come nearer to where they belong; returns its payload.
    pub(super) fn remove(&mut self, slot: usize, spread: impl Fn(u64) -> u64) -> u64 {
        self.used -= 1;
        let slots = self.slots_mut();
        let mask = slots.len() - 1;
        let payload = slots[slot][1];
        let (mut hole, mut at) = (slot, slot);
        loop {
            at = (at + 1) & mask;
            let [word, _] = slots[at];
            if word == 0 {
                break;
            }
            let distance = at.wrapping_sub(spread(word) as usize) & mask;
            if distance >= at.wrapping_sub(hole) & mask {
                slots[hole] = slots[at];
                hole = at;
            }
        }
        slots[hole] = [0; 2];
        payload
    }

    /// Adds entries that are not there and for which there is room.
    pub(super) fn fill(
        &mut self,
        entries: impl Iterator<Item = (u64, u64)>,
        spread: impl Fn(u64) -> u64,
    ) {
        for (word, payload) in entries {
            let slot = self
                .find(word, spread(word), |_| false)
                .expect_err("no payload is right");
            self.put(slot, word, payload);
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let slots = self.slots().iter().filter(|slot| slot[0] != 0);
        slots.map(|&[word, payload]| (word, payload))
    }
}
