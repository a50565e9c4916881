//! A home that keeps definitions, as one on a disk does: an engine's, which stays while databases over it end and are
//! opened again. What was noted and is not durable yet is lost in a [crash](KeepingHome::crash).

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod dump;

use eris_engine::{Engine, Settings};
use eris_fragment::{Access, Estimate, Execution, Executor, Fragment, FragmentError};
use eris_home::{
    Balancer, Balancing, Budget, Checkpoint, Definition, DefinitionChange, Definitions, Durability,
    DurabilityStatus, Found, HeldSnapshot, Home, HomeError, HugePages, Inspection, KeyIndexes,
    KeyOrders, Newest, NodeDescription, ObjectDefinition, ObjectStatistics, Ownership,
    ReadBandwidth, Samples, SecondaryIndexes, SingleRows, Synchronous, Traffic, Usage,
    WorkerDescription, Write,
};
use eris_numa::Topology;
use eris_types::{ColumnId, ObjectId};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Semaphore;

/// A home over an engine. Clones are the same one.
#[derive(Clone)]
pub struct KeepingHome {
    kept: Arc<Kept>,
    /// Which database has it. What one that has ended still does changes nothing, as if its process were gone.
    database: u64,
}

struct Kept {
    engine: Arc<dyn Home>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The database that was opened last.
    database: u64,
    /// All data objects, as they were made.
    objects: BTreeMap<ObjectId, ObjectDefinition>,
    /// Those that a database has opened again.
    reopened: BTreeSet<ObjectId>,
    /// What is durable.
    durable: BTreeMap<String, Definition>,
    /// What was noted since.
    noted: Vec<DefinitionChange>,
    /// Calls that store or note.
    calls: usize,
    /// The call that fails, and all behind it.
    fails_from: Option<usize>,
    /// What calls that store wait for.
    gate: Option<Arc<Semaphore>>,
    /// How many have come there.
    at_gate: usize,
    /// Whether nothing can be written before it is opened again.
    is_closed: bool,
    /// Whether nothing becomes durable before it is opened again.
    has_crashed: bool,
    synchronous: Synchronous,
}

impl State {
    /// Counts a call.
    fn call(&mut self) -> Result<(), HomeError> {
        if self.is_closed {
            let reason = "it is closed".into();
            return Err(HomeError::LogFailed { reason });
        }
        self.calls += 1;
        match self.fails_from.is_some_and(|first| self.calls >= first) {
            false => Ok(()),
            true => Err(HomeError::DiskFull {
                table: "definitions".into(),
                bytes: 4096,
                directory: "/db".into(),
            }),
        }
    }

    fn flush(&mut self) {
        if self.has_crashed {
            self.noted.clear();
        }
        for change in std::mem::take(&mut self.noted) {
            self.apply(change);
        }
    }

    fn apply(&mut self, change: DefinitionChange) {
        match change {
            DefinitionChange::Is(definition) => {
                for object in &definition.objects {
                    let made = self.objects.get(object);
                    let made = made.unwrap_or_else(|| panic!("{definition:?}: {object} is gone"));
                    assert!(!made.is_temporary, "{definition:?}");
                }
                self.durable.insert(definition.name.clone(), definition);
            }
            DefinitionChange::IsGone(name) => drop(self.durable.remove(&name)),
        }
    }
}

impl KeepingHome {
    pub fn new(nodes: u16, cores: u16) -> Self {
        let settings = Settings {
            topology: Topology::fake(nodes, cores),
            huge_pages: HugePages::Never,
            memory_limit: Some(2 << 30),
            database: None,
        };
        KeepingHome {
            kept: Arc::new(Kept {
                engine: Engine::home(settings).unwrap(),
                state: Mutex::default(),
            }),
            database: 0,
        }
    }

