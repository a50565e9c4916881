//! What the statements of an engine share.

use super::client::Client;
use super::foundation::{FoundState, Foundation};
use super::garbage::Garbage;
use super::key_index::registered::RegisteredIndex;
use crate::durability::Durability;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::protocol::lists::Parcel;
use crate::protocol::objects::CollectGarbage;
use crate::remote::Remote;
use crate::remote::clients::ClientTraffic;
use crate::sequencer::Sequencer;
use crate::tasks::owner::Owner;
use arc_swap::ArcSwap;
use eris_aeu::{Runtime, Session};
use eris_atomics::{ExclusiveWrite, Lock, Pool};
use eris_home::{Traffic, TrafficKind};
use eris_machine::{Here, best_way};
use eris_numa::{HugePages, Memory, Profile, Topology};
use eris_route::{RouteError, Router};
use eris_types::{AeuId, ObjectId, StatementId, Timestamp};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

/// How many idle sessions are kept for the next statements.
const IDLE_CLIENTS: usize = 64;

/// What all samples together may take.
const SAMPLE_BYTES: u64 = 64 << 20;

type Objects = HashMap<ObjectId, Arc<DataObject>>;

/// What statements share.
pub(crate) struct EngineState {
    pub topology: Arc<Topology>,
    pub memory: Memory,
    /// Where samples lie that planners look into, beside the budget of tables and statements.
    pub sample_memory: Memory,
    pub huge_pages: HugePages,
    pub sequencer: Arc<Sequencer>,
    pub remote: Arc<Remote>,
    /// What becomes known of the machine.
    pub machine: Arc<Here>,
    /// What clients send and get; `None` on one node.
    client_traffic: Option<Arc<ClientTraffic>>,
    router: Arc<Router<Parcel>>,
    /// The AEUs' threads; `None` where AEUs are stepped by hand.
    pub runtime: Option<Runtime<Owner>>,
    /// Read at the start of statements; replaced as a whole by CREATE and DROP, under the lock beside it.
    objects: ArcSwap<Objects>,
    changing_objects: Lock<()>,
    pub garbage: Garbage,
    /// The bare indexes, as long as somebody has them.
    key_indexes: Lock<Vec<Weak<RegisteredIndex>>>,
    idle_clients: Pool<Session<Parcel>>,
    next_object: AtomicU32,
    /// For statements, questions and parts of batches, so that no answer is taken for another's.
    next_callback: AtomicU64,
    /// If what is committed outlives the process. Behind the runtime: its log is closed when nobody commits any more.
    pub durability: Option<Durability>,
}

impl EngineState {
    pub fn new(
        foundation: Foundation,
        router: Arc<Router<Parcel>>,
        runtime: Option<Runtime<Owner>>,
        found: Option<FoundState>,
    ) -> Self {
        let Foundation {
            topology,
            memory,
            sequencer,
            remote,
            huge_pages,
        } = foundation;
        let mut objects = Objects::new();
        let mut next_object = ObjectId(1);
        let durability = found.map(|found| {
            next_object = found.next_object;
            let found_objects = found.objects.into_iter();
            objects.extend(found_objects.map(|object| (object.id, object)));
            found.durability
        });
        let learned = {
            let (remote, sequencer) = (Arc::clone(&remote), Arc::clone(&sequencer));
            let aeus = topology.aeus().len();
            move |machine: &Profile| {
                remote.learn(machine);
                let way = machine.speeds().and_then(|speeds| best_way(speeds, aeus));
                way.into_iter().for_each(|way| sequencer.set_way(way));
            }
        };
        let machine = Here::new(Arc::clone(&topology), memory.clone(), learned);
        EngineState {
            machine: Arc::new(machine),
            client_traffic: ClientTraffic::new(&topology),
            topology,
            memory,
            sample_memory: sample_memory(),
            huge_pages,
            sequencer,
            remote,
            router,
            runtime,
            objects: ArcSwap::from_pointee(objects),
            changing_objects: Lock::default(),
            garbage: Garbage::default(),
            key_indexes: Lock::default(),
            idle_clients: Pool::new(IDLE_CLIENTS),
            next_object: AtomicU32::new(next_object.0),
            durability,
            next_callback: AtomicU64::new(1),
        }
    }

