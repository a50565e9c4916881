//! The engine: data objects by number, and what statements share.

use super::client::Client;
use super::foundation::{Found, FoundState, Foundation, open, open_remains, open_to_read};
use super::shared::EngineState;
use crate::durability::{Durability, StorageSettings};
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::statistics::merge;
use crate::protocol::callback::QuestionId;
use crate::protocol::lists::{OwnerKind, Parcel};
use crate::protocol::objects::DropObject;
use crate::recovery::DatabaseSalvage;
use crate::settings::Settings;
use crate::tasks::handler::Task;
use crate::tasks::owner::Owner;
use arrow_schema::SchemaRef;
use eris_aeu::Runtime;
use eris_column::ObjectMemory;
use eris_disk::RealDisk;
use eris_fragment::Expr;
use eris_home::{
    Definition, Newest, ObjectDefinition, ObjectStatistics, Partitioning, SampledRows,
    WorkDescription,
};
use eris_numa::{AeuPlace, Memory, Topology};
use eris_route::{BufferSizes, Router};
use eris_telemetry::Snapshot;
use eris_types::{AeuId, ColumnId, NodeId, ObjectId, StatementId, Timestamp};
use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

/// A running engine. Clones are the same engine; when the last one is dropped, its AEUs finish and their threads end.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<EngineState>,
}

impl Engine {
    /// Starts an AEU on every place of the topology.
    pub fn start(settings: Settings) -> Result<Engine, EngineError> {
        Engine::start_with_share(settings, None)
    }

