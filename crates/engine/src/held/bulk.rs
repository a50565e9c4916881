//! Keys of a whole statement for an index that is empty: brought into order, looked through for equal neighbours, and
//! made into a tree, some at a time.
//!
//! ```text
//!             ┌ come in runs, one above the other ─▶ as they are ───────────┐
//! numbers ────┼ spread evenly ─▶ distributed to buckets, sorted in each ────┼─▶ tree
//!             └ others ─┐                                                   │
//! bytes ────────────────┴▶ sorted byte by byte ─────────────────────────────┘
//! ```
//!
//! Nothing is in the index until the tree is complete: a statement that fails, or is given up, leaves nothing to undo.
//!
//! Measured in docs/decisions/0012.

mod buckets;
mod packing;
mod runs;
mod sorting;
#[cfg(test)]
mod tests;

use crate::held::primary::PrimaryIndex;
use crate::held::unique::Added;
use crate::object::keys::Keys;
use buckets::{Buckets, Distributed};
use eris_column::ObjectMemory;
use eris_index::{Build, IndexError};
use eris_types::RowId;
use runs::{AscendingRuns, Survey};
use sorting::Sorting;

/// Entries that are looked at in one slice.
const SLICE: usize = 32_768;

/// The work on the keys of one statement.
#[derive(Debug)]
pub(crate) struct Bulk(BulkPhase);

enum BulkPhase {
    Surveying(Survey),
    /// Numbers that come in order.
    Joining(AscendingRuns, Box<Build<u64>>),
    /// Numbers in no order.
    Distributing(Box<Buckets>),
    /// Everything else.
    Sorting(Box<Sorting>),
    Over,
}

/// What a step has come to.
pub(crate) enum BulkStep {
    Again,
    /// Two rows have the same key; one of them.
    Duplicate(AddedRow),
    Done(Box<PrimaryIndex>),
    /// There is no memory to sort in.
    NoRoom,
}

/// A row among those that a statement adds: the part, and its number in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AddedRow(u64);

impl AddedRow {
    fn new(part: usize, row: usize) -> Self {
        AddedRow((part as u64) << 32 | row as u64)
    }

    fn plus(self, rows: usize) -> Self {
        AddedRow(self.0 + rows as u64)
    }

    pub fn part(self) -> usize {
        (self.0 >> 32) as usize
    }

    pub fn row(self) -> usize {
        self.0 as u32 as usize
    }

    fn id(self, added: &[Added]) -> RowId {
        added[self.part()].first.plus(self.row())
    }

    fn key(self, added: &[Added]) -> &[u8] {
        added[self.part()].keys.bytes(self.row())
    }
}

impl Bulk {
    /// Nothing done yet.
    pub fn new() -> Self {
        Bulk(BulkPhase::Surveying(Survey::default()))
    }

    /// Does some more work.
    ///
    /// # Errors
    /// No memory, or a key that is too long.
    pub fn step(
        &mut self,
        added: &[Added],
        home: ObjectMemory<'_>,
    ) -> Result<BulkStep, IndexError> {
        self.0 = match std::mem::replace(&mut self.0, BulkPhase::Over) {
            BulkPhase::Surveying(_) if matches!(added[0].keys, Keys::Bytes(..)) => {
                match sorting(added, home) {
                    Some(sorting) => sorting,
                    None => return Ok(BulkStep::NoRoom),
                }
            }
            BulkPhase::Surveying(mut survey) => match survey.step(added) {
                true => BulkPhase::Surveying(survey),
                false => surveyed(survey, added, home),
            },
            BulkPhase::Joining(mut runs, mut build) => match runs.step(added, &mut build)? {
                true => BulkPhase::Joining(runs, build),
                false => return done(*build),
            },
            BulkPhase::Distributing(mut buckets) => match buckets.step(added, home)? {
                Distributed::Again => BulkPhase::Distributing(buckets),
                Distributed::Uneven => match sorting(added, home) {
                    Some(sorting) => sorting,
                    None => return Ok(BulkStep::NoRoom),
                },
                Distributed::NoRoom => return Ok(BulkStep::NoRoom),
                Distributed::Duplicate(place) => return Ok(BulkStep::Duplicate(place)),
                Distributed::Done(build) => return done(*build),
            },
            BulkPhase::Sorting(mut sorting) => match sorting.step(added, home)? {
                BulkStep::Again => BulkPhase::Sorting(sorting),
                other => return Ok(other),
            },
            BulkPhase::Over => unreachable!("a step after the last one"),
        };
        Ok(BulkStep::Again)
    }
}

/// What is done with numbers that come so.
fn surveyed(survey: Survey, added: &[Added], home: ObjectMemory<'_>) -> BulkPhase {
    let (least, greatest) = survey.range();
    match survey.into_runs() {
        Some(runs) => {
            let build = Build::new(home.memory.clone(), home.object);
            BulkPhase::Joining(runs, Box::new(build))
        }
        None => BulkPhase::Distributing(Box::new(Buckets::new(added, least, greatest))),
    }
}

/// Sorting by bytes, if there is memory.
fn sorting(added: &[Added], home: ObjectMemory<'_>) -> Option<BulkPhase> {
    let keys = added.iter().map(|part| part.keys.len()).sum();
    let is_words = matches!(added[0].keys, Keys::Words(_));
    let sorting = Sorting::new(keys, is_words, home.memory.budget())?;
    Some(BulkPhase::Sorting(Box::new(sorting)))
}

fn done(build: Build<u64>) -> Result<BulkStep, IndexError> {
    let index = PrimaryIndex::of_words(build.finish()?);
    Ok(BulkStep::Done(Box::new(index)))
}

/// Keys that are numbers.
fn words(keys: &Keys) -> &[u64] {
    match keys {
        Keys::Words(words) => words,
        Keys::Bytes(..) => unreachable!("keys of other columns"),
    }
}

impl std::fmt::Debug for BulkPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BulkPhase::Surveying(_) => "surveying",
            BulkPhase::Joining(..) => "joining",
            BulkPhase::Distributing(_) => "distributing",
            BulkPhase::Sorting(_) => "sorting",
            BulkPhase::Over => "over",
        })
    }
}
