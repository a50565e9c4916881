//! A data object as it was read, and what is to be done in its segments.

use super::Wrong;
use super::columns::{Codes, ColumnsOf};
use super::replay::{Queued, RecoveredSegment, Source, Step, What};
use crate::durability::records::{Columns, StoredChunk, StoredCommit, StoredRanges, StoredStrings};
use crate::object::data_object::DataObject;
use eris_column::Dictionary;
use eris_log::Origin;
use eris_store::Segment;
use eris_types::{AeuId, Code, RowId, SegmentId, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// A data object as it was read so far.
pub(super) struct RecoveredObject {
    pub object: DataObject,
    pub ranges: Option<StoredRanges>,
    pub segments: BTreeMap<SegmentId, RecoveredSegment>,
    /// One entry per column; `None` where text has no codes.
    pub dictionaries: Vec<Option<Dictionary>>,
    /// Whether text of a column was found that has no codes. Threads that read it say so.
    pub plain: Vec<AtomicBool>,
    /// The new codes of strings, where it is salvaged.
    pub codes: Option<Codes>,
}

impl RecoveredObject {
    pub fn new(object: DataObject) -> Self {
        let dictionaries = object.dictionaries();
        RecoveredObject {
            plain: dictionaries.iter().map(|_| AtomicBool::default()).collect(),
            dictionaries,
            object,
            ranges: None,
            segments: BTreeMap::new(),
            codes: None,
        }
    }

    /// A dictionary has got strings. The first of them it may have already.
    pub fn add_strings(&mut self, stored: &StoredStrings<'_>) -> Result<(), Wrong> {
        let column = stored.column;
        let dictionary = self.dictionaries.get_mut(column);
        let Some(dictionary) = dictionary.and_then(Option::as_mut) else {
            return Err(self.wrong(&format!("column {column} has no dictionary")));
        };
        let known = dictionary.len().checked_sub(stored.first);
        let known = known.map(|known| known.min(stored.strings.len()));
        let Some((known, new)) = known.map(|known| stored.strings.split_at(known)) else {
            return Err(self.wrong(&format!("strings of column {column} are not the next ones")));
        };
        let has_code = |(place, string): (usize, &&str)| {
            dictionary.code(string) == Some(Code((stored.first + place) as u32))
        };
        let is_new = |string: &&str| dictionary.code(string).is_none();
        if !known.iter().enumerate().all(has_code) || !new.iter().all(is_new) {
            return Err(self.wrong(&format!("strings of column {column} have other codes")));
        }
        if new.is_empty() {
            return Ok(());
        }
        let extended = dictionary.extend(new.iter().copied());
        if extended.len() != dictionary.len() + new.len() {
            return Err(self.wrong("a string came twice"));
        }
        self.object.publish(column, extended.clone());
        self.dictionaries[column] = Some(extended);
        Ok(())
    }

    pub fn set_ranges(&mut self, ranges: StoredRanges) {
        self.ranges = Some(ranges);
    }

    /// A commit is to be done again.
    pub fn queue_commit(
        &mut self,
        group: (Origin, u64),
        at: Timestamp,
        commit: &StoredCommit<'_>,
        queued: &mut Queued,
    ) -> Result<(), Wrong> {
        let mut steps: BTreeMap<SegmentId, (Vec<_>, Vec<RowId>)> = BTreeMap::new();
        for (first, rows, columns) in &commit.added {
            let (added, _) = steps.entry(first.segment()).or_default();
            added.push((*first, *rows, source(*columns, queued)));
        }
        for (first, rows) in &commit.deleted {
            let (_, deleted) = steps.entry(first.segment()).or_default();
            queued.bytes += (rows * size_of::<RowId>()) as u64;
            deleted.extend((0..*rows).map(|row| first.plus(row)));
        }
        let mut missing = None;
        for (id, (mut added, mut deleted)) in steps {
            added.sort_by_key(|(first, ..)| *first);
            deleted.sort_unstable();
            if added.is_empty() && !self.segments.contains_key(&id) {
                missing = Some(id);
                continue;
            }
            let what = What::Commit { added, deleted };
            self.queue(id, commit.owner, Step { group, at, what });
        }
        match missing {
            None => Ok(()),
            Some(id) => {
                Err(self.wrong(&format!("rows are deleted that segment {id} does not have")))
            }
        }
    }

    /// A snapshot has a chunk.
    pub fn queue_chunk(
        &mut self,
        group: (Origin, u64),
        at: Timestamp,
        chunk: &StoredChunk<'_>,
        queued: &mut Queued,
    ) -> Result<(), Wrong> {
        let id = |number: u32| RowId::new(chunk.segment, number);
        let ids = chunk.ids.iter();
        let ids: Vec<(RowId, usize)> = ids
            .map(|(first, rows)| (id(*first), *rows as usize))
            .collect();
        let rows = ids.iter().map(|(_, rows)| rows).sum();
        let unseen = chunk.unseen.iter();
        let unseen: Vec<(usize, usize)> = unseen
            .map(|(first, rows)| (*first as usize, *rows as usize))
            .collect();
        if unseen
            .last()
            .is_some_and(|(first, count)| first + count > rows)
        {
            return Err(self.wrong("a row is deleted that is in no chunk"));
        }
        let what = What::Chunk {
            rows,
            source: source(chunk.columns, queued),
            ids,
            unseen,
        };
        self.queue(chunk.segment, chunk.owner, Step { group, at, what });
        Ok(())
    }

    fn queue(&mut self, id: SegmentId, owner: AeuId, step: Step) {
        let segment = self.segments.entry(id);
        let segment = segment.or_insert_with(|| RecoveredSegment {
            owner,
            segment: Segment::new(id),
            steps: Vec::new(),
            lost: Vec::new(),
        });
        segment.steps.push(step);
    }

    /// What its columns are read with.
    pub fn columns(&self) -> ColumnsOf<'_> {
        ColumnsOf {
            object: &self.object,
            dictionaries: &self.dictionaries,
            plain: &self.plain,
            codes: self.codes.as_ref(),
        }
    }

    fn wrong(&self, reason: &str) -> Wrong {
        Wrong::Damaged(format!("table {}: {reason}", self.object.name))
    }
}

/// Where columns are read from.
fn source(columns: Columns<'_>, queued: &mut Queued) -> Source {
    match columns {
        Columns::Here(form) => {
            queued.bytes += form.len() as u64;
            Source::Here(form.into())
        }
        Columns::ChunkFile(number) => {
            queued.chunks += 1;
            Source::ChunkFile(number)
        }
    }
}
