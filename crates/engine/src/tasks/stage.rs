//! Rows on their way into a partition: get codes, encode column by column, stage.
//!
//! ```text
//! asking ──(a column has unknown text)──▶ suspended ──INTERNED──▶ asking
//!    └────(all known)──▶ encoding, one column per slice ──▶ staged, STAGED sent
//! ```

use crate::object::data_object::DataObject;
use crate::protocol::commands::*;
use crate::tasks::owner::{Context, Owner};
use eris_aeu::Slice;
use eris_column::EncodeError;
use eris_numa::Reservation;
use eris_route::{Endpoint, Parcel};
use eris_store::{Encoder, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::EngineError;

pub(crate) struct StageTask {
    object: Arc<DataObject>,
    statement: Arc<Statement>,
    /// This stage's entry in [`Owner::stages`].
    number: u64,
    session: Endpoint,
    phase: Phase,
    /// For the rows, until they are encoded.
    _reserved: Reservation,
}

enum Phase {
    Asking(Encoder),
    Encoding(Encoder),
    Over,
}

impl StageTask {
    pub fn new(stage: Stage, number: u64, session: Endpoint) -> Self {
        let encoder = Encoder::new(stage.object.schema.clone(), stage.batches);
        StageTask {
            object: stage.object,
            statement: stage.statement,
            number,
            session,
            phase: Phase::Asking(encoder),
            _reserved: stage.reserved,
        }
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        if self.statement.aborted.load(Ordering::Acquire) {
            return self.end(owner);
        }
        if self.object.is_dropped() {
            let error = EngineError::NoSuchObject(self.object.id);
            return self.refuse(error, owner, cx);
        }
        let failure = owner
            .stages
            .get_mut(&self.number)
            .and_then(|waiting| waiting.failure.take());
        if let Some(error) = failure {
            return self.refuse(error, owner, cx);
        }
        match self.advance(owner, cx) {
            Ok(slice) => slice,
            Err(error) => self.refuse(error, owner, cx),
        }
    }

    fn advance(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, EngineError> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Asking(mut encoder) => {
                if self.ask(&mut encoder, owner, cx) {
                    self.phase = Phase::Asking(encoder);
                    return Ok(Slice::Suspend);
                }
                self.phase = Phase::Encoding(encoder);
                Ok(Slice::Again)
            }
            Phase::Encoding(mut encoder) if !encoder.is_done() => {
                let (partition, home) = owner.partition(&self.object);
                (encoder.step(partition.dictionaries(), home))
                    .map_err(|error| store_error(&self.object.name, &error))?;
                self.phase = Phase::Encoding(encoder);
                Ok(Slice::Again)
            }
            Phase::Encoding(encoder) => {
                let (partition, home) = owner.partition(&self.object);
                (partition.stage(self.statement.id, encoder, home))
                    .map_err(|error| store_error(&self.object.name, &error))?;
                let reply = header(STAGED, self.object.id, cx.endpoint(), self.statement.id.0);
                cx.send(self.session, reply, &[], None);
                Ok(self.end(owner))
            }
            Phase::Over => Ok(Slice::Done),
        }
    }

    /// Asks the dictionaries' owners for codes of unknown text; says whether there was any.
    fn ask(&self, encoder: &mut Encoder, owner: &mut Owner, cx: &mut Context<'_>) -> bool {
        let (partition, _) = owner.partition(&self.object);
        let unknown = encoder.look_up(partition.dictionaries());
        let asked = unknown.len();
        for (column, values) in unknown {
            let request = Intern {
                object: self.object.clone(),
                column,
                values,
                rows: encoder.rows(),
            };
            let target = Endpoint::aeu(self.object.dictionary_owner(column));
            let header = header(INTERN, self.object.id, cx.endpoint(), self.number);
            cx.send(target, header, &[], Some(Parcel::owned(request)));
        }
        if let Some(waiting) = owner.stages.get_mut(&self.number) {
            waiting.answers_due = asked;
        }
        asked > 0
    }

    /// A panic in a slice refuses the statement.
    pub fn panicked(&mut self, message: &str, owner: &mut Owner, cx: &mut Context<'_>) {
        let error = EngineError::Panicked {
            worker: owner.aeu.to_string(),
            table: self.object.name.clone(),
            message: message.to_owned(),
        };
        self.refuse(error, owner, cx);
    }

    fn refuse(&mut self, error: EngineError, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let reply = header(REFUSED, self.object.id, cx.endpoint(), self.statement.id.0);
        cx.send(self.session, reply, &[], Some(Parcel::owned(error)));
        self.end(owner)
    }

    fn end(&mut self, owner: &mut Owner) -> Slice {
        self.phase = Phase::Over;
        owner.stages.remove(&self.number);
        Slice::Done
    }
}

/// Why rows of a table, or their deletion, could not be staged.
pub(crate) fn store_error(table: &str, error: &StoreError) -> EngineError {
    let table = table.to_owned();
    match error {
        StoreError::OutOfMemory(refused)
        | StoreError::Encode {
            source: EncodeError::OutOfMemory(refused),
            ..
        } => EngineError::OutOfMemory {
            table,
            reason: refused.to_string(),
        },
        other => EngineError::Store {
            table,
            reason: other.to_string(),
        },
    }
}
