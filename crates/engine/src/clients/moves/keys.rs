//! Ranges of keys that another owner shall have.
//!
//! ```text
//! write lock ─ nobody writes ─┬─ within a node: OfferKeys ─▶ chunks, shared tree ─ AdoptKeys ─▶ the same rows there
//!                             └─ rows of the next keys, by their owner's index ─▶ deleted there, added elsewhere
//!      ─ a timestamp is drawn ─ the new table of ranges is published, with that timestamp ─ Commit
//! ```
//!
//! A table of ranges says from which snapshot on it holds. A reader at an older snapshot asks all owners. An owner that
//! does not or did not have the keys says so. Then the reader looks again.
//!
//! Who changes rows has a share of the object's write lock before he looks whose they are. Rows with a key that are
//! written before their statement has the write lock would be with the wrong owner. So whoever writes such rows keeps
//! keys from being shifted.

use super::key_shift::KeyShift;
use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::held::partition::KeySelection;
use crate::object::data_object::DataObject;
use crate::object::keys::{KeyRange, Keys, is_word};
use crate::object::ranges::Assignment;
use crate::protocol::answers::OfferedKeys;
use arrow_array::{Array, ArrayRef, RecordBatch};
use eris_column::CHUNK_ROWS;
use eris_home::{Moved, Newest};
use eris_types::{AeuId, ColumnId, ObjectId, RowId};
use std::ops::Bound;

/// So many rows are moved by one statement: half a chunk, which need not be joined with others.
const ROWS_AT_ONCE: usize = CHUNK_ROWS / 2;
/// No more rows than these are moved at once because the numbers of their keys are the same.
const MOST_ALIKE: usize = 8 * ROWS_AT_ONCE;
/// So many are read at a time, so that their owner can do other work in between.
const READ_AT_ONCE: usize = 1_024;

/// Rows in the order of their keys.
struct RowsByKey {
    batch: RecordBatch,
    ids: Vec<RowId>,
    numbers: Vec<i64>,
}

impl Engine {
    /// Gives the rows with some keys to another owner, and all that will come with such keys: the keys whose
    /// [numbers](crate::PartitionStatus::ranges) are from `low` to `high`.
    ///
    /// # Errors
    /// There is no such object, rows are being written to it, there is no memory at the new owner, or an owner
    /// panicked. What was moved before stays where it is now.
    ///
    /// # Panics
    /// If the object has no key.
    pub async fn move_keys(
        &self,
        id: ObjectId,
        low: i64,
        high: i64,
        to: AeuId,
    ) -> Result<Moved, EngineError> {
        let (mut all, mut next) = (Moved::default(), low);
        loop {
            let (moved, last) = self.move_first_keys(id, (next, high), to, u64::MAX).await?;
            all.keys += moved.keys;
            all.linked += moved.linked;
            all.copied += moved.copied;
            if last == high {
                return Ok(all);
            }
            next = last + 1;
        }
    }

    /// One statement of it, for the first keys that are not the new owner's yet, about so many rows at most; up to
    /// which number all are its then.
    pub(crate) async fn move_first_keys(
        &self,
        id: ObjectId,
        (low, high): (i64, i64),
        to: AeuId,
        rows: u64,
    ) -> Result<(Moved, i64), EngineError> {
        let table = self.object(id)?;
        if table.early_writes.try_write().is_err() {
            // Whoever waits for the write lock keeps those from it who would share it.
            let table = table.name.clone();
            return Err(EngineError::InUse { table });
        }
        let mut writer = self.mover(id).await?;
        let object = writer.object().clone();
        assert!(
            object.is_ranged_by_key(),
            "rows without a key are moved by size"
        );
        let in_use = || EngineError::InUse {
            table: object.name.clone(),
        };
        let _closed = (object.early_writes.clone().try_write_owned()).map_err(|_| in_use())?;
        let Some(assignment) = object.ranges.get() else {
            return Ok((Moved::default(), high));
        };
        let Some((low, high)) = first_of_others(&assignment, (low, high), to) else {
            return Ok((Moved::default(), high));
        };
        // Changes before this lock are applied.
        let snapshot = self.newest(Newest::Applied);
        let from = assignment.get(low);
        let selection = KeySelection {
            numbers: (low, high),
            assignment: assignment.clone(),
        };
        if self.can_link(&object, from, to) {
            match writer.offer_keys(from, selection, rows).await? {
                OfferedKeys::Rows(offered, last) => {
                    let (keys, linked) = offered.size();
                    writer.adopt_keys(to, offered);
                    writer.shift(KeyShift {
                        numbers: (low, last),
                        to,
                        rows: keys,
                    });
                    writer.commit().await?;
                    let moved = Moved {
                        keys,
                        linked,
                        ..Moved::default()
                    };
                    return Ok((moved, last));
                }
                OfferedKeys::Nothing | OfferedKeys::OnlyCopied => {}
            }
        }
        let rows = rows.min(ROWS_AT_ONCE as u64) as usize;
        let read = self
            .read_some(&object, &assignment, (low, high), rows)
            .await?;
        let (rows, last) = read.ok_or_else(in_use)?;
        let mut moved = Moved::default();
        for part in rows {
            moved.keys += part.ids.len() as u64;
            moved.copied += bytes(&part.batch);
            writer.delete(part.ids.into_iter())?;
            writer.append_to(to, part.batch).await?;
        }
        let shift = KeyShift {
            numbers: (low, last),
            to,
            rows: moved.keys,
        };
        if moved.keys == 0 {
            // Rows that had such keys were deleted before this snapshot.
            shift.publish(&object, snapshot);
            return Ok((moved, last));
        }
        writer.shift(shift);
        writer.commit().await?;
        Ok((moved, last))
    }

