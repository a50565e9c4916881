//! The balancer's thread, beside clients.
#![allow(missing_docs)]

use eris_engine::{Algorithm, Balancer, Balancing, Engine, KeyIndex, Settings};
use eris_numa::{HugePages, Topology};
use eris_types::AeuId;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

const KEYS: u64 = 80_000;

fn start(balancing: Balancing) -> (Engine, KeyIndex, Balancer) {
    let settings = Settings {
        topology: Topology::fake(2, 2),
        huge_pages: HugePages::Never,
        memory_limit: Some(256 << 20),
        database: None,
    };
    let engine = Engine::start(settings).unwrap();
    let index = engine.create_key_index("numbers", 0..=KEYS - 1);
    let mut client = index.client().unwrap();
    let entries: Vec<(u64, u64)> = (0..KEYS).map(|key| (key, 2 * key)).collect();
    client
        .put(&entries, &mut vec![None; entries.len()])
        .unwrap();
    let balancer = Balancer::start(&engine, balancing).unwrap();
    (engine, index, balancer)
}

fn often(algorithm: Option<Algorithm>) -> Balancing {
    Balancing {
        algorithm,
        threshold: 0.2,
        period: Duration::from_millis(20),
    }
}

/// Asks for keys of the first quarter, which one AEU has in the beginning, until something is so.
fn ask_until(index: &KeyIndex, is_so: impl Fn() -> bool) {
    let mut client = index.client().unwrap();
    let (mut values, mut next) = (vec![None; 1_000], 0);
    let began = Instant::now();
    while !is_so() {
        let keys: Vec<u64> = (next..next + 1_000)
            .map(|at| at * 7_919 % (KEYS / 4))
            .collect();
        client.get(&keys, &mut values).unwrap();
        assert!(
            values
                .iter()
                .zip(&keys)
                .all(|(value, key)| *value == Some(2 * key))
        );
        next += 1_000;
        assert!(began.elapsed() < Duration::from_secs(60), "it never is");
    }
}

fn owners_of_hot_keys(index: &KeyIndex) -> BTreeSet<AeuId> {
    (0..KEYS / 4)
        .step_by(100)
        .map(|key| index.owner(key))
        .collect()
}

#[test]
fn hot_keys_are_spread_over_more_owners_until_it_is_switched_off() {
    let (_engine, index, balancer) = start(often(None));
    ask_until(&index, || true);
    assert_eq!(owners_of_hot_keys(&index), BTreeSet::from([AeuId(0)]));
    balancer.set(often(Some(Algorithm::OneShot)));
    ask_until(&index, || owners_of_hot_keys(&index).len() > 2);
    // What the first cycle has done is told, and what came of it once the period after it is over.
    ask_until(&index, || {
        balancer
            .history()
            .first()
            .is_some_and(|first| first.after.is_some())
    });
    let history = balancer.history();
    let first = &history[0];
    assert_eq!((first.object, &*first.name), (index.id(), "numbers"));
    assert!(first.imbalance > 2.0, "{first:?}");
    for one in &history {
        assert!(one.from != one.to && one.range.is_some(), "{one:?}");
        assert!(
            one.result.as_ref().is_ok_and(|moved| moved.keys > 0),
            "{one:?}"
        );
    }

    balancer.set(often(None));
    // A cycle may be under way; this is a question behind it.
    futures::executor::block_on(index.shift(&[])).unwrap();
    let before = balancer.history().len();
    let began = Instant::now();
    ask_until(&index, || began.elapsed() > Duration::from_millis(200));
    assert!(
        balancer.history().len() <= before + 4,
        "one cycle at most was under way"
    );
}

/// A period in which nobody asks for anything wakes nobody.
#[test]
fn an_idle_index_costs_its_owners_nothing() {
    let (engine, index, balancer) = start(often(Some(Algorithm::MovingAverage(1))));
    let woken = || -> u64 {
        engine
            .counters()
            .aeus
            .iter()
            .map(|aeu| aeu.received.iter().sum::<u64>())
            .sum()
    };
    // Until the balancer has seen the load.
    let began = Instant::now();
    let mut last = (woken(), Instant::now());
    while last.1.elapsed() < Duration::from_millis(400) {
        thread::park_timeout(Duration::from_millis(10));
        if woken() != last.0 {
            last = (woken(), Instant::now());
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "AEUs are asked all the time"
        );
    }
    assert!(balancer.history().is_empty());
    drop(index);
}

#[test]
fn it_ends_at_once_however_long_its_period_is() {
    let hour = Balancing {
        period: Duration::from_secs(3_600),
        ..Balancing::default()
    };
    let began = Instant::now();
    for balancing in [
        hour,
        Balancing {
            algorithm: None,
            ..hour
        },
    ] {
        drop(start(balancing));
    }
    assert!(began.elapsed() < Duration::from_secs(30));
}
