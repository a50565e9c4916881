//! What not every home can do: secondary indexes, samples, orders of keys, indexes that are reorganised, owners,
//! balancing.

use crate::balance;
use crate::clients::engine::Engine;
use arrow_array::ArrayRef;
use eris_column::KeyOrder as Order;
use eris_fragment::Expr;
use eris_home::{
    Balanced, Balancer, Balancing, HomeError, IndexKind, IndexReorganization, IndexStatistics,
    KeyIndexes, KeyOrder, KeyOrders, OrderSize, OutOfMemory, Ownership, PartLocation,
    PartitionStatus, SampledRows, Samples, SecondaryIndexes,
};
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

impl SecondaryIndexes for Engine {
    fn create_index<'a>(
        &'a self,
        object: ObjectId,
        columns: &'a [ColumnId],
        kind: IndexKind,
        built: Arc<AtomicU64>,
    ) -> BoxFuture<'a, Result<u32, HomeError>> {
        Box::pin(Engine::create_index(self, object, columns, kind, built))
    }

    fn drop_index(&self, object: ObjectId, index: u32) -> Result<(), HomeError> {
        Engine::drop_index(self, object, index)
    }

    fn indexes(&self, object: ObjectId) -> Result<Vec<IndexStatistics>, HomeError> {
        Engine::indexes(self, object)
    }
}

impl Samples for Engine {
    fn find(&self, object: ObjectId, filter: &[Expr]) -> Option<SampledRows> {
        self.find_in_sample(object, filter)
    }

    fn values(&self, object: ObjectId) -> Result<Vec<Option<ArrayRef>>, HomeError> {
        Ok(self.object(object)?.profile().samples())
    }

    fn analyze(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>> {
        Box::pin(Engine::analyze(self, object))
    }
}

impl KeyOrders for Engine {
    fn order(&self, keys: Vec<i64>) -> Result<Option<KeyOrder>, OutOfMemory> {
        accounted(self, Order::new(keys))
    }

    fn extended(&self, order: &KeyOrder, late: &[i64]) -> Result<Option<KeyOrder>, OutOfMemory> {
        accounted(self, own(order).extended(late))
    }

    fn has(&self, order: &KeyOrder, key: i64) -> bool {
        own(order).ordinal(key).is_some()
    }

    fn recode(
        &self,
        object: ObjectId,
        column: ColumnId,
        order: KeyOrder,
    ) -> BoxFuture<'_, Result<u64, HomeError>> {
        let order = Arc::clone(order.own()).downcast().expect(OWN);
        Box::pin(Engine::recode(self, object, column, order))
    }
}

const OWN: &str = "the engine has made the order";

fn own(order: &KeyOrder) -> &Order {
    order.own().downcast_ref().expect(OWN)
}

fn accounted(engine: &Engine, order: Option<Order>) -> Result<Option<KeyOrder>, OutOfMemory> {
    let budget = engine.memory().budget();
    let order = order.map(|order| order.accounted(budget)).transpose()?;
    Ok(order.map(|order| {
        let size = OrderSize {
            keys: order.keys().len(),
            late: order.late(),
        };
        KeyOrder::new(Arc::new(order), size)
    }))
}

impl KeyIndexes for Engine {
    fn reorganize(
        &self,
        object: ObjectId,
    ) -> BoxFuture<'_, Result<Vec<IndexReorganization>, HomeError>> {
        Box::pin(Engine::reorganize(self, object))
    }

    fn reorganization(
        &self,
        object: ObjectId,
    ) -> BoxFuture<'_, Result<Vec<IndexReorganization>, HomeError>> {
        Box::pin(Engine::reorganization(self, object))
    }
}

impl Ownership for Engine {
    fn partitions(&self, object: ObjectId) -> Result<Vec<PartitionStatus>, HomeError> {
        Engine::partitions(self, object)
    }

    fn locate(&self, object: ObjectId) -> BoxFuture<'_, Result<Vec<PartLocation>, HomeError>> {
        Box::pin(async move {
            let located = Engine::locate(self, object).await?;
            let located = located.into_iter().map(|one| {
                let (resident, elsewhere) =
                    super::describe::resident(one.placement().as_ref(), one.os_node);
                PartLocation {
                    aeu: one.aeu,
                    node: one.node,
                    part: one.part,
                    bytes: one.bytes(),
                    resident,
                    elsewhere,
                }
            });
            Ok(located.collect())
        })
    }
}

/// A balancer and what it balances.
pub(super) struct EngineBalancer {
    engine: Engine,
    balancer: balance::Balancer,
}

impl EngineBalancer {
    pub fn start(engine: &Engine, balancing: Balancing) -> Result<Self, HomeError> {
        Ok(EngineBalancer {
            balancer: balance::Balancer::start(engine, balancing)?,
            engine: engine.clone(),
        })
    }
}

impl Balancer for EngineBalancer {
    fn set(&self, balancing: Balancing) {
        self.balancer.set(balancing);
    }

    fn get_for(&self, table: ObjectId) -> Balancing {
        self.balancer.get_for(table)
    }

    fn set_for(&self, table: ObjectId, balancing: Option<Balancing>) {
        self.balancer.set_for(table, balancing);
    }

    fn balance(&self, table: ObjectId) -> BoxFuture<'_, Result<u64, HomeError>> {
        Box::pin(self.balancer.balance(&self.engine, table))
    }

    fn history(&self) -> Vec<Balanced> {
        self.balancer.history()
    }
}
