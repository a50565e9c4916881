//! A whole engine in one thread whose AEUs and clients take turns by a seeded schedule: what the simulations share.
//!
//! A seed replays a failure: `ERIS_SEED=17`. `ERIS_SEEDS` sets how many seeds are tried.

use crate::EngineError;
use crate::clients::engine::Engine;
use crate::clients::foundation::{Found, Foundation, open, open_remains, open_to_read};
use crate::durability::{Flusher, StorageSettings};
use crate::protocol::lists::Parcel;
use crate::recovery::{DatabaseSalvage, UniqueColumns};
use crate::remote::{BLOCK_BYTES, Remote};
use crate::sequencer::Sequencer;
use crate::tasks::owner::Owner;
use eris_aeu::{Faults, Random, Simulation, Turn};
use eris_atomics::Way;
use eris_disk::{Disk, SimulatedDisk};
use eris_home::BUFFERS;
use eris_log::{ChunkSettings, LogSettings};
use eris_numa::{HugePages, Memory, Profile, Topology};
use eris_route::{BufferSizes, Port};
use eris_types::{AeuId, ObjectId, Timestamp};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The engine and who steps it.
pub(crate) struct Simulated {
    pub engine: Engine,
    pub memory: Memory,
    simulation: Simulation<Owner>,
    /// If commits become visible only when they are flushed: flushes.
    flush: Option<Rc<dyn Fn()>>,
    /// Of a database.
    flusher: Option<Rc<RefCell<Flusher>>>,
}

/// A log that flushes what was applied at the last flush, one in some turns of clients.
pub(crate) struct Flushes {
    sequencer: Arc<Sequencer>,
    /// The group that is being flushed.
    through: AtomicU64,
}

impl Flushes {
    pub fn flush(&self) {
        let next = self.sequencer.applied().0;
        let through = self.through.swap(next, Ordering::Relaxed);
        self.sequencer.set_durable(Timestamp(through));
    }
}

/// Ten microseconds pass from one look at this clock to the next, whatever else the machine does.
fn clock() -> Instant {
    thread_local! {
        static CLOCK: Cell<Instant> = Cell::new(Instant::now());
    }
    CLOCK.replace(CLOCK.get() + Duration::from_micros(10))
}

impl Simulated {
    /// One of several topologies by chance, some with paced links, and in every other engine a slice in so many that
    /// panics. In every other engine commits become visible late.
    pub fn by_chance(seed: u64, random: &mut Random, slice_panics: usize) -> Self {
        let (nodes, cores) = [(1, 1), (1, 2), (2, 2), (4, 2)][random.below(4)];
        let faults = Faults {
            slice_panics: if random.one_in(2) { slice_panics } else { 0 },
            partial_flushes: 3,
            few_slices: 3,
            ..Faults::default()
        };
        let mut topology = Topology::fake(nodes, cores);
        if random.one_in(8) {
            let machine = Profile::known("eris-amd").expect("it comes along");
            topology = topology.paced_as(Arc::new(machine)).unwrap();
        }
        let mut simulated = Self::new(seed, topology, faults);
        if random.one_in(2) {
            simulated.flush_late();
        }
        simulated
    }

    /// Commits become visible some turns after they are applied from now on.
    fn flush_late(&mut self) {
        let flushes = self.flush_by_hand();
        self.flush = Some(Rc::new(move || flushes.flush()));
    }

    pub fn new(seed: u64, topology: Topology, faults: Faults) -> Self {
        let topology = Arc::new(topology);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let way = Way::ALL[seed as usize % Way::ALL.len()];
        let foundation = Foundation {
            sequencer: Arc::new(Sequencer::new(topology.nodes().len(), way)),
            remote: Arc::new(Remote::new(&topology)),
            topology: Arc::clone(&topology),
            memory: memory.clone(),
            huge_pages: HugePages::Never,
        };
        Self::on(seed, foundation, Found::default(), faults)
    }