    /// For a database that is to be opened.
    pub fn home(&self) -> Arc<dyn Home> {
        let mut state = self.state();
        state.database += 1;
        Arc::new(KeepingHome {
            kept: Arc::clone(&self.kept),
            database: state.database,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.kept.state.lock().unwrap()
    }

    /// Forgets what is not durable. The process is gone: nothing that it still does matters.
    pub fn crash(&self) {
        let mut state = self.state();
        state.has_crashed = true;
        state.flush();
    }

    /// What is durable, by name.
    pub fn durable(&self) -> BTreeMap<String, Definition> {
        self.state().durable.clone()
    }

    /// Puts a definition among those that are durable.
    pub fn put(&self, name: &str, text: &str) {
        let definition = Definition {
            name: name.into(),
            text: text.into(),
            objects: Vec::new(),
        };
        self.state().apply(DefinitionChange::Is(definition));
    }

    /// Takes one away.
    pub fn remove(&self, name: &str) {
        self.state().durable.remove(name);
    }

    /// So many calls that store or note succeed from now on, and then none. `None`: all do.
    pub fn fail_behind(&self, calls: Option<usize>) {
        let mut state = self.state();
        state.fails_from = calls.map(|calls| state.calls + calls + 1);
    }

    /// Calls that store wait from now on, until [the gate is opened](Self::open_gate).
    pub fn close_gate(&self) {
        self.state().gate = Some(Arc::new(Semaphore::new(0)));
    }

    pub fn open_gate(&self) {
        if let Some(gate) = self.state().gate.take() {
            gate.close();
        }
    }

    /// How many calls have come to a closed gate.
    pub fn at_gate(&self) -> usize {
        self.state().at_gate
    }

    /// Calls that store or note, so far.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// The data objects that are not temporary.
    pub fn objects(&self) -> BTreeSet<ObjectId> {
        let state = self.state();
        let objects = state.objects.iter();
        let objects = objects.filter(|(_, made)| !made.is_temporary);
        objects.map(|(object, _)| *object).collect()
    }

    /// Those that definitions lead to.
    pub fn defined_objects(&self) -> BTreeSet<ObjectId> {
        let state = self.state();
        let definitions = state.durable.values();
        definitions
            .flat_map(|definition| definition.objects.clone())
            .collect()
    }
}

impl fmt::Debug for KeepingHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepingHome")
    }
}

impl Definitions for KeepingHome {
    fn stored(&self) -> Vec<Definition> {
        let mut state = self.state();
        state.flush();
        (state.is_closed, state.has_crashed) = (false, false);
        state.reopened.clear();
        state.durable.values().cloned().collect()
    }

    fn store(&self, changes: Vec<DefinitionChange>) -> BoxFuture<'_, Result<(), HomeError>> {
        async move {
            assert!(!changes.is_empty());
            // A flush takes its time.
            tokio::task::yield_now().await;
            let gate = {
                let mut state = self.state();
                state.at_gate += usize::from(state.gate.is_some());
                state.gate.clone()
            };
            if let Some(gate) = gate {
                // It has no permits: this ends when it is closed.
                let _ = gate.acquire().await;
            }
            let mut state = self.state();
            state.call()?;
            state.flush();
            changes.into_iter().for_each(|change| state.apply(change));
            Ok(())
        }
        .boxed()
    }

    fn note(&self, changes: Vec<DefinitionChange>) -> Result<(), HomeError> {
        let mut state = self.state();
        state.call()?;
        state.noted.extend(changes);
        Ok(())
    }

    fn reopen(&self, object: ObjectId, definition: &ObjectDefinition) -> Result<(), HomeError> {
        let mut state = self.state();
        let wrong = |reason: &str| Err(HomeError::Open(format!("{object}: {reason}")));
        let Some(made) = state.objects.get(&object) else {
            return wrong("it does not exist");
        };
        // Names of tables and columns may have changed since.
        let types = |of: &ObjectDefinition| {
            let fields = of.schema.fields().iter();
            let types = fields.map(|field| (field.data_type().clone(), field.is_nullable()));
            types.collect::<Vec<_>>()
        };
        let same = types(made) == types(definition)
            && made.key == definition.key
            && made.partitioning == definition.partitioning
            && !definition.is_temporary;
        if !same {
            return wrong("it was made otherwise");
        }
        if !state.reopened.insert(object) {
            return wrong("it is in use");
        }
        // Indexes end with the process.
        if let Some(indexes) = self.kept.engine.secondary_indexes() {
            for index in indexes.indexes(object)? {
                indexes.drop_index(object, index.id)?;
            }
        }
        Ok(())
    }

    fn unopened(&self) -> Vec<(ObjectId, ObjectDefinition)> {
        let state = self.state();
        let objects = state.objects.iter();
        let left = objects.filter(|(object, _)| !state.reopened.contains(object));
        left.map(|(object, made)| (*object, made.clone())).collect()
    }

    fn opened(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        async move {
            let unused: Vec<ObjectId> = {
                let state = self.state();
                let all = state.objects.keys().copied();
                all.filter(|object| !state.reopened.contains(object))
                    .collect()
            };
            for object in unused {
                // A database that has just ended may have done that.
                let _ = self.drop_object(object).await;
            }
            Ok(())
        }
        .boxed()
    }
}

impl Durability for KeepingHome {
    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        async { panic!("it has no files") }.boxed()
    }

    fn backup(&self, _: PathBuf) -> BoxFuture<'_, Result<Checkpoint, HomeError>> {
        async { panic!("it has no files") }.boxed()
    }

    fn synchronous(&self) -> Synchronous {
        self.state().synchronous
    }

    fn set_synchronous(&self, synchronous: Synchronous) {
        self.state().synchronous = synchronous;
    }

    fn checkpoint_due(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn status(&self) -> DurabilityStatus {
        panic!("it has no files")
    }

    fn close(&self) -> Result<(), HomeError> {
        let mut state = self.state();
        state.flush();
        // Nothing can be written any more.
        state.is_closed = true;
        Ok(())
    }
}

