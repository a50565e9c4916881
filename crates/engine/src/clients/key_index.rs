//! Bare indexes: 64-bit keys to 64-bit values, without rows, types or snapshots (the ERIS paper's index objects,
//! Section 3).
//!
//! ```text
//! keys of a batch ── split by range ── parts ──┬── AEU is parked: executed in place ([`exchange`](super::exchange))
//!                                              └── AEU is at work: ExecuteKeys ─▶ inbox, grouped ─▶ KeysDone
//! ```
//!
//! Every AEU owns the tree of one range of the keys, so there is no latch, and every part of a batch is executed as
//! one: its cache misses overlap. What a batch writes is visible at once, owner by owner: several batches of several
//! clients interleave between parts, never within one.
//!
//! How keys change owners: docs/decisions/0022.

pub(crate) mod cycle;
mod measure;
pub(crate) mod ranges;
pub(crate) mod registered;
pub(crate) mod transfers;

pub use cycle::Shifted;

use super::client::Client;
use super::engine::Engine;
use super::exchange::Exchange;
use crate::error::EngineError;
use crate::key_index::batch::{KeyBatch, KeyOperation};
use crate::key_index::layout::PartitionTable;
use crate::key_index::object::KeyObject;
use crate::key_index::shift::{Shift, changed};
use crate::protocol::keys::ExecuteKeys;
use eris_route::Split;
use eris_types::{AeuId, ObjectId};
use registered::RegisteredIndex;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A bare index. Clones are the same index.
#[derive(Clone)]
pub struct KeyIndex {
    pub(crate) engine: Engine,
    pub(crate) index: Arc<RegisteredIndex>,
}

impl Engine {
    /// Makes an empty index. `keys` are those that are expected: every AEU gets the same share of their range. Others
    /// are taken as well, by the first and last AEU. `name` is for messages.
    pub fn create_key_index(&self, name: &str, keys: RangeInclusive<u64>) -> KeyIndex {
        let aeus = self.topology().aeus();
        let width = u128::from(keys.end().saturating_sub(*keys.start())) + 1;
        let bound = |place: usize| {
            let offset = width * place as u128 / aeus.len() as u128;
            keys.start() + offset as u64
        };
        let mut bounds: Vec<(u64, AeuId)> = Vec::with_capacity(aeus.len());
        for (place, aeu) in aeus.iter().enumerate() {
            if bounds.last().is_none_or(|last| last.0 < bound(place)) {
                bounds.push((bound(place), aeu.aeu));
            }
        }
        let aeus = aeus.iter().map(|place| place.aeu);
        let object = KeyObject::new(self.next_object(), name, bounds, aeus);
        let index = Arc::new(RegisteredIndex {
            object: Arc::new(object),
            cycle: tokio::sync::Mutex::default(),
        });
        self.shared().add_key_index(&index);
        KeyIndex::of(self.clone(), index)
    }

    /// The bare indexes that somebody has.
    pub(crate) fn key_indexes(&self) -> Vec<KeyIndex> {
        let all = self.shared().key_indexes().into_iter();
        let all = all.filter(|index| !index.object.is_dropped());
        all.map(|index| KeyIndex::of(self.clone(), index)).collect()
    }
}

impl KeyIndex {
    fn of(engine: Engine, index: Arc<RegisteredIndex>) -> Self {
        KeyIndex { engine, index }
    }

    /// What its owners know of it, too.
    pub(crate) fn object(&self) -> &Arc<KeyObject> {
        &self.index.object
    }

    /// The number under which its memory is accounted.
    pub fn id(&self) -> ObjectId {
        self.object().id
    }

