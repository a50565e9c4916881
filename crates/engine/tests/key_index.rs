//! Bare indexes against `BTreeMap`, on several topologies and from several threads.

use eris_engine::{Engine, EngineError, KeyClient, KeyIndex, SegmentLoad, Settings, Shift};
use eris_numa::{HugePages, Topology};
use eris_types::{AeuId, ObjectId};
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

fn engine(nodes: u16, cores: u16, memory: u64) -> Engine {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(memory),
        database: None,
    };
    Engine::start(settings).unwrap()
}

/// What an object takes.
fn bytes(engine: &Engine, object: ObjectId) -> u64 {
    let usage = engine.memory().usage();
    let own = usage.iter().filter(|usage| usage.object == object);
    own.map(|usage| usage.bytes).sum()
}

#[derive(Clone, Debug)]
enum Step {
    Get(Vec<u64>),
    Put(Vec<(u64, u64)>),
    Remove(Vec<u64>),
    Ranges(Vec<(u64, u64)>, usize),
}

/// Keys that meet each other, also outside the range that the index expects.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..300, 1 => 990u64..1100, 1 => any::<u64>()]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        vec(key(), 0..80).prop_map(Step::Get),
        vec((key(), any::<u64>()), 0..80).prop_map(Step::Put),
        vec(key(), 0..40).prop_map(Step::Remove),
        (vec((key(), key()), 0..20), 0usize..50)
            .prop_map(|(ranges, limit)| Step::Ranges(ranges, limit)),
    ]
}

fn check(client: &mut KeyClient, oracle: &mut BTreeMap<u64, u64>, step: Step) {
    match step {
        Step::Get(keys) => {
            let mut values = vec![Some(7); keys.len()];
            client.get(&keys, &mut values).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| oracle.get(key).copied()).collect();
            assert_eq!(values, expected);
        }
        Step::Put(entries) => {
            let mut before = vec![None; entries.len()];
            client.put(&entries, &mut before).unwrap();
            let expected: Vec<_> = entries
                .iter()
                .map(|(key, value)| oracle.insert(*key, *value))
                .collect();
            assert_eq!(before, expected);
        }
        Step::Remove(keys) => {
            let mut values = vec![None; keys.len()];
            client.remove(&keys, &mut values).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| oracle.remove(key)).collect();
            assert_eq!(values, expected);
        }
        Step::Ranges(ranges, limit) => {
            let ranges: Vec<_> = ranges.into_iter().map(|(a, b)| a..=b).collect();
            let all = client.ranges(&ranges, limit).unwrap();
            assert_eq!(all.len(), ranges.len());
            for (keys, found) in ranges.into_iter().zip(all) {
                let entries = oracle.iter().filter(|(key, _)| keys.contains(key));
                let expected = entries.map(|(key, value)| (*key, *value));
                assert!(found.iter().copied().eq(expected.take(limit)), "{keys:?}");
                assert_eq!(client.range(keys, limit).unwrap(), found);
            }
        }
    }
}

#[test]
fn one_client_sees_what_a_btree_map_would_hold() {
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        let engine = engine(nodes, cores, 256 << 20);
        proptest!(ProptestConfig::with_cases(60), |(steps in vec(step(), 1..40))| {
            let index = engine.create_key_index("numbers", 0..=1023);
            let mut client = index.client().unwrap();
            let mut oracle = BTreeMap::new();
            for step in steps {
                check(&mut client, &mut oracle, step);
            }
            block_on(index.drop()).unwrap();
            prop_assert_eq!(bytes(&engine, index.id()), 0);
        });
    }
}

/// Parts of so many keys are executed by their AEUs side by side, beside clients with short ones.
#[test]
fn long_batches_of_several_clients_are_done_in_full() {
    const KEYS: u64 = 40_000;
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        let engine = engine(nodes, cores, 512 << 20);
        let index = engine.create_key_index("numbers", 0..=4 * KEYS);
        thread::scope(|scope| {
            for own in 0..4 {
                let mut client = index.client().unwrap();
                scope.spawn(move || {
                    let mut oracle = BTreeMap::new();
                    // Keys that others have not, all over the range, and some of them twice.
                    let all: Vec<u64> = (0..KEYS).map(|i| 4 * (i * 7_919 % KEYS) + own).collect();
                    let wanted: Vec<u64> = all.iter().chain(&all[..100]).copied().collect();
                    let put = wanted.iter().map(|key| (*key, key ^ own)).collect();
                    check(&mut client, &mut oracle, Step::Put(put));
                    check(&mut client, &mut oracle, Step::Get(wanted.clone()));
                    check(
                        &mut client,
                        &mut oracle,
                        Step::Remove(wanted[..30_000].to_vec()),
                    );
                    check(&mut client, &mut oracle, Step::Get(wanted[..50].to_vec()));
                    check(&mut client, &mut oracle, Step::Get(wanted));
                });
            }
        });
        block_on(index.drop()).unwrap();
    }
}