    pub fn aeus(&self) -> impl Iterator<Item = AeuId> + '_ {
        self.topology.aeus().iter().map(|place| place.aeu)
    }

    /// A number for a new object.
    pub fn next_object(&self) -> ObjectId {
        ObjectId(self.next_object.fetch_add(1, Ordering::Relaxed))
    }

    /// A number for a new statement.
    pub fn next_statement(&self) -> StatementId {
        StatementId(self.next_callbacks(1))
    }

    /// The first of so many numbers in a row by which answers find who asked.
    pub fn next_callbacks(&self, count: u64) -> u64 {
        self.next_callback.fetch_add(count, Ordering::Relaxed)
    }

    /// Adds a data object.
    pub fn add_object(&self, object: DataObject) {
        self.change_objects(|objects| objects.insert(object.id, Arc::new(object)));
    }

    /// Takes a data object away.
    pub fn remove_object(&self, id: ObjectId) -> Result<Arc<DataObject>, EngineError> {
        let removed = self.change_objects(|objects| objects.remove(&id));
        removed.ok_or(EngineError::NoSuchObject(id))
    }

    fn change_objects<R>(&self, change: impl FnOnce(&mut Objects) -> R) -> R {
        let _changing = self.changing_objects.lock();
        let mut objects = Objects::clone(&self.objects.load());
        let result = change(&mut objects);
        self.objects.store(Arc::new(objects));
        result
    }

    pub fn object(&self, id: ObjectId) -> Result<Arc<DataObject>, EngineError> {
        let objects = self.objects.load();
        objects
            .get(&id)
            .cloned()
            .ok_or(EngineError::NoSuchObject(id))
    }

    /// All data objects.
    pub fn objects(&self) -> Vec<Arc<DataObject>> {
        self.objects.load().values().cloned().collect()
    }

    /// Notes a bare index.
    pub fn add_key_index(&self, index: &Arc<RegisteredIndex>) {
        let mut all = self.key_indexes.lock();
        all.retain(|index| index.strong_count() > 0);
        all.push(Arc::downgrade(index));
    }

    /// The bare indexes that somebody has.
    pub fn key_indexes(&self) -> Vec<Arc<RegisteredIndex>> {
        let all = self.key_indexes.lock();
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// A session for one statement.
    pub fn client(&self) -> Result<Client, EngineError> {
        let session = match self.idle_clients.take() {
            Some(session) => session,
            None => Box::new(Session::new(self.router.session().map_err(too_busy)?)),
        };
        let crossing = self.client_traffic.as_ref();
        let crossing = crossing.map(|all| all.here(session.endpoint().to_bits().into()));
        Ok(Client::new(session, crossing))
    }

    /// What has crossed from node to node so far, by pair and kind.
    pub fn traffic(&self) -> Vec<Traffic> {
        let mut all = self.remote.traffic();
        all.extend(self.client_traffic.iter().flat_map(|all| all.traffic()));
        let counters = self.runtime.iter().flat_map(|runtime| {
            let places = self.topology.aeus().iter();
            places.map(|place| (place.node, &runtime.telemetry().of(place.aeu).crossed))
        });
        for (home, crossed) in counters {
            all.extend(
                crossed
                    .read()
                    .map(|(source, kind, requests, bytes)| Traffic {
                        source,
                        home,
                        kind: TrafficKind::ALL[kind],
                        requests,
                        bytes,
                    }),
            );
        }
        let place = |traffic: &Traffic| (traffic.source, traffic.home, traffic.kind as usize);
        all.sort_by_key(place);
        all.dedup_by(|next, sum| {
            let is_same = place(next) == place(sum);
            if is_same {
                sum.requests += next.requests;
                sum.bytes += next.bytes;
            }
            is_same
        });
        all.retain(|traffic| traffic.requests > 0);
        all
    }

    /// Keeps the client's session for the next statement; nothing may still be on its way to it.
    pub fn give_back(&self, client: &mut Client) {
        if let Some(session) = client.take() {
            self.idle_clients.put(session);
        }
    }

    /// Waits for the write lock to change rows of an object, and until what was changed under the lock before is
    /// applied.
    pub async fn write_lock(&self, object: &DataObject) -> ExclusiveWrite {
        let write_lock = object.write_lock.alone().await;
        if object.changed() > self.sequencer.applied() {
            // Its writer did not wait for it.
            self.settle().await;
        }
        write_lock
    }

    /// See [`Engine::barrier`](crate::Engine::barrier).
    pub async fn barrier(&self) -> Result<(), EngineError> {
        let mine = self.draw_and_finish().await;
        self.visible(mine).await
    }

    /// See [`Engine::settle`](crate::Engine::settle).
    pub async fn settle(&self) {
        let mine = self.draw_and_finish().await;
        self.applied(mine).await;
    }

    /// Nothing is written at this timestamp; it is only that all earlier ones are applied before.
    async fn draw_and_finish(&self) -> Timestamp {
        let sequencer = &self.sequencer;
        let mine = poll_fn(|cx| sequencer.poll_draw(cx)).await;
        sequencer.finish(mine);
        mine
    }

    /// Waits until a commit is applied.
    pub async fn applied(&self, at: Timestamp) {
        poll_fn(|cx| match self.sequencer.poll_applied(at, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Waits until a commit is visible.
    ///
    /// # Errors
    /// It will never be, for the disk has failed. Whether it is durable is open.
    pub async fn visible(&self, at: Timestamp) -> Result<(), EngineError> {
        poll_fn(|cx| {
            if self.sequencer.poll_visible(at, cx.waker()) {
                return Poll::Ready(Ok(()));
            }
            match self.sequencer.failure() {
                Some(reason) => Poll::Ready(Err(EngineError::FateOpen {
                    reason: reason.to_string(),
                })),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Rows of an object were deleted by the commit at `at`: has their owners collect them when it is worth it.
    pub fn collect_after(&self, object: &Arc<DataObject>, deleted: u64, at: Timestamp) {
        if self.garbage.note(object, deleted, at) {
            self.collect_garbage(self.sequencer.advance_horizon());
        }
    }

    /// Has the owners collect what nobody can see from `horizon` on.
    pub fn collect_garbage(&self, horizon: Timestamp) {
        let due = self.garbage.due(horizon);
        if due.is_empty() {
            return;
        }
        // Without a session to say it with it is said after the next deletions.
        let Ok(mut client) = self.client() else {
            return;
        };
        for object in due {
            for aeu in self.aeus() {
                client.send(aeu, object, (), CollectGarbage);
            }
        }
        client.flush_all();
        self.give_back(&mut client);
    }
}

fn too_busy(error: RouteError) -> EngineError {
    let RouteError::TooManySessions { limit } = error;
    EngineError::TooBusy { limit }
}

/// Memory on no certain node: samples are small, and read once.
fn sample_memory() -> Memory {
    let anywhere = Topology::fake(1, 1);
    Memory::new(&anywhere, HugePages::Never, Some(SAMPLE_BYTES)).expect("it has a budget")
}