    /// Whether keys go from one owner to another without a copy of their rows.
    pub(crate) fn can_link(&self, object: &DataObject, from: AeuId, to: AeuId) -> bool {
        let topology = self.topology();
        topology.node_of(from) == topology.node_of(to) && object.indexes().is_empty()
    }

    /// Rows with the least numbers between two, which are one owner's: so many or some more, and the last number of
    /// which these are all rows. `None`: a statement that was given up is still there.
    async fn read_some(
        &self,
        object: &DataObject,
        assignment: &Assignment,
        (low, high): (i64, i64),
        enough: usize,
    ) -> Result<Option<(Vec<RowsByKey>, i64)>, EngineError> {
        let columns = 0..object.schema.fields().len() as u32;
        let columns: Vec<ColumnId> = columns.map(ColumnId).collect();
        let is_word = is_word(object.key_types());
        let end = high.checked_add(1);
        let behind = |key: Bound<Keys>, low: Option<i64>| {
            let keys = KeyRange::new((key, Bound::Unbounded), is_word);
            assignment.clipped(&keys, low, end)
        };
        let mut keys = behind(Bound::Unbounded, (low > i64::MIN).then_some(low));
        let (mut rows, mut count): (Vec<RowsByKey>, usize) = (Vec::new(), 0);
        let mut client = self.rows(object.id)?;
        loop {
            let Some(part) = client.try_sorted(&keys, READ_AT_ONCE, &columns).await? else {
                return Ok(None);
            };
            let (batch, ids) = part;
            count += ids.len();
            let is_last = ids.len() < READ_AT_ONCE;
            if let Some(last) = ids.len().checked_sub(1) {
                let of_key = object.key_columns(&batch);
                let numbers = assignment.routing(&Keys::of(&of_key, 0, ids.len()));
                keys = behind(Bound::Excluded(Keys::of(&of_key, last, 1)), None);
                rows.push(RowsByKey {
                    batch,
                    ids,
                    numbers,
                });
            }
            if is_last {
                return Ok(Some((rows, high)));
            }
            if count >= enough {
                if let Some(last) = cut(&mut rows, is_word) {
                    return Ok(Some((rows, last)));
                }
                if count >= MOST_ALIKE {
                    let table = object.name.clone();
                    return Err(EngineError::Alike { table });
                }
            }
        }
    }
}

/// Takes the rows with the greatest number away, of which there may be more, unless all have it; the last number of
/// which all rows are left.
fn cut(rows: &mut Vec<RowsByKey>, is_word: bool) -> Option<i64> {
    let last = *rows.last()?.numbers.last()?;
    if is_word {
        return Some(last);
    }
    if rows[0].numbers[0] == last {
        return None;
    }
    for part in &mut *rows {
        let left = part.numbers.partition_point(|number| *number < last);
        part.batch = part.batch.slice(0, left);
        part.ids.truncate(left);
    }
    rows.retain(|part| !part.ids.is_empty());
    Some(last - 1)
}

/// The first keys between two numbers that are not an owner's yet, as far as they are one other's.
fn first_of_others(
    assignment: &Assignment,
    (low, high): (i64, i64),
    to: AeuId,
) -> Option<(i64, i64)> {
    let ranges = assignment.ranges().filter(|(.., owner)| *owner != to);
    let mut parts = ranges.map(|(first, next, _)| {
        let last = next.map_or(i64::MAX, |next| next - 1);
        (first.unwrap_or(i64::MIN).max(low), last.min(high))
    });
    parts.find(|(low, high)| low <= high)
}

/// Of these rows alone: the arrays may be parts of larger ones.
fn bytes(batch: &RecordBatch) -> u64 {
    let of_column = |column: &ArrayRef| column.to_data().get_slice_memory_size();
    let columns = batch.columns().iter().map(of_column);
    columns.map(|bytes| bytes.unwrap_or_default() as u64).sum()
}
