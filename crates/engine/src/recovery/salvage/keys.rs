//! Rows with one key: the newest is kept.
//!
//! ```text
//! t5: row 7 with key 1    ▒ t6: row 7 is deleted ▒    t8: row 9 with key 1 ──▶ row 9; row 7 is left out
//! ```
//!
//! They are there if a group of the log is lost in which one of them was deleted.

use super::Salvage;
use crate::error::EngineError;
use crate::object::keys::Keys;
use crate::recovery::check::living::Living;
use crate::recovery::objects::RecoveredObject;
use crate::recovery::replay::LostPiece;
use arrow_array::ArrayRef;
use eris_column::Selection;
use eris_numa::Budget;
use eris_store::Chunk;
use eris_types::{ColumnId, RowId, SegmentId, Timestamp};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Bytes that a row takes here: its key, when and where it was written, and its place in the order.
const ROW_BYTES: u64 = 48;

impl Salvage {
    /// Leaves out rows whose keys newer ones have.
    pub(super) fn leave_out_duplicates(&mut self) -> Result<(), EngineError> {
        let through = self.recovery.through;
        let budget = self.recovery.machine.memory.budget().clone();
        for object in self.recovery.objects.values_mut() {
            let key: Vec<ColumnId> = object.object.key.to_vec();
            object.leave_out_duplicates(&key, through, &budget)?;
        }
        Ok(())
    }
}

impl RecoveredObject {
    /// Leaves out rows that have the same values in these columns as newer ones, and no NULL.
    pub(super) fn leave_out_duplicates(
        &mut self,
        columns: &[ColumnId],
        at: Timestamp,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        let older = self.duplicates(columns, budget)?;
        let mut by_segment: BTreeMap<SegmentId, Vec<RowId>> = BTreeMap::new();
        for id in older {
            by_segment.entry(id.segment()).or_default().push(id);
        }
        let names = columns.iter();
        let names = names.map(|column| self.object.schema.field(column.index()).name().as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        for (segment, mut ids) in by_segment {
            ids.sort_unstable();
            let segment = self.segments.get_mut(&segment).expect("the rows are there");
            let mut rows = Living::default();
            for id in &ids {
                let _ = rows.add(id.0 as u32, 1);
            }
            segment.segment.replay(Vec::new(), ids, at, budget);
            segment.lost.push(LostPiece {
                commit: None,
                rows,
                why: format!("a newer row has the same {names}"),
            });
        }
        Ok(())
    }

    fn duplicates(&self, columns: &[ColumnId], budget: &Budget) -> Result<Vec<RowId>, EngineError> {
        let segments = self.segments.values();
        let rows = segments
            .map(|segment| segment.segment.all_rows() as u64)
            .sum::<u64>();
        if columns.is_empty() || rows == 0 {
            return Ok(Vec::new());
        }
        let reserved = budget.try_reserve(rows * ROW_BYTES);
        let _reserved = reserved.map_err(|denied| EngineError::OutOfMemory {
            table: self.object.name.clone(),
            reason: denied.to_string(),
        })?;
        let (mut pieces, mut written): (Vec<Vec<ArrayRef>>, Vec<(Timestamp, RowId)>) =
            Default::default();
        for (chunk, rows) in self.living(columns) {
            pieces.push(self.values(&chunk, &rows, columns));
            written.extend(rows.iter_ones().map(|row| {
                let runs = chunk.inserted();
                let run = runs.partition_point(|run| run.end <= row);
                (runs[run].at, chunk.ids().get(row))
            }));
        }
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let keys = Keys::of_pieces(&pieces);
        let compare = |a: usize, b: usize| -> Ordering {
            match &keys {
                Keys::Words(words) => words[a].cmp(&words[b]),
                Keys::Bytes(..) => keys.bytes(a).cmp(keys.bytes(b)),
            }
        };
        let mut order: Vec<usize> = (0..written.len()).collect();
        order.sort_unstable_by(|&a, &b| compare(a, b).then(written[a].cmp(&written[b])));
        let pairs = order
            .windows(2)
            .filter(|pair| compare(pair[0], pair[1]).is_eq());
        Ok(pairs.map(|pair| written[pair[0]].1).collect())
    }

    /// All chunks, with their rows that are not deleted and have no NULL in these columns.
    pub(super) fn living<'a>(
        &'a self,
        columns: &'a [ColumnId],
    ) -> impl Iterator<Item = (std::sync::Arc<Chunk>, Selection)> + 'a {
        let segments = self.segments.values();
        let chunks = segments.flat_map(|segment| segment.segment.living_chunks());
        chunks.filter_map(move |(chunk, mut rows)| {
            for column in columns {
                let all = Selection::all(chunk.rows());
                let Some(validity) = chunk.column(*column).gather_validity(&all) else {
                    continue;
                };
                let nulls = (0..chunk.rows()).filter(|row| validity.is_null(*row));
                nulls.for_each(|row| rows.remove(row));
            }
            (!rows.is_empty()).then_some((chunk, rows))
        })
    }

    /// The values of some rows of a chunk.
    pub(super) fn values(
        &self,
        chunk: &Chunk,
        rows: &Selection,
        columns: &[ColumnId],
    ) -> Vec<ArrayRef> {
        let columns = columns.iter().map(|column| {
            let data_type = self.object.schema.field(column.index()).data_type();
            let dictionary = self.dictionaries[column.index()].as_ref();
            chunk.column(*column).select(rows, data_type, dictionary)
        });
        columns.collect()
    }
}