/// Several threads, each with keys of its own in every partition, while statements keep the AEUs awake.
#[test]
fn clients_do_not_disturb_each_other() {
    for (nodes, cores) in [(1, 2), (4, 2)] {
        let engine = engine(nodes, cores, 512 << 20);
        let index = engine.create_key_index("numbers", 0..=(4 << 32));
        thread::scope(|scope| {
            for me in 0..4u64 {
                let mut client = index.client().unwrap();
                scope.spawn(move || {
                    let mut oracle = BTreeMap::new();
                    let mut state = me + 1;
                    let mut random = move || {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                        state >> 33
                    };
                    for round in 0..400u64 {
                        // Four partitions' worth of keys, of which every fourth is this thread's.
                        let mut keys = |count: u64| -> Vec<u64> {
                            let key =
                                |random: u64| ((random % 4) << 32) + random % 5000 / 4 * 4 + me;
                            (0..count).map(|_| key(random())).collect()
                        };
                        let step = match round % 3 {
                            0 => Step::Put(keys(60).into_iter().map(|key| (key, round)).collect()),
                            1 => Step::Get(keys(round % 90)),
                            _ => Step::Remove(keys(10)),
                        };
                        check(&mut client, &mut oracle, step);
                    }
                });
            }
        });
    }
}

#[test]
fn more_ranges_than_are_read_at_once_are_all_read() {
    for (nodes, cores) in [(1, 1), (4, 2)] {
        let engine = engine(nodes, cores, 256 << 20);
        let index = engine.create_key_index("numbers", 0..=9_999);
        fill(&index, 0..10_000);
        let mut client = index.client().unwrap();
        for limit in [1, 30, usize::MAX] {
            let ranges: Vec<_> = (0..5_000).map(|n| n * 2..=n * 2 + n % 300).collect();
            let all = client.ranges(&ranges, limit).unwrap();
            assert_eq!(all.len(), ranges.len());
            for (range, found) in ranges.into_iter().zip(all) {
                let keys = range.filter(|key| *key < 10_000).take(limit);
                assert!(found.into_iter().eq(keys.map(|key| (key, 2 * key))));
            }
        }
    }
}

#[test]
fn who_has_a_client_of_a_dropped_index_gets_an_error() {
    let engine = engine(1, 2, 64 << 20);
    let index = engine.create_key_index("numbers", 0..=99);
    let mut client = index.client().unwrap();
    client.put(&[(1, 1), (90, 2)], &mut [None; 2]).unwrap();
    block_on(index.drop()).unwrap();
    for _ in 0..2 {
        let error = client.get(&[1, 90], &mut [None; 2]).unwrap_err();
        assert!(matches!(error, EngineError::NoSuchObject(_)), "{error}");
        let error = client.ranges(&[], 1).unwrap_err();
        assert!(matches!(error, EngineError::NoSuchObject(_)), "{error}");
    }
    assert_eq!(bytes(&engine, index.id()), 0);
}

#[test]
fn without_memory_the_rest_stays_usable() {
    let engine = engine(1, 2, 8 << 20);
    let index = engine.create_key_index("numbers", 0..=u64::MAX);
    let mut client = index.client().unwrap();
    let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut denied = None;
    let mut put = 0u64;
    while denied.is_none() {
        let entries: Vec<_> = (put..put + 1000).map(|n| (spread(n), n)).collect();
        denied = client.put(&entries, &mut [None; 1000]).err();
        put += 1000;
        assert!(put < 10_000_000, "8 MiB are not so many keys");
    }
    let error = denied.unwrap();
    assert!(matches!(error, EngineError::OutOfMemory { .. }), "{error}");
    for n in 0..put - 1000 {
        let mut value = [None];
        client.get(&[spread(n)], &mut value).unwrap();
        assert_eq!(value, [Some(n)]);
    }
}

