//! Where the memory of a data object is: what each owner has of it, and on which of the machine's nodes its pages
//! really lie.
//!
//! ```text
//! session ── Locate ──▶ every AEU ◀── LocatedParts: of its chunks and indexes, addresses and lengths
//!         ── move_pages ──▶ system: the node of each page
//! ```
//!
//! An owner says where its part lies and nothing more; whoever asked looks at the pages on its own thread. Meanwhile
//! some of it may be given back, and be nowhere or even another's: the answer is a measurement, not a promise.

use super::engine::Engine;
use super::key_index::KeyIndex;
use crate::error::EngineError;
use crate::held::located::Located;
use crate::protocol::objects::Locate;
use eris_types::ObjectId;

impl Engine {
    /// Asks the owners where the memory of a data object is: those parts that take any, by owner and kind.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn locate(&self, id: ObjectId) -> Result<Vec<Located>, EngineError> {
        let name = self.object(id)?.name.clone();
        self.locate_parts(id, &name).await
    }

    async fn locate_parts(&self, id: ObjectId, name: &str) -> Result<Vec<Located>, EngineError> {
        let answers = self.ask(self.owners(), id, name, Locate).await?;
        let mut all: Vec<Located> = answers.into_iter().flat_map(|parts| parts.0).collect();
        all.sort_by_key(|located| (located.aeu, located.part));
        Ok(all)
    }
}

impl KeyIndex {
    /// [`Engine::locate`] for this index.
    ///
    /// # Errors
    /// There are too many clients and statements, or an owner panicked.
    pub async fn locate(&self) -> Result<Vec<Located>, EngineError> {
        self.engine().locate_parts(self.id(), self.name()).await
    }
}
