//! Building a secondary index at one owner.

use super::owner::Owner;
use crate::error::EngineError;
use crate::held::entered::index_error;
use crate::held::index_part::SLICE_ROWS;
use crate::held::unique::rejected;
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use crate::object::shared_index::{Gathered, SharedBuild};
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::objects::{Build, BuildStep};
use eris_aeu::Slice;
use eris_index::IndexError;
use eris_store::Chunk;
use std::sync::Arc;

/// The building of an index at one owner, or a step of it.
pub(crate) struct BuildTask {
    object: Arc<DataObject>,
    index: Arc<Index>,
    step: BuildStep,
    /// Who waits for it; nobody where it is built anew.
    asked: Option<Asked<Build>>,
    /// The chunks that are left, the last one first, once it has begun.
    chunks: Option<Vec<Arc<Chunk>>>,
    from: usize,
    gathered: Option<Gathered>,
    /// Behind which entry a tree is gone through, once no chunk is left.
    behind: Option<Vec<u8>>,
}

/// What a slice has come to: there is more to do, or not.
type Progress = Result<bool, EngineError>;

impl BuildTask {
    pub fn new(build: Build, asked: Asked<Build>) -> Self {
        BuildTask {
            object: build.object,
            index: build.index,
            step: build.step,
            asked: Some(asked),
            chunks: None,
            from: 0,
            gathered: None,
            behind: None,
        }
    }

    /// An index that is made anew.
    pub fn anew(object: Arc<DataObject>, index: Arc<Index>) -> Self {
        BuildTask {
            object,
            index,
            step: BuildStep::Enter,
            asked: None,
            chunks: None,
            from: 0,
            gathered: None,
            behind: None,
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if self.object.is_dropped() || !self.object.has_index(self.index.id) {
            return self.fail(EngineError::NoSuchObject(self.object.id), owner, cx);
        }
        let progress = match self.step {
            BuildStep::Enter => self.enter(owner),
            BuildStep::Sample => self.sample(owner),
            BuildStep::Gather => self.gather(owner),
            BuildStep::Fill => self.fill(),
            BuildStep::Finish => self.finish(owner),
        };
        match progress {
            Ok(true) => Slice::Again,
            Ok(false) => {
                if let Some(asked) = self.asked {
                    asked.answer(Done, cx);
                }
                Slice::Done
            }
            Err(error) => self.fail(error, owner, cx),
        }
    }

    fn enter(&mut self, owner: &mut Owner) -> Progress {
        if self.chunks(owner)? {
            return Ok(true);
        }
        let horizon = owner.sequencer.horizon();
        let (partition, _) = owner.partition(&self.object);
        // What is made anew has entries of rows that are gone.
        if self.asked.is_none() {
            self.behind = partition.sweep(self.index.id, self.behind.as_deref(), horizon);
            if self.behind.is_some() {
                return Ok(true);
            }
        }
        partition.finish_build(self.index.id);
        Ok(false)
    }

    /// Some rows of a chunk; whether there are others.
    fn chunks(&mut self, owner: &mut Owner) -> Progress {
        let reject = |error| rejected(error, &self.object.name);
        let (partition, home) = owner.partition(&self.object);
        let Some(chunks) = &mut self.chunks else {
            let chunks = partition.begin_build(&self.index, home).map_err(reject)?;
            self.chunks = Some(chunks);
            return Ok(true);
        };
        let Some((chunk, later)) = chunks.split_last() else {
            return Ok(false);
        };
        self.object.panic_if_poisoned();
        let (index, rows) = (&self.index, (&**chunk, later));
        match &mut self.gathered {
            Some(gathered) => {
                let gathered = partition.gather(index, rows, self.from, gathered);
                gathered.map_err(|denied| reject(IndexError::OutOfMemory(denied)))?;
            }
            None => match partition.build(index.id, rows, self.from) {
                Some(built) => built.map_err(reject)?,
                None => return Err(EngineError::NoSuchObject(self.object.id)),
            },
        }
        self.from += SLICE_ROWS;
        if self.from >= chunk.rows() {
            chunks.pop();
            self.from = 0;
        }
        Ok(true)
    }

    fn sample(&mut self, owner: &mut Owner) -> Progress {
        let (partition, _) = owner.partition(&self.object);
        let chunks = self.chunks.get_or_insert_with(|| partition.all_chunks());
        let Some(chunk) = chunks.pop() else {
            return Ok(false);
        };
        let sample = partition.sample(&self.index, &chunk);
        self.shared()?.add_sample(sample);
        Ok(true)
    }

    fn gather(&mut self, owner: &mut Owner) -> Progress {
        if self.gathered.is_none() {
            let (_, home) = owner.partition(&self.object);
            let gathered = self.shared()?.gather(home.memory.budget());
            let no_memory = |denied| rejected(IndexError::OutOfMemory(denied), &self.object.name);
            self.gathered = Some(gathered.map_err(no_memory)?);
        }
        if self.chunks(owner)? {
            return Ok(true);
        }
        if let Some(gathered) = self.gathered.take() {
            let rows = gathered.end(owner.aeu);
            self.index.count(owner.aeu, rows, 0);
        }
        Ok(false)
    }

    fn fill(&self) -> Progress {
        let tree = self.index.tree().expect("all owners share one");
        let filled = self.shared()?.fill_one(tree);
        filled.map_err(|error| rejected(index_error(error), &self.object.name))
    }

    fn finish(&mut self, owner: &mut Owner) -> Progress {
        let (partition, _) = owner.partition(&self.object);
        let entered = partition.enter_beside(self.index.id, self.behind.as_deref());
        self.behind = entered.map_err(|error| rejected(error, &self.object.name))?;
        if self.behind.is_some() {
            return Ok(true);
        }
        partition.finish_build(self.index.id);
        Ok(false)
    }

    /// What the owners share. Whoever makes the index may have given it up.
    fn shared(&self) -> Result<Arc<SharedBuild>, EngineError> {
        (self.index.build()).ok_or(EngineError::NoSuchObject(self.object.id))
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
