//! Runs of 4 KiB units in regions: the bookkeeping of medium buffers and of slabs. It calls no system and touches none
//! of the memory it hands out.
//!
//! ```text
//! region (2 MiB-aligned, k × 2 MiB)        one bit per unit
//! ├──────run──────┼────free────┼──run──┼─ … used   1111111000000111…
//!                                           dirty  1111111110000111…   free and dirty: must be zeroed before reuse
//! ```
//! First fit, lowest region first, so that late regions empty out. Regions grow with the heap (a sixteenth of it, at
//! most 64 MiB), for the kernel limits the number of mappings.

use crate::source::HUGE;
use std::ptr::NonNull;

/// The unit of runs in bytes.
pub(crate) const UNIT: usize = 4 << 10;

const MAX_REGION: usize = 64 << 20;
/// Free dirty memory that is kept for reuse: this much, or an eighth of all regions if that is more.
const KEPT: usize = 32 << 20;

/// Consecutive units of one region, in use by one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitRun {
    region: u32,
    first: u32,
    units: u32,
}

impl UnitRun {
    pub(crate) fn bytes(self) -> usize {
        self.units as usize * UNIT
    }
}

/// A run that was handed out.
pub(crate) struct Taken {
    pub(crate) run: UnitRun,
    pub(crate) start: NonNull<u8>,
    /// Whether it may hold other content than zeros.
    pub(crate) dirty: bool,
}

/// A mapping that nothing is left in.
pub(crate) struct Empty {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
}

#[derive(Default)]
pub(crate) struct PageHeap {
    /// By [`UnitRun::region`]; `None` after the region was emptied.
    regions: Vec<Option<Region>>,
    mapped: usize,
    /// Units that are free and dirty.
    idle: usize,
}

struct Region {
    start: NonNull<u8>,
    units: usize,
    used: Vec<u64>,
    dirty: Vec<u64>,
    free: usize,
    /// No free run is longer than this.
    longest: usize,
}

// SAFETY: `start` is owned by the heap and only used as a number here; whoever receives it follows its own rules.
unsafe impl Send for Region {}

impl PageHeap {
    /// Takes a run of `units` whose place is a multiple of `align` units. `None` if no region has room: map one of
    /// [`PageHeap::next_region_bytes`], [`PageHeap::add`] it and try again.
    pub(crate) fn take(&mut self, units: usize, align: usize) -> Option<Taken> {
        for (index, slot) in self.regions.iter_mut().enumerate() {
            let Some(region) = slot else { continue };
            if region.free < units || region.longest < units {
                continue;
            }
            let Some(first) = region.find(units, align) else {
                continue;
            };
            let dirty_units = count(&region.dirty, first, units);
            fill(&mut region.used, first, units, true);
            region.free -= units;
            self.idle -= dirty_units;
            let start = region.address(first);
            let run = UnitRun {
                region: index as u32,
                first: first as u32,
                units: units as u32,
            };
            return Some(Taken {
                run,
                start,
                dirty: dirty_units > 0,
            });
        }
        None
    }

    /// Gives a run back; `clean` if it reads as zeros. Returns the region's mapping if nothing is left in it.
    pub(crate) fn give(&mut self, run: UnitRun, clean: bool) -> Option<Empty> {
        let slot = &mut self.regions[run.region as usize];
        let region = slot.as_mut().expect("a run of a live region");
        let (first, units) = (run.first as usize, run.units as usize);
        assert_eq!(
            count(&region.used, first, units),
            units,
            "a run given back twice"
        );
        fill(&mut region.used, first, units, false);
        fill(&mut region.dirty, first, units, !clean);
        region.free += units;
        region.longest = region.free;
        self.idle += if clean { 0 } else { units };
        if region.free < region.units {
            return None;
        }
        self.idle -= count(&region.dirty, 0, region.units);
        let empty = Empty {
            start: region.start,
            bytes: region.units * UNIT,
        };
        self.mapped -= empty.bytes;
        *slot = None;
        while let Some(None) = self.regions.last() {
            self.regions.pop();
        }
        Some(empty)
    }

