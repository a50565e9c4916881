//! The start of a fragment: who takes part, and on whose thread.
//!
//! ```text
//! fragment ─▶ compiled ─▶ path by an index? ─▶ participants ─┬─ much work ─▶ Scan to all
//!                                                            └─ perhaps little ─▶ on this thread, at AEUs that sleep
//!                                                                                 ├─ as long as it looks short ─▶ done
//!                                                                                 └─ then they go on
//! ```
//!
//! Much of what is asked takes less time than it takes until a sleeping AEU is awake: statistics rule most chunks out,
//! or an index leads to a few rows. How little it is turns out only on the way. So it is begun here, at all AEUs at
//! once. It is left to them as soon as it looks as if it took longer than waking them. Until then, it runs on one core
//! instead of all of them.

use super::client::Client;
use super::engine::Engine;
use super::exchange::{offer, patience};
use super::shared::EngineState;
use super::stream::ResultStream;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::path::Path;
use crate::protocol::append::Append;
use crate::protocol::callback::RunId;
use crate::protocol::copies::Copies;
use crate::protocol::run::{ResultReceiver, Run, Share};
use crate::protocol::runs::Scan;
use crate::tasks::owner::Owner;
use arrow_array::StringViewArray;
use arrow_schema::{DataType, SchemaRef};
use eris_aeu::Runtime;
use eris_column::CHUNK_ROWS;
use eris_exec::{Program, TableMemory};
use eris_fragment::{
    Access, Estimate, Execution, Executor, Fragment, FragmentError, FragmentReport, FragmentStream,
    Output,
};
use eris_home::BUFFERS;
use eris_types::{AeuId, ColumnId, ObjectId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An object of at most so many rows is scanned by its owners alone: a helper would come too late.
pub(super) const HELPLESS_ROWS: u64 = 8 * CHUNK_ROWS as u64;

/// A fragment over more rows is not begun here: looking at their chunks alone takes longer than waking AEUs.
const MOST_ROWS: u64 = 1024 * CHUNK_ROWS as u64;

/// AEUs are worked for one after the other: of more, it is better that all wake.
const MOST_AEUS: usize = 8;

/// Before this nobody can tell how long a fragment will take: its first chunks may be those that no statistics rule
/// out.
const FIRST_LOOK: Duration = Duration::from_micros(30);
/// What takes no longer is done here. Waking AEUs costs half of it, so that two of them were no faster.
const LITTLE: Duration = Duration::from_micros(200);

impl Executor for Engine {
    fn execute(
        &self,
        fragment: Arc<Fragment>,
        stream_count: usize,
    ) -> Result<Execution, FragmentError> {
        assert!(stream_count > 0, "a fragment needs a stream to send to");
        self.shared().execute(&fragment, stream_count)
    }

    fn strings(&self, object: ObjectId, column: ColumnId) -> Option<StringViewArray> {
        let object = self.object(object).ok()?;
        let dictionary = object.full_dictionary(column.index())?;
        Some(dictionary.values().clone())
    }

    fn access(&self, fragment: &Fragment) -> Option<Access> {
        let object = self.object(fragment.object).ok()?;
        Path::of(fragment, &object).map(|path| path.access())
    }

    fn estimate(&self, fragment: &Fragment) -> Option<Estimate> {
        let object = self.object(fragment.object).ok()?;
        self.shared().estimate(fragment, &object)
    }
}

/// What a fragment reads, and its programs.
type Compiled = (Arc<DataObject>, Program, Option<Copies>);

/// Who takes part in a fragment: AEUs and the rows of their partitions.
pub(super) type Participants = Vec<(AeuId, u64)>;

impl EngineState {
    /// Begins a fragment; its result comes in so many streams.
    fn execute(
        self: &Arc<Self>,
        fragment: &Fragment,
        streams: usize,
    ) -> Result<Execution, FragmentError> {
        let (object, program, copies) = self.compile(fragment)?;
        let mut clients = self.clients(streams)?;
        let mut path = Path::of(fragment, &object);
        let participants = self.participants(fragment, &object, path.as_mut());
        let may_be_little = may_be_little(fragment, path.as_ref(), &participants);
        count_lookup(&object, path.as_ref());
        let run = self.run(fragment, object, program, &participants, &mut clients);
        let run = Arc::new(run.along(path).copied(copies));
        self.begin(&run, may_be_little, &mut clients[0]);
        Ok(self.execution(run, clients))
    }

    /// Begins a fragment whose rows are appended to another data object where they are found. Its result stream has no
    /// batches; it ends when all rows are written. `None`: they are few, or of other types than the object's, and have
    /// to be sent.
    pub(super) fn execute_into(
        self: &Arc<Self>,
        fragment: &Fragment,
        append: Append,
        least_rows: u64,
    ) -> Result<Option<(Arc<Run>, ResultStream)>, FragmentError> {
        let Output::Rows { limit: None, .. } = &fragment.output else {
            return Ok(None);
        };
        let (object, program, copies) = self.compile(fragment)?;
        let types = |schema: &SchemaRef| {
            let fields = schema.fields().iter();
            fields.map(|field| field.data_type().clone()).collect()
        };
        let (found, stored): (Vec<DataType>, Vec<DataType>) =
            (types(program.output_schema()), types(&append.object.schema));
        let has_path = Path::of(fragment, &object).is_some();
        if found != stored || has_path || object.total_rows() < least_rows {
            return Ok(None);
        }
        let mut clients = self.clients(1)?;
        let participants = self.scanners(&object);
        let run = self.run(fragment, object, program, &participants, &mut clients);
        let run = Arc::new(run.into(append).copied(copies));
        self.begin(&run, false, &mut clients[0]);
        let client = clients.pop().expect("one was asked for");
        let stream = ResultStream::new(self.clone(), client, run.clone(), 0);
        Ok(Some((run, stream)))
    }

    /// The data object that a fragment reads, and the program: one for all, and perhaps one for each node.
    fn compile(&self, fragment: &Fragment) -> Result<Compiled, FragmentError> {
        let object = self.object(fragment.object);
        let object = object.map_err(|_| FragmentError::NoSuchObject(fragment.object))?;
        let dictionaries = object.dictionaries();
        let nodes = self.topology.nodes();
        if nodes.len() > 1 && !self.topology.is_fake() {
            // What crosses nodes goes by what is known of them.
            self.machine.need();
        }
        // Where there is only one, its tables are the manager's from the start.
        let tables = (nodes.len() == 1).then(|| TableMemory {
            memory: self.memory.node(nodes[0].id),
            object: BUFFERS,
        });
        let program =
            Program::compile_on(fragment, &object.schema, &dictionaries, tables.as_ref())?;
        let copies = Copies::new(fragment, &object, &dictionaries, nodes.len());
        Ok((object, program, copies))
    }

    fn clients(&self, count: usize) -> Result<Vec<Client>, FragmentError> {
        let clients: Result<Vec<Client>, EngineError> = (0..count).map(|_| self.client()).collect();
        clients
            .map_err(|_| FragmentError::OutOfMemory("too many statements are running".to_owned()))
    }

    /// Who takes part: those who hold what a path leads to, or whoever scans.
    fn participants(
        &self,
        fragment: &Fragment,
        object: &DataObject,
        path: Option<&mut Path>,
    ) -> Participants {
        match path.and_then(|path| path.holders(object, fragment.snapshot)) {
            Some(holders) => {
                let holders = holders.into_iter();
                holders
                    .map(|aeu| (aeu, object.partition_rows(aeu)))
                    .collect()
            }
            None => self.scanners(object),
        }
    }

    /// Who takes part in a scan of `object`: its owners, and everybody if one of them has far more than its share.
    pub(super) fn scanners(&self, object: &DataObject) -> Participants {
        let owners: Participants = object.holders().collect();
        let Some(most) = owners.iter().map(|(_, rows)| *rows).max() else {
            return vec![(AeuId(0), 0)];
        };
        let rows: u64 = owners.iter().map(|(_, rows)| rows).sum();
        let even = most * self.topology.aeus().len() as u64 <= rows + rows / 2;
        if even || rows <= HELPLESS_ROWS {
            return owners;
        }
        let mut owners = owners.into_iter().peekable();
        let rows_of = |aeu| owners.next_if(|(owner, _)| *owner == aeu);
        (self.aeus().map(rows_of).zip(self.aeus()))
            .map(|(owner, aeu)| owner.unwrap_or((aeu, 0)))
            .collect()
    }

    /// What the participants share; each sends to one of the clients.
    fn run(
        &self,
        fragment: &Fragment,
        object: Arc<DataObject>,
        program: Program,
        participants: &Participants,
        clients: &mut [Client],
    ) -> Run {
        let limit = match &fragment.output {
            Output::Rows { limit, .. } => *limit,
            Output::Groups { .. } => None,
        };
        let streams = clients.len();
        let shares = participants.iter().enumerate().map(|(index, (aeu, rows))| {
            let node = u32::from(self.topology.node_of(*aeu).0);
            Share::new(*aeu, node, index % streams, *rows)
        });
        let receivers = clients.iter_mut();
        Run::new(
            RunId(self.next_callbacks(1)),
            object,
            program,
            fragment.snapshot,
            limit,
            receivers
                .map(|client| ResultReceiver::new(client.endpoint()))
                .collect(),
            shares.collect(),
        )
        .with(fragment.options)
    }

    /// What the caller gets of a run.
    fn execution(self: &Arc<Self>, run: Arc<Run>, clients: Vec<Client>) -> Execution {
        let report = reporter(&run);
        let streams = clients.into_iter().enumerate().map(|(number, client)| {
            let stream = ResultStream::new(self.clone(), client, run.clone(), number);
            Box::pin(stream) as FragmentStream
        });
        let streams = streams.collect();
        Execution {
            streams,
            is_merged: Arc::new(move || !run.repartitioning.is_in_parts()),
            report,
        }
    }

    /// Has the participants begin; if that may be all, in place of those that sleep, or whom another client is about to
    /// leave.
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

/// What tells how far a run is. It does not keep the run.
pub(super) fn reporter(run: &Run) -> Arc<dyn Fn() -> FragmentReport + Send + Sync> {
    let reports = run.shares.iter().map(|share| share.report.clone());
    let reports: Vec<_> = reports.collect();
    let phases = run.program.phases().clone();
    Arc::new(move || FragmentReport {
        phases: phases.clone(),
        workers: reports.iter().map(|report| report.read()).collect(),
    })
}

/// Whether a fragment may be over soon.
fn may_be_little(fragment: &Fragment, path: Option<&Path>, participants: &Participants) -> bool {
    let rows: u64 = participants.iter().map(|(_, rows)| rows).sum();
    // Relations that are looked up in may be large.
    let is_short = rows <= MOST_ROWS && fragment.lookups.is_empty();
    participants.len() <= MOST_AEUS && (is_short || path.is_some_and(Path::is_little))
}

/// Counts the fragments that a secondary index leads.
fn count_lookup(object: &DataObject, path: Option<&Path>) {
    if let Some(id) = path.and_then(|path| path.index)
        && let Some(index) = object.indexes().iter().find(|index| index.id == id)
    {
        index.count_lookup();
    }
}

/// Has AEUs begin, as soon as they have room: nobody may wait for that who holds another AEU, which they may be waiting
/// for.
fn tell(run: &Arc<Run>, client: &mut Client, aeus: &[AeuId]) {
    if !aeus.is_empty() {
        client.multicast(aeus, run.object.id, run.id, &Scan(run.clone()));
        client.flush();
    }
}

/// Whether what has taken so long is done soon, by the chunks that are left.
fn is_little(run: &Run, spent: Duration) -> bool {
    let (claimed, all) = run.claims();
    let expected = spent.mul_f64(all.max(1) as f64 / claimed.max(1) as f64);
    spent < FIRST_LOOK || expected < LITTLE
}

/// Begins AEUs' shares of a fragment on this thread, and goes on with them as long as it may soon be done. All are held
/// before any of them looks for others' chunks, so that none waits for another one that this thread has yet to come to.
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
    let is_taken = offer(runtime, first, until, |aeu| {
        client.execute_in_place(aeu, run.object.id, run.id, Scan(run.clone()));
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
