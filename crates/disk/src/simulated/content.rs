//! The bytes of a simulated file: what readers see, and what is on the medium.
//!
//! ```text
//!            write                  flush
//!  new bytes ──────▶ now ─────────────────────────▶ medium
//!                     │ every version of a sector       ▲
//!                     └──────▶ pending ─ crash: one of ─┘
//!                              them, or the medium's own
//! ```
//!
//! A sector of 512 bytes is what a disk stores whole or not at all. Sectors of zeros are not kept.

use super::random::{Kept, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const SECTOR: u64 = 512;
/// What a file takes room by.
pub(super) const BLOCK: u64 = 4096;

type Sector = Arc<[u8; SECTOR as usize]>;
type Sectors = BTreeMap<u64, Sector>;

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    now: Sectors,
    len: u64,
    /// The blocks that have room, written or reserved.
    blocks: BTreeSet<u64>,
    medium: Sectors,
    medium_len: u64,
    medium_blocks: BTreeSet<u64>,
    /// Whether they differ. Most flushes of a file whose room was reserved leave them alone.
    blocks_changed: bool,
    /// The versions of each sector since the last flush, the newest last. `None` is zeros.
    pending: BTreeMap<u64, Vec<Option<Sector>>>,
    /// The least and the greatest length since the last flush.
    lens: Option<(u64, u64)>,
    /// Sectors that cannot be read.
    worn: BTreeSet<u64>,
}

impl Content {
    /// The sector that has this byte cannot be read from now on.
    pub(super) fn wear_out(&mut self, offset: u64) {
        self.worn.insert(offset / SECTOR);
    }

    /// Whether one of so many bytes from `offset` on cannot be read.
    pub(super) fn is_worn(&self, offset: u64, bytes: u64) -> bool {
        let sectors = offset / SECTOR..(offset + bytes).div_ceil(SECTOR);
        self.worn.range(sectors).next().is_some()
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes that it takes on the disk.
    pub(super) fn room(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }

    /// As many bytes as there are from `offset` on, up to the buffer's length.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let bytes = (self.len.saturating_sub(offset)).min(buffer.len() as u64);
        for (number, within, part) in pieces(offset, bytes) {
            let buffer = &mut buffer[part.clone()];
            match self.now.get(&number) {
                Some(sector) => buffer.copy_from_slice(&sector[within..within + part.len()]),
                None => buffer.fill(0),
            }
        }
        bytes as usize
    }

    /// How many of `bytes` at `offset` find room if `free` bytes are free.
    pub(super) fn fitting(&self, offset: u64, bytes: u64, free: u64) -> u64 {
        let mut left = free / BLOCK;
        for block in offset / BLOCK..(offset + bytes).div_ceil(BLOCK) {
            if !self.blocks.contains(&block) {
                if left == 0 {
                    return (block * BLOCK).saturating_sub(offset);
                }
                left -= 1;
            }
        }
        bytes
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        for (number, within, part) in pieces(offset, bytes.len() as u64) {
            let mut sector = self
                .now
                .get(&number)
                .map_or([0; SECTOR as usize], |sector| **sector);
            sector[within..within + part.len()].copy_from_slice(&bytes[part]);
            self.put(number, Some(Arc::new(sector)));
        }
        let end = offset + bytes.len() as u64;
        self.take(offset / BLOCK..end.div_ceil(BLOCK));
        if end > self.len {
            self.grow(end);
        }
    }

    /// Reserves room up to `len`.
    pub(super) fn allocate(&mut self, len: u64) {
        self.take(0..len.div_ceil(BLOCK));
        if len > self.len {
            self.grow(len);
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let first = len.div_ceil(SECTOR);
            let gone: Vec<u64> = self.now.range(first..).map(|(number, _)| *number).collect();
            for number in gone {
                self.put(number, None);
            }
            if let Some((number, cut)) = last_sector(&self.now, len) {
                self.put(number, Some(cut));
            }
            self.blocks_changed |= !self.blocks.split_off(&len.div_ceil(BLOCK)).is_empty();
        }
        if len != self.len {
            self.grow(len);
        }
    }

    /// Gives some blocks room.
    fn take(&mut self, blocks: std::ops::Range<u64>) {
        for block in blocks {
            self.blocks_changed |= self.blocks.insert(block);
        }
    }

