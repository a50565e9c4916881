//! Indexes of a running engine that move their hot nodes together while clients use them.

use eris_engine::{
    Engine, IndexReorganization, KeyClient, KeyIndex, ReorganizationCause, ReorganizationState,
    Settings,
};
use eris_numa::{HugePages, Topology};
use futures::executor::block_on;
use std::thread;

fn engine(nodes: u16, cores: u16) -> Engine {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: None,
    };
    Engine::start(settings).unwrap()
}

/// A bijection that scatters numbers.
fn scatter(number: u64) -> u64 {
    let bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (bits ^ (bits >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

fn fill(index: &KeyIndex, count: u64) {
    let mut client = index.client().unwrap();
    let keys: Vec<u64> = (0..count).map(scatter).collect();
    for keys in keys.chunks(1000) {
        let entries: Vec<(u64, u64)> = keys.iter().map(|key| (*key, !key)).collect();
        client
            .put(&entries, &mut vec![None; entries.len()])
            .unwrap();
    }
}

/// Asks for a thousand keys, of which one in ten is any of `count` and the rest are of a few.
fn ask(client: &mut KeyClient, count: u64, round: u64) {
    let key = |n: u64| match (n + round).is_multiple_of(10) {
        true => scatter(scatter(round * 1000 + n) % count),
        false => scatter(scatter(round * 1000 + n) % 3000 * (count / 3000)),
    };
    let keys: Vec<u64> = (0..1000).map(key).collect();
    let mut values = vec![None; keys.len()];
    client.get(&keys, &mut values).unwrap();
    for (key, value) in keys.iter().zip(values) {
        assert_eq!(value, Some(!key));
    }
}

fn is_at_work(index: &IndexReorganization) -> bool {
    !matches!(
        index.state,
        ReorganizationState::Idle | ReorganizationState::Sampling
    )
}

#[test]
fn skewed_lookups_lead_to_a_reorganisation() {
    const KEYS: u64 = 1_000_000;
    let engine = engine(1, 1);
    let index = engine.create_key_index("hot", 0..=u64::MAX);
    fill(&index, KEYS);
    let mut client = index.client().unwrap();
    // How much is sampled and paid for is counted, not timed; this is several times enough.
    for round in 0..40_000 {
        ask(&mut client, KEYS, round);
        if round % 500 == 0 {
            let all = block_on(index.reorganization()).unwrap();
            let [index] = &all[..] else {
                panic!("an index per AEU: {all:?}")
            };
            if let Some(effect) = &index.effect
                && let Some(walks) = effect.modelled_walks_after
            {
                assert_eq!(effect.cause, ReorganizationCause::Policy);
                assert!(effect.pages_after.unwrap() * 2 < effect.pages_before.unwrap());
                assert!(walks < effect.modelled_walks_before.unwrap());
                return;
            }
        }
    }
    panic!("{:?}", block_on(index.reorganization()));
}

#[test]
fn clients_go_on_while_an_index_is_reorganised_on_demand() {
    const KEYS: u64 = 100_000;
    for (nodes, cores) in [(1, 1), (1, 2), (4, 2)] {
        let engine = engine(nodes, cores);
        let index = engine.create_key_index("hot", 0..=u64::MAX);
        let unused = block_on(index.reorganize()).unwrap();
        assert!(unused.is_empty(), "nobody has a tree");
        fill(&index, KEYS);
        thread::scope(|scope| {
            for thread in 0..2 {
                let mut client = index.client().unwrap();
                scope.spawn(move || {
                    for round in 0..150 {
                        ask(&mut client, KEYS, thread << 20 | round);
                        // Keys of this thread come and go.
                        let keys = (0..200).map(|n| scatter(KEYS << 8 | thread << 40 | n));
                        let entries: Vec<_> = keys.map(|key| (key, !key)).collect();
                        let mut before = vec![None; entries.len()];
                        client.put(&entries, &mut before).unwrap();
                        assert_eq!(before, vec![None; entries.len()]);
                        let keys: Vec<u64> = entries.iter().map(|entry| entry.0).collect();
                        client.remove(&keys, &mut before).unwrap();
                        assert!(before.iter().zip(&keys).all(|(v, key)| *v == Some(!key)));
                    }
                });
            }
            for _ in 0..20 {
                block_on(index.reorganize()).unwrap();
            }
        });
        let mut last = block_on(index.reorganize()).unwrap();
        // Nobody asks any more: whoever looks keeps it going.
        while last.iter().any(is_at_work) {
            last = block_on(index.reorganization()).unwrap();
        }
        let aeus = usize::from(nodes * cores);
        assert_eq!(last.len(), aeus);
        assert_eq!(last.iter().map(|index| index.keys).sum::<u64>(), KEYS);
        for index in last {
            let effect = index.effect.expect("there were samples");
            assert_eq!(
                (effect.cause, effect.failure),
                (ReorganizationCause::Call, None)
            );
            assert_eq!(effect.keys_done, effect.keys_all);
        }
        let mut client = index.client().unwrap();
        (0..50).for_each(|round| ask(&mut client, KEYS, round));
        block_on(index.drop()).unwrap();
    }
}
