//! Storing a column by an order of keys at one owner, a chunk per slice.

use super::owner::Owner;
use crate::error::EngineError;
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::objects::{Recode, Recoding};
use eris_aeu::Slice;
use eris_column::ObjectMemory;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The work at one owner.
pub(crate) struct RecodeTask {
    recoding: Arc<Recoding>,
    asked: Asked<Recode>,
    /// Segment and chunk.
    next: (usize, usize),
}

impl RecodeTask {
    pub fn new(recoding: Arc<Recoding>, asked: Asked<Recode>) -> Self {
        RecodeTask {
            recoding,
            asked,
            next: (0, 0),
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        let Recoding {
            object,
            column,
            order,
            name,
            left,
        } = &*self.recoding;
        let memory = owner.memory.clone();
        let home = ObjectMemory {
            memory: &memory,
            object: *object,
        };
        let Some(partition) = owner.existing(*object) else {
            self.asked.answer(Done, cx);
            return Slice::Done;
        };
        match partition.recode(&mut self.next, *column, order, home) {
            Ok(Some(rows)) => {
                left.fetch_add(rows, Ordering::Relaxed);
                return Slice::Again;
            }
            Ok(None) => {
                partition.recount();
                self.asked.answer(Done, cx);
            }
            Err(error) => {
                partition.recount();
                let error = EngineError::OutOfMemory {
                    table: name.clone(),
                    reason: error.to_string(),
                };
                self.asked.reject(error, cx);
            }
        }
        Slice::Done
    }

    /// A panic in a slice leaves the rest of the chunks as they are.
    pub fn panicked<T>(&self, message: &str, owner: &mut Owner, cx: &mut Context<'_, T>) {
        if let Some(partition) = owner.existing(self.recoding.object) {
            partition.recount();
        }
        let error = owner.panic(&self.recoding.name, message);
        self.asked.reject(error, cx);
    }
}
