//! Workload-conscious reorganisation of indexes: what is asked for most is moved together, while it is used. (art-tlb-misses:
//! *TLB misses – the missing issue of adaptive radix tree?*, Section 5; there, updates have to stop meanwhile.)
//!
//! ```text
//! lookups, upserts ─► the tree, and a key of so many into a ring of samples          watched
//!                          │ ring full: few keys, many pages? ──── or: CALL          policy
//!                          ▼
//!                     counting ─► measuring ─► moving ─► measuring ─► effect         work
//! ```
//! The work is done by the owner in units of one key, between commands, and each unit is paid for by lookups: as many as it
//! takes that all go on at most of their speed. So it goes on as fast as the index is used, and an index that nobody uses is
//! left alone. Whoever asks for it explicitly also gets a [task](ReorganizeTask), which does the work while there is no other.
//!
//! How much it gains is told by a model of a translation buffer, for hardly any machine counts its misses for us.
//!
//! When it pays, and who pays for it: docs/decisions/0014.

mod policy;
#[cfg(test)]
mod tests;
mod watched;
mod work;

pub(crate) use watched::Watched;

use crate::clients::ask::Question;
use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::protocol::commands::{REORGANIZE, REORGANIZED};
use crate::tasks::owner::{Context, Owner};
use eris_aeu::Slice;
use eris_home::{
    IndexReorganization, ReorganizationCause, ReorganizationEffect, ReorganizationState,
};
use eris_index::Key;
use eris_types::{AeuId, NodeId, ObjectId};

/// REORGANIZE's word: only to tell how things are, or to begin.
const ASK: u64 = 0;
const BEGIN: u64 = 1;

impl Engine {
    /// Begins to move together what lookups of an object's keys go through most, at every owner that has sampled any, and
    /// returns how things are then: it is done while the object is used.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn reorganize(&self, id: ObjectId) -> Result<Vec<IndexReorganization>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.at_indexes(id, &name, BEGIN).await
    }

    /// How the order of an object's key indexes is: one entry per tree, of which a partition may have several, ascending by owner.
    ///
    /// # Errors
    /// As [`Engine::reorganize`].
    pub async fn reorganization(
        &self,
        id: ObjectId,
    ) -> Result<Vec<IndexReorganization>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.at_indexes(id, &name, ASK).await
    }

    async fn at_indexes(
        &self,
        id: ObjectId,
        name: &str,
        what: u64,
    ) -> Result<Vec<IndexReorganization>, EngineError> {
        let question = Question {
            kind: REORGANIZE,
            answer: REORGANIZED,
        };
        let parts: Vec<Vec<_>> = self.ask(self.owners(), id, name, question, &[what]).await?;
        let mut all = parts.concat();
        all.sort_by_key(|index: &IndexReorganization| index.aeu);
        Ok(all)
    }
}

impl crate::KeyIndex {
    /// [`Engine::reorganize`] for this index.
    ///
    /// # Errors
    /// An owner panicked, or there are too many clients and statements.
    pub async fn reorganize(&self) -> Result<Vec<IndexReorganization>, EngineError> {
        self.engine()
            .at_indexes(self.id(), self.name(), BEGIN)
            .await
    }

    /// [`Engine::reorganization`] for this index.
    ///
    /// # Errors
    /// As [`KeyIndex::reorganize`](Self::reorganize).
    pub async fn reorganization(&self) -> Result<Vec<IndexReorganization>, EngineError> {
        self.engine().at_indexes(self.id(), self.name(), ASK).await
    }
}

/// What can be reorganised, whatever its keys are.
pub(crate) trait Reorganizable {
    /// See [`Watched::tend`].
    fn tend(&mut self, extra: u64);
    /// See [`Watched::begin`].
    fn begin(&mut self);
    /// See [`Watched::is_at_work`].
    fn is_at_work(&self) -> bool;
    /// See [`Watched::slice`].
    fn slice(&mut self) -> bool;
    /// See [`Watched::give_up`].
    fn give_up(&mut self, reason: &str);
    /// How things are: an entry for each tree.
    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>);
}

impl<K: Key + ?Sized> Reorganizable for Watched<K> {
    fn tend(&mut self, extra: u64) {
        Watched::tend(self, extra);
    }

    fn begin(&mut self) {
        Watched::begin(self, ReorganizationCause::Call);
    }

    fn is_at_work(&self) -> bool {
        Watched::is_at_work(self)
    }

    fn slice(&mut self) -> bool {
        Watched::slice(self)
    }

    fn give_up(&mut self, reason: &str) {
        Watched::give_up(self, reason);
    }

    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>) {
        let (samples, ended) = self.counts();
        all.push(IndexReorganization {
            aeu,
            node,
            keys: self.len() as u64,
            bytes: self.footprint().used as u64,
            state: self.state(),
            samples,
            ended,
            effect: self.effect(),
        });
    }
}

/// Does the work on one object's index at one owner while nobody else has any.
pub(crate) struct ReorganizeTask {
    object: ObjectId,
}

impl ReorganizeTask {
    pub fn new(object: ObjectId) -> Self {
        ReorganizeTask { object }
    }

    pub fn slice(&mut self, owner: &mut Owner) -> Slice {
        let goes_on = (owner.index(self.object)).is_some_and(|index| index.slice());
        if goes_on {
            return Slice::Again;
        }
        self.end(owner);
        Slice::Done
    }

    fn end(&self, owner: &mut Owner) {
        owner.reorganizing.remove(&self.object);
    }

    /// A slice panicked: the index stays as it is, for nobody waits for its order.
    pub fn panicked(&mut self, message: &str, owner: &mut Owner) {
        self.end(owner);
        if let Some(index) = owner.index(self.object) {
            index.give_up(message);
        }
    }
}

impl Owner {
    /// REORGANIZE: begins, if that is asked for, and tells how things are. Whoever asks also keeps work going that lookups
    /// have left.
    pub(crate) fn reorganize(
        &mut self,
        object: ObjectId,
        what: u64,
        cx: &mut Context<'_>,
    ) -> Vec<IndexReorganization> {
        let (aeu, node) = (self.aeu, cx.node());
        let Some(index) = self.index(object) else {
            return Vec::new();
        };
        if what == BEGIN {
            index.begin();
        }
        let mut all = Vec::new();
        index.status(aeu, node, &mut all);
        let is_at_work = index.is_at_work();
        if is_at_work && self.reorganizing.insert(object) {
            cx.spawn(crate::tasks::owner::Task::Reorganize(ReorganizeTask::new(
                object,
            )));
        }
        all
    }
}
