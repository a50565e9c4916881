//! Storing a column of foreign keys by an order of keys, while it is used.
//!
//! ```text
//! recode ── RECODE ──▶ every owner, a chunk per slice:  decode · find ordinals · encode · exchange the column ── RECODED ──▶ done
//! ```
//!
//! A chunk is immutable: what is exchanged is the owner's reference, and readers who hold the chunk finish with its old form. A chunk says by
//! which order it is stored, so that a reader may meet several orders, and none. A chunk with a key that the order does not have stays as it
//! is, and so do rows that come later, until somebody asks again: by another order; by the same one, which leaves alone what is stored by it;
//! or by that one with late keys at its end, which takes over what is stored by the shorter one as it is.

use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::protocol::commands::{RECODE, RECODED, REFUSED, header};
use crate::tasks::owner::{Context, Owner};
use eris_aeu::Slice;
use eris_column::{Home, KeyOrder};
use eris_route::{Endpoint, Parcel};
use eris_types::{AeuId, ColumnId, ObjectId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// RECODE: a column to be stored by an order.
pub(crate) struct Recode {
    object: ObjectId,
    name: String,
    column: ColumnId,
    order: Arc<KeyOrder>,
    /// Rows that owners have left as they are. Read when all have answered.
    left: AtomicU64,
}

impl Engine {
    /// Stores a column of integers by an order of keys, chunk by chunk, and waits until that is done. Rows may be read and written meanwhile.
    /// Returns how many stay as they are, for a key that the order does not have, or since they would take more room. Dropping the future leaves it to the owners to finish.
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
        let callback = self.next_callback();
        let recode = Arc::new(Recode {
            object: id,
            name: object.name.clone(),
            column,
            order,
            left: AtomicU64::new(0),
        });
        client.multicast(&aeus, RECODE, id, callback, Arc::clone(&recode));
        client.flush();
        let done = client.answered(callback, aeus.len(), &object.name).await;
        shared.give_back(&mut client);
        done.map(|()| recode.left.load(Ordering::Relaxed))
    }
}

/// The work at one owner.
pub(crate) struct RecodeTask {
    recode: Arc<Recode>,
    asked: (Endpoint, u64),
    /// Segment and chunk.
    next: (usize, usize),
}

impl RecodeTask {
    pub fn new(recode: Arc<Recode>, asked: (Endpoint, u64)) -> Self {
        RecodeTask {
            recode,
            asked,
            next: (0, 0),
        }
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let Recode {
            object,
            column,
            order,
            name,
            left,
        } = &*self.recode;
        let memory = owner.memory.clone();
        let home = Home {
            memory: &memory,
            object: *object,
        };
        let Some(partition) = owner.existing(*object) else {
            return self.answer(RECODED, None, cx);
        };
        match partition.recode(&mut self.next, *column, order, home) {
            Ok(Some(rows)) => {
                left.fetch_add(rows, Ordering::Relaxed);
                Slice::Again
            }
            Ok(None) => {
                partition.recount();
                self.answer(RECODED, None, cx)
            }
            Err(error) => {
                partition.recount();
                let error = EngineError::OutOfMemory {
                    table: name.clone(),
                    reason: error.to_string(),
                };
                self.answer(REFUSED, Some(Parcel::owned(error)), cx)
            }
        }
    }

    /// A panic in a slice leaves the rest of the chunks as they are.
    pub fn panicked(&self, message: &str, owner: &mut Owner, cx: &mut Context<'_>) {
        if let Some(partition) = owner.existing(self.recode.object) {
            partition.recount();
        }
        let error = EngineError::Panicked {
            worker: owner.aeu.to_string(),
            table: self.recode.name.clone(),
            message: message.to_owned(),
        };
        self.answer(REFUSED, Some(Parcel::owned(error)), cx);
    }

    fn answer(&self, kind: u16, parcel: Option<Parcel>, cx: &mut Context<'_>) -> Slice {
        let (session, callback) = self.asked;
        let reply = header(kind, self.recode.object, cx.endpoint(), callback);
        cx.send(session, reply, &[], parcel);
        Slice::Done
    }
}
