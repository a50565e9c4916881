//! Reading rows by their keys.
//!
//! What is read belongs to one snapshot. The index knows the newest rows only, so that a batch of several owners which finds newer ones
//! than its snapshot reads again.

use super::batch::{Operation, Read, RowBatch};
use super::{Found, RowClient, let_others_go_on, without_nulls};
use crate::error::EngineError;
use crate::exchange::Exchange;
use crate::keys::{KeyRange, Keys, is_word};
use crate::partition::Fetched;
use crate::protocol::ROWS;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::interleave::interleave;
use eris_types::{ColumnId, RowId};
use std::ops::Bound;
use std::sync::Arc;

/// How often a batch reads at a newer snapshot before it waits for its turn.
const READS: usize = 8;

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
        self.check_types(keys);
        let (keys, positions) = without_nulls(keys);
        let fetched = self.fetch(&keys, columns).await?;
        let of = fetched.ids.iter().zip(positions);
        Ok(Found {
            of: of.filter_map(|(id, at)| id.map(|_| at)).collect(),
            rows: self.batch(columns, fetched.columns, &fetched.ids),
            ids: fetched.ids,
            keys,
        })
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys. A bound is one value per column of
    /// the key, in arrays of length one.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    pub async fn range(
        &mut self,
        bounds: (Bound<&[ArrayRef]>, Bound<&[ArrayRef]>),
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<RecordBatch, EngineError> {
        let key = |columns: &[ArrayRef]| {
            self.check_types(columns);
            Keys::of(columns, 0, 1)
        };
        let types = self.key_types();
        let is_word = is_word(types);
        let keys = KeyRange::new((bounds.0.map(key), bounds.1.map(key)), is_word);
        for _ in 0..READS {
            if let Some(fetched) = self.try_range(&keys, limit, columns).await? {
                return Ok(self.batch(columns, fetched.columns, &fetched.ids));
            }
            self.engine.settle().await;
        }
        let _turn = self.turn_alone().await;
        loop {
            if let Some(fetched) = self.try_range(&keys, limit, columns).await? {
                return Ok(self.batch(columns, fetched.columns, &fetched.ids));
            }
            let_others_go_on().await;
        }
    }

    /// The rows of keys at one snapshot.
    async fn fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &[ColumnId],
    ) -> Result<Fetched, EngineError> {
        for _ in 0..READS {
            if let Some(fetched) = self.try_fetch(keys, columns).await? {
                return Ok(fetched);
            }
            self.engine.settle().await;
        }
        let _turn = self.turn_alone().await;
        self.fetch_alone(keys, columns).await
    }

    /// The same of whoever has the turn for himself. Nobody else changes rows then; but a load that has not come to its turn may cut
    /// the ranges above all keys, so that an owner says of such a key to look again.
    pub(super) async fn fetch_alone(
        &mut self,
        keys: &Arc<Keys>,
        columns: &[ColumnId],
    ) -> Result<Fetched, EngineError> {
        loop {
            if let Some(fetched) = self.try_fetch(keys, columns).await? {
                return Ok(fetched);
            }
            let_others_go_on().await;
        }
    }

    pub(super) async fn try_fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &[ColumnId],
    ) -> Result<Option<Fetched>, EngineError> {
        let object = self.object.clone();
        let nothing = || Fetched {
            columns: Vec::new(),
            ids: vec![None; keys.len()],
        };
        let Some(ranges) = object.ranges.get() else {
            return Ok(Some(nothing()));
        };
        let mut exchange = Exchange::new(ROWS, object.id);
        let mut read = Read {
            columns: columns.into(),
            snapshot: None,
        };
        if let Some(owner) = self.only_owner(keys) {
            let keys = Arc::clone(keys);
            exchange.push(owner, self.part(Operation::Get(keys, read)));
            let mut parts = self.found(&mut exchange).await?;
            return Ok(parts.pop().expect("one part was sent"));
        }
        // All owners answer for the same snapshot.
        read.snapshot = Some(self.engine.snapshot());
        ranges.table.split(&ranges.routing(keys), &mut self.split);
        let mut positions: Vec<u32> = Vec::with_capacity(keys.len());
        for (owner, of_owner) in ranges.table.parts(&self.split) {
            positions.extend(of_owner);
            let keys = Arc::new(keys.pick(of_owner));
            exchange.push(owner, self.part(Operation::Get(keys, read.clone())));
        }
        let parts = self.found(&mut exchange).await?;
        let parts: Option<Vec<Fetched>> = parts.into_iter().collect();
        Ok(parts.map(|parts| merge(&parts, &positions, columns.len())))
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys, and their ids; `None` if somebody has changed rows meanwhile.
    pub(crate) async fn try_sorted(
        &mut self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<Option<(RecordBatch, Vec<RowId>)>, EngineError> {
        let fetched = self.try_range(keys, limit, columns).await?;
        Ok(fetched.map(|fetched| {
            let batch = self.batch(columns, fetched.columns, &fetched.ids);
            (batch, fetched.ids.into_iter().flatten().collect())
        }))
    }

    async fn try_range(
        &mut self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<Option<Fetched>, EngineError> {
        let object = self.object.clone();
        let mut parts: Vec<Fetched> = Vec::new();
        let read = Read {
            columns: columns.into(),
            snapshot: Some(self.engine.snapshot()),
        };
        let parts_of_owners = object.ranges.get().into_iter();
        let parts_of_owners = parts_of_owners.flat_map(|ranges| ranges.parts(keys));
        let mut rest = limit;
        // One owner after the other: the first ones mostly have enough.
        for (owner, keys) in parts_of_owners {
            if rest == 0 {
                break;
            }
            let mut exchange = Exchange::new(ROWS, object.id);
            let operation = Operation::Range(keys, rest, read.clone());
            exchange.push(owner, self.part(operation));
            match self.found(&mut exchange).await?.pop().flatten() {
                Some(fetched) => {
                    rest -= fetched.ids.len();
                    parts.push(fetched);
                }
                None => return Ok(None),
            }
        }
        let positions: Vec<u32> = (0..(limit - rest) as u32).collect();
        Ok(Some(merge(&parts, &positions, columns.len())))
    }

    async fn found(
        &mut self,
        exchange: &mut Exchange<RowBatch>,
    ) -> Result<Vec<Option<Fetched>>, EngineError> {
        let parts = self.exchange(exchange).await?.into_iter();
        let found = parts.map(|part| match part {
            Operation::Found(found) => Ok(found),
            _ => Err(EngineError::NoSuchObject(self.object.id)),
        });
        found.collect()
    }

    /// Columns as a batch.
    fn batch(
        &self,
        columns: &[ColumnId],
        arrays: Vec<ArrayRef>,
        ids: &[Option<RowId>],
    ) -> RecordBatch {
        let schema = &self.object.schema;
        let fields = columns
            .iter()
            .map(|column| schema.fields()[column.index()].clone());
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
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
