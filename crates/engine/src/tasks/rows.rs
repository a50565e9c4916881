//! Operations on rows by their keys, at the owner of these.
//!
//! ```text
//! commands that have met in an inbox    get · change · get · change · range · get
//! lookups at one snapshot, together     get + get + get                      the index is asked once
//! then the others, in their order       change + change · range              one commit, if their keys differ
//! ```
//!
//! A lookup that goes before a change sees the rows before it, at a snapshot that does not have the change. Nobody can
//! tell that it was sent later: whoever sent the change has not been told that it is done.

use super::owner::Owner;
use crate::held::partition::{RowChange, Run};
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::protocol::answers::RowsDone;
use crate::protocol::asked::Asked;
use crate::protocol::keys::ExecuteRows;
use crate::protocol::lists::{Parcel, ToOwner};
use crate::protocol::message::{Context, List, Message};
use crate::protocol::rows::{Read, ReadAt, RowBatch, RowOperation};
use eris_aeu::Group;
use eris_home::Newest;
use eris_types::Timestamp;

/// Lookups of more keys gain nothing from others: they wait for memory together as they are.
const FEW: usize = 32;

/// A batch, and who wants it done.
type AskedRows = (Asked<ExecuteRows>, Box<RowBatch>);

impl Owner {
    /// Executes a group of [`ExecuteRows`].
    pub fn execute_row_batches<T>(&mut self, commands: Group<'_, Parcel>, cx: &mut Context<'_, T>) {
        let mut batches = commands.map(|command| {
            match ToOwner::unpack(ExecuteRows::KIND, command.words, command.parcel) {
                ToOwner::ExecuteRows(rows) => (Asked::by(&rows, &command.header), rows.0),
                _ => unreachable!("commands of a group are of its kind"),
            }
        });
        // Mostly it is alone, and executed in place.
        let (Some(first), second) = (batches.next(), batches.next()) else {
            return;
        };
        let Some(second) = second else {
            return self.execute_rows(first, cx);
        };
        let all: Vec<AskedRows> = [first, second].into_iter().chain(batches).collect();
        let (lookups, others): (Vec<_>, Vec<_>) = all.into_iter().partition(joins);
        match lookups.len() {
            0 => {}
            1 => lookups
                .into_iter()
                .for_each(|one| self.execute_rows(one, cx)),
            _ => self.look_up_together(lookups, cx),
        }
        let mut others = others.into_iter().peekable();
        while let Some(first) = others.next() {
            let mut limits = Run::default();
            let mut joins = |(_, batch): &AskedRows| {
                let change = batch.operation.change();
                change.is_some_and(|change| limits.takes(change))
            };
            if !joins(&first) {
                self.execute_rows(first, cx);
                continue;
            }
            let mut run = vec![first];
            while let Some(next) = others.next_if(&mut joins) {
                run.push(next);
            }
            self.execute_run(run, cx);
        }
    }

    /// Executes changes that may be done as one, and sends them back. Whichever cannot is found by halves.
    fn execute_run<T>(&mut self, mut run: Vec<AskedRows>, cx: &mut Context<'_, T>) {
        if run.len() > 1 && self.try_run(&mut run) {
            for (asked, batch) in run {
                asked.answer(RowsDone(batch), cx);
            }
            return;
        }
        if run.len() > 1 {
            let rest = run.split_off(run.len() / 2);
            self.execute_run(run, cx);
            return self.execute_run(rest, cx);
        }
        run.into_iter().for_each(|one| self.execute_rows(one, cx));
    }

    /// Executes changes as one, if that can be; the results take the operations' places.
    fn try_run(&mut self, run: &mut [AskedRows]) -> bool {
        let object = run[0].1.object.clone();
        let is_elsewhere = |(_, batch): &AskedRows| {
            let operation = &batch.operation;
            operation.is_elsewhere(&object, self.aeu, |_| Timestamp::NEVER)
        };
        if object.is_dropped() || run.iter().any(is_elsewhere) {
            return false;
        }
        let (aeu, loads) = (self.aeu, &object.loads);
        let timed = loads.begin_keys(aeu);
        let sequencer = self.sequencer.clone();
        let (partition, home) = self.partition(&object);
        let changes = run.iter().filter_map(|(_, batch)| batch.operation.change());
        let changes: Vec<&RowChange> = changes.collect();
        // An error is met again by the change that it comes from.
        let Ok(Some(changed)) = partition.change_run(&changes, home, &sequencer) else {
            return false;
        };
        let keys: Vec<&Keys> = changes.iter().map(|change| &*change.keys).collect();
        let count = keys.iter().map(|keys| keys.len()).sum();
        loads.end_keys(aeu, timed, count, |some| {
            numbers(&object, &Keys::joined(&keys), some)
        });
        assert_eq!(changed.len(), run.len(), "each gets an answer");
        for ((_, batch), changed) in run.iter_mut().zip(changed) {
            batch.operation = RowOperation::Changed(changed);
        }
        true
    }

