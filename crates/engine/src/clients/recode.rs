//! Storing a column of foreign keys by an order of keys, while it is used.
//!
//! ```text
//! recode ── Recode ──▶ every owner, a chunk per slice:  decode · ordinals · encode · exchange ── Done ──▶ done
//! ```
//!
//! A chunk is immutable: what is exchanged is the owner's reference, and readers who hold the chunk finish with its old
//! form. A chunk says by which order it is stored, so that a reader may meet several orders, and none.
//!
//! A chunk stays as it is if the order lacks one of its keys. So do rows that come later. A new request changes that.
//! With another order, all chunks are stored anew. With the same order, only those that are not stored by it. With late
//! keys at its end, older chunks are kept.

use super::engine::Engine;
use crate::error::EngineError;
use crate::protocol::objects::{Recode, Recoding};
use eris_column::KeyOrder;
use eris_types::{AeuId, ColumnId, ObjectId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

impl Engine {
    /// Stores a column of integers by an order of keys, chunk by chunk, and waits until that is done. Rows may be read
    /// and written meanwhile. Returns how many stay as they are, for a key that the order does not have, or since they
    /// would take more room. Dropping the future leaves it to the owners to finish.
    ///
    /// # Errors
    /// There is no such object, memory is exhausted, or an owner panicked; what has been exchanged by then stays.
    pub async fn recode(
        &self,
        id: ObjectId,
        column: ColumnId,
        order: Arc<KeyOrder>,
    ) -> Result<u64, EngineError> {
        let object = self.object(id)?;
        let mut client = self.client()?;
        let shared = self.shared();
        let aeus: Vec<AeuId> = shared.aeus().collect();
        let question = self.next_question();
        let recoding = Arc::new(Recoding {
            object: id,
            name: object.name.clone(),
            column,
            order,
            left: AtomicU64::new(0),
        });
        client.multicast(&aeus, id, question, &Recode(recoding.clone()));
        client.flush();
        let done = client.done(question, aeus.len(), &object.name).await;
        shared.give_back(&mut client);
        done.map(|()| recoding.left.load(Ordering::Relaxed))
    }
}
