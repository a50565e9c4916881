//! A fragment's groups on their way between AEUs. See [`crate::protocol::repartition`].

use super::sending::emit;
use super::{ScanState, ScanTask};
use crate::protocol::message::{Context, send};
use crate::protocol::runs::{Repartition, RepartitionEnd};
use crate::tasks::owner::Owner;
use crate::tasks::repartition::{GroupExchange, afford};
use arrow_array::RecordBatch;
use eris_aeu::Slice;
use eris_exec::Groups;
use eris_fragment::FragmentError;
use eris_route::Endpoint;

impl ScanTask {
    /// Sends groups to the participants to which their keys belong, or to their streams if that is not wanted or there
    /// is no memory for it.
    pub(super) fn send_groups<T>(
        &mut self,
        parts: Vec<(u32, Groups)>,
        is_wanted: bool,
        owner: &Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<(), FragmentError> {
        let run = self.run.clone();
        if !is_wanted {
            run.repartitioning.divide_groups();
        }
        for (worker, groups) in parts {
            let exchange = self
                .exchange
                .as_mut()
                .expect("groups are repartitioned in such runs");
            let reserved = match run.repartitioning.is_in_parts() {
                true => None,
                false => afford(&owner.buffers, groups.bytes() as u64).ok(),
            };
            let Some(reserved) = reserved else {
                run.repartitioning.divide_groups();
                let batches = self.program.batches(groups)?.into_iter();
                self.emit_all(batches.map(|batch| (worker, batch)).collect());
                continue;
            };
            let worker = worker as usize;
            let count = groups.len() as u64;
            if worker == self.share {
                exchange.push(groups, reserved);
            } else {
                exchange.sent[worker] += 1;
                let to = Endpoint::aeu(run.shares[worker].aeu);
                let message = Repartition {
                    run: run.clone(),
                    groups,
                    reserved,
                };
                send(cx, to, run.object.id, run.id, message);
            }
            self.report().groups_repartitioned.add(count);
        }
        Ok(())
    }

    /// Tells the others that no more groups are sent to them.
    pub(super) fn say_sent<T>(&self, cx: &mut Context<'_, T>) {
        let sent = self.exchange.as_ref().map(|exchange| &exchange.sent[..]);
        for &other in &self.others {
            let to = Endpoint::aeu(self.run.shares[other].aeu);
            let message = RepartitionEnd {
                run: self.run.clone(),
                sent: sent.map_or(0, |sent| sent[other]),
            };
            send(cx, to, self.run.object.id, self.run.id, message);
        }
    }

    /// Takes in what was sent to it.
    pub(super) fn take_in(&mut self, owner: &mut Owner) -> Result<(), FragmentError> {
        let (Some(exchange), Some(active)) = (&mut self.exchange, owner.runs.get_mut(&self.run.id))
        else {
            return Ok(());
        };
        for sent in std::mem::take(&mut active.received.waiting) {
            if !self.run.repartitioning.is_in_parts() {
                exchange.push(sent.groups, sent.reserved);
                continue;
            }
            self.passing.push(sent.reserved);
            let stream = self.run.shares[self.share].stream;
            for batch in self.program.batches(sent.groups)? {
                emit(&self.run, self.share, &mut self.streams, stream, batch);
            }
        }
        Ok(())
    }

    /// If groups come in parts, hands on what was merged until then; says whether there was any.
    pub(super) fn gives_up_merging(&mut self) -> Result<bool, FragmentError> {
        let is_in_vain = |exchange: &&mut GroupExchange| !exchange.is_empty();
        let exchange = self.exchange.as_mut().filter(is_in_vain);
        let Some(exchange) = exchange.filter(|_| self.run.repartitioning.is_in_parts()) else {
            return Ok(false);
        };
        let batches = exchange.take(&self.program)?;
        self.emit_merged(batches);
        Ok(true)
    }

    /// Once everything has been sent, hands on what is this participant's own.
    pub(super) fn merge(&mut self, owner: &mut Owner) -> Result<Slice, FragmentError> {
        let active = owner.runs.get(&self.run.id);
        if !active.is_some_and(|active| active.received.is_complete(self.others.len())) {
            return self.merge_some(owner);
        }
        let exchange = self.exchange.as_mut().expect("groups were repartitioned");
        let batches = exchange.take(&self.program)?;
        if exchange.is_empty() {
            self.state = ScanState::Draining;
        }
        self.emit_merged(batches);
        Ok(Slice::Again)
    }

    /// Merges some of what has come while more is to come, so that it takes less memory; without memory for that, it
    /// waits.
    fn merge_some(&mut self, owner: &Owner) -> Result<Slice, FragmentError> {
        let exchange = self.exchange.as_ref().expect("groups were repartitioned");
        if !exchange.is_due() || self.reserve(exchange.bytes() as u64, owner).is_err() {
            return Ok(Slice::Suspend);
        }
        let exchange = self.exchange.as_mut().expect("looked above");
        exchange.merge(&self.program)?;
        Ok(Slice::Again)
    }

    fn emit_merged(&mut self, batches: Vec<RecordBatch>) {
        let groups: usize = batches.iter().map(RecordBatch::num_rows).sum();
        self.report().groups_merged.add(groups as u64);
        let stream = self.run.shares[self.share].stream;
        for batch in batches {
            self.emit(stream, batch);
        }
    }
}