    /// Executes lookups of few keys, all of one object, and sends them back.
    fn look_up_together<T>(&mut self, mut lookups: Vec<AskedRows>, cx: &mut Context<'_, T>) {
        let object = lookups[0].1.object.clone();
        let snapshot = self.sequencer.visible();
        let is_elsewhere = |(_, batch): &AskedRows| {
            let operation = &batch.operation;
            operation.is_elsewhere(&object, self.aeu, |_| snapshot)
        };
        if object.is_dropped() || lookups.iter().any(is_elsewhere) {
            return lookups
                .into_iter()
                .for_each(|one| self.execute_rows(one, cx));
        }
        let (aeu, loads) = (self.aeu, &object.loads);
        let timed = loads.begin_keys(aeu);
        let (partition, _) = self.partition(&object);
        let readers = lookups
            .iter()
            .filter_map(|(_, batch)| match &batch.operation {
                RowOperation::Get(keys, read) => Some((&**keys, &*read.columns)),
                _ => None,
            });
        let readers: Vec<_> = readers.collect();
        let found = partition.fetch_each(&readers, snapshot);
        let keys: Vec<&Keys> = readers.iter().map(|(keys, _)| *keys).collect();
        let count = keys.iter().map(|keys| keys.len()).sum();
        loads.end_keys(aeu, timed, count, |some| {
            numbers(&object, &Keys::joined(&keys), some)
        });
        for ((_, batch), found) in lookups.iter_mut().zip(found) {
            batch.operation = RowOperation::Found(found);
        }
        for (asked, batch) in lookups {
            asked.answer(RowsDone(batch), cx);
        }
    }

    /// Executes a batch and sends it back; the result takes the operation's place.
    fn execute_rows<T>(&mut self, (asked, mut batch): AskedRows, cx: &mut Context<'_, T>) {
        batch.operation = self.execute_operation(&batch);
        asked.answer(RowsDone(batch), cx);
    }

    fn execute_operation(&mut self, batch: &RowBatch) -> RowOperation {
        let RowBatch { object, operation } = batch;
        // Who comes after DropObject must not bring the partition back.
        if object.is_dropped() {
            return RowOperation::Gone;
        }
        let sequencer = self.sequencer.clone();
        let snapshot = |read: &Read| match read.at {
            ReadAt::Snapshot(snapshot) => snapshot,
            ReadAt::Newest(newest) => sequencer.newest(newest),
        };
        let (aeu, loads) = (self.aeu, &object.loads);
        let timed = loads.begin_keys(aeu);
        let (partition, home) = self.partition(object);
        let keys = operation.keys();
        let count = keys.map_or(1, |keys| keys.len());
        let done = match operation {
            operation if operation.is_elsewhere(object, aeu, snapshot) => operation.rejected(),
            RowOperation::Get(keys, read) => {
                RowOperation::Found(partition.fetch(keys, &read.columns, snapshot(read)))
            }
            RowOperation::Range(keys, limit, read) => {
                let columns = &read.columns;
                RowOperation::Found(partition.fetch_range(keys, *limit, columns, snapshot(read)))
            }
            RowOperation::Change(change) => {
                RowOperation::Changed(partition.change(change, home, &sequencer))
            }
            RowOperation::Prepare(prepare) => {
                RowOperation::Prepared(partition.prepare(prepare, home))
            }
            _ => unreachable!("a batch is executed once"),
        };
        loads.end_keys(aeu, timed, count, |some| {
            keys.map_or_else(Vec::new, |keys| numbers(object, keys, some))
        });
        done
    }
}

/// Whether it is done together with others.
fn joins((_, batch): &AskedRows) -> bool {
    match &batch.operation {
        RowOperation::Get(keys, read) => {
            keys.len() < FEW && read.at == ReadAt::Newest(Newest::Visible)
        }
        _ => false,
    }
}

/// By what some of these keys are assigned to owners.
fn numbers(object: &DataObject, keys: &Keys, some: &[u32]) -> Vec<i64> {
    let ranges = object.ranges.get();
    ranges.map_or_else(Vec::new, |ranges| ranges.routing(&keys.pick(some)))
}