impl Executor for KeepingHome {
    fn execute(&self, fragment: Arc<Fragment>, streams: usize) -> Result<Execution, FragmentError> {
        self.kept.engine.execute(fragment, streams)
    }

    fn access(&self, fragment: &Fragment) -> Option<Access> {
        self.kept.engine.access(fragment)
    }

    fn estimate(&self, fragment: &Fragment) -> Option<Estimate> {
        self.kept.engine.estimate(fragment)
    }
}

impl Home for KeepingHome {
    fn create(&self, definition: ObjectDefinition) -> BoxFuture<'_, Result<ObjectId, HomeError>> {
        async move {
            let object = self.kept.engine.create(definition.clone()).await?;
            self.state().objects.insert(object, definition);
            Ok(object)
        }
        .boxed()
    }

    fn drop_object(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>> {
        async move {
            {
                let mut state = self.state();
                // The end of a database drops nothing.
                if self.database != state.database || state.is_closed || state.has_crashed {
                    return Ok(());
                }
                state.objects.remove(&object);
            }
            self.kept.engine.drop_object(object).await
        }
        .boxed()
    }

    fn barrier(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        async move {
            self.kept.engine.barrier().await?;
            self.state().flush();
            Ok(())
        }
        .boxed()
    }

    fn definitions(&self) -> Option<&dyn Definitions> {
        Some(self)
    }

    fn durability(&self) -> Option<&dyn Durability> {
        Some(self)
    }

    fn hold(&self) -> HeldSnapshot {
        self.kept.engine.hold()
    }

    fn hold_applied(&self) -> HeldSnapshot {
        self.kept.engine.hold_applied()
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        self.kept.engine.settle()
    }

    fn statistics(&self, object: ObjectId) -> Result<ObjectStatistics, HomeError> {
        self.kept.engine.statistics(object)
    }

    fn row_count(&self, object: ObjectId) -> Result<u64, HomeError> {
        self.kept.engine.row_count(object)
    }

    fn lookup<'a>(
        &'a self,
        object: ObjectId,
        keys: &'a [arrow::array::ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>> {
        self.kept.engine.lookup(object, keys, columns, newest)
    }

    fn add(&self, objects: &[ObjectId]) -> Result<Box<dyn Write>, HomeError> {
        self.kept.engine.add(objects)
    }

    fn change<'a>(
        &'a self,
        objects: &'a [ObjectId],
    ) -> BoxFuture<'a, Result<Box<dyn Write>, HomeError>> {
        self.kept.engine.change(objects)
    }

    fn budget(&self) -> &Budget {
        self.kept.engine.budget()
    }

    fn usage(&self) -> Vec<Usage> {
        self.kept.engine.usage()
    }

    fn worker_count(&self) -> usize {
        self.kept.engine.worker_count()
    }

    fn workers(&self) -> Vec<WorkerDescription> {
        self.kept.engine.workers()
    }

    fn nodes(&self) -> Vec<NodeDescription> {
        self.kept.engine.nodes()
    }

    fn huge_pages(&self) -> HugePages {
        self.kept.engine.huge_pages()
    }

    fn traffic(&self) -> Vec<Traffic> {
        self.kept.engine.traffic()
    }

    fn paced_as(&self) -> Option<String> {
        self.kept.engine.paced_as()
    }

    fn measure_bandwidth(&self) -> Option<ReadBandwidth> {
        self.kept.engine.measure_bandwidth()
    }

    fn inspect(&self, object: ObjectId) -> BoxFuture<'_, Result<Inspection, HomeError>> {
        self.kept.engine.inspect(object)
    }

    fn single_rows(&self) -> Option<&dyn SingleRows> {
        self.kept.engine.single_rows()
    }

    fn secondary_indexes(&self) -> Option<&dyn SecondaryIndexes> {
        self.kept.engine.secondary_indexes()
    }

    fn samples(&self) -> Option<&dyn Samples> {
        self.kept.engine.samples()
    }

    fn key_orders(&self) -> Option<&dyn KeyOrders> {
        self.kept.engine.key_orders()
    }

    fn key_indexes(&self) -> Option<&dyn KeyIndexes> {
        self.kept.engine.key_indexes()
    }

    fn ownership(&self) -> Option<&dyn Ownership> {
        self.kept.engine.ownership()
    }

    fn balancer(&self, balancing: Balancing) -> Result<Option<Box<dyn Balancer>>, HomeError> {
        self.kept.engine.balancer(balancing)
    }
}
