//! Rows that the index has found.

use super::Partition;
use crate::object::keys::{KeyRange, Keys};
use arrow_array::ArrayRef;
use arrow_select::interleave::interleave;
use eris_store::Chunk;
use eris_types::{ColumnId, RowId, Timestamp};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows and whose they are.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The wanted columns, a row for each id, in the order of the keys.
    pub columns: Vec<ArrayRef>,
    /// The row of each key, if there is one.
    pub ids: Vec<Option<RowId>>,
}

impl Partition {
    /// The rows that have keys at a snapshot. `None`: the index knows newer ones.
    pub fn fetch(&self, keys: &Keys, columns: &[ColumnId], snapshot: Timestamp) -> Option<Fetched> {
        let ids = self.index.as_ref()?.get_many(keys);
        let ids = self.seen_rows(keys, ids.into_iter(), snapshot);
        self.fetch_rows(ids, columns, snapshot)
    }

    /// The rows that keys have at a snapshot, if the index has these.
    fn seen_rows(
        &self,
        keys: &Keys,
        ids: impl Iterator<Item = Option<RowId>>,
        snapshot: Timestamp,
    ) -> Vec<Option<RowId>> {
        let committed = ids.map(|id| self.committed(id?));
        if self.superseded.is_empty() {
            return committed.collect();
        }
        let ids = committed.enumerate();
        ids.map(|(at, id)| self.superseded.resolve(keys, at, id, snapshot))
            .collect()
    }

    /// The same for several readers at one snapshot. The index is asked once, so that they wait for memory together.
    pub fn fetch_each(
        &self,
        readers: &[(&Keys, &[ColumnId])],
        snapshot: Timestamp,
    ) -> Vec<Option<Fetched>> {
        let Some(index) = &self.index else {
            return readers.iter().map(|_| None).collect();
        };
        let all: Vec<&Keys> = readers.iter().map(|(keys, _)| *keys).collect();
        let mut ids = index.get_many(&Keys::joined(&all)).into_iter();
        let fetched = readers.iter().map(|(keys, columns)| {
            let ids = ids.by_ref().take(keys.len());
            let ids = self.seen_rows(keys, ids, snapshot);
            self.fetch_rows(ids, columns, snapshot)
        });
        fetched.collect()
    }

    /// The rows whose keys lie between two at a snapshot, `limit` at most. `None`: the index knows newer ones.
    pub fn fetch_range(
        &self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
        snapshot: Timestamp,
    ) -> Option<Fetched> {
        let index = self.index.as_ref()?;
        if !self.superseded.is_empty() {
            return self.fetch_superseded_range(keys, limit, columns, snapshot);
        }
        let ids = index.range(keys, limit);
        // A key that has gone is missing among them.
        if self.keys_removed > snapshot {
            return None;
        }
        let ids: Vec<_> = ids.into_iter().map(|id| self.committed(id)).collect();
        // So is the row behind the last, if one of them is nobody's yet.
        if ids.contains(&None) {
            return None;
        }
        self.fetch_rows(ids, columns, snapshot)
    }

    /// The same where commits are applied that are not visible yet.
    fn fetch_superseded_range(
        &self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
        snapshot: Timestamp,
    ) -> Option<Fetched> {
        if self.keys_removed > snapshot {
            return None;
        }
        // By their keys: some rows have none in the index any more.
        let mut rows = BTreeMap::new();
        let removed = self.superseded.removed_in(keys, snapshot);
        rows.extend(removed.map(|(key, row)| (Box::from(key), row)));
        let mut found = 0;
        self.index.as_ref()?.visit_keys(keys, |key, row| {
            // Of a key that nobody has yet, the row that was removed is the right one, if there was one.
            if let Some(row) = self.committed(row) {
                match (self.superseded).resolve_row(row, snapshot, || key.clone()) {
                    Some(row) => {
                        rows.insert(key, row);
                        found += 1;
                    }
                    None => drop(rows.remove(&key)),
                }
            }
            found < limit
        });
        let ids = rows.into_values().take(limit).map(Some).collect();
        self.fetch_rows(ids, columns, snapshot)
    }

    /// The row that has the key of a row which the index knows: of one that has not committed, the row before.
    fn committed(&self, row: RowId) -> Option<RowId> {
        let mut pending = self.pending.values();
        pending
            .find_map(|pending| pending.before(row))
            .unwrap_or(Some(row))
    }

    fn fetch_rows(
        &self,
        ids: Vec<Option<RowId>>,
        columns: &[ColumnId],
        snapshot: Timestamp,
    ) -> Option<Fetched> {
        if ids.contains(&None) && self.keys_removed > snapshot {
            return None;
        }
        if let &[Some(id)] = ids.as_slice() {
            let columns = self.row(id, columns, snapshot)?;
            return Some(Fetched { columns, ids });
        }
        let rows = ids.iter().flatten().map(|&id| self.locate(id, snapshot));
        let rows: Vec<(&Arc<Chunk>, usize)> = rows.collect::<Option<_>>()?;
        let columns = match rows.is_empty() {
            true => Vec::new(),
            false => self.columns_of(&rows, columns),
        };
        Some(Fetched { columns, ids })
    }

    /// Columns of one row. `None`: the snapshot does not see it.
    pub(super) fn row(
        &self,
        id: RowId,
        columns: &[ColumnId],
        snapshot: Timestamp,
    ) -> Option<Vec<ArrayRef>> {
        let (chunk, position) = self.locate(id, snapshot)?;
        let columns = columns.iter();
        Some(
            columns
                .map(|column| self.pick(chunk, *column, &[position]))
                .collect(),
        )
    }

    /// Where a row is that the snapshot sees.
    fn locate(&self, id: RowId, snapshot: Timestamp) -> Option<(&Arc<Chunk>, usize)> {
        let segment = self.segments.iter().find(|one| one.id() == id.segment())?;
        segment.row(id, snapshot)
    }

    /// The values of a column at positions of a chunk.
    fn pick(&self, chunk: &Chunk, column: ColumnId, positions: &[usize]) -> ArrayRef {
        let data_type = self.object.schema.field(column.index()).data_type();
        let dictionary = self.known[column.index()].as_ref();
        chunk.column(column).pick(positions, data_type, dictionary)
    }

    /// Columns of rows, one at least, in their order.
    fn columns_of(&self, rows: &[(&Arc<Chunk>, usize)], columns: &[ColumnId]) -> Vec<ArrayRef> {
        // Chunk by chunk, and then into order; mostly there is one.
        let mut group_of = HashMap::new();
        let mut groups: Vec<(&Chunk, Vec<usize>)> = Vec::new();
        let mut places = Vec::with_capacity(rows.len());
        for (chunk, position) in rows {
            let group = *group_of.entry(Arc::as_ptr(chunk)).or_insert_with(|| {
                groups.push((chunk, Vec::new()));
                groups.len() - 1
            });
            let positions = &mut groups[group].1;
            places.push((group, positions.len()));
            positions.push(*position);
        }
        let picked = |column: &ColumnId| {
            let mut parts =
                (groups.iter()).map(|(chunk, positions)| self.pick(chunk, *column, positions));
            if groups.len() == 1 {
                return parts.next().expect("a group per chunk");
            }
            let parts: Vec<ArrayRef> = parts.collect();
            let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
            interleave(&parts, &places).expect("parts of one type")
        };
        columns.iter().map(picked).collect()
    }
}
