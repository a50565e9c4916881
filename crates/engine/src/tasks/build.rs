//! Building a secondary index at one owner.

use super::owner::Owner;
use crate::error::EngineError;
use crate::held::index_part::SLICE_ROWS;
use crate::held::unique::rejected;
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::objects::Build;
use eris_aeu::Slice;
use eris_index::IndexError;
use eris_store::Chunk;
use std::sync::Arc;

/// The building of an index at one owner.
pub(crate) struct BuildTask {
    object: Arc<DataObject>,
    index: Arc<Index>,
    /// Who waits for it; nobody where it is built anew.
    asked: Option<Asked<Build>>,
    /// The chunks that are left, the last one first, once it has begun.
    chunks: Option<Vec<Arc<Chunk>>>,
    from: usize,
}

impl BuildTask {
    pub fn new(object: Arc<DataObject>, index: Arc<Index>, asked: Option<Asked<Build>>) -> Self {
        BuildTask {
            object,
            index,
            asked,
            chunks: None,
            from: 0,
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if self.object.is_dropped() || !self.object.has_index(self.index.id) {
            return self.fail(EngineError::NoSuchObject(self.object.id), owner, cx);
        }
        let (partition, home) = owner.partition(&self.object);
        let Some(chunks) = &mut self.chunks else {
            return match partition.begin_build(&self.index, home) {
                Ok(chunks) => {
                    self.chunks = Some(chunks);
                    Slice::Again
                }
                Err(error) => self.rejected(error, owner, cx),
            };
        };
        let Some((chunk, later)) = chunks.split_last() else {
            partition.finish_build(self.index.id);
            if let Some(asked) = self.asked {
                asked.answer(Done, cx);
            }
            return Slice::Done;
        };
        self.object.panic_if_poisoned();
        match partition.build(self.index.id, chunk, later, self.from) {
            Some(Ok(())) => {
                self.from += SLICE_ROWS;
                if self.from >= chunk.rows() {
                    chunks.pop();
                    self.from = 0;
                }
                Slice::Again
            }
            Some(Err(error)) => self.rejected(error, owner, cx),
            None => self.fail(EngineError::NoSuchObject(self.object.id), owner, cx),
        }
    }

    fn rejected<T>(
        &mut self,
        error: IndexError,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        self.fail(rejected(error, &self.object.name), owner, cx)
    }

    fn fail<T>(&mut self, error: EngineError, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if let Some(partition) = owner.existing(self.object.id) {
            partition.give_up_build(self.index.id);
        }
        if let Some(asked) = self.asked {
            asked.reject(error, cx);
        }
        Slice::Done
    }

    /// A panic in a slice rejects the statement.
    pub fn panicked<T>(&mut self, message: &str, owner: &mut Owner, cx: &mut Context<'_, T>) {
        self.fail(owner.panic(&self.object.name, message), owner, cx);
    }
}