    /// Its name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.object().name
    }

    /// The engine that has it.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whom clients ask for a key. While it changes its owner they may ask the former one, who forwards.
    pub fn owner(&self, key: u64) -> AeuId {
        self.object().layout.newest().owner(key)
    }

    /// A client for one thread.
    ///
    /// # Errors
    /// There are too many clients and statements.
    pub fn client(&self) -> Result<KeyClient, EngineError> {
        Ok(KeyClient {
            client: self.engine.client()?,
            table: self.object().layout.newest(),
            index: self.clone(),
            split: Split::default(),
            spare: Vec::new(),
            exchange: Exchange::new(self.object().id),
        })
    }

    /// Drops the index. When this returns, its memory has been given back; clients get errors.
    ///
    /// # Errors
    /// There are too many clients and statements.
    pub async fn drop(&self) -> Result<(), EngineError> {
        // What is on its way between owners would come after it.
        let mut cycle = self.index.cycle.lock().await;
        self.finish(&mut cycle).await;
        // Without a session nothing has happened.
        let client = self.engine.client()?;
        self.object().set_dropped();
        self.engine.drop_at_owners(client, self.object().id).await;
        Ok(())
    }
}

impl fmt::Debug for KeyIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyIndex({}, {})", self.id(), self.name())
    }
}

/// One thread's way to a bare index. Its operations block until they are done, which is a few microseconds; they wait
/// for AEUs that are at work, never for other clients' statements as a whole.
///
/// ```
/// use eris_engine::{Engine, Settings};
/// use eris_numa::{HugePages, Topology};
///
/// let topology = Topology::fake(1, 2);
/// let settings = Settings { topology, huge_pages: HugePages::Never, memory_limit: Some(64 << 20), database: None };
/// let engine = Engine::start(settings)?;
/// let index = engine.create_key_index("numbers", 0..=999);
/// let mut client = index.client()?;
/// client.put(&[(3, 30), (700, 7000)], &mut [None; 2])?;
/// let mut values = [None; 3];
/// client.get(&[700, 4, 3], &mut values)?;
/// assert_eq!(values, [Some(7000), None, Some(30)]);
/// assert_eq!(client.range(0..=999, 10)?, [(3, 30), (700, 7000)]);
/// assert_eq!(client.ranges(&[0..=9, 10..=999], 10)?, [[(3, 30)], [(700, 7000)]]);
/// # Ok::<(), eris_engine::EngineError>(())
/// ```
pub struct KeyClient {
    pub(crate) client: Client,
    pub(crate) index: KeyIndex,
    /// Which owner the keys of the operation under way were sent to.
    table: Arc<PartitionTable>,
    split: Split,
    /// Batches to be used again.
    #[expect(clippy::vec_box, reason = "they travel in their boxes")]
    spare: Vec<Box<KeyBatch>>,
    /// The parts of the batch that is under way.
    pub(crate) exchange: Exchange<ExecuteKeys>,
}