    /// A database on a disk, in log files of few bytes. A turn of the log thread is a turn of a client, sometimes.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(
        seed: u64,
        topology: Topology,
        faults: Faults,
        disk: SimulatedDisk,
    ) -> Result<Self, EngineError> {
        let topology = Arc::new(topology);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let storage = StorageSettings {
            synchronous: None,
            log: LogSettings {
                file_bytes: 256 << 10,
            },
            chunks: ChunkSettings {
                file_bytes: 1 << 20,
                dirty_bytes: 128 << 10,
            },
            checkpoint_bytes: u64::MAX,
            threads: 1,
        };
        let opened = open(Arc::new(disk), topology, memory, HugePages::Never, storage)?;
        let (foundation, found, flusher) = opened.flusher();
        let mut simulated = Self::on(seed, foundation, found, faults);
        let flusher = Rc::new(RefCell::new(flusher));
        simulated.flusher = Some(Rc::clone(&flusher));
        simulated.flush = Some(Rc::new(move || {
            let mut flusher = flusher.borrow_mut();
            flusher.turn();
            flusher.chunk_turn();
        }));
        Ok(simulated)
    }

    /// A database on a disk, for reading only.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_to_read(
        seed: u64,
        topology: Topology,
        faults: Faults,
        disk: SimulatedDisk,
    ) -> Result<Self, EngineError> {
        let topology = Arc::new(topology);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let disk = Arc::new(disk);
        let (foundation, found) = open_to_read(disk, topology, memory, HugePages::Never, 1)?;
        Ok(Self::on(seed, foundation, found, faults))
    }

    /// What is left of a database on a disk, and what was found out about it.
    ///
    /// # Errors
    /// There is nothing.
    pub fn open_remains(
        seed: u64,
        topology: Topology,
        disk: Arc<dyn Disk>,
        uniques: UniqueColumns<'_>,
    ) -> Result<(Self, DatabaseSalvage), EngineError> {
        let topology = Arc::new(topology);
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
        let huge = HugePages::Never;
        let (foundation, found, salvaged) =
            open_remains(disk, topology, memory, huge, 1, uniques, &mut |_, _| {})?;
        let simulated = Self::on(seed, foundation, found, Faults::default());
        Ok((simulated, salvaged))
    }

    fn on(seed: u64, foundation: Foundation, found: Found, faults: Faults) -> Self {
        let (topology, memory) = (Arc::clone(&foundation.topology), foundation.memory.clone());
        let mut owners = found.owners.into_iter();
        let handler = |aeu| {
            let mut owner = foundation.owner(aeu, owners.next());
            owner.clock = clock;
            owner
        };
        let simulation = Simulation::new(seed, &topology, BufferSizes::default(), faults, handler);
        let router = simulation.router().clone();
        Simulated {
            engine: Engine::assemble(foundation, router, None, found.shared),
            memory,
            simulation,
            flush: None,
            flusher: None,
        }
    }

    /// The same, but somebody has to say when.
    pub fn flush_by_hand(&mut self) -> Arc<Flushes> {
        let sequencer = Arc::clone(&self.engine.shared().sequencer);
        sequencer.wait_for_flushes();
        Arc::new(Flushes {
            through: AtomicU64::new(sequencer.applied().0),
            sequencer,
        })
    }

    /// Adds a client, which is polled once per turn.
    pub fn client(&mut self, script: impl Future<Output = ()> + 'static) {
        let polled = Polled {
            script: Box::pin(script),
            flush: self.flush.clone(),
        };
        self.simulation.session(polled).unwrap();
    }

    /// Lets all take turns until the clients are done; nothing may be left to do then.
    pub fn run(&mut self) {
        self.simulation.run(5_000_000);
        assert_eq!(self.simulation.tasks(), 0, "tasks are left over");
    }

    /// Runs a script to its end, and returns what it has come to.
    pub fn result_of<T: 'static>(&mut self, script: impl Future<Output = T> + 'static) -> T {
        let result = Rc::new(RefCell::new(None));
        let of_script = Rc::clone(&result);
        self.client(async move {
            let done = script.await;
            *of_script.borrow_mut() = Some(done);
        });
        self.run();
        result.take().expect("it has ended")
    }

    /// What the AEUs own.
    pub fn owners(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.simulation.handlers()
    }

    /// Drops an object.
    pub fn drop_object(&mut self, object: ObjectId) {
        let engine = self.engine.clone();
        self.client(async move { engine.drop(object).await.unwrap() });
        self.run();
    }

    /// Of an engine without objects no memory may be left over, but for blocks that AEUs keep for copies.
    pub fn check_memory(&self) {
        let kept = 2 * self.engine.topology().aeus().len() * BLOCK_BYTES;
        let usage = self.memory.usage().into_iter();
        let (blocks, left): (Vec<_>, Vec<_>) =
            (usage.filter(|usage| usage.bytes > 0)).partition(|usage| usage.object == BUFFERS);
        assert!(left.is_empty(), "memory is left over: {left:?}");
        let blocks: u64 = blocks.iter().map(|usage| usage.bytes).sum();
        assert!(blocks <= kept as u64, "buffers are left over: {blocks}");
    }

    /// Ends the engine and closes its database.
    pub fn close(mut self) {
        let flusher = self.flusher.take().expect("it has a database");
        self.end();
        let flusher = Rc::into_inner(flusher).expect("nobody else flushes");
        flusher.into_inner().close().expect("the disk is in order");
    }

    /// Ends the engine; no memory may be left over.
    pub fn end(self) {
        drop((self.simulation, self.engine, self.flush));
        assert_eq!(self.memory.budget().used(), 0, "memory is left over");
    }
}

