//! The start of a fragment: who takes part, and on whose thread.
//!
//! ```text
//! fragment ─▶ compiled ─▶ path by an index? ─▶ participants ─┬─ much work ──────────▶ SCAN to all
//!                                                            └─ little, or perhaps ─▶ on this thread, at AEUs that sleep ─┬─▶ done
//!                                                                                     as long as it looks short           └─▶ they go on
//! ```
//!
//! Much of what is asked takes less time than it takes until a sleeping AEU is awake: statistics rule most chunks out, or an index leads to
//! a few rows. How little it is turns out only on the way. So it is begun here, at all AEUs at once, and left to them as soon as it looks as if it
//! took longer than waking them: until then, it runs on one core instead of all of them.

use super::{Engine, HELPLESS_ROWS, Shared, UNPOISONED};
use crate::clients::client::Client;
use crate::clients::exchange::{offer, patience};
use crate::clients::stream::LaneStream;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::path::Path;
use crate::protocol::commands::{SCAN, header};
use crate::protocol::run::{Lane, Run, Share};
use crate::tasks::owner::Owner;
use eris_aeu::Runtime;
use eris_column::CHUNK_ROWS;
use eris_exec::Program;
use eris_fragment::{
    Access, Execution, Executor, Fragment, FragmentError, FragmentReport, FragmentStream, Output,
};
use eris_route::Parcel;
use eris_types::AeuId;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Shared {
    /// Who takes part in a scan of `object`: its owners, and everybody if one of them has far more than its share.
    fn participants(&self, object: &DataObject) -> Vec<(AeuId, u64)> {
        let all: Vec<(AeuId, u64)> = (self.aeus())
            .map(|aeu| (aeu, object.partition_rows(aeu)))
            .collect();
        let rows: u64 = all.iter().map(|(_, rows)| rows).sum();
        let most = all.iter().map(|(_, rows)| *rows).max().unwrap_or(0);
        let even = most * all.len() as u64 <= rows + rows / 2;
        let owners = all.iter().filter(|(_, rows)| *rows > 0).copied();
        match rows {
            0 => all[..1].to_vec(),
            _ if even || rows <= HELPLESS_ROWS => owners.collect(),
            _ => all,
        }
    }

    fn run(
        self: &Arc<Self>,
        fragment: &Fragment,
        lanes: usize,
    ) -> Result<Execution, FragmentError> {
        let object = self.object(fragment.object);
        let object = object.map_err(|_| FragmentError::NoSuchObject(fragment.object))?;
        let dictionaries = object.dictionaries();
        let program = Program::compile(fragment, &object.schema, &dictionaries)?;
        let busy = |_| FragmentError::OutOfMemory("too many statements are running".to_owned());
        let clients: Result<Vec<Client>, EngineError> = (0..lanes).map(|_| self.client()).collect();
        let mut clients = clients.map_err(busy)?;
        let limit = match &fragment.output {
            Output::Rows { limit, .. } => *limit,
            Output::Groups { .. } => None,
        };
        let mut path = Path::of(fragment, &object);
        let holders = path
            .as_mut()
            .and_then(|path| path.holders(&object, fragment.snapshot));
        let participants = match holders {
            Some(holders) => {
                let holders = holders.into_iter();
                holders
                    .map(|aeu| (aeu, object.partition_rows(aeu)))
                    .collect()
            }
            None => self.participants(&object),
        };
        let rows: u64 = participants.iter().map(|(_, rows)| rows).sum();
        // Relations that are looked up in may be large.
        let is_short = rows <= MOST_ROWS && fragment.lookups.is_empty();
        let may_be_little = participants.len() <= MOST_AEUS
            && (is_short || path.as_ref().is_some_and(Path::is_point));
        let index = path.as_ref().and_then(|path| path.index);
        if let Some(id) = index {
            let indexes = object.indexes();
            indexes
                .iter()
                .filter(|index| index.id == id)
                .for_each(|index| index.count_lookup());
        }
        let shares = participants.iter().enumerate().map(|(index, (aeu, rows))| {
            let node = u32::from(self.topology.node_of(*aeu).0);
            Share::new(*aeu, node, index % lanes, *rows)
        });
        let id = self.next_statement().0;
        let run = Run::new(
            id,
            object,
            program,
            fragment.snapshot,
            limit,
            clients
                .iter_mut()
                .map(|client| Lane::new(client.endpoint()))
                .collect(),
            shares.collect(),
        );
        let run = Arc::new(run.along(path));
        self.begin(&run, may_be_little, &mut clients[0]);
        let reports: Vec<_> = run
            .shares
            .iter()
            .map(|share| share.report.clone())
            .collect();
        let merged = run.clone();
        let phases = run.program.phases().clone();
        let report = move || FragmentReport {
            phases: phases.clone(),
            workers: (reports.iter())
                .map(|report| report.lock().expect(UNPOISONED).clone())
                .collect(),
        };
        let lanes = clients.into_iter().enumerate();
        let lanes = lanes.map(|(lane, client)| {
            let stream = LaneStream::new(self.clone(), client, run.clone(), lane);
            Box::pin(stream) as FragmentStream
        });
        Ok(Execution {
            lanes: lanes.collect(),
            is_merged: Arc::new(move || !merged.routing.is_in_parts()),
            report: Arc::new(report),
        })
    }
}

