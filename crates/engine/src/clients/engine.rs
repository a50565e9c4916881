//! The engine: data objects by number, and what statements share.

mod fragments;

use crate::clients::client::Client;
use crate::clients::writer::{Turn, Writer};
use crate::error::EngineError;
use crate::key_index::{KeyIndex, KeyObject};
use crate::object::data_object::DataObject;
use crate::object::statistics::merge;
use crate::protocol::commands::*;
use crate::sequencer::Sequencer;
use crate::settings::Settings;
use crate::tasks::collect::Garbage;
use crate::tasks::owner::Owner;
use arrow_schema::SchemaRef;
use eris_aeu::{Runtime, Session};
use eris_column::CHUNK_ROWS;
use eris_home::{HeldSnapshot, ObjectStatistics, Partitioning};
use eris_numa::{AeuPlace, HugePages, Memory, Topology};
use eris_route::{BufferSizes, RouteError, Router};
use eris_telemetry::Snapshot;
use eris_types::{AeuId, ColumnId, ObjectId, StatementId, Timestamp};
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};
use std::task::Poll;

/// How many idle sessions are kept for the next statements.
const IDLE_CLIENTS: usize = 64;

/// An object of at most so many rows is scanned by its owners alone: a helper would come too late.
const HELPLESS_ROWS: u64 = 8 * CHUNK_ROWS as u64;

/// A running engine. Clones are the same engine; when the last one is dropped, its AEUs finish and their threads end.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What statements share.
pub(crate) struct Shared {
    pub topology: Arc<Topology>,
    pub memory: Memory,
    pub huge_pages: HugePages,
    pub sequencer: Arc<Sequencer>,
    router: Arc<Router>,
    /// The AEUs' threads; `None` where AEUs are stepped by hand.
    runtime: Option<Runtime<Owner>>,
    /// Read at the start of statements, written by CREATE and DROP.
    objects: RwLock<HashMap<ObjectId, Arc<DataObject>>>,
    pub garbage: Garbage,
    /// The bare indexes, as long as somebody has them.
    key_indexes: Mutex<Vec<Weak<KeyObject>>>,
    clients: Mutex<Vec<Session>>,
    next_object: AtomicU32,
    next_statement: AtomicU64,
}

impl Engine {
    /// Starts an AEU on every place of the topology.
    pub fn start(settings: Settings) -> Result<Engine, EngineError> {
        Engine::start_with_share(settings, None)
    }

