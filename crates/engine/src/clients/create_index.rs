//! Making and dropping secondary indexes.
//!
//! ```text
//! create ── Build ──▶ every owner builds its part in slices ── Done ──▶ in use
//!                                                          └─ Rejected, or nobody waits ──▶ DropIndex: no trace
//! ```

use super::client::Client;
use super::engine::Engine;
use super::shared::EngineState;
use crate::error::EngineError;
use crate::object::data_object::{DataObject, check_key};
use crate::protocol::callback::IndexNumber;
use crate::protocol::objects::{Build, DropIndex};
use eris_home::{IndexKind, IndexStatistics};
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
        let aeus: Vec<AeuId> = shared.aeus().collect();
        let index = object.add_index(columns, kind, built);
        let mut undo = Undo {
            shared: shared.clone(),
            object: object.clone(),
            index: index.id,
            armed: true,
        };
        let question = self.next_question();
        let build = Build {
            object: object.clone(),
            index: index.clone(),
        };
        client.multicast(&aeus, id, question, &build);
        client.flush();
        let done = client.done(question, aeus.len(), &object.name).await;
        shared.give_back(&mut client);
        done?;
        undo.armed = false;
        index.set_ready();
        Ok(index.id)
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