/// Who looks at loads now and then must not keep AEUs awake that have nothing to do.
#[test]
fn owners_that_have_done_nothing_are_not_asked_for_their_loads() {
    let engine = engine(2, 2, 256 << 20);
    let received = || -> Vec<u64> {
        let all = engine.counters().aeus;
        all.iter().map(|aeu| aeu.received.iter().sum()).collect()
    };
    let unused = engine.create_key_index("unused", 0..=399);
    let before = received();
    assert!(block_on(unused.measure()).unwrap().is_empty());
    assert_eq!(received(), before);

    let index = engine.create_key_index("numbers", 0..=399);
    let mut client = index.client().unwrap();
    let entries: Vec<(u64, u64)> = (0..400).map(|key| (key, key)).collect();
    client.put(&entries, &mut [None; 400]).unwrap();
    let first = block_on(index.measure()).unwrap();
    let asked = |loads: &[SegmentLoad]| loads.iter().map(|load| load.asked).collect::<Vec<_>>();
    assert_eq!(asked(&first), [100; 4]);

    // Nobody is asked, and all is as it was.
    let before = received();
    let idle = block_on(index.measure()).unwrap();
    assert_eq!(received(), before);
    assert_eq!(asked(&idle), [0; 4]);
    let what = |loads: &[SegmentLoad]| -> Vec<_> {
        let loads = loads.iter();
        loads
            .map(|load| (load.aeu, load.low, load.high, load.keys, load.bytes))
            .collect()
    };
    assert_eq!(what(&idle), what(&first));

    // Who has something to tell, by operations or because keys came or went, is asked.
    client.get(&[150, 160], &mut [None; 2]).unwrap();
    let before = received();
    assert_eq!(asked(&block_on(index.measure()).unwrap()), [0, 2, 0, 0]);
    let woken: Vec<u64> = received()
        .iter()
        .zip(before)
        .map(|(now, before)| now - before)
        .collect();
    assert_eq!(woken, [0, 1, 0, 0]);
    let to = AeuId(3);
    block_on(index.shift(&[Shift {
        low: 0,
        high: 99,
        to,
    }]))
    .unwrap();
    let shifted = block_on(index.measure()).unwrap();
    let keys: u64 = shifted
        .iter()
        .filter(|load| load.aeu == to)
        .map(|load| load.keys)
        .sum();
    assert_eq!(keys, 200);
    assert!(
        shifted.iter().all(|load| load.aeu != AeuId(0)),
        "{shifted:?}"
    );
}

/// Keys, with their doubles as values.
fn fill(index: &KeyIndex, keys: std::ops::Range<u64>) {
    let mut client = index.client().unwrap();
    let entries: Vec<(u64, u64)> = keys.map(|key| (key, 2 * key)).collect();
    for entries in entries.chunks(5_000) {
        client.put(entries, &mut vec![None; entries.len()]).unwrap();
    }
}

fn check_values(index: &KeyIndex, keys: std::ops::Range<u64>) {
    let mut client = index.client().unwrap();
    let keys: Vec<u64> = keys.collect();
    for keys in keys.chunks(5_000) {
        let mut values = vec![None; keys.len()];
        client.get(keys, &mut values).unwrap();
        assert!(
            values
                .iter()
                .zip(keys)
                .all(|(value, key)| *value == Some(2 * key))
        );
    }
}

#[test]
fn a_shift_that_nobody_waits_for_becomes_known_all_the_same() {
    let engine = engine(2, 1, 256 << 20);
    let index = engine.create_key_index("numbers", 0..=99_999);
    fill(&index, 0..100_000);
    let shift = Shift {
        low: 0,
        high: 49_999,
        to: AeuId(1),
    };
    {
        let shifts = [shift];
        let mut begun = std::pin::pin!(index.shift(&shifts));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(begun.as_mut().poll(&mut cx).is_pending());
    }
    let began = Instant::now();
    while index.owner(7) != AeuId(1) {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "nobody publishes it"
        );
        thread::yield_now();
    }
    check_values(&index, 0..100_000);
}