    /// Adds a zeroed mapping of a multiple of 2 MiB.
    pub(crate) fn add(&mut self, start: NonNull<u8>, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(HUGE) && start.addr().get().is_multiple_of(HUGE));
        let units = bytes / UNIT;
        let region = Region {
            start,
            units,
            used: vec![0; units / 64],
            dirty: vec![0; units / 64],
            free: units,
            longest: units,
        };
        self.mapped += bytes;
        match self.regions.iter().position(Option::is_none) {
            Some(vacant) => self.regions[vacant] = Some(region),
            None => self.regions.push(Some(region)),
        }
    }

    /// The size of the region to map next, in bytes.
    pub(crate) fn next_region_bytes(&self) -> usize {
        (self.mapped / 16)
            .next_multiple_of(HUGE)
            .clamp(HUGE, MAX_REGION)
    }

    /// Whether a run that is to be given back should be discarded before, for enough dirty memory lies idle.
    pub(crate) fn has_enough_idle(&self, run: UnitRun) -> bool {
        self.idle * UNIT + run.bytes() > KEPT.max(self.mapped / 8)
    }

    /// Takes every free dirty run, for discarding; each is to be given back then.
    pub(crate) fn take_idle(&mut self) -> Vec<Taken> {
        let mut taken = Vec::new();
        for (index, slot) in self.regions.iter_mut().enumerate() {
            let Some(region) = slot else { continue };
            let mut first = 0;
            while first < region.units {
                let idle = |unit: usize| !bit(&region.used, unit) && bit(&region.dirty, unit);
                let units = (first..region.units).take_while(|&unit| idle(unit)).count();
                if units == 0 {
                    first += 1;
                    continue;
                }
                fill(&mut region.used, first, units, true);
                region.free -= units;
                self.idle -= units;
                let start = region.address(first);
                let run = UnitRun {
                    region: index as u32,
                    first: first as u32,
                    units: units as u32,
                };
                taken.push(Taken {
                    run,
                    start,
                    dirty: true,
                });
                first += units;
            }
        }
        taken
    }

    /// Takes every region out, whether in use or not.
    pub(crate) fn drain(&mut self) -> Vec<Empty> {
        self.mapped = 0;
        self.idle = 0;
        let regions = std::mem::take(&mut self.regions).into_iter().flatten();
        regions
            .map(|region| Empty {
                start: region.start,
                bytes: region.units * UNIT,
            })
            .collect()
    }
}

impl Region {
    fn address(&self, unit: usize) -> NonNull<u8> {
        self.start
            .map_addr(|start| start.saturating_add(unit * UNIT))
    }

    /// The lowest free run, first unit.
    fn find(&mut self, units: usize, align: usize) -> Option<usize> {
        let mut from = 0;
        loop {
            let first = next(&self.used, from, self.units, false).next_multiple_of(align);
            if first + units > self.units {
                if align == 1 {
                    self.longest = units - 1;
                }
                return None;
            }
            let end = next(&self.used, first, first + units, true);
            if end == first + units {
                return Some(first);
            }
            from = end;
        }
    }
}

fn bit(bits: &[u64], index: usize) -> bool {
    bits[index / 64] >> (index % 64) & 1 == 1
}

/// The first index in `from..end` whose bit is `value`; `end` if there is none.
fn next(bits: &[u64], from: usize, end: usize, value: bool) -> usize {
    let mut index = from;
    while index < end {
        let word = if value {
            bits[index / 64]
        } else {
            !bits[index / 64]
        };
        let rest = word >> (index % 64);
        if rest != 0 {
            return (index + rest.trailing_zeros() as usize).min(end);
        }
        index = (index / 64 + 1) * 64;
    }
    end
}

/// The words that `first..first + length` touches, each with the mask of its bits inside.
fn words(first: usize, length: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = first + length;
    (first / 64..end.div_ceil(64)).map(move |word| {
        let low = first.saturating_sub(word * 64);
        let high = (end - word * 64).min(64);
        (word, (u64::MAX >> (64 - (high - low))) << low)
    })
}

fn fill(bits: &mut [u64], first: usize, length: usize, value: bool) {
    for (word, mask) in words(first, length) {
        if value {
            bits[word] |= mask
        } else {
            bits[word] &= !mask
        }
    }
}

