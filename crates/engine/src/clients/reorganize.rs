//! Asking owners to reorganise indexes, and how that goes. See [`crate::held::reorganize`].

use super::engine::Engine;
use super::key_index::KeyIndex;
use crate::error::EngineError;
use crate::protocol::objects::Reorganize;
use eris_home::IndexReorganization;
use eris_types::ObjectId;

impl Engine {
    /// Begins to move together what lookups of an object's keys go through most, at every owner that has sampled any,
    /// and returns how things are then: it is done while the object is used.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn reorganize(&self, id: ObjectId) -> Result<Vec<IndexReorganization>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.at_indexes(id, &name, Reorganize::Begin).await
    }

    /// How the order of an object's key indexes is: one entry per tree, of which a partition may have several,
    /// ascending by owner.
    ///
    /// # Errors
    /// As [`Engine::reorganize`].
    pub async fn reorganization(
        &self,
        id: ObjectId,
    ) -> Result<Vec<IndexReorganization>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.at_indexes(id, &name, Reorganize::Ask).await
    }

    async fn at_indexes(
        &self,
        id: ObjectId,
        name: &str,
        what: Reorganize,
    ) -> Result<Vec<IndexReorganization>, EngineError> {
        let answers = self.ask(self.owners(), id, name, what).await?;
        let mut all: Vec<_> = answers.into_iter().flat_map(|indexes| indexes.0).collect();
        all.sort_by_key(|index: &IndexReorganization| index.aeu);
        Ok(all)
    }
}

impl KeyIndex {
    /// [`Engine::reorganize`] for this index.
    ///
    /// # Errors
    /// An owner panicked, or there are too many clients and statements.
    pub async fn reorganize(&self) -> Result<Vec<IndexReorganization>, EngineError> {
        self.engine()
            .at_indexes(self.id(), self.name(), Reorganize::Begin)
            .await
    }

    /// [`Engine::reorganization`] for this index.
    ///
    /// # Errors
    /// As [`KeyIndex::reorganize`](Self::reorganize).
    pub async fn reorganization(&self) -> Result<Vec<IndexReorganization>, EngineError> {
        self.engine()
            .at_indexes(self.id(), self.name(), Reorganize::Ask)
            .await
    }
}
