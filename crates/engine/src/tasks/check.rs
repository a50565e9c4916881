//! Checking the keys of a statement at one owner, some thousand per slice.

use crate::error::EngineError;
use crate::protocol::commands::*;
use crate::tasks::owner::{Context, Owner};
use crate::tasks::stage::store_error;
use eris_aeu::Slice;
use eris_route::{Endpoint, Parcel};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct CheckTask {
    check: Arc<Check>,
    session: Endpoint,
    begun: bool,
}

impl CheckTask {
    pub fn new(check: Arc<Check>, session: Endpoint) -> Self {
        CheckTask {
            check,
            session,
            begun: false,
        }
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
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
            Ok(false) => Slice::Again,
            Ok(true) => {
                let reply = header(CHECKED, object.id, cx.endpoint(), statement.0);
                cx.send(self.session, reply, &[], None);
                Slice::Done
            }
            Err(error) => self.refuse(error, cx),
        }
    }

    /// A panic in a slice refuses the statement.
    pub fn panicked(&mut self, message: &str, owner: &Owner, cx: &mut Context<'_>) {
        let error = EngineError::Panicked {
            worker: owner.aeu.to_string(),
            table: self.check.object.name.clone(),
            message: message.to_owned(),
        };
        self.refuse(error, cx);
    }

    fn refuse(&mut self, error: EngineError, cx: &mut Context<'_>) -> Slice {
        let (object, statement) = (self.check.object.id, self.check.statement.id);
        let reply = header(REFUSED, object, cx.endpoint(), statement.0);
        cx.send(self.session, reply, &[], Some(Parcel::owned(error)));
        Slice::Done
    }
}
