//! Parts whose codes are found by their hash.
//!
//! ```text
//! bucket 0                                      bucket 1           a region of lines for each bucket
//! │7: row 4│9: list 0│ free │ … │b││ … ││         │3: row 2│ …           a line of the cache has five slots
//!                 │
//! lists           └▶ 0, 3 ─▶ rows │0│6│8│                                the rows of a code that has several
//! ```
//!
//! A code lies in the first free slot of the line at its hash, or of the next one that has one. A region has half as
//! many slots again as its bucket has rows. So a code is most often found with one miss of the caches. A line also has
//! bits `b` of the codes that had to go behind it: a code that is nowhere is most often missed with one miss, too. Rows
//! of one code take one slot, so a code with many rows is not in the way of others.

use crate::rows::{Entries, Located, Scattered};
use crate::spread::Spread;
use crate::{MOST_ROWS, NO_ROW};

/// A code, and its row or its list: in 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Slot {
    code: [u32; 2],
    /// [`NO_ROW`] if the slot is free; the number of a list if this bit is set.
    row: u32,
}

/// What marks the number of a list.
const LIST: u32 = MOST_ROWS;

const FREE: Slot = Slot {
    code: [0; 2],
    row: NO_ROW,
};

/// The slots of a line of the cache; free ones are behind others.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line {
    slots: [Slot; SLOTS],
    /// A bit for each code that would be here, but lies behind.
    behind: u32,
}

const SLOTS: usize = 5;

const FREE_LINE: Line = Line {
    slots: [FREE; SLOTS],
    behind: 0,
};

/// The bit of a code at such a fraction.
#[inline(always)]
fn bit(fraction: u32) -> u32 {
    1 << (fraction % u32::BITS)
}

impl Line {
    /// The row or list of a code; [`NO_ROW`] if it has none. Without branches, which nobody could foresee.
    #[inline(always)]
    fn find(&self, code: u64) -> u32 {
        let halves = [(code >> 32) as u32, code as u32];
        let mut found = NO_ROW;
        for slot in &self.slots {
            found = if slot.code == halves {
                found & slot.row
            } else {
                found
            };
        }
        found
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.slots[SLOTS - 1].row != NO_ROW
    }
}

/// A part.
#[derive(Debug)]
pub(crate) struct Hashed {
    /// Per bucket, its first line and how many it has.
    regions: Vec<(u32, u32)>,
    lines: Vec<Line>,
    /// Where the rows of codes with several begin, and how many they are.
    lists: Vec<(u32, u32)>,
    rows: Vec<u32>,
}

/// Lines for so many rows: a slot is always free.
fn lines_for(rows: usize) -> usize {
    (rows + rows / 2) / SLOTS + 1
}

impl Hashed {
    pub fn new(spread: &Spread, part: usize, scattered: &[Scattered]) -> Self {
        let buckets = spread.buckets_of(part);
        let entries = |bucket: usize| {
            let workers = scattered.iter();
            workers.filter_map(move |scattered| match scattered.buckets.get(bucket) {
                Some(Entries::Hashed(entries)) => Some(entries.as_slice()),
                _ => None,
            })
        };
        let rows = |bucket| -> usize {
            let entries = entries(bucket);
            entries.map(<[(u32, u32, u32)]>::len).sum()
        };
        let mut made = Hashed {
            regions: Vec::with_capacity(buckets.len()),
            lines: Vec::with_capacity(buckets.clone().map(|one| lines_for(rows(one))).sum()),
            lists: Vec::new(),
            rows: Vec::new(),
        };
        let mut region = Vec::new();
        let mut repeats = Vec::new();
        for bucket in buckets {
            region.clear();
            region.resize(lines_for(rows(bucket)), FREE_LINE);
            repeats.clear();
            for &(upper, lower, row) in entries(bucket).flatten() {
                let slot = Slot {
                    code: [upper, lower],
                    row,
                };
                if let Some(place) = put(&mut region, spread, slot) {
                    repeats.push((place, row));
                }
            }
            made.add(spread, &mut region, &repeats);
        }
        made
    }

