//! Real threads look rows up, write, change and remove them, and read ranges and all of them. Meanwhile other threads
//! move rows from owner to owner without pause, by link and by copy, and a balancer does so too. What is read at a
//! snapshot is checked against the [history] of what was written.
//!
//! `ERIS_TORTURE_SECONDS` says how long it goes on in all, `ERIS_SEED` with which random numbers.
#![allow(missing_docs)]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../common/mod.rs"]
mod common;
mod history;
mod person;
mod table;

use common::{count_sum_at, engine};
use eris_engine::{Algorithm, Balancer, Balancing, EngineError, IndexKind, Moved};
use eris_types::AeuId;
use futures::executor::block_on;
use person::Person;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};
use table::{PERSONS, Table};

fn number(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number"))
}

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(99);
        (self.0 >> 33) % limit
    }

    fn id(&mut self, limit: i64) -> i64 {
        self.below(limit as u64) as i64
    }
}

/// Reads what anybody has written, some times at one snapshot.
fn read(table: &Table, random: &mut Random) {
    let mut expected = table.histories.expect(&table.engine);
    let snapshot = expected.held.at();
    for _ in 0..1 + random.below(6) {
        match random.below(6) {
            0 => expected.check(0..table.ids, table.read(snapshot, 0, 0..table.ids)),
            1 => {
                let first = random.id(table.ids);
                let ids = first..(first + 1 + random.id(20_000)).min(table.ids);
                expected.check(ids.clone(), table.read(snapshot, 0, ids));
            }
            2..4 => {
                // By the key's index, whose owners are those of the newest ranges unless these are newer than the
                // snapshot.
                for _ in 0..20 {
                    let id = random.id(table.ids);
                    expected.check(id..id + 1, table.read(snapshot, 0, id..id + 1));
                }
            }
            4 => {
                // By the index of values, each of which is one row's.
                let id = random.id(table.ids);
                if let Some(value) = expected.get(id) {
                    expected.check(id..id + 1, table.read(snapshot, 1, value..value + 1));
                }
            }
            _ => {
                let told = expected.count_and_sum();
                let found = count_sum_at(&table.engine, table.object, snapshot).unwrap();
                assert!(told.is_none_or(|told| told == found), "{told:?}: {found:?}");
            }
        }
        thread::sleep(Duration::from_millis(random.below(30)));
    }
}

/// Moves some rows of a table.
fn shift(table: &Table, balancer: &Balancer, random: &mut Random) -> Moved {
    let (engine, object) = (&table.engine, table.object);
    let aeus = engine.topology().aeus().len() as u64;
    let mut any = || AeuId(random.below(aeus) as u16);
    let (from, to) = (any(), any());
    if random.below(32) == 0 {
        block_on(balancer.balance(engine, object)).unwrap();
        return Moved::default();
    }
    let is_left = random.below(16) == 0;
    let low = random.id(table.ids);
    let width = [100, 5_000, table.ids][random.below(3) as usize];
    let high = low + random.id(width);
    let rows = 1 + random.below(150_000);
    let moving = async {
        match table.is_keyed {
            true => engine.move_keys(object, low, high, to).await,
            false => engine.move_rows(object, from, to, rows).await,
        }
    };
    if is_left {
        // Nobody waits for what becomes of it.
        let mut left = pin!(moving);
        let _ = left.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        return Moved::default();
    }
    match block_on(moving) {
        Ok(moved) => moved,
        // Somebody writes rows with a key.
        Err(EngineError::InUse { .. }) => Moved::default(),
        Err(other) => panic!("{other}"),
    }
}

/// What was moved of each table: with a key and an index, with a key alone, and with an index alone.
fn torture(nodes: u16, cores: u16, seed: u64, time: Duration) -> [Moved; 3] {
    let engine = engine(nodes, cores);
    // One index per owner, and one of all owners, by turns.
    let mut indexes = [IndexKind::Ordered, IndexKind::Shared];
    indexes.rotate_left((seed % 2) as usize);
    let kinds = [
        (true, Some(indexes[0])),
        (true, None),
        (false, Some(indexes[1])),
    ];
    let tables = kinds.map(|(is_keyed, index)| Table::new(&engine, is_keyed, index));
    let balancing = Balancing {
        algorithm: Some(Algorithm::OneShot),
        threshold: 0.05,
        period: Duration::from_millis(100),
    };
    let balancer = Balancer::start(&engine, balancing).unwrap();
    let (is_over, operations, reads) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let moved = thread::scope(|scope| {
        // Whoever fails ends it for all.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let is_over = &is_over;
        let goes_on = || !is_over.load(Ordering::Relaxed);
        let (operations, reads, balancer) = (&operations, &reads, &balancer);
        let mut seeds = seed * 1_000..;
        let mut random = || Random(seeds.next().expect("there are many"));
        let mut shifting = Vec::new();
        for table in &tables {
            let mut chance = random();
            shifting.push(scope.spawn(move || {
                let _over = Over(is_over);
                let mut all = Moved::default();
                while goes_on() {
                    let moved = shift(table, balancer, &mut chance);
                    all.keys += moved.keys;
                    all.linked += moved.linked;
                    all.copied += moved.copied;
                }
                all
            }));
            let mut chance = random();
            scope.spawn(move || {
                let _over = Over(is_over);
                while goes_on() {
                    read(table, &mut chance);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
            for number in 0..PERSONS {
                let mut person = Person {
                    number,
                    table,
                    client: table
                        .is_keyed
                        .then(|| table.engine.rows(table.object).unwrap()),
                    random: random(),
                    version: 0,
                };
                scope.spawn(move || {
                    let _over = Over(is_over);
                    while goes_on() {
                        person.operate();
                        operations.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
        let began = Instant::now();
        while began.elapsed() < time && goes_on() {
            thread::park_timeout(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        let moved: Vec<Moved> = shifting
            .into_iter()
            .map(|one| one.join().unwrap())
            .collect();
        [moved[0], moved[1], moved[2]]
    });
    println!(
        "{nodes}x{cores}: {operations:?} operations, {reads:?} snapshots, {moved:?}, balanced {} times",
        balancer.history().len()
    );
    drop(balancer);
    let counters = engine.counters().aeus;
    assert_eq!(counters.iter().map(|aeu| aeu.panics).sum::<u64>(), 0);
    for table in tables {
        let mut expected = table.histories.expect(&engine);
        let rows = table.read(expected.held.at(), 0, 0..table.ids);
        expected.check(0..table.ids, rows);
        drop(expected);
        block_on(engine.drop(table.object)).unwrap();
    }
    assert_eq!(engine.memory().budget().used(), 0, "memory is left over");
    moved
}

#[test]
fn no_row_is_lost_or_wrong_while_rows_change_owners_without_pause() {
    let seed = number("ERIS_SEED", 1);
    println!("seed {seed}");
    let time = Duration::from_secs(number("ERIS_TORTURE_SECONDS", 20)) / 3;
    for (nodes, cores) in [(1, 2), (2, 2), (4, 2)] {
        let [indexed, keyed, plain] = torture(nodes, cores, seed, time);
        assert!(indexed.copied > 0 && indexed.linked == 0, "{indexed:?}");
        assert!(keyed.linked > 0, "{keyed:?}");
        assert!(plain.linked > 0 && plain.copied > 0, "{plain:?}");
    }
}
