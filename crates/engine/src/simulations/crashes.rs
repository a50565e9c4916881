//! Databases on a simulated disk whose machine stops, in one thread under a seeded schedule: what was acknowledged is
//! there again, and no statement half.
//!
//! ```text
//! open ─▶ clients, each on keys of its own ─▶ the machine stops at some operation ─▶ what the disk has kept ─▶ open …
//!                                             or an operation fails, or the disk is full
//! ```
//!
//! Checkpoints are made meanwhile, of which some are cut off.
//!
//! A client knows its rows as they were after its last statement that was acknowledged, and as they would be after the
//! one that it was told nothing of. One of the two is found, in both of its tables.
//!
//! A seed replays a failure: `ERIS_SEED=17 cargo test --release -p eris-engine simulations::crashes`.

use crate::clients::engine::Engine;
use crate::recovery;
use crate::simulations::simulated::{Simulated, for_seeds, for_some_seeds, number, turn};
use crate::{EngineError, Partitioning, Writer};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_aeu::{Faults, Random};
use eris_disk::{Access, Disk, EntryKind, Fault, SimulatedDisk};
use eris_fragment::*;
use eris_home::ObjectDefinition;
use eris_numa::Topology;
use eris_types::{AeuId, ColumnId, ObjectId};
use futures::StreamExt;
use futures::future::{Either, select};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const CLIENTS: usize = 3;
/// So many keys each client has.
const KEYS: i64 = 60;

/// What happened, in all simulations of a test.
static STOPPED: AtomicU64 = AtomicU64::new(0);
static OPENED: AtomicU64 = AtomicU64::new(0);
static UNKNOWN: AtomicU64 = AtomicU64::new(0);
static DENIED: AtomicU64 = AtomicU64::new(0);
static CHECKPOINTS: AtomicU64 = AtomicU64::new(0);
static CHECKED: AtomicU64 = AtomicU64::new(0);
static GIVEN_UP: AtomicU64 = AtomicU64::new(0);

/// The rows of a client: its keys with their names, and how many rows it has in the table without a key.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rows {
    keyed: BTreeMap<i64, Option<String>>,
    heap: usize,
}

/// What a client knows of its rows.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: Rows,
    /// After a statement whose fate is open.
    perhaps: Option<Rows>,
}

impl Known {
    fn rows(&self) -> u64 {
        (self.acknowledged.keyed.len() + self.acknowledged.heap) as u64
    }
}

type Knowledge = Rc<RefCell<Vec<Known>>>;

#[derive(Clone, Copy)]
struct Objects {
    keyed: ObjectId,
    heap: ObjectId,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("name", DataType::Utf8View, true),
    ]))
}

fn definition(name: &str, key: Vec<ColumnId>) -> ObjectDefinition {
    ObjectDefinition {
        name: name.to_owned(),
        schema: schema(),
        partitioning: Partitioning::Size,
        key,
        is_temporary: false,
    }
}

fn batch<'a>(rows: impl Iterator<Item = (i64, Option<&'a str>)> + Clone) -> RecordBatch {
    let keys = Int64Array::from_iter_values(rows.clone().map(|(key, _)| key));
    let names = StringViewArray::from_iter(rows.map(|(_, name)| name));
    RecordBatch::try_new(schema(), vec![Arc::new(keys), Arc::new(names)]).unwrap()
}

/// What has become of a statement.
enum Outcome {
    Done,
    /// It left no trace.
    Nothing,
    /// Nobody knows, and nothing is written any more.
    Unknown,
}

fn outcome(result: Result<(), EngineError>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done,
        Err(EngineError::FateOpen { .. }) => {
            UNKNOWN.fetch_add(1, Ordering::Relaxed);
            Outcome::Unknown
        }
        Err(
            EngineError::Panicked { .. }
            | EngineError::DuplicateKey { .. }
            | EngineError::InUse { .. },
        ) => Outcome::Nothing,
        Err(EngineError::LogFailed { .. } | EngineError::DiskFull { .. }) => {
            DENIED.fetch_add(1, Ordering::Relaxed);
            Outcome::Nothing
        }
        Err(other) => panic!("{other}"),
    }
}

struct Client {
    number: usize,
    engine: Engine,
    objects: Objects,
    knowledge: Knowledge,
    random: Random,
}

impl Client {
    async fn statements(mut self) {
        for _ in 0..10 {
            let before = self.knowledge.borrow()[self.number].acknowledged.clone();
            let mut after = before.clone();
            let done = match self.random.below(8) {
                0..3 => self.put(&mut after).await,
                3 => self.remove(&mut after).await,
                4..6 => self.write_both(&mut after).await,
                6 => self.load(&mut after).await,
                _ => self.give_up().await,
            };
            let known = &mut self.knowledge.borrow_mut()[self.number];
            match outcome(done) {
                Outcome::Done => known.acknowledged = after,
                Outcome::Nothing => {}
                Outcome::Unknown => {
                    known.perhaps = Some(after);
                    return;
                }
            }
        }
    }

