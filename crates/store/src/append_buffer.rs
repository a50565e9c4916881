//! The append buffer: committed rows that do not fill a chunk yet.
//!
//! ```text
//! levels   ┌──────────── 40,000 ────────────┐┌── 9,000 ──┐┌ 700 ┐┌ 3 ┐┌ 1 ┐
//! each              chunk                        chunk      chunk  chunk …     encoded when it came or was joined
//! ```
//!
//! A reader sees a chunk per level, so there must be few; a writer of single rows must not encode the buffer again and
//! again. So levels are joined now and then: a level with its right neighbour, when that one has grown to at least half
//! its size. Every row is decoded and encoded about log₂ n times, and about log₂ n levels are left. Some levels of a
//! row each take a reader less time than to join them: it joins what comes when there are eight, and a writer without
//! readers, when there are thirty-two. Rows that nobody can see any more are left out on this occasion; a level that
//! consists mostly of them is rewritten for it. Joining needs memory; without it, levels stay as they are and nothing
//! is lost.

use crate::StoreError;
use crate::join::{Recoder, Stored};
use eris_column::CHUNK_ROWS;
use std::ops::Range;

/// So many new levels are joined by a reader.
const FEW_LEVELS: usize = 8;

/// So many without a reader are joined by the writer.
const LEVELS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct AppendBuffer {
    pub levels: Vec<Stored>,
    /// How many of them were left when they were joined last.
    joined: usize,
    /// How often they became others, instead of more.
    pub version: u64,
}

impl AppendBuffer {
    pub fn rows(&self) -> usize {
        self.levels.iter().map(|level| level.chunk.rows()).sum()
    }

    /// Whether so many levels have come up that it is time to join them.
    pub fn is_ragged(&self) -> bool {
        self.new_levels() >= LEVELS
    }

    /// Whether a reader should join them.
    pub fn is_long(&self) -> bool {
        self.new_levels() >= FEW_LEVELS || self.rows() >= CHUNK_ROWS
    }

    /// How many levels there are that were not joined yet.
    fn new_levels(&self) -> usize {
        self.levels.len().saturating_sub(self.joined)
    }

    /// Joins levels. On error they stay as they are.
    pub fn join(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        self.version += 1;
        self.join_levels(recoder)?;
        self.joined = self.levels.len();
        Ok(())
    }

    fn join_levels(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        let horizon = recoder.horizon;
        self.levels.retain(|level| level.living(horizon) > 0);
        for level in &mut self.levels {
            if level.is_mostly_dead(horizon)
                && let Some(rewritten) = recoder.join(&[(&*level, 0..level.chunk.rows())])?
            {
                *level = rewritten;
            }
        }
        let Some(last) = self.levels.last() else {
            return Ok(());
        };
        let mut first = self.levels.len() - 1;
        let mut count = last.living(horizon);
        while first > 0 && count * 2 >= self.levels[first - 1].living(horizon) {
            first -= 1;
            count += self.levels[first].living(horizon);
        }
        if first + 1 == self.levels.len() {
            return Ok(());
        }
        let pieces: Vec<_> = self.levels[first..]
            .iter()
            .map(|level| (level, 0..level.chunk.rows()))
            .collect();
        let joined = recoder.join(&pieces)?;
        self.levels.truncate(first);
        self.levels.extend(joined);
        Ok(())
    }

    /// Takes the first 65,536 rows out as a chunk, if there are so many; garbage among them is left out. On error the
    /// rows stay as they are.
    pub fn seal(&mut self, recoder: Recoder<'_>) -> Result<Sealed, StoreError> {
        if self.rows() < CHUNK_ROWS {
            return Ok(Sealed::TooFew);
        }
        let mut room = CHUNK_ROWS;
        let mut full: Vec<(&Stored, Range<usize>)> = Vec::new();
        for level in &self.levels {
            let here = room.min(level.chunk.rows());
            full.push((level, 0..here));
            room -= here;
            if room == 0 {
                break;
            }
        }
        let taken = full.len();
        let (cut, range) = full[taken - 1].clone();
        let chunk = recoder.join(&full)?;
        let rest = match cut.chunk.rows() - range.end {
            0 => None,
            _ => recoder.join(&[(cut, range.end..cut.chunk.rows())])?,
        };
        self.levels.splice(..taken, rest);
        self.joined = 0;
        self.version += 1;
        Ok(Sealed::Rows(chunk))
    }
}

/// What was taken out of an append buffer.
pub(crate) enum Sealed {
    /// Nothing: it does not fill a chunk.
    TooFew,
    /// The living of its first rows.
    Rows(Option<Stored>),
}