#[test]
fn shifts_that_make_no_sense_are_rejected() {
    let engine = engine(2, 1, 64 << 20);
    let index = engine.create_key_index("numbers", 0..=999);
    fill(&index, 0..1_000);
    let shift = |low, high, to| Shift {
        low,
        high,
        to: AeuId(to),
    };
    let denied = |shifts: &[Shift]| match block_on(index.shift(shifts)) {
        Err(EngineError::Shift { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(denied(&[shift(0, 9, 2)]), "there is no AEU 2, only 2 AEUs");
    assert_eq!(denied(&[shift(9, 0, 1)]), "there are no keys from 9 to 0");
    let twice = [shift(50, 99, 0), shift(0, 50, 1)];
    assert_eq!(denied(&twice), "key 50 shall have two owners");
    check_values(&index, 0..1_000);
}

#[test]
fn aeus_without_time_are_rejected() {
    for share in [0.0, -1.0, f64::NAN, f64::INFINITY, 1.5] {
        let settings = Settings {
            topology: Topology::fake(1, 1),
            huge_pages: HugePages::Never,
            memory_limit: Some(64 << 20),
            database: None,
        };
        let started = Engine::start_with_share(settings, Some(share));
        assert!(matches!(started, Err(EngineError::Start(_))), "{share}");
    }
}

/// A key among many others far apart from it, below `limit`.
fn scattered(number: u64, limit: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % limit
}

/// To part a segment, or to copy it to another node, takes memory that there is not: what was moved by then is used
/// there, the rest here; some memory is spared for those who write, and everything can be moved later.
#[test]
fn without_memory_some_keys_stay_where_they_are() {
    // What is spared is some slabs.
    const LIMIT: u64 = 64 << 20;
    for (nodes, cores) in [(2, 1), (1, 2)] {
        let engine = engine(nodes, cores, LIMIT);
        let index = engine.create_key_index("numbers", 0..=u64::MAX);
        let half = u64::MAX / 2;
        let mut client = index.client().unwrap();
        // All of them the first owner's.
        let mut keys = Vec::new();
        while engine.memory().budget().used() < LIMIT / 4 * 3 {
            let next = keys.len() as u64..keys.len() as u64 + 500;
            let entries: Vec<_> = next.map(|n| (scattered(n, half), n)).collect();
            client
                .put(&entries, &mut vec![None; entries.len()])
                .unwrap();
            keys.extend(entries);
        }
        let mut check = |keys: &[(u64, u64)]| {
            for keys in keys.chunks(1_000) {
                let asked: Vec<u64> = keys.iter().map(|entry| entry.0).collect();
                let mut values = vec![None; asked.len()];
                client.get(&asked, &mut values).unwrap();
                assert!(
                    values
                        .iter()
                        .zip(keys)
                        .all(|(value, entry)| *value == Some(entry.1))
                );
            }
        };
        // From node to node all are copied; within a node the smaller side of those that are parted.
        let high = if cores == 1 { half } else { half / 2 };
        let shift = Shift {
            low: 0,
            high,
            to: AeuId(1),
        };
        for _ in 0..3 {
            let [one] = &block_on(index.shift(&[shift])).unwrap()[..] else {
                panic!("one owner has them all");
            };
            let reason = one.result.as_ref().unwrap_err();
            assert!(reason.contains("memory"), "{reason}");
            assert_eq!(index.owner(high), AeuId(0));
            check(&keys);
            let entry = [(keys.len() as u64 * 3, 7)];
            client_put(&index, &entry);
            client_remove(&index, &[entry[0].0]);
        }
        engine.memory().budget().set_limit(2 * LIMIT);
        let shifted = block_on(index.shift(&[shift])).unwrap();
        let moved = shifted[0].result.as_ref().unwrap();
        let expected = keys.iter().filter(|entry| entry.0 <= high).count() as u64;
        // Some were moved before.
        assert!(
            (1..=expected).contains(&moved.keys),
            "{moved:?} of {expected}"
        );
        assert_eq!((index.owner(0), index.owner(high)), (AeuId(1), AeuId(1)));
        check(&keys);
    }
}

/// However many keys are added to those that leave, and however fast: the owner that gives them catches up.
#[test]
fn keys_that_grow_ahead_of_their_transfer_are_given() {
    const BATCH: u64 = 4_096;
    const MOST: u64 = 40_000_000;
    let engine = engine(2, 1, 4 << 30);
    let index = engine.create_key_index("numbers", 0..=u64::MAX);
    let (written, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = index.client().unwrap();
            let mut before = vec![None; BATCH as usize];
            while !is_over.load(Ordering::Relaxed) && written.load(Ordering::Relaxed) < MOST {
                let first = written.load(Ordering::Relaxed);
                let entries: Vec<_> = (first..first + BATCH).map(|key| (key, key)).collect();
                client.put(&entries, &mut before).unwrap();
                written.store(first + BATCH, Ordering::Relaxed);
            }
        });
        while written.load(Ordering::Relaxed) < 1_000_000 {
            thread::yield_now();
        }
        let shift = Shift {
            low: 0,
            high: u64::MAX / 2 - 1,
            to: AeuId(1),
        };
        let shifted = block_on(index.shift(&[shift])).unwrap();
        let then = written.load(Ordering::Relaxed);
        is_over.store(true, Ordering::Relaxed);
        let moved = shifted[0].result.as_ref().unwrap();
        assert!(then < MOST, "it ended only when nothing was added any more");
        assert!(moved.keys <= then + BATCH, "{moved:?} of {then}");
    });
    let keys: Vec<u64> = (0..written.load(Ordering::Relaxed)).collect();
    let mut client = index.client().unwrap();
    for keys in keys.chunks(100_000) {
        let mut values = vec![None; keys.len()];
        client.get(keys, &mut values).unwrap();
        assert!(
            values
                .iter()
                .zip(keys)
                .all(|(value, key)| *value == Some(*key))
        );
    }
}

fn client_put(index: &KeyIndex, entries: &[(u64, u64)]) {
    let mut before = vec![None; entries.len()];
    index.client().unwrap().put(entries, &mut before).unwrap();
}

fn client_remove(index: &KeyIndex, keys: &[u64]) {
    let mut values = vec![None; keys.len()];
    index.client().unwrap().remove(keys, &mut values).unwrap();
    assert!(values.iter().all(Option::is_some));
}