/// Gives all others a turn.
pub(crate) async fn turn() {
    let mut has_waited = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Keys that were linked, in all simulations of a test.
pub(crate) static LINKED_KEYS: AtomicU64 = AtomicU64::new(0);

/// Gives some keys that are numbers to some owner, unless others are writing, or panic on purpose.
pub(crate) async fn move_keys(
    engine: &Engine,
    object: ObjectId,
    random: &mut Random,
    keys: Range<i64>,
) {
    let mut any = || keys.start + random.below((keys.end - keys.start) as usize) as i64;
    let (one, other) = (any(), any());
    let (low, high) = match random.below(4) {
        0 => (i64::MIN, one),
        1 => (one, i64::MAX),
        _ => (one.min(other), one.max(other)),
    };
    let to = AeuId(random.below(engine.topology().aeus().len()) as u16);
    match engine.move_keys(object, low, high, to).await {
        Ok(moved) if moved.linked > 0 => {
            LINKED_KEYS.fetch_add(moved.keys, Ordering::Relaxed);
        }
        Ok(_) | Err(EngineError::InUse { .. } | EngineError::Panicked { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

/// Polls a client once per turn.
struct Polled {
    script: Pin<Box<dyn Future<Output = ()>>>,
    flush: Option<Rc<dyn Fn()>>,
}

impl eris_aeu::Script<Parcel> for Polled {
    fn turn(&mut self, _: &mut Port<Parcel>, random: &mut Random) -> Turn {
        if let Some(flush) = &self.flush
            && random.one_in(24)
        {
            flush();
        }
        match self
            .script
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(()) => Turn::Done,
            Poll::Pending => Turn::More,
        }
    }
}

/// Calls `simulate` with the seed of `ERIS_SEED`, or with as many as `ERIS_SEEDS` or `seeds` says.
pub(crate) fn for_seeds(seeds: u64, simulate: impl Fn(u64)) {
    for_some_seeds(number("ERIS_SEEDS").unwrap_or(seeds), simulate);
}

/// Calls `simulate` with the seed of `ERIS_SEED`, or with so many.
pub(crate) fn for_some_seeds(seeds: u64, simulate: impl Fn(u64)) {
    if let Some(seed) = number("ERIS_SEED") {
        return simulate(seed);
    }
    for seed in 0..seeds {
        // Shown when the test fails.
        println!("seed {seed}");
        simulate(seed);
    }
}

/// The number that an environment variable has.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={value} is no number")),
    )
}
