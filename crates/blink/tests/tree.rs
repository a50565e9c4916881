//! The tree against `BTreeMap`, and by several threads at a time.

use eris_blink::Tree;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn tree_within(bytes: u64) -> (Tree, Memory) {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(bytes)).unwrap();
    let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    (tree, memory)
}

fn tree() -> Tree {
    tree_within(4 << 30).0
}

/// A number that looks like no other: all of them differ.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

#[derive(Clone, Debug)]
enum Operation {
    Put(u64, u64),
    Remove(u64),
    Get(u64),
    Range(u64, u64, Vec<bool>),
}

fn operation() -> impl Strategy<Value = Operation> {
    // Few keys, so that they meet; and those at both ends.
    let key = prop_oneof![8 => 0..600u64, 1 => u64::MAX - 3..=u64::MAX, 1 => any::<u64>()];
    let ends = prop::collection::vec(any::<bool>(), 0..80);
    prop_oneof![
        6 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Operation::Put(key, value)),
        3 => key.clone().prop_map(Operation::Remove),
        2 => key.clone().prop_map(Operation::Get),
        1 => (key.clone(), key, ends).prop_map(|(a, b, ends)| Operation::Range(a, b, ends)),
    ]
}

proptest! {
    #[test]
    fn it_is_a_map(operations in prop::collection::vec(operation(), 0..1500)) {
        let (tree, mut model) = (tree(), BTreeMap::new());
        for operation in operations {
            match operation {
                Operation::Put(key, value) => {
                    prop_assert_eq!(tree.put(key, value).unwrap(), model.insert(key, value));
                }
                Operation::Remove(key) => prop_assert_eq!(tree.remove(key), model.remove(&key)),
                Operation::Get(key) => prop_assert_eq!(tree.get(key), model.get(&key).copied()),
                Operation::Range(a, b, ends) => {
                    let (first, last) = (a.min(b), a.max(b));
                    let (mut found, mut expected) = (tree.range(first..=last), model.range(first..=last));
                    for from_back in ends {
                        let (found, expected) = match from_back {
                            true => (found.next_back(), expected.next_back()),
                            false => (found.next(), expected.next()),
                        };
                        prop_assert_eq!(found, expected.map(|(key, value)| (*key, *value)));
                    }
                }
            }
        }
        let expected: Vec<_> = model.into_iter().collect();
        prop_assert_eq!(tree.range(..).collect::<Vec<_>>(), expected.clone());
        prop_assert!(tree.range(..).rev().eq(expected.into_iter().rev()));
    }
}

#[test]
fn many_keys_in_any_order() {
    const KEYS: u64 = 300_000;
    for key in [|number| number, |number| KEYS - number, scattered] {
        let tree = tree();
        for number in 0..KEYS {
            assert_eq!(tree.put(key(number), number).unwrap(), None);
        }
        let keys: Vec<u64> = (0..KEYS + 10).map(key).collect();
        let mut values = vec![None; keys.len()];
        tree.get_many(&keys, &mut values);
        for (number, value) in values.iter().enumerate() {
            let number = number as u64;
            assert_eq!(*value, (number < KEYS).then_some(number));
            assert_eq!(tree.get(key(number)), *value);
        }
        let mut sorted: Vec<u64> = (0..KEYS).map(key).collect();
        sorted.sort_unstable();
        assert!(
            tree.range(..)
                .map(|(key, _)| key)
                .eq(sorted.iter().copied())
        );
        // 512 bytes a node, half full at the least.
        assert!(tree.height() <= 5, "{tree:?}");
        for number in 0..KEYS {
            assert_eq!(tree.remove(key(number)), Some(number));
        }
        assert_eq!(tree.range(..).next(), None);
    }
}

#[test]
fn keys_that_ascend_fill_their_nodes() {
    let (tree, memory) = tree_within(1 << 30);
    for key in 0..1_000_000 {
        tree.put(key, key).unwrap();
    }
    // 16 bytes an entry, 17 with the header, some for the levels above and the last slab.
    assert!(
        memory.budget().used() < 22_000_000,
        "{} bytes",
        memory.budget().used()
    );
}

#[test]
fn without_memory_nothing_changes() {
    let (tree, memory) = tree_within(3 << 20);
    let keys = || (0..200_000).map(scattered);
    let denied: HashSet<u64> = keys()
        .filter(|&key| tree.put(key, key ^ 1).is_err())
        .collect();
    assert!(!denied.is_empty());
    // Those that found room in their leaves are there, and no others.
    for key in keys() {
        assert_eq!(tree.get(key), (!denied.contains(&key)).then_some(key ^ 1));
    }
    memory.budget().set_limit(1 << 30);
    for &key in &denied {
        assert_eq!(tree.put(key, key ^ 1).unwrap(), None);
    }
    assert_eq!(tree.range(..).count(), 200_000);
}

/// Writers have keys of their own, so that each knows what its keys are. Readers see values that were there, and scans
/// all keys that stay.
#[test]
fn threads_share_it() {
    const WRITERS: u64 = 4;
    const ROUNDS: u64 = 60_000;
    let tree = tree();
    // Keys that stay lie between all others.
    for number in 0..5_000 {
        tree.put(scattered(number) & !7, number).unwrap();
    }
    let mut stay: Vec<u64> = tree.range(..).map(|(key, _)| key).collect();
    stay.dedup();
    let (is_over, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut model = BTreeMap::new();
                    for round in 0..ROUNDS {
                        let key = scattered(scattered(round * WRITERS + writer) % 20_000) & !7
                            | (writer + 1);
                        match round % 3 {
                            2 => assert_eq!(tree.remove(key), model.remove(&key)),
                            _ => {
                                let value = round << 3 | writer;
                                assert_eq!(tree.put(key, value).unwrap(), model.insert(key, value));
                            }
                        }
                        assert_eq!(tree.get(key), model.get(&key).copied());
                    }
                    model
                })
            })
            .collect();
        for is_backwards in [false, true] {
            let (tree, stay, is_over, scans) = (&tree, &stay, &is_over, &scans);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut keys: Vec<u64> = match is_backwards {
                        false => tree.range(..).map(|(key, _)| key).collect(),
                        true => tree.range(..).rev().map(|(key, _)| key).collect(),
                    };
                    if is_backwards {
                        keys.reverse();
                    }
                    assert!(
                        keys.is_sorted_by(|a, b| a < b),
                        "no key twice, and all in order"
                    );
                    let found = keys.iter().copied().filter(|key| key % 8 == 0);
                    assert!(found.eq(stay.iter().copied()));
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // A failure is told when the readers have ended.
        let models: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        let models = models.into_iter().map(|model| model.unwrap());
        let mut all: BTreeMap<u64, u64> = models.flatten().collect();
        for (key, value) in tree.range(..).filter(|(key, _)| key % 8 == 0) {
            all.insert(key, value);
        }
        assert!(tree.range(..).eq(all));
    });
    assert!(scans.into_inner() > 0);
}
