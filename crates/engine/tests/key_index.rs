//! Bare indexes against `BTreeMap`, on several topologies and from several threads.

use eris_engine::{Engine, EngineError, KeyClient, SegmentLoad, Settings, Shift};
use eris_numa::{HugePages, Topology};
use eris_types::{AeuId, ObjectId};
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::thread;

fn engine(nodes: u16, cores: u16, memory: u64) -> Engine {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(memory),
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
    Range(u64, u64, usize),
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
        (key(), key(), 0usize..50).prop_map(|(a, b, limit)| Step::Range(a.min(b), a.max(b), limit)),
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
        Step::Range(first, last, limit) => {
            let found = client.range(first..=last, limit).unwrap();
            let expected = oracle.range(first..=last).take(limit);
            assert!(
                found
                    .into_iter()
                    .eq(expected.map(|(key, value)| (*key, *value)))
            );
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
fn who_has_a_client_of_a_dropped_index_gets_an_error() {
    let engine = engine(1, 2, 64 << 20);
    let index = engine.create_key_index("numbers", 0..=99);
    let mut client = index.client().unwrap();
    client.put(&[(1, 1), (90, 2)], &mut [None; 2]).unwrap();
    block_on(index.drop()).unwrap();
    for _ in 0..2 {
        let error = client.get(&[1, 90], &mut [None; 2]).unwrap_err();
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
    let mut refused = None;
    let mut put = 0u64;
    while refused.is_none() {
        let entries: Vec<_> = (put..put + 1000).map(|n| (spread(n), n)).collect();
        refused = client.put(&entries, &mut [None; 1000]).err();
        put += 1000;
        assert!(put < 10_000_000, "8 MiB are not so many keys");
    }
    let error = refused.unwrap();
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
