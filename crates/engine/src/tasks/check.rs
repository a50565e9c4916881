//! Checking the keys of a statement at one owner, some thousand per slice.

use super::owner::Owner;
use crate::error::{EngineError, store_error};
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::statements::Check;
use eris_aeu::Slice;
use std::sync::atomic::Ordering;

pub(crate) struct CheckTask {
    check: Check,
    asked: Asked<Check>,
    begun: bool,
}

impl CheckTask {
    pub fn new(check: Check, asked: Asked<Check>) -> Self {
        CheckTask {
            check,
            asked,
            begun: false,
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        // Whoever gives the statement up has its keys taken out again.
        if self.check.statement.aborted.load(Ordering::Acquire) {
            return Slice::Done;
        }
        let (object, statement) = (&self.check.object, self.check.statement.id);
        let (partition, home) = owner.partition(object);
        let begun = std::mem::replace(&mut self.begun, true);
        let checked = match begun {
            true => partition.check(statement, home),
            false => (partition.begin_check(statement, home))
                .map(|()| false)
                .map_err(|error| store_error(&object.name, &error)),
        };
        match checked {
            Ok(false) => return Slice::Again,
            Ok(true) => self.asked.answer(Done, cx),
            Err(error) => self.reject(error, cx),
        }
        Slice::Done
    }

    /// A panic in a slice rejects the statement.
    pub fn panicked<T>(&mut self, message: &str, owner: &Owner, cx: &mut Context<'_, T>) {
        self.reject(owner.panic(&self.check.object.name, message), cx);
    }

    fn reject<T>(&self, error: EngineError, cx: &mut Context<'_, T>) {
        self.asked.reject(error, cx);
    }
}
