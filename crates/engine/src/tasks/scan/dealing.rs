//! A fragment's groups on their way between AEUs. See [`crate::protocol::routed`].

use super::sending::emit;
use super::{ScanTask, State};
use crate::protocol::commands::{DEAL, DEALT, Deal, header};
use crate::protocol::routed::{Routes, afford};
use crate::tasks::owner::{Context, Owner};
use arrow_array::RecordBatch;
use eris_aeu::Slice;
use eris_exec::Groups;
use eris_fragment::FragmentError;
use eris_route::{Endpoint, Parcel};

impl ScanTask {
    /// Sends groups to the participants to which their keys belong, or to their lanes if that is not wanted or there is no
    /// memory for it.
    pub(super) fn deal(
        &mut self,
        dealt: Vec<(u32, Groups)>,
        is_wanted: bool,
        owner: &Owner,
        cx: &mut Context<'_>,
    ) -> Result<(), FragmentError> {
        let run = self.run.clone();
        if !is_wanted {
            run.routing.divide_groups();
        }
        for (worker, groups) in dealt {
            let routes = self.routes.as_mut().expect("groups are dealt in such runs");
            let reserved = match run.routing.is_in_parts() {
                true => None,
                false => afford(&owner.budget, groups.bytes() as u64).ok(),
            };
            let Some(reserved) = reserved else {
                run.routing.divide_groups();
                let batches = run.program.batches(groups)?.into_iter();
                self.emit_all(batches.map(|batch| (worker, batch)).collect());
                continue;
            };
            let worker = worker as usize;
            let count = groups.len() as u64;
            if worker == self.share {
                routes.push(groups, reserved);
            } else {
                routes.sent[worker] += 1;
                let to = Endpoint::aeu(run.shares[worker].aeu);
                let header = header(DEAL, run.object.id, cx.endpoint(), run.id);
                let run = run.clone();
                let deal = Deal {
                    run,
                    groups,
                    reserved,
                };
                cx.send(to, header, &[], Some(Parcel::owned(deal)));
            }
            self.report(|report| report.groups_dealt += count);
        }
        Ok(())
    }

    /// Tells the others that nothing more is dealt to them.
    pub(super) fn say_dealt(&self, cx: &mut Context<'_>) {
        let sent = self.routes.as_ref().map(|routes| &routes.sent[..]);
        for &other in &self.others {
            let header = header(DEALT, self.run.object.id, cx.endpoint(), self.run.id);
            let sent = [sent.map_or(0, |sent| sent[other])];
            let to = Endpoint::aeu(self.run.shares[other].aeu);
            cx.send(to, header, &sent, Some(Parcel::shared(self.run.clone())));
        }
    }

    /// Takes in what was dealt to it.
    pub(super) fn receive(&mut self, owner: &mut Owner) -> Result<(), FragmentError> {
        let (Some(routes), Some(riding)) = (&mut self.routes, owner.runs.get_mut(&self.run.id))
        else {
            return Ok(());
        };
        for deal in std::mem::take(&mut riding.mail.arrived) {
            if !self.run.routing.is_in_parts() {
                routes.push(deal.groups, deal.reserved);
                continue;
            }
            self.passing.push(deal.reserved);
            let lane = self.run.shares[self.share].lane;
            for batch in self.run.program.batches(deal.groups)? {
                emit(&self.run, self.share, &mut self.lanes, lane, batch);
            }
        }
        Ok(())
    }

    /// If groups come in parts, hands on what was merged until then; says whether there was any.
    pub(super) fn gives_up_merging(&mut self) -> Result<bool, FragmentError> {
        let is_in_vain = |routes: &&mut Routes| !routes.is_empty();
        let routes = self.routes.as_mut().filter(is_in_vain);
        let Some(routes) = routes.filter(|_| self.run.routing.is_in_parts()) else {
            return Ok(false);
        };
        let batches = routes.take(&self.run.program)?;
        self.emit_merged(batches);
        Ok(true)
    }

    /// Once everything has been dealt, hands on what is this participant's own.
    pub(super) fn merge(&mut self, owner: &mut Owner) -> Result<Slice, FragmentError> {
        let riding = owner.runs.get(&self.run.id);
        if !riding.is_some_and(|riding| riding.mail.is_complete(self.others.len())) {
            return self.merge_some(owner);
        }
        let routes = self.routes.as_mut().expect("groups were dealt");
        let batches = routes.take(&self.run.program)?;
        if routes.is_empty() {
            self.state = State::Draining;
        }
        self.emit_merged(batches);
        Ok(Slice::Again)
    }

    /// Merges some of what has come while more is to come, so that it takes less memory; without memory for that, it waits.
    fn merge_some(&mut self, owner: &Owner) -> Result<Slice, FragmentError> {
        let routes = self.routes.as_ref().expect("groups were dealt");
        if !routes.is_due() || self.reserve(routes.bytes() as u64, owner).is_err() {
            return Ok(Slice::Suspend);
        }
        let routes = self.routes.as_mut().expect("looked above");
        routes.merge(&self.run.program)?;
        Ok(Slice::Again)
    }

    fn emit_merged(&mut self, batches: Vec<RecordBatch>) {
        let groups: usize = batches.iter().map(RecordBatch::num_rows).sum();
        self.report(|report| report.groups_merged += groups as u64);
        let lane = self.run.shares[self.share].lane;
        for batch in batches {
            self.emit(lane, batch);
        }
    }
}
