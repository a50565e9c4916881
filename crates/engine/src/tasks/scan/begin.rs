//! How a fragment begins at an AEU, and what others send it there.

use super::ScanTask;
use crate::protocol::message::Context;
use crate::protocol::run::{CREDITS, Run};
use crate::tasks::owner::{ActiveRun, Owner};
use crate::tasks::repartition::ReceivedGroups;
use eris_aeu::Sliced;
use eris_route::Rank;
use std::sync::Arc;

impl Owner {
    /// Begins with a run, if it has not begun: groups may come before the Scan.
    pub fn scan<T: Sliced + From<Box<ScanTask>>>(
        &mut self,
        run: Arc<Run>,
        cx: &mut Context<'_, T>,
    ) {
        if !run.begin(run.share_of(self.aeu)) {
            return;
        }
        let program = run.program_on(&self.memory, &self.buffers);
        let scan = ScanTask::new(run.clone(), program, self.aeu, &self.topology);
        let task = cx.spawn_in_turn(Rank::Scan, run.options.statement, Box::new(scan).into());
        let active = ActiveRun {
            task,
            credits: vec![CREDITS; run.streams.len()].into(),
            received: ReceivedGroups::default(),
            is_appending: false,
            run,
        };
        self.runs.insert(active.run.id, active);
        self.remote.set_scans(self.aeu, self.runs.len());
    }

    /// What somebody says of the groups of a run; nothing if the run is over here.
    pub fn receive<T: Sliced + From<Box<ScanTask>>>(
        &mut self,
        run: Arc<Run>,
        change: impl FnOnce(&mut ReceivedGroups),
        cx: &mut Context<'_, T>,
    ) {
        let id = run.id;
        self.scan(run, cx);
        if let Some(active) = self.runs.get_mut(&id) {
            change(&mut active.received);
            cx.resume(active.task);
        }
    }
}
