//! An index that is watched: when it reorganises itself, what that does, and that nothing else changes.

use super::policy::Policy;
use super::{ReorganizationCause, ReorganizationState, Watched};
use crate::simulations::simulated::number;
use eris_aeu::Random;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;

const POLICY: Policy = Policy {
    ring: 4_000,
    every: 3,
    least_bytes: 0,
    slice: 16,
};

fn memory(bytes: u64) -> Memory {
    Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(bytes)).unwrap()
}

/// A tree of so many keys, in no order, and the keys.
fn tree(memory: &Memory, keys: u64, random: &mut Random) -> (Watched<u64>, Vec<u64>) {
    let mut tree = Watched::with_policy(memory.node(NodeId(0)), ObjectId(1), POLICY);
    let keys: Vec<u64> = (0..keys).map(|_| random.bits()).collect();
    for key in &keys {
        tree.insert(*key, !key).unwrap();
    }
    (tree, keys)
}

fn seed() -> u64 {
    let seed = number("ERIS_SEED").unwrap_or(7);
    println!("ERIS_SEED={seed}");
    seed
}

/// Asks for so many batches of keys by chance; `of` says out of which one is taken.
fn ask(
    tree: &mut Watched<u64>,
    batches: usize,
    random: &mut Random,
    of: impl Fn(&mut Random) -> u64,
) {
    let mut values = [None; 100];
    for _ in 0..batches {
        let keys = [(); 100].map(|()| of(random));
        tree.get_many(&keys, &mut values);
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(value, Some(!key));
        }
        tree.work_for_lookups(0);
    }
}

#[test]
fn few_hot_keys_on_many_pages_are_moved_together() {
    let memory = memory(1 << 30);
    let mut random = Random::new(seed());
    let (mut tree, keys) = tree(&memory, 600_000, &mut random);
    // One key in ten is asked for without being hot.
    let hot = |random: &mut Random| match random.one_in(10) {
        true => keys[random.below(keys.len())],
        false => keys[random.below(900) * 600],
    };
    let mut rounds = 0;
    while tree.counts().1 == 0 {
        ask(&mut tree, 100, &mut random, hot);
        rounds += 1;
        assert!(rounds < 5_000, "{tree:?}");
    }
    let effect = tree.effect().unwrap();
    assert_eq!(
        (effect.cause, &effect.failure),
        (ReorganizationCause::Policy, &None)
    );
    assert!(effect.keys_done == effect.keys_all && effect.nodes_moved > 900);
    let (before, after) = (effect.pages_before.unwrap(), effect.pages_after.unwrap());
    assert!(after * 4 < before, "{effect:?}");
    assert!(
        effect.modelled_walks_after.unwrap() < effect.modelled_walks_before.unwrap(),
        "{effect:?}"
    );
    tree.check();
    // What is hot is in order now, and left as it is.
    let moved = effect.nodes_moved;
    while tree.counts().1 == 1 {
        ask(&mut tree, 100, &mut random, hot);
    }
    let again = tree.effect().unwrap();
    assert!(moved > 0 && again.nodes_moved == 0, "{again:?}");
}

#[test]
fn keys_that_are_asked_for_equally_often_stay_where_they_are() {
    let memory = memory(1 << 30);
    let mut random = Random::new(seed());
    let (mut tree, keys) = tree(&memory, 100_000, &mut random);
    while tree.counts().1 < 3 {
        ask(&mut tree, 100, &mut random, |random| {
            keys[random.below(keys.len())]
        });
    }
    let effect = tree.effect().unwrap();
    assert_eq!((effect.nodes_moved, effect.samples), (0, 4_000));
    assert_eq!(tree.state(), ReorganizationState::Sampling);
}

/// Also that work is done only as it is paid for.
#[test]
fn a_tree_is_written_while_it_is_reorganised() {
    let memory = memory(1 << 30);
    let mut random = Random::new(seed());
    let (mut tree, keys) = tree(&memory, 20_000, &mut random);
    let mut model: BTreeMap<u64, u64> = keys.iter().map(|key| (*key, !key)).collect();
    for round in 0..40 {
        for _ in 0..300 {
            let key = keys[random.below(keys.len() / (1 + round))];
            match random.below(4) {
                0 => assert_eq!(tree.remove(key), model.remove(&key)),
                1 => {
                    let value = random.bits();
                    assert_eq!(tree.upsert(key, value).unwrap(), model.insert(key, value));
                }
                2 => {
                    let found: Vec<_> = tree.range(key..).take(20).collect();
                    let expected = model.range(key..).take(20);
                    assert!(found.into_iter().eq(expected.map(|(k, v)| (*k, *v))));
                }
                _ => assert_eq!(tree.get(key), model.get(&key).copied()),
            }
            tree.work_for_lookups(20);
        }
        tree.begin(ReorganizationCause::Call);
        if round % 2 == 0 {
            // Carried by nobody, it is carried by slices, but not while somebody asks.
            tree.get(keys[0]);
            assert!(!tree.slice() && tree.is_at_work());
            while tree.slice() {}
            assert!(!tree.is_at_work());
        }
    }
    assert!(tree.counts().1 >= 20);
    tree.check();
    assert!(tree.range(..).eq(model.iter().map(|(k, v)| (*k, *v))));
}

#[test]
fn denied_memory_ends_a_reorganisation_and_nothing_else() {
    let memory = memory(1 << 30);
    let mut random = Random::new(seed());
    let (mut tree, keys) = tree(&memory, 100_000, &mut random);
    let of = |random: &mut Random| keys[random.below(100) * 900];
    ask(&mut tree, 5, &mut random, of);
    let used = memory.budget().used();
    memory.budget().set_limit(used);
    tree.begin(ReorganizationCause::Call);
    assert!(!tree.is_at_work(), "no memory to count in");
    let failure = tree.effect().unwrap().failure;
    assert!(failure.is_some_and(|why| why.contains("memory")));

    memory.budget().set_limit(used + (60 << 10));
    ask(&mut tree, 3, &mut random, of);
    tree.begin(ReorganizationCause::Call);
    while tree.is_at_work() {
        tree.slice();
    }
    let effect = tree.effect().unwrap();
    assert!(effect.failure.is_some() && effect.modelled_walks_before.is_some());
    assert_eq!(effect.modelled_walks_after, None);
    tree.check();
    assert!(memory.budget().used() <= used);
    ask(&mut tree, 10, &mut random, of);
}

#[test]
fn who_panics_is_given_up() {
    let memory = memory(1 << 30);
    let mut random = Random::new(seed());
    let (mut tree, keys) = tree(&memory, 1_000, &mut random);
    ask(&mut tree, 1, &mut random, |random| keys[random.below(10)]);
    tree.begin(ReorganizationCause::Call);
    assert_eq!(tree.state(), ReorganizationState::Counting);
    tree.give_up("on purpose");
    assert!(!tree.is_at_work());
    let effect = tree.effect().unwrap();
    assert_eq!(effect.failure.as_deref(), Some("on purpose"));
}