fn count(bits: &[u64], first: usize, length: usize) -> usize {
    words(first, length)
        .map(|(word, mask)| (bits[word] & mask).count_ones() as usize)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Addresses that nobody touches.
    fn address(region: usize) -> NonNull<u8> {
        NonNull::without_provenance(std::num::NonZero::new((region + 1) * MAX_REGION * 2).unwrap())
    }

    #[derive(Clone, Debug)]
    enum HeapAction {
        Take {
            units: usize,
            align: usize,
        },
        Give {
            which: prop::sample::Index,
            clean: bool,
        },
        TakeIdle,
    }

    fn action() -> impl Strategy<Value = HeapAction> {
        let units = prop_oneof![1..4usize, 1..130usize, Just(16)];
        let give = (any::<prop::sample::Index>(), any::<bool>());
        prop_oneof![
            6 => (units, prop_oneof![Just(1), Just(16)]).prop_map(|(units, align)| HeapAction::Take { units, align }),
            5 => give.prop_map(|(which, clean)| HeapAction::Give { which, clean }),
            1 => Just(HeapAction::TakeIdle),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        /// Against a map of what is held and a set of what was left dirty.
        #[test]
        fn runs_never_overlap_and_dirt_is_remembered(actions in prop::collection::vec(action(), 1..200)) {
            let mut heap = PageHeap::default();
            let mut added = 0;
            let mut held: BTreeMap<usize, UnitRun> = BTreeMap::new();
            let mut dirty: std::collections::BTreeSet<usize> = Default::default();
            for action in actions {
                match action {
                    HeapAction::Take { units, align } => {
                        let taken = heap.take(units, align).unwrap_or_else(|| {
                            heap.add(address(added), HUGE);
                            added += 1;
                            heap.take(units, align).expect("an empty region has room")
                        });
                        let first = taken.start.addr().get() / UNIT;
                        prop_assert_eq!(first % align, 0);
                        let last_before = held.range(..first + units).next_back();
                        prop_assert!(last_before.is_none_or(|(start, run)| start + run.units as usize <= first));
                        prop_assert_eq!(taken.dirty, dirty.range(first..first + units).next().is_some());
                        held.insert(first, taken.run);
                    }
                    HeapAction::Give { which, clean } if !held.is_empty() => {
                        let first = *held.keys().nth(which.index(held.len())).unwrap();
                        let run = held.remove(&first).unwrap();
                        for unit in first..first + run.units as usize {
                            if clean { dirty.remove(&unit); } else { dirty.insert(unit); }
                        }
                        let empty = heap.give(run, clean);
                        let region = first * UNIT / HUGE;
                        let alone = held.keys().all(|other| other * UNIT / HUGE != region);
                        prop_assert_eq!(empty.is_some(), alone, "a region goes when nothing in it is held");
                        if alone {
                            dirty.retain(|unit| unit * UNIT / HUGE != region);
                        }
                    }
                    HeapAction::Give { .. } => {}
                    HeapAction::TakeIdle => {
                        let idle = |unit: &usize| held.range(..=unit).next_back()
                            .is_none_or(|(start, run)| start + run.units as usize <= *unit);
                        let expected: Vec<usize> = dirty.iter().copied().filter(idle).collect();
                        let mut found = Vec::new();
                        for Taken { run, start, .. } in heap.take_idle() {
                            let first = start.addr().get() / UNIT;
                            found.extend(first..first + run.units as usize);
                            prop_assert!(heap.give(run, true).is_none(), "its region is in use");
                        }
                        found.sort_unstable();
                        prop_assert_eq!(&found, &expected);
                        found.iter().for_each(|unit| { dirty.remove(unit); });
                    }
                }
                let idle = dirty.iter().filter(|unit| held.range(..=*unit).next_back()
                    .is_none_or(|(start, run)| start + run.units as usize <= **unit)).count();
                prop_assert_eq!(heap.idle, idle);
            }
            for (_, run) in std::mem::take(&mut held) {
                heap.give(run, false);
            }
            prop_assert_eq!((heap.mapped, heap.idle, heap.regions.len()), (0, 0, 0));
        }
    }

    #[test]
    fn the_lowest_region_is_filled_first() {
        let mut heap = PageHeap::default();
        heap.add(address(0), HUGE);
        heap.add(address(1), HUGE);
        let units = HUGE / UNIT;
        let first = heap.take(units - 3, 1).unwrap();
        let second = heap.take(4, 1).unwrap();
        assert_eq!((first.run.region, second.run.region), (0, 1));
        assert_eq!(heap.take(3, 1).unwrap().run.region, 0);
    }

    #[test]
    fn regions_grow_with_the_heap() {
        let mut heap = PageHeap::default();
        assert_eq!(heap.next_region_bytes(), HUGE);
        for region in 0..40 {
            heap.add(address(region), HUGE);
        }
        assert_eq!(heap.next_region_bytes(), 3 * HUGE);
        for region in 40..56 {
            heap.add(address(region), MAX_REGION);
        }
        assert_eq!(heap.next_region_bytes(), MAX_REGION);
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn giving_back_twice_is_noticed() {
        let mut heap = PageHeap::default();
        heap.add(address(0), HUGE);
        // The first one keeps the region alive.
        let [_, run] = [0; 2].map(|_| heap.take(1, 1).unwrap().run);
        heap.give(run, true);
        heap.give(run, true);
    }
}
