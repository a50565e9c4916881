//! Statements that write to several data objects.

use crate::clients::writer::Writer;
use arrow_array::RecordBatch;
use eris_fragment::Fragment;
use eris_home::{Appending, HomeError, Write};
use eris_types::{ObjectId, RowId};
use futures::future::BoxFuture;
use std::fmt;

/// A writer for each data object.
pub(super) struct EngineWrite(Vec<Writer>);

impl EngineWrite {
    pub fn new(writers: Vec<Writer>) -> Self {
        EngineWrite(writers)
    }

    fn of(&mut self, object: ObjectId) -> &mut Writer {
        let mut writers = self.0.iter_mut();
        let writer = writers.find(|writer| writer.object().id == object);
        writer.expect("the statement was begun for this object")
    }
}

impl Write for EngineWrite {
    fn append(
        &mut self,
        object: ObjectId,
        rows: RecordBatch,
    ) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(self.of(object).append(rows))
    }

    fn append_from(
        &mut self,
        object: ObjectId,
        fragment: &Fragment,
    ) -> Result<Option<Appending<'_>>, HomeError> {
        self.of(object).append_from(fragment)
    }

    fn delete(
        &mut self,
        object: ObjectId,
        rows: &mut dyn ExactSizeIterator<Item = RowId>,
    ) -> Result<(), HomeError> {
        self.of(object).delete(rows)
    }

    fn check(&mut self) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(Writer::make_ready(&mut self.0))
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), HomeError>> {
        Box::pin(Writer::commit_all(self.0))
    }
}

impl fmt::Debug for EngineWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.0.iter().map(|writer| writer.object().id);
        f.debug_list().entries(objects).finish()
    }
}