    fn put(&mut self, number: u64, sector: Option<Sector>) {
        self.pending.entry(number).or_default().push(sector.clone());
        set(&mut self.now, number, sector);
    }

    fn grow(&mut self, len: u64) {
        let (least, greatest) = self.lens.unwrap_or((self.medium_len, self.medium_len));
        self.lens = Some((least.min(len), greatest.max(len)));
        self.len = len;
    }

    pub(super) fn flush(&mut self) {
        for number in std::mem::take(&mut self.pending).into_keys() {
            set(&mut self.medium, number, self.now.get(&number).cloned());
        }
        self.medium_len = self.len;
        if std::mem::take(&mut self.blocks_changed) {
            self.medium_blocks = self.blocks.clone();
        }
        self.lens = None;
    }

    /// A flush fails: some sectors are on the medium, and the others are taken for stored. Readers see what is stored,
    /// or what was written until the machine stops. The length is still to be stored.
    pub(super) fn fail_flush(&mut self, random: &mut Random) {
        let kept = Kept::any(random);
        let lost = random.below(2) == 0;
        for (number, versions) in std::mem::take(&mut self.pending) {
            let found = found(self.medium.get(&number), &versions, kept, random);
            set(&mut self.medium, number, found.clone());
            if lost {
                set(&mut self.now, number, found);
            }
        }
    }

    /// What is found on the medium after a crash.
    pub(super) fn after_crash(&self, kept: Kept, random: &mut Random) -> Content {
        let kept = kept.part(random);
        let mut medium = self.medium.clone();
        let mut blocks = self.medium_blocks.clone();
        for (number, versions) in &self.pending {
            let found = found(self.medium.get(number), versions, kept, random);
            if found.is_some() {
                blocks.insert(number * SECTOR / BLOCK);
            }
            set(&mut medium, *number, found);
        }
        let len = match (kept, self.lens) {
            (_, None) | (Kept::Nothing, _) => self.medium_len,
            (Kept::Everything, _) => self.len,
            (Kept::Some(_), Some((least, greatest))) => match random.below(3) {
                0 => self.medium_len,
                1 => self.len,
                _ => least + random.below(greatest - least + 1),
            },
        };
        medium.split_off(&len.div_ceil(SECTOR));
        medium.extend(last_sector(&medium, len));
        blocks.split_off(&len.div_ceil(BLOCK));
        Content {
            now: medium.clone(),
            len,
            blocks: blocks.clone(),
            medium,
            medium_len: len,
            medium_blocks: blocks,
            blocks_changed: false,
            pending: BTreeMap::new(),
            lens: None,
            worn: self.worn.clone(),
        }
    }
}

/// The parts of some bytes by sector: the sector's number, where the part begins in it, and which of the bytes it is.
fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let end = offset + bytes;
    (offset / SECTOR..end.div_ceil(SECTOR)).map(move |number| {
        let from = offset.max(number * SECTOR);
        let to = end.min((number + 1) * SECTOR);
        let part = (from - offset) as usize..(to - offset) as usize;
        (number, (from - number * SECTOR) as usize, part)
    })
}

fn set(sectors: &mut Sectors, number: u64, sector: Option<Sector>) {
    match sector {
        Some(sector) => sectors.insert(number, sector),
        None => sectors.remove(&number),
    };
}

/// The sector in which a file of `len` bytes ends, with zeros behind the end.
fn last_sector(sectors: &Sectors, len: u64) -> Option<(u64, Sector)> {
    let (number, end) = (len / SECTOR, len % SECTOR);
    let mut sector = **sectors.get(&number).filter(|_| end > 0)?;
    sector[end as usize..].fill(0);
    Some((number, Arc::new(sector)))
}

/// What the medium has of a sector in the end. The system stores pages when it likes, so it may be any version.
fn found(
    old: Option<&Sector>,
    versions: &[Option<Sector>],
    kept: Kept,
    random: &mut Random,
) -> Option<Sector> {
    let newest = versions
        .last()
        .expect("a sector that is pending was written");
    match kept {
        _ if !kept.is_kept(random) => old.cloned(),
        Kept::Some(_) => versions[random.below(versions.len() as u64) as usize].clone(),
        _ => newest.clone(),
    }
}