    /// Adds the region of the next bucket; `repeats` has the rows that are in no slot, beside the number of their
    /// code's.
    fn add(&mut self, spread: &Spread, region: &mut [Line], repeats: &[(u32, u32)]) {
        let first = self.lines.len();
        if repeats.is_empty() {
            self.lines.extend_from_slice(region);
        } else {
            list(region, repeats, &mut self.lists, &mut self.rows);
            // There are fewer codes than rows.
            let slots = region.iter().flat_map(|line| line.slots);
            let slots = slots.filter(|slot| slot.row != NO_ROW);
            let lines = lines_for(slots.clone().count());
            self.lines.resize(first + lines, FREE_LINE);
            for slot in slots {
                put(&mut self.lines[first..], spread, slot);
            }
        }
        let lines = self.lines.len() - first;
        self.regions.push((first as u32, lines as u32));
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        size_of_val(&self.regions[..])
            + size_of_val(&self.lines[..])
            + size_of_val(&self.lists[..])
            + size_of_val(&self.rows[..])
    }

    /// Whether no code has several rows.
    pub fn is_unique(&self) -> bool {
        self.lists.is_empty()
    }

    /// The line in which a code is looked for first: in the part's `bucket`-th, at such a fraction of it.
    #[inline(always)]
    pub fn home(&self, bucket: usize, fraction: u32) -> &Line {
        let (first, len) = self.regions[bucket];
        &self.lines[first as usize + home(fraction, len)]
    }

    /// Where the rows of a code are. If it has one, this is the start itself.
    #[inline(always)]
    pub fn locate(&self, bucket: usize, fraction: u32, code: u64) -> Located {
        let line = self.home(bucket, fraction);
        let mut row = line.find(code);
        if row == NO_ROW && line.behind & bit(fraction) != 0 {
            row = self.find_behind(bucket, fraction, code);
        }
        match row {
            NO_ROW => Located::default(),
            row if row & LIST == 0 => Located { start: row, len: 1 },
            list => {
                let (start, len) = self.lists[(list & !LIST) as usize];
                eris_kernels::prefetch(&self.rows[start as usize]);
                Located { start, len }
            }
        }
    }

    /// The row or list of a code that is not in its first line.
    #[cold]
    fn find_behind(&self, bucket: usize, fraction: u32, code: u64) -> u32 {
        let (first, len) = self.regions[bucket];
        let region = &self.lines[first as usize..][..len as usize];
        let mut line = home(fraction, len);
        loop {
            line = next(line, len);
            let row = region[line].find(code);
            if row != NO_ROW || !region[line].is_full() {
                return row;
            }
        }
    }

    /// The rows of a code that has several.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

/// Puts a slot into a region; the number of the slot that has its code already, if there is one.
#[inline(always)]
fn put(region: &mut [Line], spread: &Spread, slot: Slot) -> Option<u32> {
    let code = u64::from(slot.code[0]) << 32 | u64::from(slot.code[1]);
    let len = region.len() as u32;
    let fraction = spread.in_hashed_bucket(code).1;
    let home = home(fraction, len);
    let mut line = home;
    loop {
        let is_it = |other: &Slot| other.row == NO_ROW || other.code == slot.code;
        if let Some(at) = region[line].slots.iter().position(is_it) {
            let found = &mut region[line].slots[at];
            if found.row != NO_ROW {
                return Some((line * SLOTS + at) as u32);
            }
            *found = slot;
            if line != home {
                region[home].behind |= bit(fraction);
            }
            return None;
        }
        line = next(line, len);
    }
}

/// Such a fraction of so many lines.
#[inline(always)]
fn home(fraction: u32, len: u32) -> usize {
    ((u64::from(fraction) * u64::from(len)) >> 32) as usize
}

#[inline(always)]
fn next(line: usize, len: u32) -> usize {
    if line + 1 == len as usize {
        0
    } else {
        line + 1
    }
}

/// Makes lists of the rows of codes that have several; `repeats` has those that are in no slot, beside the number of
/// their code's.
fn list(
    region: &mut [Line],
    repeats: &[(u32, u32)],
    lists: &mut Vec<(u32, u32)>,
    rows: &mut Vec<u32>,
) {
    let mut more = vec![0u32; region.len() * SLOTS];
    for (slot, _) in repeats {
        more[*slot as usize] += 1;
    }
    let slots = region.iter_mut().flat_map(|line| &mut line.slots);
    for (slot, more) in slots.zip(&more).filter(|(_, more)| **more > 0) {
        // Of each, the rows so far.
        lists.push((rows.len() as u32, 1));
        rows.push(slot.row);
        rows.resize(rows.len() + *more as usize, 0);
        slot.row = LIST | (lists.len() - 1) as u32;
    }
    for (slot, row) in repeats {
        let slot = *slot as usize;
        let list = region[slot / SLOTS].slots[slot % SLOTS].row & !LIST;
        let (start, len) = &mut lists[list as usize];
        rows[(*start + *len) as usize] = *row;
        *len += 1;
    }
}