/// A fragment over more rows is not begun here: looking at their chunks alone takes longer than waking AEUs.
const MOST_ROWS: u64 = 1024 * CHUNK_ROWS as u64;

/// AEUs are worked for one after the other: of more, it is better that all wake.
const MOST_AEUS: usize = 8;

/// Before this nobody can tell how long a fragment will take: its first chunks may be those that no statistics rule out.
const FIRST_LOOK: Duration = Duration::from_micros(30);
/// What takes no longer is done here. Waking AEUs costs half of it, so that two of them were no faster.
const LITTLE: Duration = Duration::from_micros(200);

impl Shared {
    /// Has the participants begin; if that may be all, in place of those that sleep, or whom another client is about to leave.
    fn begin(&self, run: &Arc<Run>, may_be_little: bool, client: &mut Client) {
        let aeus = run.shares.iter().map(|share| share.aeu);
        let runtime = self.runtime.as_ref().filter(|_| may_be_little);
        let (taken, awake): (Vec<AeuId>, Vec<AeuId>) = aeus.partition(|aeu| {
            runtime.is_some_and(|runtime| runtime.is_parked(*aeu) || runtime.is_run_in_place(*aeu))
        });
        // These work while others are worked for.
        tell(run, client, &awake);
        if let Some(runtime) = runtime {
            work_in_place(run, &taken, patience(), &mut None, runtime, client);
        }
        client.flush_all();
    }
}

/// Has AEUs begin, as soon as they have room: nobody may wait for that who holds another AEU, which they may be waiting for.
fn tell(run: &Arc<Run>, client: &mut Client, aeus: &[AeuId]) {
    if !aeus.is_empty() {
        client.multicast(aeus, SCAN, run.object.id, run.id, run.clone());
        client.flush();
    }
}

/// Whether what has taken so long is done soon, by the chunks that are left.
fn is_little(run: &Run, spent: Duration) -> bool {
    let (claimed, all) = run.claims();
    let expected = spent.mul_f64(all.max(1) as f64 / claimed.max(1) as f64);
    spent < FIRST_LOOK || expected < LITTLE
}

/// Begins AEUs' shares of a fragment on this thread, and goes on with them as long as it may soon be done. All are held before any
/// of them looks for others' chunks, so that none waits for another one that this thread has yet to come to.
fn work_in_place(
    run: &Arc<Run>,
    aeus: &[AeuId],
    until: Instant,
    began: &mut Option<Instant>,
    runtime: &Runtime<Owner>,
    client: &mut Client,
) {
    let Some((&first, others)) = aeus.split_first() else {
        return;
    };
    let header = header(SCAN, run.object.id, client.endpoint(), run.id);
    let is_taken = offer(runtime, first, until, |aeu| {
        aeu.execute_in_place(header, &[], Some(Parcel::shared(run.clone())));
        // It publishes its chunks.
        aeu.work();
        work_in_place(run, others, until, began, runtime, client);
        let began = began.get_or_insert_with(Instant::now);
        while is_little(run, began.elapsed()) && aeu.work() {}
    });
    if !is_taken {
        tell(run, client, &[first]);
        work_in_place(run, others, until, began, runtime, client);
    }
}

impl Executor for Engine {
    fn execute(&self, fragment: Arc<Fragment>, lanes: usize) -> Result<Execution, FragmentError> {
        assert!(lanes > 0, "a fragment needs a lane to send to");
        self.shared.run(&fragment, lanes)
    }

    fn access(&self, fragment: &Fragment) -> Option<Access> {
        let object = self.shared.object(fragment.object).ok()?;
        Path::of(fragment, &object).map(|path| path.access())
    }
}
