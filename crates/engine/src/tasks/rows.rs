//! Operations on rows by their keys, at the owner of these.

use super::owner::Owner;
use crate::protocol::answers::RowsDone;
use crate::protocol::asked::Asked;
use crate::protocol::keys::ExecuteRows;
use crate::protocol::message::Context;
use crate::protocol::rows::{Read, RowBatch, RowOperation};
use eris_types::Timestamp;

impl Owner {
    /// Executes a batch and sends it back; the result takes the operation's place.
    pub fn execute_rows<T>(
        &mut self,
        mut batch: Box<RowBatch>,
        asked: Asked<ExecuteRows>,
        cx: &mut Context<'_, T>,
    ) {
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
        let snapshot =
            |read: &Read| -> Timestamp { read.snapshot.unwrap_or_else(|| sequencer.visible()) };
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
            let ranges = object.ranges.get();
            let numbers = ranges.zip(keys);
            numbers.map_or_else(Vec::new, |(ranges, keys)| ranges.routing(&keys.pick(some)))
        });
        done
    }
}
