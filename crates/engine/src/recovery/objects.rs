//! Commits that are done again, object by object.

use super::Wrong;
use crate::durability::records::{StoredCommit, StoredRanges, StoredStrings};
use crate::error::store_error;
use crate::object::data_object::DataObject;
use eris_column::{ColumnChunk, Dictionary, FormError, FormReader, ObjectMemory, ZoneRange};
use eris_numa::{Memory, Topology};
use eris_store::{Recoder, Segment};
use eris_types::{AeuId, RowId, SegmentId, Timestamp};
use std::collections::BTreeMap;

/// A data object as the log has it so far.
pub(super) struct RecoveredObject {
    pub object: DataObject,
    pub ranges: Option<StoredRanges>,
    pub segments: BTreeMap<SegmentId, RecoveredSegment>,
    /// One entry per column; `None` where text has no codes.
    dictionaries: Vec<Option<Dictionary>>,
}

/// A segment, and the AEU whose it is to be.
pub(super) struct RecoveredSegment {
    pub owner: AeuId,
    pub segment: Segment,
}

/// What a commit does to one segment.
#[derive(Default)]
struct Part {
    added: Vec<(RowId, Vec<ColumnChunk>)>,
    deleted: Vec<RowId>,
}

impl RecoveredObject {
    pub fn new(object: DataObject) -> Self {
        RecoveredObject {
            dictionaries: object.dictionaries(),
            object,
            ranges: None,
            segments: BTreeMap::new(),
        }
    }

    /// A dictionary has got strings.
    pub fn add_strings(&mut self, stored: &StoredStrings<'_>) -> Result<(), Wrong> {
        let dictionary = self.dictionaries.get_mut(stored.column);
        let Some(dictionary) = dictionary.and_then(Option::as_mut) else {
            return Err(self.wrong(&format!("column {} has no dictionary", stored.column)));
        };
        let strings = &stored.strings;
        let is_new = |string: &&str| dictionary.code(string).is_none();
        if stored.first != dictionary.len() || !strings.iter().all(is_new) {
            let column = stored.column;
            return Err(self.wrong(&format!("strings of column {column} are not the next ones")));
        }
        let extended = dictionary.extend(strings.iter().copied());
        if extended.len() != stored.first + strings.len() {
            return Err(self.wrong("a string came twice"));
        }
        self.object.publish(stored.column, extended.clone());
        self.dictionaries[stored.column] = Some(extended);
        Ok(())
    }

    pub fn set_ranges(&mut self, ranges: StoredRanges) {
        self.ranges = Some(ranges);
    }

    /// Does a commit again. Returns the greatest number of a segment that it names.
    pub fn replay(
        &mut self,
        at: Timestamp,
        commit: &StoredCommit<'_>,
        topology: &Topology,
        memory: &Memory,
    ) -> Result<SegmentId, Wrong> {
        let owner = AeuId(commit.owner.0 % topology.aeus().len() as u16);
        let memory = memory.node(topology.node_of(owner));
        let home = ObjectMemory {
            memory: &memory,
            object: self.object.id,
        };
        let mut parts: BTreeMap<SegmentId, Part> = BTreeMap::new();
        for (first, rows, form) in &commit.added {
            let columns = self.read_columns(*rows, form, home)?;
            let part = parts.entry(first.segment()).or_default();
            part.added.push((*first, columns));
        }
        for (first, rows) in &commit.deleted {
            let part = parts.entry(first.segment()).or_default();
            part.deleted.extend((0..*rows).map(|row| first.plus(row)));
        }
        let mut last = SegmentId(0);
        for (id, mut part) in parts {
            last = last.max(id);
            part.added.sort_by_key(|(first, _)| *first);
            part.deleted.sort_unstable();
            self.replay_part(at, owner, id, part, home)?;
        }
        Ok(last)
    }

    fn replay_part(
        &mut self,
        at: Timestamp,
        owner: AeuId,
        id: SegmentId,
        part: Part,
        home: ObjectMemory<'_>,
    ) -> Result<(), Wrong> {
        let has_rows = !part.added.is_empty();
        if !has_rows && !self.segments.contains_key(&id) {
            return Err(self.wrong(&format!("rows are deleted that segment {id} does not have")));
        }
        let recovered = self.segments.entry(id).or_insert_with(|| RecoveredSegment {
            owner,
            segment: Segment::new(id),
        });
        let segment = &mut recovered.segment;
        let next = part.added.first().map(|(first, _)| *first);
        if next.is_some_and(|first| first < segment.next_id()) {
            return Err(self.wrong(&format!("rows of segment {id} come twice")));
        }
        let budget = home.memory.budget();
        segment.replay(part.added, part.deleted, at, budget);
        if segment.needs_merge() {
            // Short of memory it stays as it is, as when the rows came first.
            let _ = segment.merge(Recoder {
                horizon: at,
                schema: &self.object.schema,
                known: &self.dictionaries,
                coding: &self.dictionaries,
                home,
            });
        }
        Ok(())
    }

    /// Reads the columns of some rows.
    fn read_columns(
        &self,
        rows: usize,
        form: &[u8],
        home: ObjectMemory<'_>,
    ) -> Result<Vec<ColumnChunk>, Wrong> {
        let mut reader = FormReader::copying(form);
        let mut columns = Vec::with_capacity(self.object.schema.fields().len());
        for (place, field) in self.object.schema.fields().iter().enumerate() {
            let column = ColumnChunk::read(&mut reader, field.data_type(), rows, home);
            let column = column.map_err(|error| match error {
                FormError::OutOfMemory(denied) => Wrong::Failed(store_error(
                    &self.object.name,
                    &eris_store::StoreError::OutOfMemory(denied),
                )),
                other => self.wrong(&format!("column {}: {other}", field.name())),
            })?;
            let codes = self.dictionaries[place].as_ref().map_or(0, Dictionary::len);
            if column.is_coded()
                && let ZoneRange::Codes(_, greatest) = column.zone().range
                && greatest as usize >= codes
            {
                return Err(self.wrong(&format!(
                    "column {}: code {greatest} of {codes}",
                    field.name()
                )));
            }
            columns.push(column);
        }
        match reader.rest().is_empty() && rows > 0 {
            true => Ok(columns),
            false => Err(self.wrong("rows are followed by bytes that belong to nothing")),
        }
    }

    fn wrong(&self, reason: &str) -> Wrong {
        Wrong::Damaged(format!("table {}: {reason}", self.object.name))
    }
}
