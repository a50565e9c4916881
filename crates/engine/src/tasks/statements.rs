//! What an owner does at once for statements that write; what takes longer are tasks.

use super::insert::{InsertTask, RowSource};
use super::owner::{Owner, WaitingRows};
use crate::error::{EngineError, store_error};
use crate::held::dictionaries::Interning;
use crate::held::partition::Partition;
use crate::protocol::answers::{Deleted, Done, OfferedChunks};
use crate::protocol::asked::Asked;
use crate::protocol::callback::EncodingId;
use crate::protocol::message::Context;
use crate::protocol::statements::{
    AdoptKeys, Codes, CommitPoint, Delete, Insert, Intern, Interned, OfferChunks,
};
use eris_aeu::TaskId;
use eris_column::ObjectMemory;
use eris_types::{ObjectId, StatementId};
use std::sync::atomic::Ordering;

impl Owner {
    /// The task that inserts rows, and the number under which codes for them come.
    pub fn begin_insert(&mut self, insert: Insert, source: RowSource) -> (InsertTask, EncodingId) {
        let number = EncodingId(self.next_encoding);
        self.next_encoding += 1;
        (InsertTask::new(insert, number, source), number)
    }

    /// Codes under this number are for this task.
    pub fn wait_for_codes(&mut self, number: EncodingId, task: TaskId) {
        let waiting = WaitingRows {
            task,
            answers_due: 0,
            failure: None,
        };
        self.encodings.insert(number, waiting);
    }

    /// Notes the rows that a statement will delete.
    pub fn delete<T>(&mut self, delete: &Delete, asked: Asked<Delete>, cx: &mut Context<'_, T>) {
        if delete.statement.aborted.load(Ordering::Acquire) {
            return;
        }
        let home = ObjectMemory {
            memory: &self.memory,
            object: asked.object,
        };
        let found = match self.partitions.get_mut(&asked.object) {
            Some(partition) => (partition.write_deletes(delete.statement.id, &delete.ids, home))
                .map_err(|error| store_error(&partition.object.name, &error)),
            None => Ok(0),
        };
        match found {
            Ok(found) => asked.answer(Deleted(found), cx),
            Err(error) => asked.reject(error, cx),
        }
    }

    pub fn commit(&mut self, commit: &CommitPoint, object: ObjectId, statement: StatementId) {
        let share = commit.share();
        let Some(partition) = self.partitions.get_mut(&object) else {
            return;
        };
        let home = ObjectMemory {
            memory: &self.memory,
            object,
        };
        let seen = self.sequencer.seen();
        let may_merge = partition.commit(statement, commit.at, home, seen);
        drop(share);
        if may_merge {
            partition.merge(home, seen.horizon);
        }
    }

    pub fn abort(&mut self, object: ObjectId, statement: StatementId) {
        if let Some(partition) = self.existing(object) {
            partition.abort(statement);
        }
    }

    /// Shows chunks that another owner may adopt.
    pub fn offer<T>(
        &mut self,
        wanted: OfferChunks,
        asked: Asked<OfferChunks>,
        cx: &mut Context<'_, T>,
    ) {
        let partition = self.existing(asked.object);
        let offer = |one: &mut Partition| one.offer(wanted.rows, wanted.chunks as usize);
        asked.answer(OfferedChunks(partition.map_or_else(Vec::new, offer)), cx);
    }

    /// Keeps rows of another owner until their statement commits.
    pub fn adopt_keys<T>(
        &mut self,
        adopt: AdoptKeys,
        asked: Asked<AdoptKeys>,
        cx: &mut Context<'_, T>,
    ) {
        let AdoptKeys {
            object,
            statement,
            offered,
        } = adopt;
        if statement.aborted.load(Ordering::Acquire) {
            return;
        }
        if object.is_dropped() {
            return asked.reject(EngineError::NoSuchObject(object.id), cx);
        }
        let (partition, home) = self.partition(&object);
        match partition.adopt_keys(statement.id, *offered, home) {
            Ok(()) => asked.answer(Done, cx),
            Err(error) => asked.reject(store_error(&object.name, &error), cx),
        }
    }

    /// Gives codes to strings of a column whose dictionary is here.
    pub fn intern<T>(&mut self, strings: &Intern, asked: Asked<Intern>, cx: &mut Context<'_, T>) {
        let strings = &strings.0;
        let column = strings.column;
        // A request that comes after DropObject must not bring the numbering back; who asks will find the object
        // dropped.
        let interning = if strings.object.is_dropped() {
            Ok(Interning::Plain)
        } else {
            let numbering = self.numberings.entry((asked.object, column)).or_default();
            let log = self.log.as_ref().filter(|_| strings.object.is_durable);
            numbering.intern(strings, &self.budget, log)
        };
        let codes = |dictionary| Interned::Codes(Codes { column, dictionary });
        let answer = match interning {
            Ok(Interning::Coded(dictionary)) => codes(Some(dictionary)),
            Ok(Interning::Plain) => codes(None),
            Ok(Interning::Later) => Interned::Later,
            Err(error) => Interned::Failed(error),
        };
        asked.answer(answer, cx);
    }

    /// One of the answers that rows wait for has come.
    pub fn interned<T>(
        &mut self,
        object: ObjectId,
        number: EncodingId,
        codes: Interned,
        cx: &mut Context<'_, T>,
    ) {
        let failure = match codes {
            Interned::Codes(Codes { column, dictionary }) => {
                if let Some(partition) = self.existing(object) {
                    partition.set_dictionary(column, dictionary);
                }
                None
            }
            // The rows' task finds strings without codes again, and asks again.
            Interned::Later => None,
            Interned::Failed(error) => Some(error),
        };
        if let Some(waiting) = self.encodings.get_mut(&number) {
            waiting.failure = failure.or(waiting.failure.take());
            waiting.answers_due -= 1;
            if waiting.answers_due == 0 {
                cx.resume(waiting.task);
            }
        }
    }
}
