//! The engine as a home of tables: what `sql` sees of it.
//!
//! ```text
//! sql ── dyn Home ──▶ Engine            statements, snapshots, statistics      this file
//!                     ├─ Write          writers of several objects             write
//!                     ├─ SingleRows     rows by their keys, in place           single
//!                     ├─ Definitions    what is defined outlives the process   definitions
//!                     ├─ Durability     checkpoints                            durability
//!                     ├─ …              indexes, key orders, balancing         optional
//!                     └─ descriptions   workers, nodes                         describe
//! ```
//!
//! All work is done elsewhere. Here are only the forms that the seam asks for: futures in boxes, plain data, numbers of
//! objects instead of what the engine has of them.

mod definitions;
mod describe;
mod durability;
mod optional;
mod single;
mod write;

use crate::clients::engine::Engine;
use crate::clients::writer::Writer;
use crate::error::EngineError;
use crate::settings::Settings;
use arrow_array::ArrayRef;
use eris_home::{
    Balancer, Balancing, Budget, Definitions, Durability, Found, HeldSnapshot, Home, HomeError,
    HugePages, Inspection, KeyIndexes, KeyOrders, Newest, NodeDescription, ObjectDefinition,
    ObjectStatistics, Ownership, ReadBandwidth, Samples, SecondaryIndexes, SingleRows, Traffic,
    Usage, WorkerDescription, Write,
};
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::sync::Arc;
use write::EngineWrite;

impl Engine {
    /// Starts an engine as the home of a database's tables.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn home(settings: Settings) -> Result<Arc<dyn Home>, EngineError> {
        Ok(Arc::new(Engine::start(settings)?))
    }

    /// The same of a process that may measure its machine: in the background, when that is first needed, by threads
    /// that give way to all others. What was measured is kept for the next process, in the user's cache directory.
    /// Until then, and of all other engines, the machine is taken for a usual one. If the topology has the profile of
    /// a machine, this is taken for it, and nothing is measured.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn home_of_machine(settings: Settings) -> Result<Arc<dyn Home>, EngineError> {
        Ok(Arc::new(Engine::of_machine(settings)?))
    }

    /// The same for who also uses the engine itself.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn of_machine(settings: Settings) -> Result<Engine, EngineError> {
        let engine = Engine::start(settings)?;
        engine.shared().machine.allow();
        Ok(engine)
    }
}

impl Home for Engine {
    fn create(&self, definition: ObjectDefinition) -> BoxFuture<'_, Result<ObjectId, HomeError>> {
        Box::pin(self.create_defined(definition))
    }

    fn drop_object(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(async move {
            self.object(object)?.check_writable()?;
            self.drop(object).await
        })
    }

    fn hold(&self) -> HeldSnapshot {
        Engine::hold(self)
    }

    fn hold_applied(&self) -> HeldSnapshot {
        Engine::hold_applied(self)
    }

    fn barrier(&self) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(self.barrier())
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.settle())
    }

    fn statistics(&self, object: ObjectId) -> Result<ObjectStatistics, HomeError> {
        Engine::statistics(self, object)
    }

    fn row_count(&self, object: ObjectId) -> Result<u64, HomeError> {
        Engine::row_count(self, object)
    }

    fn lookup<'a>(
        &'a self,
        object: ObjectId,
        keys: &'a [ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>> {
        Box::pin(async move { self.rows(object)?.find(keys, &columns, newest).await })
    }

    fn add(&self, objects: &[ObjectId]) -> Result<Box<dyn Write>, HomeError> {
        let writers = objects.iter().map(|object| self.writer(*object));
        let writers = writers.collect::<Result<Vec<Writer>, HomeError>>()?;
        Ok(Box::new(EngineWrite::new(writers)))
    }

    fn change<'a>(
        &'a self,
        objects: &'a [ObjectId],
    ) -> BoxFuture<'a, Result<Box<dyn Write>, HomeError>> {
        Box::pin(async move {
            // In the order in which everybody takes them.
            let mut objects = objects.to_vec();
            objects.sort_unstable();
            let mut writers = Vec::with_capacity(objects.len());
            for object in objects {
                writers.push(self.changer(object).await?);
            }
            Ok(Box::new(EngineWrite::new(writers)) as Box<dyn Write>)
        })
    }

    fn budget(&self) -> &Budget {
        self.memory().budget()
    }

    fn usage(&self) -> Vec<Usage> {
        self.memory().usage()
    }

    fn traffic(&self) -> Vec<Traffic> {
        self.shared().traffic()
    }

    fn paced_as(&self) -> Option<String> {
        let topology = self.topology();
        let machine = topology.machine().filter(|_| topology.is_paced());
        machine.map(|machine| machine.name.clone())
    }

    fn worker_count(&self) -> usize {
        self.topology().aeus().len()
    }

    fn workers(&self) -> Vec<WorkerDescription> {
        describe::workers(self)
    }

    fn nodes(&self) -> Vec<NodeDescription> {
        describe::nodes(self)
    }

    fn huge_pages(&self) -> HugePages {
        self.shared().huge_pages
    }

    fn measure_bandwidth(&self) -> Option<ReadBandwidth> {
        describe::bandwidth(self)
    }

    fn inspect(&self, object: ObjectId) -> BoxFuture<'_, Result<Inspection, HomeError>> {
        Box::pin(Engine::inspect(self, object))
    }

    fn single_rows(&self) -> Option<&dyn SingleRows> {
        Some(self)
    }

    fn secondary_indexes(&self) -> Option<&dyn SecondaryIndexes> {
        Some(self)
    }

    fn samples(&self) -> Option<&dyn Samples> {
        Some(self)
    }

    fn key_orders(&self) -> Option<&dyn KeyOrders> {
        Some(self)
    }

    fn key_indexes(&self) -> Option<&dyn KeyIndexes> {
        Some(self)
    }

    fn ownership(&self) -> Option<&dyn Ownership> {
        Some(self)
    }

    fn definitions(&self) -> Option<&dyn Definitions> {
        let durability = self.shared().durability.as_ref();
        durability.map(|_| self as &dyn Definitions)
    }

    fn durability(&self) -> Option<&dyn Durability> {
        let durability = self.shared().durability.as_ref();
        durability.map(|_| self as &dyn Durability)
    }

    fn balancer(&self, balancing: Balancing) -> Result<Option<Box<dyn Balancer>>, HomeError> {
        Ok(Some(Box::new(optional::EngineBalancer::start(
            self, balancing,
        )?)))
    }
}