    fn key(&mut self) -> i64 {
        self.random.below(KEYS as usize) as i64 * CLIENTS as i64 + self.number as i64
    }

    fn name(&mut self) -> Option<String> {
        match self.random.below(8) {
            0 => None,
            1 => Some(format!("a name of its own, {}", self.random.bits())),
            _ => Some(format!("name {}", self.random.below(20))),
        }
    }

    fn some(&mut self, most: usize) -> BTreeMap<i64, Option<String>> {
        (0..1 + self.random.below(most))
            .map(|_| (self.key(), self.name()))
            .collect()
    }

    async fn put(&mut self, after: &mut Rows) -> Result<(), EngineError> {
        let rows = self.some(3);
        let mut client = self.engine.rows(self.objects.keyed)?;
        let put = client.put(batch(
            rows.iter().map(|(key, name)| (*key, name.as_deref())),
        ));
        after.keyed.extend(rows.clone());
        put.await.map(|_| ())
    }

    async fn remove(&mut self, after: &mut Rows) -> Result<(), EngineError> {
        let keys: Vec<i64> = self.some(4).into_keys().collect();
        keys.iter().for_each(|key| drop(after.keyed.remove(key)));
        let mut client = self.engine.rows(self.objects.keyed)?;
        let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from(keys))];
        client.remove(&columns).await.map(|_| ())
    }

    /// Keys that are new, and as many rows beside them: both or none.
    async fn write_both(&mut self, after: &mut Rows) -> Result<(), EngineError> {
        let new: BTreeMap<i64, Option<String>> = (self.some(5).into_iter())
            .filter(|(key, _)| !after.keyed.contains_key(key))
            .collect();
        let mut writers = Vec::new();
        for object in [self.objects.keyed, self.objects.heap] {
            let mut writer = self.engine.writer(object)?;
            let own = self.number as i64;
            let rows = new
                .iter()
                .map(|(key, name)| match object == self.objects.heap {
                    true => (own, name.as_deref()),
                    false => (*key, name.as_deref()),
                });
            writer.append(batch(rows)).await?;
            writers.push(writer);
        }
        after.heap += new.len();
        after.keyed.extend(new);
        Writer::commit_all(writers).await
    }

    /// Many rows at once: more than there is room for in a log file.
    async fn load(&mut self, after: &mut Rows) -> Result<(), EngineError> {
        let count = [100, 5_000, 70_000][self.random.below(3)];
        let own = self.number as i64;
        let name = self.name();
        let mut writer = self.engine.writer(self.objects.heap)?;
        let rows = (0..count).map(|_| (own, name.as_deref()));
        writer.append(batch(rows)).await?;
        after.heap += count;
        writer.commit().await.map(|_| ())
    }

    async fn give_up(&mut self) -> Result<(), EngineError> {
        let mut writer = self.engine.writer(self.objects.heap)?;
        writer
            .append(batch([(-1, Some("never"))].into_iter()))
            .await
    }
}

/// Gives keys and rows other owners meanwhile.
async fn move_about(engine: Engine, objects: Objects, mut random: Random) {
    let aeus = engine.topology().aeus().len();
    for _ in 0..6 {
        if random.one_in(2) {
            let keys = 0..KEYS * CLIENTS as i64;
            let mut any = || keys.start + random.below(keys.end as usize) as i64;
            let (one, other) = (any(), any());
            let to = AeuId(random.below(aeus) as u16);
            let (low, high) = (one.min(other), one.max(other));
            let moved = engine.move_keys(objects.keyed, low, high, to).await;
            outcome(moved.map(|_| ()));
        } else {
            let (from, to) = (random.below(aeus) as u16, random.below(aeus) as u16);
            let moved = engine.move_rows(objects.heap, AeuId(from), AeuId(to), 80_000);
            outcome(moved.await.map(|_| ()));
        }
    }
}

/// Makes checkpoints meanwhile.
async fn checkpoints(engine: Engine, mut random: Random) {
    for _ in 0..random.below(4) {
        // Some are given up.
        let patience = match random.below(4) {
            0 => random.below(12),
            _ => usize::MAX,
        };
        let gives_up = async {
            for _ in 0..patience {
                turn().await;
            }
        };
        let made = match select(pin!(engine.checkpoint()), pin!(gives_up)).await {
            Either::Left((made, _)) => made,
            Either::Right(_) => {
                GIVEN_UP.fetch_add(1, Ordering::Relaxed);
                continue;
            }
        };
        match made {
            Ok(_) => drop(CHECKPOINTS.fetch_add(1, Ordering::Relaxed)),
            Err(
                EngineError::Checkpoint { .. }
                | EngineError::DiskFull { .. }
                | EngineError::OutOfMemory { .. },
            ) => {}
            Err(other) => drop(outcome(Err(other))),
        }
        for _ in 0..random.below(100) {
            turn().await;
        }
    }
}

