//! Reading rows by their keys.
//!
//! What is read belongs to one snapshot. The index knows the newest rows only, so that a batch of several owners which
//! finds newer ones than its snapshot reads again.

use super::{AT_ONCE, RowClient, let_others_go_on, without_nulls};
use crate::clients::exchange::Exchange;
use crate::error::EngineError;
use crate::held::partition::Fetched;
use crate::object::keys::{KeyRange, Keys, is_word};
use crate::protocol::keys::ExecuteRows;
use crate::protocol::rows::{Read, ReadAt, RowOperation};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::interleave::interleave;
use eris_home::{Found, KeyBounds, Newest};
use eris_types::{AeuId, ColumnId, RowId};
use std::sync::Arc;

/// How often a batch reads at a newer snapshot before it waits for the write lock.
const READS: usize = 8;

/// A range that is being read.
struct RangeRead {
    /// Owners that have not been asked, with what they have of it, in the order of keys.
    ahead: std::vec::IntoIter<(AeuId, KeyRange)>,
    /// What the others have found.
    found: Vec<Fetched>,
    /// So many rows are still wanted.
    rest: usize,
}

impl RowClient {
    /// The rows that have keys, given as one array per column of the key. A key of which a part is NULL has no row.
    ///
    /// # Errors
    /// The object was dropped, or an owner panicked.
    ///
    /// # Panics
    /// If the arrays are not of the key's types.
    pub async fn get(
        &mut self,
        keys: &[ArrayRef],
        columns: &[ColumnId],
    ) -> Result<Found, EngineError> {
        self.find(keys, &columns.into(), Newest::Visible).await
    }