    /// The same, with AEUs that use no more than this share of a core each, if it is given: for experiments with more
    /// AEUs than the machine has cores, which would otherwise work for each other.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with_share(settings: Settings, share: Option<f64>) -> Result<Engine, EngineError> {
        if let Some(share) = share.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            let error = format!(
                "AEUs cannot have {share} of a core: more than 0 and at most 1 is possible"
            );
            return Err(EngineError::Start(error));
        }
        let memory = memory_of(&settings)?;
        let topology = Arc::new(settings.topology);
        let (foundation, found) = match settings.database {
            None => {
                let last = Timestamp::ZERO;
                let foundation = Foundation::new(topology, memory, settings.huge_pages, last);
                (foundation, Found::default())
            }
            Some(database) => {
                let disk = Arc::new(RealDisk::new(&database.directory));
                let storage = StorageSettings::of_machine(database.synchronous);
                let huge_pages = settings.huge_pages;
                match database.read_only {
                    true => open_to_read(disk, topology, memory, huge_pages, storage.threads)?,
                    false => open(disk, topology, memory, huge_pages, storage)?.start()?,
                }
            }
        };
        Engine::run(foundation, found, share)
    }

    /// Starts an engine that has what is left of the database in a directory, where nothing is changed. A
    /// [backup](eris_home::Durability::backup) writes it into another one. The settings say no database. `progress` is
    /// told how many bytes of how many were looked at.
    ///
    /// By a definition, `uniques` says which columns of its table each of its other objects has: those of its UNIQUE
    /// constraints and indexes, in the order of the objects. `None`: it is of no table, or cannot be read.
    ///
    /// # Errors
    /// There is no database, a later version has written it, another process writes it, or what is left is larger than
    /// the memory.
    pub fn salvage(
        settings: Settings,
        directory: &Path,
        uniques: &dyn Fn(&Definition) -> Option<Vec<Vec<usize>>>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Engine, DatabaseSalvage), EngineError> {
        let memory = memory_of(&settings)?;
        let (topology, huge_pages) = (Arc::new(settings.topology), settings.huge_pages);
        let disk = Arc::new(RealDisk::new(directory));
        let threads = StorageSettings::of_machine(None).threads;
        let (foundation, found, salvaged) = open_remains(
            disk, topology, memory, huge_pages, threads, uniques, progress,
        )?;
        Ok((Engine::run(foundation, found, None)?, salvaged))
    }

    fn run(
        foundation: Foundation,
        found: Found,
        share: Option<f64>,
    ) -> Result<Engine, EngineError> {
        let Found { owners, shared } = found;
        let mut owners = owners.into_iter();
        let runtime = {
            let owner = |place: AeuPlace| foundation.owner(place.aeu, owners.next());
            let topology = &foundation.topology;
            Runtime::start_with_share(topology, BufferSizes::default(), share, owner)
        }
        .map_err(|error| EngineError::Start(error.to_string()))?;
        let router = runtime.router().clone();
        Ok(Engine::assemble(foundation, router, Some(runtime), shared))
    }

    pub(crate) fn assemble(
        foundation: Foundation,
        router: Arc<Router<Parcel>>,
        runtime: Option<Runtime<Owner>>,
        found: Option<FoundState>,
    ) -> Engine {
        Engine {
            shared: Arc::new(EngineState::new(foundation, router, runtime, found)),
        }
    }

    /// Makes an empty data object. `name` is for messages; names are the catalogue's business. It ends with
    /// the process: what a durable database has, it has through its [`Home`](eris_home::Home).
    pub fn create(
        &self,
        name: &str,
        schema: SchemaRef,
        partitioning: Partitioning,
    ) -> Result<ObjectId, EngineError> {
        self.create_with_key(name, schema, partitioning, &[])
    }

    /// The same, with columns of which no two rows have the same values, and no row NULL. Rows are assigned to
    /// partitions by ranges of the key, whatever `partitioning` says.
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
        self.shared.add_object(object);
        Ok(id)
    }

    /// The same, and where the engine is durable the object is, too, unless it is temporary.
    pub(crate) async fn create_defined(
        &self,
        definition: ObjectDefinition,
    ) -> Result<ObjectId, EngineError> {
        let ObjectDefinition {
            name,
            schema,
            partitioning,
            key,
            is_temporary,
        } = definition;
        let durability = self.shared.durability.as_ref();
        let Some(durability) = durability.filter(|_| !is_temporary) else {
            return self.create_with_key(&name, schema, partitioning, &key);
        };
        let open = durability.to_write(|| format!("table {name}"))?;
        let id = self.next_object();
        let aeus = self.shared.topology.aeus().len();
        let object = DataObject::new(id, &name, schema, partitioning, &key, aeus)?;
        let stored = object.stored();
        let room = open.room_for_object(&stored).await?;
        // A checkpoint in between has it by one or the other.
        self.shared.add_object(object.durable(open.log.clone()));
        open.say_object(&stored, room);
        Ok(id)
    }

    /// Drops a data object. When this returns, its memory has been given back, but for chunks that running fragments
    /// hold.
    pub async fn drop(&self, id: ObjectId) -> Result<(), EngineError> {
        // The session comes first: without one, nothing has happened.
        let client = self.shared.client()?;
        let object = self.shared.remove_object(id)?;
        object.set_dropped();
        if let (true, Some(durability)) = (object.is_durable, &self.shared.durability) {
            durability.say_dropped(id);
        }
        self.shared.garbage.forget(id);
        self.drop_at_owners(client, id).await;
        Ok(())
    }

    /// Has all owners forget what they hold of an object.
    pub(crate) async fn drop_at_owners(&self, mut client: Client, id: ObjectId) {
        let aeus: Vec<AeuId> = self.shared.aeus().collect();
        let question = self.next_question();
        for &aeu in &aeus {
            client.send(aeu, id, question, DropObject);
        }
        // From here on it takes effect, whether or not somebody waits for it.
        client.flush_all();
        let mut open = aeus.len();
        poll_fn(|cx| {
            while open > 0 {
                let received = client.poll(cx, |received| {
                    open -= usize::from(received.callback::<QuestionId>() == question);
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

    /// Waits until every commit that has begun is visible, also of writers that were dropped meanwhile.
    ///
    /// # Errors
    /// The disk has failed, so that some never will be.
    pub async fn barrier(&self) -> Result<(), EngineError> {
        self.shared.barrier().await
    }

    /// Waits until every commit that has begun is applied, whether or not it is visible: whoever has a write lock finds
    /// all that was done under it before.
    pub async fn settle(&self) {
        self.shared.settle().await;
    }

    /// The newest snapshot of these readers, which nobody holds.
    pub(crate) fn newest(&self, newest: Newest) -> Timestamp {
        self.shared.sequencer.newest(newest)
    }

    /// The newest snapshot, which nobody holds: rows that are deleted, or get another owner, from now on may be missing
    /// in it.
    pub fn snapshot(&self) -> Timestamp {
        self.shared.sequencer.visible()
    }

    /// What a data object holds now. Exact for a snapshot from [`ObjectStatistics::newest`] on, unless something was
    /// committed in between.
    pub fn statistics(&self, id: ObjectId) -> Result<ObjectStatistics, EngineError> {
        let object = self.shared.object(id)?;
        let (dictionaries, profile) = (object.dictionaries(), object.profile());
        let partitions = self.shared.aeus();
        Ok(merge(
            &object.schema,
            partitions.map(|aeu| object.partition_statistics(aeu)),
            |column| {
                // Of text, some chunks may be codes and some not.
                let coded = dictionaries[column].as_ref();
                let coded = coded.map(|dictionary| dictionary.len() as u64);
                let distinct = coded.max(profile.distinct(column));
                distinct.filter(|&distinct| distinct > 0)
            },
        ))
    }

    /// For how many rows of a sample all conjuncts are true; `None` if there is no sample of what they read. A column
    /// is a position in the object's.
    pub fn find_in_sample(&self, id: ObjectId, filter: &[Expr]) -> Option<SampledRows> {
        let object = self.shared.object(id).ok()?;
        let home = ObjectMemory {
            memory: &self.shared.sample_memory.node(NodeId(0)),
            object: id,
        };
        object.profile().find(filter, &object.schema, home)
    }

    /// The rows of a data object, those included that are deleted but not collected: less work than its
    /// [statistics](Self::statistics).
    ///
    /// # Errors
    /// There is no such object.
    pub fn row_count(&self, id: ObjectId) -> Result<u64, EngineError> {
        Ok(self.shared.object(id)?.total_rows())
    }

    /// What a durable engine has.
    ///
    /// # Panics
    /// If it is none: whoever asks has looked.
    pub(crate) fn kept(&self) -> &Durability {
        let durability = self.shared.durability.as_ref();
        durability.expect("only a durable engine outlives its process")
    }

    pub(crate) fn shared(&self) -> &Arc<EngineState> {
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

    /// All data objects.
    pub(crate) fn objects(&self) -> Vec<Arc<DataObject>> {
        let mut all = self.shared.objects();
        all.sort_by_key(|object| object.id);
        all
    }

    /// A number for a new object.
    pub(crate) fn next_object(&self) -> ObjectId {
        self.shared.next_object()
    }

    /// The AEUs' threads, if they have any.
    pub(crate) fn runtime(&self) -> Option<&Runtime<Owner>> {
        self.shared.runtime.as_ref()
    }

    /// A number for a new statement.
    pub(crate) fn next_statement(&self) -> StatementId {
        self.shared.next_statement()
    }

    /// A question to owners.
    pub(crate) fn next_question(&self) -> QuestionId {
        QuestionId(self.next_callbacks(1))
    }

    /// The first of so many numbers in a row by which answers find who asked.
    pub(crate) fn next_callbacks(&self, count: u64) -> u64 {
        self.shared.next_callbacks(count)
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

    /// What an AEU has done, by kind of work.
    pub(crate) fn work_of(&self, aeu: AeuId) -> Vec<WorkDescription> {
        let runtime = self.shared.runtime.as_ref();
        let work = runtime.map(|runtime| &runtime.telemetry().of(aeu).work);
        let kinds = work.into_iter().flat_map(|work| work.read());
        let described = kinds.filter_map(|of| {
            let commands = OwnerKind::NAMES;
            let task = of.kind.checked_sub(commands.len());
            // Commands that nobody knows are counted, too.
            let name = match task {
                None => commands.get(of.kind),
                Some(task) => Task::NAMES.get(task),
            };
            Some(WorkDescription {
                name: name.copied()?,
                is_task: task.is_some(),
                run: of.run,
                spawned: of.spawned,
                waiting: of.waiting,
                waits: of.waits,
                time: of.time,
            })
        });
        described.collect()
    }

    /// The counters of every AEU.
    pub fn counters(&self) -> Snapshot {
        let runtime = self.shared.runtime.as_ref();
        runtime.map_or_else(Snapshot::default, |runtime| runtime.telemetry().snapshot())
    }
}

fn memory_of(settings: &Settings) -> Result<Memory, EngineError> {
    let (topology, limit) = (&settings.topology, settings.memory_limit);
    let memory = Memory::new(topology, settings.huge_pages, limit);
    memory.map_err(|error| EngineError::Start(error.to_string()))
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