/// The rows of each client; read again if somebody panics on purpose.
async fn read(engine: Engine, objects: Objects) -> Vec<Rows> {
    loop {
        if let Some(all) = try_read(&engine, objects).await {
            return all;
        }
    }
}

async fn try_read(engine: &Engine, objects: Objects) -> Option<Vec<Rows>> {
    let mut all = vec![Rows::default(); CLIENTS];
    for object in [objects.keyed, objects.heap] {
        let fragment = Fragment {
            object,
            snapshot: engine.snapshot(),
            order: None,
            columns: vec![ColumnId(0), ColumnId(1)],
            filter: Vec::new(),
            probes: Vec::new(),
            lookups: Vec::new(),
            output: Output::Rows {
                columns: vec![Expr::Column(0), Expr::Column(1)],
                limit: None,
            },
            options: ScanOptions::default(),
        };
        let execution = engine.execute(Arc::new(fragment), 1).unwrap();
        let mut batches = futures::stream::select_all(execution.streams);
        while let Some(batch) = batches.next().await {
            let batch = match batch {
                Err(FragmentError::Panicked { .. }) => return None,
                batch => batch.unwrap(),
            };
            let keys = batch.column(0).as_primitive::<Int64Type>().values();
            let names = batch.column(1).as_string_view().iter();
            for (key, name) in keys.iter().zip(names) {
                match object == objects.heap {
                    true => all[*key as usize].heap += 1,
                    false => {
                        let rows = &mut all[*key as usize % CLIENTS].keyed;
                        let before = rows.insert(*key, name.map(str::to_owned));
                        assert_eq!(before, None, "key {key} is there twice");
                    }
                }
            }
        }
    }
    // Each key is found where lookups look for it.
    let keys: Vec<i64> = (0..KEYS * CLIENTS as i64).collect();
    let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from(keys))];
    let mut client = engine.rows(objects.keyed).unwrap();
    let found = client.get(&columns, &[ColumnId(0)]).await.unwrap();
    let rows: usize = all.iter().map(|rows| rows.keyed.len()).sum();
    assert_eq!(
        found.rows.num_rows(),
        rows,
        "rows are not where their keys are"
    );
    Some(all)
}

/// What goes wrong in a round.
fn accident(random: &mut Random, disk: &SimulatedDisk) {
    let at = Fault::at(1 + random.below(60) as u64);
    disk.set_capacity(None);
    match random.below(6) {
        0..3 => disk.plan(at.stop()),
        3 => disk.plan(at),
        4 => disk.plan(at.full().and_later()),
        _ => {}
    }
}

fn topology(random: &mut Random) -> Topology {
    let (nodes, cores) = [(1, 1), (1, 2), (2, 2), (4, 2)][random.below(4)];
    Topology::fake(nodes, cores)
}

/// Opens a database again and again. In each round but the first something may go wrong: anything, five times, or
/// `only` this, once. Says whether the machine has stopped in the last round.
fn simulate(seed: u64, only: Option<Fault>) -> bool {
    let mut random = Random::new(seed);
    let mut disk = SimulatedDisk::new(seed);
    let faults = Faults {
        slice_panics: if random.one_in(2) { 200 } else { 0 },
        partial_flushes: 3,
        few_slices: 3,
        ..Faults::default()
    };
    let knowledge: Knowledge = Rc::new(RefCell::new(vec![Known::default(); CLIENTS]));
    let mut made: Option<Objects> = None;
    let (rounds, mut is_stopped) = (if only.is_some() { 2 } else { 5 }, false);
    for round in 0..rounds {
        let rows = whole_rows(&disk);
        if round > 0 {
            if let Some(objects) = made {
                only_read(&mut random, &disk, objects, &knowledge);
            }
            match &only {
                Some(fault) => disk.plan(fault.clone()),
                None => accident(&mut random, &disk),
            }
        }
        let opened = Simulated::open(seed + round, topology(&mut random), faults, disk.clone());
        if let Ok(mut simulated) = opened {
            OPENED.fetch_add(1, Ordering::Relaxed);
            let engine = simulated.engine.clone();
            let objects = match made {
                Some(objects) => objects,
                None => simulated.result_of(async move {
                    let keyed = definition("keyed", vec![ColumnId(0)]);
                    let keyed = engine.create_defined(keyed).await.unwrap();
                    let heap = engine
                        .create_defined(definition("heap", vec![]))
                        .await
                        .unwrap();
                    engine.barrier().await.unwrap();
                    Objects { keyed, heap }
                }),
            };
            made = Some(objects);
            check(&mut simulated, objects, &knowledge);
            let known = knowledge.borrow().iter().map(Known::rows).sum::<u64>();
            assert!(
                rows.is_none_or(|rows| rows == known),
                "{rows:?} are not {known}"
            );
            let engine = simulated.engine.clone();
            let moving = move_about(engine.clone(), objects, Random::new(random.bits()));
            simulated.client(moving);
            simulated.client(checkpoints(engine, Random::new(random.bits())));
            for number in 0..CLIENTS {
                let client = Client {
                    number,
                    engine: simulated.engine.clone(),
                    objects,
                    knowledge: Rc::clone(&knowledge),
                    random: Random::new(random.bits()),
                };
                simulated.client(client.statements());
            }
            simulated.run();
            simulated.end();
        }
        is_stopped = disk.is_stopped();
        STOPPED.fetch_add(u64::from(is_stopped), Ordering::Relaxed);
        disk = match random.one_in(4) {
            true => disk.kill(),
            false => disk.crash(),
        };
    }
    let mut simulated = Simulated::open(seed, topology(&mut random), faults, disk).unwrap();
    check(&mut simulated, made.unwrap(), &knowledge);
    simulated.end();
    is_stopped
}

