//! Rows on their way into a partition: get codes, encode column by column, insert.
//!
//! ```text
//! asking ──(a column has unknown strings)──▶ suspended ──Interned──▶ asking
//!    └────(all known)──▶ encoding, one column per slice ──▶ uncommitted, told to who has sent them
//! ```

use super::owner::Owner;
use crate::error::{EngineError, store_error};
use crate::held::dictionaries::NewStrings;
use crate::object::data_object::DataObject;
use crate::object::statement::Statement;
use crate::protocol::answers::Done;
use crate::protocol::asked::Asked;
use crate::protocol::callback::EncodingId;
use crate::protocol::message::{Context, send};
use crate::protocol::run::Run;
use crate::protocol::statements::{Insert, Intern};
use eris_aeu::Slice;
use eris_fragment::FragmentError;
use eris_numa::Reservation;
use eris_route::Endpoint;
use eris_store::Encoder;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct InsertTask {
    object: Arc<DataObject>,
    statement: Arc<Statement>,
    /// Its entry in [`Owner::encodings`].
    number: EncodingId,
    source: RowSource,
    phase: InsertPhase,
    /// For the rows, until they are encoded.
    _reserved: Reservation,
}

/// Who has rows to be inserted, and hears what becomes of them.
pub(crate) enum RowSource {
    /// A client.
    Client(Asked<Insert>),
    /// A fragment that has found them here.
    Fragment(Arc<Run>),
}

enum InsertPhase {
    Asking(Encoder),
    Encoding(Encoder),
    Over,
}

impl InsertTask {
    pub fn new(insert: Insert, number: EncodingId, source: RowSource) -> Self {
        let encoder = Encoder::new(insert.object.schema.clone(), insert.batches);
        InsertTask {
            object: insert.object,
            statement: insert.statement,
            number,
            source,
            phase: InsertPhase::Asking(encoder),
            _reserved: insert.reserved,
        }
    }

    pub fn slice<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if self.statement.aborted.load(Ordering::Acquire) {
            return self.end(owner, cx);
        }
        if self.object.is_dropped() {
            let error = EngineError::NoSuchObject(self.object.id);
            return self.reject(error, owner, cx);
        }
        let failure = owner
            .encodings
            .get_mut(&self.number)
            .and_then(|waiting| waiting.failure.take());
        if let Some(error) = failure {
            return self.reject(error, owner, cx);
        }
        match self.advance(owner, cx) {
            Ok(slice) => slice,
            Err(error) => self.reject(error, owner, cx),
        }
    }

    fn advance<T>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, EngineError> {
        match std::mem::replace(&mut self.phase, InsertPhase::Over) {
            InsertPhase::Asking(mut encoder) => {
                if self.ask(&mut encoder, owner, cx) {
                    self.phase = InsertPhase::Asking(encoder);
                    return Ok(Slice::Suspend);
                }
                self.phase = InsertPhase::Encoding(encoder);
                Ok(Slice::Again)
            }
            InsertPhase::Encoding(mut encoder) if !encoder.is_done() => {
                let (partition, home) = owner.partition(&self.object);
                (encoder.step(partition.dictionaries(), home))
                    .map_err(|error| store_error(&self.object.name, &error))?;
                self.phase = InsertPhase::Encoding(encoder);
                Ok(Slice::Again)
            }
            InsertPhase::Encoding(encoder) => {
                let (partition, home) = owner.partition(&self.object);
                (partition.write(self.statement.id, encoder, home))
                    .map_err(|error| store_error(&self.object.name, &error))?;
                if let RowSource::Client(asked) = &self.source {
                    asked.answer(Done, cx);
                }
                Ok(self.end(owner, cx))
            }
            InsertPhase::Over => Ok(Slice::Done),
        }
    }

    /// Asks the dictionaries' owners for codes of unknown strings; says whether there were any.
    fn ask<T>(&self, encoder: &mut Encoder, owner: &mut Owner, cx: &mut Context<'_, T>) -> bool {
        let (partition, _) = owner.partition(&self.object);
        let unknown = encoder.look_up(partition.dictionaries());
        let asked = unknown.len();
        for (column, values) in unknown {
            let strings = NewStrings {
                object: self.object.clone(),
                column,
                values,
                rows: encoder.rows(),
            };
            let to = Endpoint::aeu(self.object.dictionary_owner(column));
            send(cx, to, self.object.id, self.number, Intern(strings));
        }
        if let Some(waiting) = owner.encodings.get_mut(&self.number) {
            waiting.answers_due = asked;
        }
        asked > 0
    }

    /// A panic in a slice rejects the statement.
    pub fn panicked<T>(&mut self, message: &str, owner: &mut Owner, cx: &mut Context<'_, T>) {
        self.reject(owner.panic(&self.object.name, message), owner, cx);
    }

    fn reject<T>(
        &mut self,
        error: EngineError,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        match &self.source {
            RowSource::Client(asked) => asked.reject(error, cx),
            RowSource::Fragment(run) => {
                let append = run.append.as_ref().expect("its rows are appended");
                append.fail(error.clone());
                run.fail(FragmentError::Evaluation(Arc::new(error)));
            }
        }
        self.end(owner, cx)
    }

    fn end<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        self.phase = InsertPhase::Over;
        owner.encodings.remove(&self.number);
        if let RowSource::Fragment(run) = &self.source
            && let Some(active) = owner.runs.get_mut(&run.id)
        {
            active.is_appending = false;
            cx.resume(active.task);
        }
        Slice::Done
    }
}