    /// The same for whoever has the list of columns already.
    pub(crate) async fn find(
        &mut self,
        keys: &[ArrayRef],
        columns: &Arc<[ColumnId]>,
        newest: Newest,
    ) -> Result<Found, EngineError> {
        self.check_types(keys);
        let (keys, positions) = without_nulls(keys);
        let fetched = self.fetch(&keys, columns, newest).await?;
        let ids = fetched.ids.iter().enumerate();
        let of = ids
            .filter(|(_, id)| id.is_some())
            .map(|(at, _)| match &positions {
                Some(positions) => positions[at],
                None => at as u32,
            });
        Ok(Found {
            of: of.collect(),
            rows: self.batch(columns, fetched.columns, &fetched.ids),
            ids: fetched.ids,
            keys,
        })
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    pub async fn range(
        &mut self,
        bounds: KeyBounds<'_>,
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<RecordBatch, EngineError> {
        let mut rows = self.ranges(&[bounds], limit, columns).await?;
        Ok(rows.pop().expect("as many answers as ranges"))
    }

    /// The same for many ranges at one snapshot: a batch for each, `limit` rows at most of each. Ranges may overlap.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    pub async fn ranges(
        &mut self,
        ranges: &[KeyBounds<'_>],
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<Vec<RecordBatch>, EngineError> {
        let key = |columns: &[ArrayRef]| {
            self.check_types(columns);
            Keys::of(columns, 0, 1)
        };
        let is_word = is_word(self.key_types());
        let ranges = ranges.iter();
        let ranges: Vec<KeyRange> = ranges
            .map(|(from, to)| KeyRange::new((from.map(key), to.map(key)), is_word))
            .collect();
        let columns: Arc<[ColumnId]> = columns.into();
        let fetched = self.fetch_ranges(&ranges, limit, &columns).await?;
        let batches = fetched
            .into_iter()
            .map(|fetched| self.batch(&columns, fetched.columns, &fetched.ids));
        Ok(batches.collect())
    }

    /// The rows of ranges at one snapshot.
    async fn fetch_ranges(
        &mut self,
        ranges: &[KeyRange],
        limit: usize,
        columns: &Arc<[ColumnId]>,
    ) -> Result<Vec<Fetched>, EngineError> {
        for _ in 0..READS {
            let fetched = self.try_ranges(ranges, limit, columns, Newest::Visible);
            if let Some(fetched) = fetched.await? {
                return Ok(fetched);
            }
            self.engine.barrier().await?;
        }
        let _turn = self.exclusive_lock().await;
        // Nobody changes rows meanwhile, and what was changed before is visible.
        self.engine.barrier().await?;
        loop {
            let fetched = self.try_ranges(ranges, limit, columns, Newest::Visible);
            if let Some(fetched) = fetched.await? {
                return Ok(fetched);
            }
            let_others_go_on().await;
        }
    }

    /// The rows of keys at one snapshot.
    async fn fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &Arc<[ColumnId]>,
        newest: Newest,
    ) -> Result<Fetched, EngineError> {
        for _ in 0..READS {
            if let Some(fetched) = self.try_fetch(keys, columns, newest).await? {
                return Ok(fetched);
            }
            self.engine.barrier().await?;
        }
        let _turn = self.exclusive_lock().await;
        let fetched = self.fetch_alone(keys, columns).await?;
        if newest == Newest::Visible {
            self.engine.barrier().await?;
        }
        Ok(fetched)
    }

    /// The same of whoever has the write lock for himself. Nobody else changes rows then; but a load that has not come
    /// to its write lock may cut the ranges above all keys, so that an owner says of such a key to look again.
    pub(super) async fn fetch_alone(
        &mut self,
        keys: &Arc<Keys>,
        columns: &Arc<[ColumnId]>,
    ) -> Result<Fetched, EngineError> {
        loop {
            if let Some(fetched) = self.try_fetch(keys, columns, Newest::Applied).await? {
                return Ok(fetched);
            }
            let_others_go_on().await;
        }
    }

    pub(super) async fn try_fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &Arc<[ColumnId]>,
        newest: Newest,
    ) -> Result<Option<Fetched>, EngineError> {
        let object = self.object.clone();
        let nothing = || Fetched {
            columns: Vec::new(),
            ids: vec![None; keys.len()],
        };
        self.check_dropped()?;
        let Some(ranges) = object.ranges.get() else {
            return Ok(Some(nothing()));
        };
        let mut exchange = Exchange::new(object.id);
        let mut read = Read {
            columns: Arc::clone(columns),
            at: ReadAt::Newest(newest),
        };
        if let Some(owner) = self.only_owner(keys) {
            let keys = Arc::clone(keys);
            exchange.push(owner, self.part(RowOperation::Get(keys, read)));
            let mut parts = self.found(&mut exchange).await?;
            return Ok(parts.pop().expect("one part was sent"));
        }
        // All owners answer for the same snapshot.
        read.at = ReadAt::Snapshot(self.engine.newest(newest));
        ranges.table.split(&ranges.routing(keys), &mut self.split);
        let mut positions: Vec<u32> = Vec::with_capacity(keys.len());
        for (owner, of_owner) in ranges.table.parts(&self.split) {
            positions.extend(of_owner);
            let keys = Arc::new(keys.pick(of_owner));
            exchange.push(owner, self.part(RowOperation::Get(keys, read.clone())));
        }
        let parts = self.found(&mut exchange).await?;
        let parts: Option<Vec<Fetched>> = parts.into_iter().collect();
        Ok(parts.map(|parts| merge(&parts, &positions, columns.len())))
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys, and their ids, of what is
    /// applied; `None` if somebody has changed rows meanwhile.
    pub(crate) async fn try_sorted(
        &mut self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<Option<(RecordBatch, Vec<RowId>)>, EngineError> {
        let keys = std::slice::from_ref(keys);
        let columns: Arc<[ColumnId]> = columns.into();
        let fetched = self.try_ranges(keys, limit, &columns, Newest::Applied);
        Ok((fetched.await?)
            .and_then(|mut fetched| fetched.pop())
            .map(|fetched| {
                let batch = self.batch(&columns, fetched.columns, &fetched.ids);
                (batch, fetched.ids.into_iter().flatten().collect())
            }))
    }

    /// What there is of ranges at one snapshot; `None` if somebody has changed rows meanwhile.
    async fn try_ranges(
        &mut self,
        ranges: &[KeyRange],
        limit: usize,
        columns: &Arc<[ColumnId]>,
        newest: Newest,
    ) -> Result<Option<Vec<Fetched>>, EngineError> {
        self.check_dropped()?;
        let read = Read {
            columns: Arc::clone(columns),
            at: ReadAt::Snapshot(self.engine.newest(newest)),
        };
        let assignment = self.object.ranges.get();
        let parts =
            |keys| (assignment.as_ref()).map_or_else(Vec::new, |assignment| assignment.parts(keys));
        let mut reading: Vec<_> = (ranges.iter())
            .map(|keys| RangeRead {
                ahead: parts(keys).into_iter(),
                found: Vec::new(),
                rest: limit,
            })
            .collect();
        for reading in reading.chunks_mut(AT_ONCE) {
            if !self.read_ranges(reading, &read).await? {
                return Ok(None);
            }
        }
        let fetched = reading.into_iter().map(|range| {
            let positions: Vec<u32> = (0..(limit - range.rest) as u32).collect();
            merge(&range.found, &positions, columns.len())
        });
        Ok(Some(fetched.collect()))
    }

    /// Reads ranges to their ends, or until there is enough of each; says whether all owners could.
    async fn read_ranges(
        &mut self,
        ranges: &mut [RangeRead],
        read: &Read,
    ) -> Result<bool, EngineError> {
        loop {
            let mut exchange = Exchange::new(self.object.id);
            let mut asked = Vec::new();
            // Of each range one owner after the other: the first ones mostly have enough.
            for range in ranges.iter_mut().filter(|range| range.rest > 0) {
                if let Some((owner, keys)) = range.ahead.next() {
                    let operation = RowOperation::Range(keys, range.rest, read.clone());
                    exchange.push(owner, self.part(operation));
                    asked.push(range);
                }
            }
            if asked.is_empty() {
                return Ok(true);
            }
            for (range, fetched) in asked.into_iter().zip(self.found(&mut exchange).await?) {
                let Some(fetched) = fetched else {
                    return Ok(false);
                };
                range.rest -= fetched.ids.len();
                range.found.push(fetched);
            }
        }
    }

    async fn found(
        &mut self,
        exchange: &mut Exchange<ExecuteRows>,
    ) -> Result<Vec<Option<Fetched>>, EngineError> {
        let parts = self.exchange(exchange).await?.into_iter();
        let found = parts.map(|part| match part {
            RowOperation::Found(found) => Ok(found),
            _ => Err(EngineError::NoSuchObject(self.object.id)),
        });
        found.collect()
    }

    /// Owners say so as well, but an object that never had a row has none.
    fn check_dropped(&self) -> Result<(), EngineError> {
        match self.object.is_dropped() {
            true => Err(EngineError::NoSuchObject(self.object.id)),
            false => Ok(()),
        }
    }

    /// The schema of a batch of columns.
    fn schema_of(&mut self, columns: &Arc<[ColumnId]>) -> SchemaRef {
        if let Some((of, schema)) = &self.shape
            && of == columns
        {
            return Arc::clone(schema);
        }
        let all = self.object.schema.fields();
        let fields = columns.iter().map(|column| all[column.index()].clone());
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self.shape = Some((Arc::clone(columns), Arc::clone(&schema)));
        schema
    }

    /// Columns as a batch.
    fn batch(
        &mut self,
        columns: &Arc<[ColumnId]>,
        arrays: Vec<ArrayRef>,
        ids: &[Option<RowId>],
    ) -> RecordBatch {
        let schema = self.schema_of(columns);
        let rows = ids.iter().flatten().count();
        if rows == 0 {
            return RecordBatch::new_empty(schema);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .expect("columns are what the object says")
    }
}

/// The answers of several owners as one, `positions` saying which key each answer is about, one owner after the other.
fn merge(parts: &[Fetched], positions: &[u32], columns: usize) -> Fetched {
    let mut ids = vec![None; positions.len()];
    let mut places = vec![None; positions.len()];
    let mut answers = positions.iter();
    for (part, fetched) in parts.iter().enumerate() {
        let mut row = 0;
        for (id, &position) in fetched.ids.iter().zip(&mut answers) {
            if id.is_some() {
                ids[position as usize] = *id;
                places[position as usize] = Some((part, row));
                row += 1;
            }
        }
    }
    let places: Vec<(usize, usize)> = places.into_iter().flatten().collect();
    // Parts without rows have no columns.
    let column = |column: usize| {
        let kind = parts.iter().find_map(|part| part.columns.get(column));
        let empty = arrow_array::new_empty_array(kind?.data_type());
        let arrays = parts.iter();
        let arrays: Vec<&dyn Array> = arrays
            .map(|part| part.columns.get(column).unwrap_or(&empty).as_ref())
            .collect();
        Some(interleave(&arrays, &places).expect("columns of one type"))
    };
    Fetched {
        columns: (0..columns).filter_map(column).collect(),
        ids,
    }
}