/// The rows that a check finds in what a crash has left, which is no damage; `None`: there is no database yet.
fn whole_rows(disk: &SimulatedDisk) -> Option<u64> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let checked = recovery::check(&disk, &mut |_, _| {}).ok()?;
    assert_eq!(checked.findings, []);
    CHECKED.fetch_add(1, Ordering::Relaxed);
    Some(checked.rows)
}

/// What is left is read by a process that changes nothing. A later one may find less: only a writer sees to it that
/// what a killed process has left is stored.
fn only_read(random: &mut Random, disk: &SimulatedDisk, objects: Objects, knowledge: &Knowledge) {
    let before = bytes_of(disk);
    let faults = Faults::default();
    let opened = Simulated::open_to_read(random.bits(), topology(random), faults, disk.clone());
    let mut simulated = opened.unwrap();
    let known: Knowledge = Rc::new(RefCell::new(knowledge.borrow().clone()));
    check(&mut simulated, objects, &known);
    // Owners may change: that is in memory only.
    let moving = move_about(
        simulated.engine.clone(),
        objects,
        Random::new(random.bits()),
    );
    simulated.client(moving);
    simulated.run();
    check(&mut simulated, objects, &known);
    simulated.end();
    assert_eq!(bytes_of(disk), before, "something was written");
}

/// All files with their bytes.
fn bytes_of(disk: &SimulatedDisk) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for directory in ["", "log", "chunks", "snapshots"].map(Path::new) {
        for entry in disk.list(directory).unwrap_or_default() {
            if let EntryKind::File(length) = entry.kind {
                let path = directory.join(&entry.name);
                let mut bytes = vec![0; length as usize];
                let file = disk.open(&path, Access::Read).unwrap();
                file.read_at(&mut bytes, 0).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found
}

/// Compares what was found with what clients know; what was open before is known by then.
fn check(simulated: &mut Simulated, objects: Objects, knowledge: &Knowledge) {
    let found = simulated.result_of(read(simulated.engine.clone(), objects));
    for (number, (found, known)) in found
        .into_iter()
        .zip(&mut *knowledge.borrow_mut())
        .enumerate()
    {
        let is_known = found == known.acknowledged || known.perhaps.as_ref() == Some(&found);
        assert!(is_known, "client {number} has {found:?} of {known:?}");
        *known = Known {
            acknowledged: found,
            perhaps: None,
        };
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    for_seeds(300, |seed| {
        simulate(seed, None);
    });
    let counts = [
        (&STOPPED, "stopped"),
        (&OPENED, "opened"),
        (&UNKNOWN, "unknown"),
        (&DENIED, "denied"),
        (&CHECKPOINTS, "checkpoints"),
        (&GIVEN_UP, "given up"),
        (&CHECKED, "checked"),
    ];
    let counts = counts.map(|(count, what)| (count.load(Ordering::Relaxed), what));
    println!("{counts:?}");
    assert!(counts.iter().all(|(count, _)| *count > 0), "{counts:?}");
}

#[test]
fn every_operation_may_be_the_last_or_fail() {
    // A seed has some hundred simulations.
    let seeds = number("ERIS_SEEDS").map_or(1, |seeds| seeds.div_ceil(100));
    for_some_seeds(seeds, |seed| {
        let mut operations = 0;
        while simulate(seed, Some(Fault::at(operations + 1).stop())) {
            operations += 1;
            simulate(seed, Some(Fault::at(operations)));
        }
        println!("{operations} operations");
        assert!(operations > 50);
    });
}
