//! Reading ranges: all of them at once, and of each one owner after the other, since the first ones mostly have enough.
//!
//! ```text
//! range 0 ── what AEU 0 has of it ─┬─▶ a part for AEU 0 ─┐    ┌─ has its entries
//! range 1 ── what AEU 0 has of it ─┘                     ├────┼─ what AEU 1 has of it ─▶ a part of the next exchange
//! range 2 ── what AEU 3 has of it ───▶ a part for AEU 3 ─┘    └─ is at its end
//! ```

use super::KeyClient;
use crate::error::EngineError;
use crate::key_index::batch::{KeyBatch, KeyOperation, RangeRead, Rest};
use crate::key_index::layout::PartitionTable;
use eris_types::AeuId;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Ranges that are read at once: an owner does what a part asks for in one slice.
const AT_ONCE: usize = 1_024;
/// Entries for which a part that is to be used again keeps its memory.
const KEPT: usize = 4_096;

/// Ranges that are being read.
pub(crate) struct RangeReading {
    table: Arc<PartitionTable>,
    limit: usize,
    /// What was found so far of each range.
    found: Vec<Vec<(u64, u64)>>,
    /// Those that have neither all their entries nor enough.
    open: Vec<OpenRange>,
}

struct OpenRange {
    range: usize,
    /// What is still to be read.
    next: u64,
    last: u64,
    /// How many entries had been found before the exchange that is under way.
    before: usize,
}

impl RangeReading {
    pub fn new(table: Arc<PartitionTable>, ranges: &[RangeInclusive<u64>], limit: usize) -> Self {
        let wanted = ranges.iter().enumerate();
        let wanted = wanted.filter(|(_, keys)| limit > 0 && !keys.is_empty());
        let open = wanted.map(|(range, keys)| OpenRange {
            range,
            next: *keys.start(),
            last: *keys.end(),
            before: 0,
        });
        RangeReading {
            table,
            limit,
            found: vec![Vec::new(); ranges.len()],
            open: open.collect(),
        }
    }

    pub fn found(self) -> Vec<Vec<(u64, u64)>> {
        self.found
    }

    /// What the next owner has of each range, owner by owner.
    fn next_reads(&mut self) -> Vec<(AeuId, RangeRead)> {
        let mut reads = Vec::with_capacity(self.open.len());
        for open in &mut self.open {
            let mut owners = self.table.owners(open.next, open.last);
            let (low, high, aeu) = owners.next().expect("every key has an owner");
            open.next = high;
            open.before = self.found[open.range].len();
            let read = RangeRead {
                range: open.range,
                low,
                high,
                limit: self.limit - open.before,
            };
            reads.push((aeu, read));
        }
        reads.sort_by_key(|(aeu, _)| *aeu);
        reads
    }

    /// Takes what a part has brought.
    fn add(&mut self, batch: &KeyBatch) {
        let mut entries = &batch.entries[..];
        for &(range, count) in &batch.runs {
            let (run, rest) = entries.split_at(count);
            self.found[range].extend_from_slice(run);
            entries = rest;
        }
    }

    /// Once all parts have come: which ranges are still open.
    fn close(&mut self) {
        self.open.retain_mut(|open| {
            let found = &mut self.found[open.range];
            // Several owners add what they have of the range if some of its keys have been shifted, in the order in
            // which it comes to them.
            let new = &mut found[open.before..];
            if !new.is_sorted() {
                new.sort_unstable();
            }
            found.truncate(self.limit);
            let is_open = open.next < open.last && found.len() < self.limit;
            open.next = open.next.saturating_add(1);
            is_open
        });
    }
}

impl KeyClient {
    /// The entries of a range, ascending, at most `limit` of them.
    ///
    /// # Errors
    /// As [`KeyClient::get`].
    pub fn range(
        &mut self,
        keys: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, EngineError> {
        let mut found = self.ranges(&[keys], limit)?;
        Ok(found.pop().expect("as many answers as ranges"))
    }

    /// The entries of many ranges, `found[i]` those of `ranges[i]`: ascending, at most `limit` of each. Ranges may
    /// overlap.
    ///
    /// # Errors
    /// As [`KeyClient::get`].
    pub fn ranges(
        &mut self,
        ranges: &[RangeInclusive<u64>],
        limit: usize,
    ) -> Result<Vec<Vec<(u64, u64)>>, EngineError> {
        self.check_dropped()?;
        let mut found = Vec::with_capacity(ranges.len());
        for ranges in ranges.chunks(AT_ONCE) {
            let mut reading = RangeReading::new(self.newest_table(), ranges, limit);
            while self.push_next(&mut reading) {
                let parts = self.execute()?;
                self.gather_ranges(parts, &mut reading);
            }
            found.append(&mut reading.found());
        }
        Ok(found)
    }

    /// Adds the parts of the next exchange; says whether there are any.
    pub(crate) fn push_next(&mut self, reading: &mut RangeReading) -> bool {
        let reads = reading.next_reads();
        for of_owner in reads.chunk_by(|a, b| a.0 == b.0) {
            let mut batch = self.empty(KeyOperation::Ranges);
            batch.rest = Rest::Reads(of_owner.iter().map(|(_, read)| *read).collect());
            self.exchange.push(of_owner[0].0, batch);
        }
        !reads.is_empty()
    }

    pub(crate) fn gather_ranges(
        &mut self,
        parts: impl Iterator<Item = Box<KeyBatch>>,
        reading: &mut RangeReading,
    ) {
        let mut news = None;
        for mut batch in parts {
            reading.add(&batch);
            news = news.or(batch.news);
            batch.entries.clear();
            batch.entries.shrink_to(KEPT);
            self.spare.push(batch);
        }
        reading.close();
        self.note_owner(news);
    }
}
