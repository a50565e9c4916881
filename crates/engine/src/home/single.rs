//! Few rows by their keys.

use crate::clients::engine::Engine;
use crate::clients::rows::{self, AwaitedShare, shared_write_lock, try_shared_write_lock};
use arrow_array::{ArrayRef, RecordBatch};
use eris_home::{
    Compute, Computed, Found, HomeError, Kept, KeyBounds, Newest, RowChanges, RowClient, SingleRows,
};
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

impl SingleRows for Engine {
    fn client(&self, object: ObjectId) -> Result<Box<dyn RowClient>, HomeError> {
        let rows = self.rows(object)?;
        Ok(Box::new(SingleRowClient {
            rows,
            waiting: None,
        }))
    }

    fn changes(&self) -> Result<Box<dyn RowChanges>, HomeError> {
        Ok(Box::new(self.row_changes()?))
    }
}

struct SingleRowClient {
    rows: rows::RowClient,
    /// For the write lock, as long as others have it.
    waiting: Option<AwaitedShare>,
}

impl RowClient for SingleRowClient {
    fn get<'a>(
        &'a mut self,
        keys: &'a [ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>> {
        Box::pin(async move { self.rows.find(keys, &columns, newest).await })
    }

    fn ranges<'a>(
        &'a mut self,
        ranges: &'a [KeyBounds<'a>],
        limit: usize,
        columns: Arc<[ColumnId]>,
    ) -> BoxFuture<'a, Result<Vec<RecordBatch>, HomeError>> {
        Box::pin(async move { self.rows.ranges(ranges, limit, &columns).await })
    }

    fn poll_write_lock(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let SingleRowClient { rows, waiting } = self;
        if rows.write_lock.is_some() {
            return Poll::Ready(());
        }
        if waiting.is_none() {
            rows.write_lock = try_shared_write_lock(&rows.engine, &rows.object);
            if rows.write_lock.is_some() {
                return Poll::Ready(());
            }
        }
        let lock = waiting.get_or_insert_with(|| {
            let (engine, object) = (rows.engine.clone(), Arc::clone(&rows.object));
            Box::pin(async move { shared_write_lock(&engine, &object).await })
        });
        rows.write_lock = Some(ready!(lock.as_mut().poll(cx)));
        *waiting = None;
        Poll::Ready(())
    }

    fn put(&mut self, rows: RecordBatch, kept: Kept) -> BoxFuture<'_, Result<u64, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).put(rows).await })
    }

    fn insert(&mut self, rows: RecordBatch, kept: Kept) -> BoxFuture<'_, Result<bool, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).insert(rows).await })
    }

    fn put_if_unchanged<'a>(
        &'a mut self,
        found: &'a Found,
        rows: RecordBatch,
        kept: Kept,
    ) -> BoxFuture<'a, Result<bool, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).put_if_unchanged(found, rows).await })
    }

    fn remove<'a>(
        &'a mut self,
        keys: &'a [ArrayRef],
        kept: Kept,
    ) -> BoxFuture<'a, Result<u64, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).remove(keys).await })
    }

    fn remove_if_unchanged<'a>(
        &'a mut self,
        found: &'a Found,
        kept: Kept,
    ) -> BoxFuture<'a, Result<bool, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).remove_if_unchanged(found).await })
    }

    fn compute<'a>(
        &'a mut self,
        key: &'a [ArrayRef],
        compute: Arc<dyn Compute>,
        kept: Kept,
    ) -> BoxFuture<'a, Result<Computed, HomeError>> {
        Box::pin(async move { self.rows.keeping(kept).compute(key, compute).await })
    }
}

impl fmt::Debug for SingleRowClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl RowChanges for rows::RowChanges {
    fn replace(
        &mut self,
        object: ObjectId,
        found: &Found,
        rows: Option<RecordBatch>,
    ) -> Result<(), HomeError> {
        rows::RowChanges::replace(self, object, found, rows)
    }

    fn insert(&mut self, object: ObjectId, rows: RecordBatch) -> Result<(), HomeError> {
        rows::RowChanges::insert(self, object, rows)
    }

    fn exchange(
        &mut self,
        object: ObjectId,
        keys: &[ArrayRef],
        rows: Option<RecordBatch>,
    ) -> Result<(), HomeError> {
        rows::RowChanges::exchange(self, object, keys, rows)
    }

    fn wait_for_write_locks(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_for_write_locks())
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<bool, HomeError>> {
        Box::pin(rows::RowChanges::commit(*self))
    }
}
