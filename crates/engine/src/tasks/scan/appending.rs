//! Rows that a fragment finds on their way into this AEU's partition of another data object.
//!
//! ```text
//! chunks ──▶ rows that pass ──▶ collected until they fill a chunk ──▶ InsertTask ──▶ uncommitted here
//!                                                                        │ one at a time
//! scan goes on meanwhile, and is suspended when the next chunk is full ◀─┘ resumes it
//! ```

use super::{ScanState, ScanTask};
use crate::error::EngineError;
use crate::object::collected::Collected;
use crate::protocol::append::Append;
use crate::protocol::message::Context;
use crate::protocol::statements::Insert;
use crate::tasks::insert::{InsertTask, RowSource};
use crate::tasks::owner::Owner;
use arrow_array::RecordBatch;
use eris_aeu::Sliced;
use eris_fragment::FragmentError;
use eris_numa::{Budget, OutOfMemory, Reservation};
use eris_route::Rank;
use std::sync::Arc;

/// Rows that were found and are not being inserted yet.
#[derive(Default)]
pub(super) struct Appending {
    collected: Collected,
    /// For them until they are encoded: as they are, and as much for codes and for a column in one piece.
    reserved: Option<Reservation>,
}

impl Appending {
    /// Takes in the first rows of a batch; what is left of it.
    fn take_in(
        &mut self,
        batch: &RecordBatch,
        budget: &Budget,
    ) -> Result<RecordBatch, OutOfMemory> {
        let (taken, bytes) = self.collected.next(batch);
        match &mut self.reserved {
            Some(reserved) => reserved.try_grow(2 * bytes)?,
            None => self.reserved = Some(budget.try_reserve(2 * bytes)?),
        }
        let count = taken.num_rows();
        self.collected.push(taken, bytes);
        Ok(batch.slice(count, batch.num_rows() - count))
    }

    /// What is to be inserted; none if there is nothing.
    fn insert(&mut self, append: &Append) -> Option<Insert> {
        let reserved = self.reserved.take()?;
        Some(Insert {
            object: append.object.clone(),
            statement: append.statement.clone(),
            batches: std::mem::take(&mut self.collected).batches,
            reserved,
        })
    }
}

impl ScanTask {
    /// Takes in what was found, and has it inserted here; says whether there is room for more or, when nothing more
    /// will be found, whether all of it is written.
    pub(super) fn append<T: Sliced + From<Box<InsertTask>>>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<bool, FragmentError> {
        while let Some(batch) = self.streams[0].pop() {
            if self.appending.collected.is_full() && !self.write(owner, cx) {
                self.streams[0].push_back(batch);
                return Ok(false);
            }
            let append = self.run.append.as_ref().expect("its rows are appended");
            if let Err(error) = append.object.check(&batch, 1) {
                return Err(self.rejected(error));
            }
            match self.appending.take_in(&batch, &owner.budget) {
                Ok(rest) if rest.num_rows() == 0 => {}
                Ok(rest) => self.streams[0].push_back(rest),
                Err(denied) => {
                    self.streams[0].push_back(batch);
                    // What is written takes less memory than what waits to be.
                    let may_wait = self.is_writing(owner) || self.write(owner, cx);
                    return match may_wait && self.is_writing(owner) {
                        true => Ok(false),
                        false => Err(self.denied(&denied)),
                    };
                }
            }
        }
        if self.appending.collected.is_full() {
            self.write(owner, cx);
        }
        if self.state == ScanState::Draining {
            return Ok(self.write(owner, cx) && !self.is_writing(owner));
        }
        Ok(true)
    }

    /// Whether rows of this fragment are being inserted here.
    fn is_writing(&self, owner: &Owner) -> bool {
        let active = owner.runs.get(&self.run.id);
        active.is_some_and(|active| active.is_appending)
    }

    /// Has what was collected inserted; `false`: others are being inserted, and it has to wait.
    fn write<T: Sliced + From<Box<InsertTask>>>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> bool {
        let append = self.run.append.as_ref().expect("its rows are appended");
        if self.is_writing(owner) {
            return self.appending.reserved.is_none();
        }
        let Some(insert) = self.appending.insert(append) else {
            return true;
        };
        let source = RowSource::Fragment(self.run.clone());
        let (task, number) = owner.begin_insert(insert, source);
        // It asks for codes, which is scan work, and must not be waited for by scans.
        let task = cx.spawn_at(Rank::Client, Box::new(task).into());
        owner.wait_for_codes(number, task);
        if let Some(active) = owner.runs.get_mut(&self.run.id) {
            active.is_appending = true;
        }
        true
    }

    fn denied(&self, denied: &OutOfMemory) -> FragmentError {
        let append = self.run.append.as_ref().expect("its rows are appended");
        self.rejected(EngineError::OutOfMemory {
            table: append.object.name.clone(),
            reason: denied.to_string(),
        })
    }

    /// Notes why rows cannot be written, which is why the fragment fails.
    fn rejected(&self, error: EngineError) -> FragmentError {
        let append = self.run.append.as_ref().expect("its rows are appended");
        append.fail(error.clone());
        FragmentError::Evaluation(Arc::new(error))
    }
}
