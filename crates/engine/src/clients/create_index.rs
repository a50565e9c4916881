//! Making and dropping secondary indexes.
//!
//! ```text
//! create ── Build ──▶ every owner builds its part in slices ── Done ──▶ in use
//!                                                          └─ Rejected, or nobody waits ──▶ DropIndex: no trace
//!
//! ```
//! Where all owners share a tree, it is made here, and they build it in [steps](BuildStep): all are done with one
//! before the next one begins.

use super::client::Client;
use super::engine::Engine;
use super::shared::EngineState;
use crate::error::EngineError;
use crate::held::entered::index_error;
use crate::held::unique::rejected;
use crate::object::data_object::{DataObject, check_key};
use crate::object::indexes::Index;
use crate::object::shared_index::{SharedBuild, SharedIndex};
use crate::protocol::callback::IndexNumber;
use crate::protocol::objects::{Build, BuildStep, DropIndex};
use eris_home::{IndexKind, IndexStatistics};
use eris_numa::OutOfMemory;
use eris_types::{AeuId, ColumnId, ObjectId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Takes everything back unless it is disarmed.
struct Undo {
    shared: Arc<EngineState>,
    object: Arc<DataObject>,
    index: u32,
    armed: bool,
}

impl Drop for Undo {
    fn drop(&mut self) {
        if self.armed {
            self.object.remove_index(self.index);
            // Without a session the owners keep their parts until the object goes; nobody uses them.
            if let Ok(client) = self.shared.client() {
                self.shared.forget_index(client, self.object.id, self.index);
            }
        }
    }
}

impl EngineState {
    /// Two trees for all owners of an object: that of an index, and one beside it. The trees of its indexes lie with
    /// different owners, each in turn.
    fn shared_indexes(&self, object: &DataObject) -> Result<[SharedIndex; 2], OutOfMemory> {
        let turn = object.id.index() + object.indexes().len();
        let home = AeuId((turn % self.topology.aeus().len()) as u16);
        let tree = || {
            let memory = self.memory.node(self.topology.node_of(home));
            SharedIndex::new(home, memory, object.id)
        };
        Ok([tree()?, tree()?])
    }

    fn forget_index(&self, mut client: Client, object: ObjectId, index: u32) {
        for aeu in self.aeus() {
            client.send(aeu, object, IndexNumber(index), DropIndex);
        }
        client.flush_all();
        self.give_back(&mut client);
    }
}

impl Engine {
    /// Makes a secondary index of a data object and waits until it is complete; returns its number. Fragments use it
    /// from then on, whatever their snapshot. Rows may be read and written meanwhile, but writers that have begun
    /// before may leave it to be built anew. `built` counts the rows that are entered.
    ///
    /// # Errors
    /// No memory, or a key that is too long; nothing is left of it then.
    ///
    /// # Panics
    /// If there are no columns.
    pub async fn create_index(
        &self,
        id: ObjectId,
        columns: &[ColumnId],
        kind: IndexKind,
        built: Arc<AtomicU64>,
    ) -> Result<u32, EngineError> {
        assert!(!columns.is_empty(), "an index is of columns");
        let shared = self.shared();
        let object = self.object(id)?;
        check_key(&object.name, &object.schema, columns)?;
        let mut client = self.client()?;
        let no_memory = |denied: OutOfMemory| EngineError::OutOfMemory {
            table: object.name.clone(),
            reason: denied.to_string(),
        };
        let trees = match kind {
            IndexKind::Shared => Some(shared.shared_indexes(&object).map_err(no_memory)?),
            IndexKind::Ordered | IndexKind::Hashed => None,
        };
        let index = object.add_index(columns, kind, built, trees);
        let mut undo = Undo {
            shared: shared.clone(),
            object: object.clone(),
            index: index.id,
            armed: true,
        };
        let done = match index.build() {
            None => (self.build(&mut client, &object, &index, BuildStep::Enter)).await,
            Some(shared) => (self.build_shared(&mut client, &object, &index, &shared)).await,
        };
        shared.give_back(&mut client);
        done?;
        undo.armed = false;
        index.set_ready();
        Ok(index.id)
    }

    /// A step at all owners.
    async fn build(
        &self,
        client: &mut Client,
        object: &Arc<DataObject>,
        index: &Arc<Index>,
        step: BuildStep,
    ) -> Result<(), EngineError> {
        let aeus: Vec<AeuId> = self.shared().aeus().collect();
        let question = self.next_question();
        let build = Build {
            object: object.clone(),
            index: index.clone(),
            step,
        };
        client.multicast(&aeus, object.id, question, &build);
        client.flush();
        client.done(question, aeus.len(), &object.name).await?;
        Ok(())
    }

    /// The tree of all owners.
    async fn build_shared(
        &self,
        client: &mut Client,
        object: &Arc<DataObject>,
        index: &Arc<Index>,
        shared: &SharedBuild,
    ) -> Result<(), EngineError> {
        let tree = index.tree().expect("all owners share one");
        let reject = |error| rejected(index_error(error), &object.name);
        (self.build(client, object, index, BuildStep::Sample)).await?;
        shared.plan(tree).map_err(reject)?;
        (self.build(client, object, index, BuildStep::Gather)).await?;
        (self.build(client, object, index, BuildStep::Fill)).await?;
        shared.raise(tree).map_err(reject)?;
        (self.build(client, object, index, BuildStep::Finish)).await?;
        index.end_build();
        Ok(())
    }

    /// Drops an index, with its memory. Fragments that run go on without it.
    pub fn drop_index(&self, id: ObjectId, index: u32) -> Result<(), EngineError> {
        let client = self.client()?;
        self.object(id)?.remove_index(index);
        self.shared().forget_index(client, id, index);
        Ok(())
    }

    /// The indexes of a data object, but that of its key.
    pub fn indexes(&self, id: ObjectId) -> Result<Vec<IndexStatistics>, EngineError> {
        let indexes = self.object(id)?.indexes();
        Ok(indexes.iter().map(|index| index.statistics()).collect())
    }
}
