//! A chunk of another owner on its way into a partition.

use super::owner::Owner;
use crate::error::{EngineError, store_error};
use crate::held::partition::OfferedChunk;
use crate::object::data_object::DataObject;
use crate::object::statement::Statement;
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::statements::Adopt;
use eris_aeu::Slice;
use eris_home::TrafficKind;
use eris_numa::Arrival;
use eris_store::Adoption;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A chunk on its way into a partition: column by column if it is copied, then inserted.
pub(crate) struct AdoptTask {
    object: Arc<DataObject>,
    statement: Arc<Statement>,
    asked: Asked<Adopt>,
    plain: Arc<[bool]>,
    /// When the chunk's bytes have crossed. It is copied meanwhile.
    arrival: Arrival,
    rows: Option<Adoption>,
}

impl AdoptTask {
    pub fn new(adopt: Adopt, asked: Asked<Adopt>, owner: &Owner) -> Self {
        let OfferedChunk {
            owner: before,
            chunk,
            living,
            plain,
        } = adopt.offered;
        let node = |aeu| owner.topology.node_of(aeu);
        let bytes = match adopt.is_linked {
            true => 0,
            false => chunk.bytes() as u64,
        };
        let arrival =
            (owner.remote).request(node(owner.aeu), node(before), TrafficKind::Move, bytes);
        AdoptTask {
            object: adopt.object,
            statement: adopt.statement,
            asked,
            plain,
            arrival,
            rows: Some(match adopt.is_linked {
                true => Adoption::link(&chunk),
                false => Adoption::copy(&chunk, living),
            }),
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if self.statement.aborted.load(Ordering::Acquire) {
            return Slice::Done;
        }
        if self.object.is_dropped() {
            return self.reject(EngineError::NoSuchObject(self.object.id), cx);
        }
        self.object.panic_if_poisoned();
        let is_copied = self.rows.as_ref().is_some_and(Adoption::is_done);
        if is_copied && let Some(rest) = self.arrival.rest() {
            return Slice::Rest(rest);
        }
        let horizon = owner.sequencer.horizon();
        let (partition, home) = owner.partition(&self.object);
        let mut rows = self.rows.take().expect("it is not over");
        partition.refresh_dictionaries(&self.plain);
        let stepped = match rows.is_done() {
            false => {
                let stepped = rows.step(partition.recoder(home, horizon));
                self.rows = Some(rows);
                stepped.map(|()| Slice::Again)
            }
            true => {
                let adopted = partition.adopt(self.statement.id, rows, home);
                adopted.map(|()| Slice::Done)
            }
        };
        match stepped {
            Ok(slice) => {
                if slice == Slice::Done {
                    self.asked.answer(Done, cx);
                }
                slice
            }
            Err(error) => self.reject(store_error(&self.object.name, &error), cx),
        }
    }

    /// A panic in a slice rejects the statement.
    pub fn panicked<T>(&mut self, message: &str, owner: &Owner, cx: &mut Context<'_, T>) {
        self.reject(owner.panic(&self.object.name, message), cx);
    }

    fn reject<T>(&mut self, error: EngineError, cx: &mut Context<'_, T>) -> Slice {
        self.asked.reject(error, cx);
        Slice::Done
    }
}