    /// The same, with AEUs that use no more than this share of a core each, if it is given: for experiments with more AEUs than the machine has
    /// cores, which would otherwise work for each other.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with_share(settings: Settings, share: Option<f64>) -> Result<Engine, EngineError> {
        let start = |error: &dyn fmt::Display| EngineError::Start(error.to_string());
        if let Some(share) = share.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            let error = format!(
                "AEUs cannot have {share} of a core: more than 0 and at most 1 is possible"
            );
            return Err(EngineError::Start(error));
        }
        let memory = Memory::new(
            &settings.topology,
            settings.huge_pages,
            settings.memory_limit,
        )
        .map_err(|error| start(&error))?;
        let topology = Arc::new(settings.topology);
        let sequencer = Arc::new(Sequencer::new());
        let runtime = {
            let owner = |place: AeuPlace| owner(place.aeu, &topology, &memory, &sequencer);
            Runtime::start_with_share(&topology, BufferSizes::default(), share, owner)
        }
        .map_err(|error| start(&error))?;
        let router = runtime.router().clone();
        Ok(Engine::assemble(
            topology,
            memory,
            sequencer,
            router,
            Some(runtime),
            settings.huge_pages,
        ))
    }

    pub(crate) fn assemble(
        topology: Arc<Topology>,
        memory: Memory,
        sequencer: Arc<Sequencer>,
        router: Arc<Router>,
        runtime: Option<Runtime<Owner>>,
        huge_pages: HugePages,
    ) -> Engine {
        let shared = Shared {
            topology,
            memory,
            huge_pages,
            sequencer,
            router,
            runtime,
            objects: RwLock::default(),
            garbage: Garbage::default(),
            key_indexes: Mutex::default(),
            clients: Mutex::default(),
            next_object: AtomicU32::new(1),
            next_statement: AtomicU64::new(1),
        };
        Engine {
            shared: Arc::new(shared),
        }
    }

    /// Makes an empty data object. `name` is for messages; names are the catalogue's business.
    pub fn create(
        &self,
        name: &str,
        schema: SchemaRef,
        partitioning: Partitioning,
    ) -> Result<ObjectId, EngineError> {
        self.create_with_key(name, schema, partitioning, &[])
    }

    /// The same, with columns of which no two rows have the same values, and no row NULL. Rows are dealt to partitions by
    /// ranges of the key, whatever `partitioning` says.
    pub fn create_with_key(
        &self,
        name: &str,
        schema: SchemaRef,
        partitioning: Partitioning,
        key: &[ColumnId],
    ) -> Result<ObjectId, EngineError> {
        let id = self.next_object();
        let aeus = self.shared.topology.aeus().len();
        let object = DataObject::new(id, name, schema, partitioning, key, aeus)?;
        let mut objects = self.shared.objects.write().expect(UNPOISONED);
        objects.insert(id, Arc::new(object));
        Ok(id)
    }

    /// Drops a data object. When this returns, its memory has been given back, but for chunks that running fragments hold.
    pub async fn drop(&self, id: ObjectId) -> Result<(), EngineError> {
        // The session comes first: without one, nothing has happened.
        let client = self.shared.client()?;
        let removed = self.shared.objects.write().expect(UNPOISONED).remove(&id);
        removed.ok_or(EngineError::NoSuchObject(id))?.set_dropped();
        self.shared.garbage.forget(id);
        self.drop_at_owners(client, id).await;
        Ok(())
    }

    /// Has all owners forget what they hold of an object.
    pub(crate) async fn drop_at_owners(&self, mut client: Client, id: ObjectId) {
        let aeus: Vec<AeuId> = self.shared.aeus().collect();
        let callback = self.shared.next_statement().0;
        for &aeu in &aeus {
            client.tell(aeu, DROP, id, callback, &[]);
        }
        // From here on it takes effect, whether or not somebody waits for it.
        client.flush_all();
        let mut open = aeus.len();
        poll_fn(|cx| {
            while open > 0 {
                let received = client.poll(cx, |command| {
                    open -= usize::from(command.header.callback == callback);
                });
                if !received {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        self.shared.give_back(&mut client);
    }

    /// Begins a statement that adds rows. If the data object has a key, it waits for its turn when it commits: until then
    /// others change rows while its own are being staged.
    pub fn writer(&self, id: ObjectId) -> Result<Writer, EngineError> {
        let object = self.shared.object(id)?;
        let turn = match object.key.is_empty() {
            true => Turn::None,
            false => Turn::AtCommit,
        };
        let client = self.shared.client()?;
        Ok(Writer::new(self.shared.clone(), client, object, turn))
    }

    /// Begins a statement that deletes rows of a data object, and may add some: once all such statements before it are done,
    /// in the order in which they asked. What it reads from then on it finds as it will be when it commits, but for rows
    /// that others add.
    pub async fn changer(&self, id: ObjectId) -> Result<Writer, EngineError> {
        let object = self.shared.object(id)?;
        let turn = self.shared.turn(&object).await;
        let client = self.shared.client()?;
        Ok(Writer::new(self.shared.clone(), client, object, turn))
    }

    /// Waits until every commit that has begun is visible, also of writers that were dropped meanwhile.
    pub async fn settle(&self) {
        self.shared.settle().await;
    }

    /// The newest snapshot, held for a reader: everything that was committed before this call, and nothing half-way.
    pub fn hold(&self) -> HeldSnapshot {
        self.shared.hold()
    }

    /// The newest snapshot, which nobody holds: rows that are deleted, or get another owner, from now on may be missing in it.
    pub fn snapshot(&self) -> Timestamp {
        self.shared.sequencer.visible()
    }

    /// What a data object holds now. Exact for a snapshot from [`ObjectStatistics::newest`] on, unless something was
    /// committed in between.
    pub fn statistics(&self, id: ObjectId) -> Result<ObjectStatistics, EngineError> {
        let object = self.shared.object(id)?;
        let dictionaries = object.dictionaries();
        let partitions = self.shared.aeus();
        Ok(merge(
            &object.schema,
            partitions.map(|aeu| object.partition_statistics(aeu)),
            |column| dictionaries[column].as_ref().map(|d| d.len() as u64),
        ))
    }

    /// The rows of a data object, those included that are deleted but not collected: less work than its
    /// [statistics](Self::statistics).
    ///
    /// # Errors
    /// There is no such object.
    pub fn row_count(&self, id: ObjectId) -> Result<u64, EngineError> {
        Ok(self.shared.object(id)?.total_rows())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn object(&self, id: ObjectId) -> Result<Arc<DataObject>, EngineError> {
        self.shared.object(id)
    }

    pub(crate) fn client(&self) -> Result<Client, EngineError> {
        self.shared.client()
    }

    pub(crate) fn give_back(&self, client: &mut Client) {
        self.shared.give_back(client);
    }

    /// The order of commits.
    pub(crate) fn sequencer(&self) -> &Arc<Sequencer> {
        &self.shared.sequencer
    }

    /// Notes a bare index.
    pub(crate) fn add_key_index(&self, index: &Arc<KeyObject>) {
        let mut all = self.shared.key_indexes.lock().expect(UNPOISONED);
        all.retain(|index| index.strong_count() > 0);
        all.push(Arc::downgrade(index));
    }

    /// The bare indexes that somebody has.
    pub(crate) fn key_indexes(&self) -> Vec<KeyIndex> {
        let all = self.shared.key_indexes.lock().expect(UNPOISONED);
        let all = all.iter().filter_map(Weak::upgrade);
        let all = all.filter(|index| !index.is_dropped());
        all.map(|index| KeyIndex::of(self.clone(), index)).collect()
    }

    /// All data objects.
    pub(crate) fn objects(&self) -> Vec<Arc<DataObject>> {
        let objects = self.shared.objects.read().expect(UNPOISONED);
        objects.values().cloned().collect()
    }

    /// A number for a new object.
    pub(crate) fn next_object(&self) -> ObjectId {
        ObjectId(self.shared.next_object.fetch_add(1, Ordering::Relaxed))
    }

    /// The AEUs' threads, if they have any.
    pub(crate) fn runtime(&self) -> Option<&Runtime<Owner>> {
        self.shared.runtime.as_ref()
    }

    /// A number for a new statement.
    pub(crate) fn next_statement(&self) -> StatementId {
        self.shared.next_statement()
    }

    /// Whether a commit is visible; if not, whoever is polled is woken once it is.
    pub(crate) fn poll_visible(&self, at: Timestamp, cx: &std::task::Context<'_>) -> bool {
        self.shared.sequencer.poll_visible(at, cx.waker())
    }

    /// Rows of an object ended with the commit at `at`: has their owners collect them when it is worth it.
    pub(crate) fn collect_after(&self, object: ObjectId, ended: u64, at: Timestamp) {
        if ended > 0 {
            self.shared.garbage.note(object, ended, at);
            let horizon = self.shared.sequencer.advance_horizon();
            self.shared.collect_garbage(horizon);
        }
    }

    /// A number by which answers find who asked.
    pub(crate) fn next_callback(&self) -> u64 {
        self.callbacks(1)
    }

    /// The first of so many such numbers in a row.
    pub(crate) fn callbacks(&self, count: u64) -> u64 {
        let next = &self.shared.next_statement;
        next.fetch_add(count, Ordering::Relaxed)
    }

    /// Makes the next slice of a scan of this object panic, to see what a defect in an operator does to everybody else.
    pub fn poison(&self, id: ObjectId) -> Result<(), EngineError> {
        self.shared.object(id)?.poison();
        Ok(())
    }

    /// Memory by data object and node, and the budget.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Nodes and AEUs.
    pub fn topology(&self) -> &Topology {
        &self.shared.topology
    }

    /// The counters of every AEU.
    pub fn counters(&self) -> Snapshot {
        let runtime = self.shared.runtime.as_ref();
        runtime.map_or_else(Snapshot::default, |runtime| runtime.telemetry().snapshot())
    }
}

/// The handler of one AEU.
pub(crate) fn owner(
    aeu: AeuId,
    topology: &Arc<Topology>,
    memory: &Memory,
    sequencer: &Arc<Sequencer>,
) -> Owner {
    let memory_of_node = memory.node(topology.node_of(aeu));
    let budget = memory.budget().clone();
    Owner::new(
        aeu,
        memory_of_node,
        budget,
        topology.clone(),
        sequencer.clone(),
    )
}

const UNPOISONED: &str = "nothing panics under this lock";

impl Shared {
    pub fn aeus(&self) -> impl Iterator<Item = AeuId> + '_ {
        self.topology.aeus().iter().map(|place| place.aeu)
    }

    pub fn next_statement(&self) -> StatementId {
        StatementId(self.next_statement.fetch_add(1, Ordering::Relaxed))
    }

    fn object(&self, id: ObjectId) -> Result<Arc<DataObject>, EngineError> {
        let objects = self.objects.read().expect(UNPOISONED);
        objects
            .get(&id)
            .cloned()
            .ok_or(EngineError::NoSuchObject(id))
    }

    fn idle_clients(&self) -> MutexGuard<'_, Vec<Session>> {
        self.clients.lock().expect(UNPOISONED)
    }

    /// Waits for the turn to change rows of an object, and until what was changed in the turn before is visible.
    pub async fn turn(&self, object: &DataObject) -> Turn {
        let turn = object.turn.clone().write_owned().await;
        if object.changed() > self.sequencer.visible() {
            // Its writer did not wait for it.
            self.settle().await;
        }
        Turn::Held(turn)
    }

    /// See [`Engine::settle`].
    async fn settle(&self) {
        let sequencer = &self.sequencer;
        let mine = poll_fn(|cx| sequencer.poll_draw(cx)).await;
        // Nothing is written at this timestamp; it is only that all earlier ones are visible before.
        sequencer.finish(mine);
        poll_fn(|cx| match sequencer.poll_visible(mine, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// A session for one statement.
    pub fn client(&self) -> Result<Client, EngineError> {
        let idle = self.idle_clients().pop();
        let session = match idle {
            Some(session) => session,
            None => Session::new(self.router.session().map_err(too_busy)?),
        };
        Ok(Client::new(session))
    }

    /// Keeps the client's session for the next statement; nothing may still be on its way to it.
    pub fn give_back(&self, client: &mut Client) {
        if let Some(session) = client.take() {
            let mut idle = self.idle_clients();
            if idle.len() < IDLE_CLIENTS {
                idle.push(session);
            }
        }
    }
}

fn too_busy(error: RouteError) -> EngineError {
    let RouteError::TooManySessions { limit } = error;
    EngineError::TooBusy { limit }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aeus = self.shared.topology.aeus().len();
        write!(
            f,
            "Engine({aeus} AEUs, {} memory)",
            self.shared.memory.budget().used()
        )
    }
}