impl KeyClient {
    /// Looks up many keys: `values[i]` becomes the value of `keys[i]`.
    ///
    /// # Errors
    /// The index was dropped, or an owner panicked; `values` mean nothing then.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<(), EngineError> {
        self.by_key(KeyOperation::Get, keys, values)
    }

    /// Puts many entries in, in order: `before[i]` becomes the value that `entries[i]` replaces.
    ///
    /// # Errors
    /// As [`KeyClient::get`], or no memory: then some of the entries are in the index.
    ///
    /// # Panics
    /// If `before` is not as long as `entries`.
    pub fn put(
        &mut self,
        entries: &[(u64, u64)],
        before: &mut [Option<u64>],
    ) -> Result<(), EngineError> {
        assert_eq!(entries.len(), before.len(), "a place per entry");
        let keys: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
        self.split_by_owner(KeyOperation::Put, &keys, |batch, positions| {
            let entries = positions.iter().map(|&at| entries[at as usize]);
            batch.entries.extend(entries);
        });
        let parts = self.execute()?;
        self.gather(parts, before)
    }

    /// Removes many keys, in order: `values[i]` becomes the value that `keys[i]` had.
    ///
    /// # Errors
    /// As [`KeyClient::get`].
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn remove(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<(), EngineError> {
        self.by_key(KeyOperation::Remove, keys, values)
    }

    /// The newest table.
    pub(crate) fn newest_table(&mut self) -> Arc<PartitionTable> {
        self.index.object().layout.refresh(&mut self.table);
        self.table.clone()
    }

    fn by_key(
        &mut self,
        operation: KeyOperation,
        keys: &[u64],
        values: &mut [Option<u64>],
    ) -> Result<(), EngineError> {
        assert_eq!(keys.len(), values.len(), "a value per key");
        self.split_by_owner(operation, keys, |batch, positions| {
            let keys = positions.iter().map(|&at| keys[at as usize]);
            batch.keys.extend(keys);
        });
        let parts = self.execute()?;
        self.gather(parts, values)
    }

    /// Fills `parts`: `add` gets the positions of a part's keys, range by range, in their order.
    pub(crate) fn split_by_owner(
        &mut self,
        operation: KeyOperation,
        keys: &[u64],
        add: impl Fn(&mut KeyBatch, &[u32]),
    ) {
        let (table, mut split) = (self.newest_table(), std::mem::take(&mut self.split));
        table.ranges.split(keys, &mut split);
        for (aeu, positions) in table.parts(&split) {
            let mut batch = self.empty(operation);
            add(&mut batch, positions);
            self.exchange.push(aeu, batch);
        }
        self.split = split;
    }

    /// Puts the answers of all parts where their keys were.
    pub(crate) fn gather(
        &mut self,
        parts: impl Iterator<Item = Box<KeyBatch>>,
        values: &mut [Option<u64>],
    ) -> Result<(), EngineError> {
        let (mut failure, mut news) = (None, None);
        for (mut batch, (_, positions)) in parts.zip(self.table.parts(&self.split)) {
            for (position, value) in positions.iter().zip(&batch.values) {
                values[*position as usize] = *value;
            }
            failure = failure.or(batch.failure.take());
            news = news.or(batch.news);
            self.spare.push(batch);
        }
        self.note_owner(news);
        match failure {
            None => Ok(()),
            Some(failure) => Err(EngineError::OutOfMemory {
                table: self.index.object().name.clone(),
                reason: failure.to_string(),
            }),
        }
    }

    /// The next batch need not take a detour, before all owners know.
    fn note_owner(&mut self, news: Option<Shift>) {
        let new = news.filter(|Shift { low, high, to }| {
            let mut owners = self.table.owners(*low, *high);
            owners.any(|(.., owner)| owner != *to)
        });
        if new.is_some() {
            self.table = Arc::new(self.table.ahead(changed(&self.table, new)));
        }
    }

    fn empty(&mut self, operation: KeyOperation) -> Box<KeyBatch> {
        let object = self.index.object();
        let batch = self.spare.pop();
        let mut batch = batch.unwrap_or_else(|| Box::new(KeyBatch::new(Arc::clone(object))));
        batch.begin(operation);
        batch
    }

    /// Has all parts executed.
    fn execute(&mut self) -> Result<impl Iterator<Item = Box<KeyBatch>> + use<>, EngineError> {
        self.exchange.begin(&self.index.engine, &mut self.client);
        self.exchange.wait(&mut self.client);
        self.executed()
    }

    /// The parts, as they have come back.
    pub(crate) fn executed(
        &mut self,
    ) -> Result<impl Iterator<Item = Box<KeyBatch>> + use<>, EngineError> {
        let object = self.index.object();
        let parts = self.exchange.finish();
        let parts = parts.map_err(|message| EngineError::Panicked {
            worker: "an owner".to_owned(),
            table: object.name.clone(),
            message,
        })?;
        self.check_dropped()?;
        Ok(parts)
    }

    fn check_dropped(&self) -> Result<(), EngineError> {
        match self.index.object().is_dropped() {
            true => Err(EngineError::NoSuchObject(self.index.object().id)),
            false => Ok(()),
        }
    }
}

impl Drop for KeyClient {
    fn drop(&mut self) {
        // Every operation has waited for its answers, so none is on its way.
        self.index.engine.give_back(&mut self.client);
    }
}

impl fmt::Debug for KeyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyClient({:?})", self.index)
    }
}
