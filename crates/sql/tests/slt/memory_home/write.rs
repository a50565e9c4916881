//! Statements that write: rows are collected, checked under the objects' write locks, and appear with the commit.

use super::groups::row_keys;
use super::{MemoryHome, Object, State, Stored};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use eris_home::{HomeError, Write};
use eris_types::{ObjectId, RowId, Timestamp};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

/// A statement's rows, by object.
pub struct MemoryWrite {
    home: MemoryHome,
    parts: BTreeMap<ObjectId, Part>,
    may_delete: bool,
    is_checked: bool,
    failure: Option<HomeError>,
    locks: Vec<OwnedMutexGuard<()>>,
}

#[derive(Default)]
struct Part {
    added: Vec<RecordBatch>,
    rows: u64,
    deleted: Vec<RowId>,
}

impl MemoryWrite {
    pub fn new(
        home: &MemoryHome,
        objects: &[ObjectId],
        may_delete: bool,
    ) -> Result<Self, HomeError> {
        let state = home.state();
        let parts = objects
            .iter()
            .map(|&id| state.object(id).map(|_| (id, Part::default())));
        Ok(MemoryWrite {
            parts: parts.collect::<Result<_, _>>()?,
            home: home.clone(),
            may_delete,
            is_checked: false,
            failure: None,
            locks: Vec::new(),
        })
    }

    /// Waits for the write locks, in the order of the objects' numbers. Who only adds rows without a key needs none.
    pub async fn lock(&mut self) -> Result<(), HomeError> {
        for id in self.parts.keys() {
            let lock = {
                let state = self.home.state();
                let object = state.object(*id)?;
                let is_needed = self.may_delete || !object.definition.key.is_empty();
                is_needed.then(|| Arc::clone(&object.write_lock))
            };
            if let Some(lock) = lock {
                self.locks.push(lock.lock_owned().await);
            }
        }
        Ok(())
    }

    async fn checked(&mut self) -> Result<(), HomeError> {
        self.failure.clone().map_or(Ok(()), Err)?;
        if self.is_checked {
            return Ok(());
        }
        if !self.may_delete {
            self.lock().await?;
        }
        let state = self.home.state();
        for (&id, part) in &self.parts {
            check(id, part, state.object(id)?, state.newest)?;
        }
        self.is_checked = true;
        Ok(())
    }
}

impl Write for MemoryWrite {
    fn append(
        &mut self,
        object: ObjectId,
        rows: RecordBatch,
    ) -> BoxFuture<'_, Result<(), HomeError>> {
        let part = self.parts.get_mut(&object).unwrap();
        let fits = fits(&self.home.state(), object, &rows, part.rows + 1);
        match &fits {
            Ok(()) => {
                part.rows += rows.num_rows() as u64;
                part.added.push(rows);
            }
            Err(error) => self.failure = Some(error.clone()),
        }
        let appended = self.failure.clone().map_or(Ok(()), Err);
        async { appended }.boxed()
    }

    fn delete(
        &mut self,
        object: ObjectId,
        rows: &mut dyn ExactSizeIterator<Item = RowId>,
    ) -> Result<(), HomeError> {
        assert!(self.may_delete, "the statement only adds rows");
        self.parts.get_mut(&object).unwrap().deleted.extend(rows);
        Ok(())
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), HomeError>> {
        self.checked().boxed()
    }

    fn commit(mut self: Box<Self>) -> BoxFuture<'static, Result<(), HomeError>> {
        async move {
            self.checked().await?;
            let mut state = self.home.state();
            for id in self.parts.keys() {
                state.object(*id)?;
            }
            let at = Timestamp(state.newest.0 + 1);
            for (id, part) in std::mem::take(&mut self.parts) {
                apply(&mut state, id, part, at);
            }
            state.newest = at;
            Ok(())
        }
        .boxed()
    }
}

/// Makes one object's part visible from a commit on.
fn apply(state: &mut State, id: ObjectId, part: Part, at: Timestamp) {
    let mut next = state.rows;
    let object = state.objects.get_mut(&id).expect("it was there");
    let deleted: HashSet<RowId> = part.deleted.into_iter().collect();
    for stored in &mut object.batches {
        for (row, end) in stored.deleted.iter_mut().enumerate() {
            if deleted.contains(&stored.first.plus(row)) {
                *end = at;
            }
        }
    }
    for rows in part.added.into_iter().filter(|rows| rows.num_rows() > 0) {
        let stored = Stored {
            first: RowId(next),
            inserted: at,
            deleted: vec![Timestamp::NEVER; rows.num_rows()],
            rows,
        };
        next += stored.deleted.len() as u64;
        object.batches.push(stored);
    }
    object.newest = at;
    state.rows = next;
}

/// Rejects rows of other columns than the object's, and NULL where it allows none.
fn fits(state: &State, id: ObjectId, rows: &RecordBatch, first: u64) -> Result<(), HomeError> {
    let definition = &state.object(id)?.definition;
    let types = |fields: Vec<String>| fields.join(", ");
    let expected = definition.schema.fields().iter();
    let expected = types(
        expected
            .map(|field| field.data_type().to_string())
            .collect(),
    );
    let got = types(
        rows.columns()
            .iter()
            .map(|column| column.data_type().to_string())
            .collect(),
    );
    if got != expected {
        return Err(HomeError::Shape {
            table: definition.name.clone(),
            got,
            expected,
        });
    }
    for (at, field) in definition.schema.fields().iter().enumerate() {
        let column = rows.column(at);
        let is_keyed = definition.key.iter().any(|key| key.index() == at);
        if (is_keyed || !field.is_nullable()) && column.null_count() > 0 {
            let row = (0..column.len()).find(|&row| column.is_null(row)).unwrap();
            return Err(HomeError::Null {
                table: definition.name.clone(),
                column: field.name().clone(),
                row: first + row as u64,
            });
        }
    }
    Ok(())
}

/// The rows to be deleted are there, and no two rows would have the same key.
fn check(id: ObjectId, part: &Part, object: &Object, newest: Timestamp) -> Result<(), HomeError> {
    let table = || object.definition.name.clone();
    let deleted: HashSet<RowId> = part.deleted.iter().copied().collect();
    if deleted.len() < part.deleted.len() {
        return Err(HomeError::DeletedTwice { table: table() });
    }
    let (rows, ids) = object.rows(newest);
    if ids.iter().filter(|id| deleted.contains(id)).count() < deleted.len() {
        return Err(HomeError::NoSuchRows { table: table() });
    }
    if object.definition.key.is_empty() {
        return Ok(());
    }
    let keys = row_keys(&object.key(&rows)).unwrap();
    let keys = keys.into_iter().zip(&ids);
    let mut known: HashSet<_> = keys
        .filter(|(_, id)| !deleted.contains(id))
        .map(|(key, _)| key)
        .collect();
    for rows in &part.added {
        let key = object.key(rows);
        for (row, value) in row_keys(&key).unwrap().into_iter().enumerate() {
            if !known.insert(value) {
                return Err(HomeError::DuplicateKey {
                    object: id,
                    table: table(),
                    key: shown(&key, row),
                });
            }
        }
    }
    Ok(())
}

/// A key for messages.
fn shown(key: &[ArrayRef], row: usize) -> String {
    let parts = key.iter().map(|part| {
        let formatter = ArrayFormatter::try_new(part, &FormatOptions::default()).unwrap();
        formatter.value(row).to_string()
    });
    parts.collect::<Vec<_>>().join(", ")
}

impl fmt::Debug for MemoryWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.keys()).finish()
    }
}
