//! Memory: denied, returned, handed over.

use crate::driver::{Choices, Pair, Random, TestKey, all_memory, memory};
use eris_index::{Art, IndexError};
use eris_types::{NodeId, ObjectId};

const KEYS: u64 = if cfg!(miri) { 300 } else { 200_000 };

/// Inserts and removes while memory is denied again and again, also the little that a removal wants; what is denied
/// leaves the tree as it was.
fn denied<K: TestKey + ?Sized>() {
    let memory = all_memory(1 << 30);
    let mut choices = Random(7);
    let mut tree: Art<K> = Art::new(memory.node(NodeId(0)), ObjectId(1));
    let mut model = std::collections::BTreeMap::new();
    let (mut denied, mut removed) = (0, 0);
    for i in 0..KEYS {
        if choices.below(30).unwrap() == 0 {
            tree.trim();
            let much = choices.below(2).unwrap() == 0;
            memory.budget().set_limit(if much { 1 << 30 } else { 0 });
        }
        let key = K::make(&mut choices).expect("choices without end");
        match tree.upsert(K::view(&key), i) {
            Ok(before) => assert_eq!(before, model.insert(key, i)),
            Err(error) => {
                assert!(matches!(error, IndexError::OutOfMemory(_)), "{error}");
                assert_eq!(tree.get(K::view(&key)), None);
                denied += 1;
                if denied % 500 == 1 {
                    tree.check();
                }
            }
        }
        // Few keys in the end, so that nodes shrink and vanish.
        for _ in 0..if model.len() > 60 {
            2
        } else {
            choices.below(2).unwrap()
        } {
            let from = K::make(&mut choices).expect("choices without end");
            let Some((key, _)) = model
                .range(&from..)
                .next()
                .map(|(key, value)| (key.clone(), *value))
            else {
                continue;
            };
            assert_eq!(tree.remove(K::view(&key)), model.remove(&key));
            removed += 1;
        }
    }
    assert!(denied > 0 && removed > 0);
    tree.check();
    assert!(
        tree.iter()
            .map(|(key, value)| (K::own(key), value))
            .eq(model)
    );
}

#[test]
fn denied_memory_leaves_a_tree_of_numbers_as_it_was() {
    denied::<u64>();
}

#[test]
fn denied_memory_leaves_a_tree_of_byte_strings_as_it_was() {
    denied::<[u8]>();
}

/// Two last levels below one branch, in every order of removal: a node of one value cannot become a record, and takes
/// what leads to it alone with it when its last value goes.
#[test]
fn removing_needs_no_memory() {
    let keys = [0u64, 1, 256, 257];
    for first in 0..keys.len() {
        for step in [1, 3] {
            let memory = all_memory(1 << 20);
            let mut tree: Art<u64> = Art::new(memory.node(NodeId(0)), ObjectId(1));
            keys.iter()
                .for_each(|key| assert_eq!(tree.insert(*key, key + 7), Ok(None)));
            tree.trim();
            memory.budget().set_limit(0);
            let records = |tree: &Art<u64>| tree.classes().last().expect("records").bytes.held;
            assert_eq!(records(&tree), 0);
            for i in 0..keys.len() {
                let key = keys[(first + i * step) % keys.len()];
                assert_eq!(tree.remove(key), Some(key + 7));
                assert_eq!((tree.get(key), records(&tree)), (None, 0));
                tree.check();
            }
            assert_eq!(tree.footprint().held, 0);
        }
    }
}

#[test]
fn a_batch_stops_at_the_entry_that_was_rejected() {
    let mut tree: Art<u64> = Art::new(memory(16 << 10), ObjectId(1));
    let mut choices = Random(8);
    let entries: Vec<(u64, u64)> = (0..5000)
        .map(|i| (choices.below(u64::MAX).unwrap(), i))
        .collect();
    let error = tree
        .insert_many(&entries, &mut vec![None; entries.len()])
        .expect_err("too many");
    assert!(matches!(error.error, IndexError::OutOfMemory(_)), "{error}");
    tree.check();
    assert_eq!(tree.len(), error.done);
    assert!(
        entries[..error.done]
            .iter()
            .all(|(key, value)| tree.get(*key) == Some(*value))
    );
    let mut sorted = entries;
    sorted.sort_unstable();
    let built = Art::<u64>::build(memory(16 << 10), ObjectId(1), &sorted);
    let error = built.expect_err("too many").error;
    assert!(matches!(error, IndexError::OutOfMemory(_)), "{error}");
}

#[test]
fn entries_that_do_not_ascend_are_rejected() {
    for keys in [[1, 2, 2], [1, 3, 2]] {
        let entries = keys.map(|key| (key, 0));
        let error = Art::<u64>::build(memory(1 << 20), ObjectId(1), &entries).unwrap_err();
        assert_eq!((error.done, error.error), (2, IndexError::OutOfOrder));
    }
}

#[test]
fn a_key_that_is_too_long_is_rejected() {
    let mut tree: Art<[u8]> = Art::new(memory(1 << 20), ObjectId(1));
    let key = vec![7; eris_index::MAX_KEY + 1];
    assert_eq!(tree.insert(&key, 1), Err(IndexError::KeyTooLong(key.len())));
    assert_eq!(tree.insert(&key[1..], 1), Ok(None));
    assert_eq!(tree.get(&key[1..]), Some(1));
}

#[test]
#[should_panic(expected = "no key is the beginning of another")]
fn a_key_that_begins_another_is_a_mistake() {
    let mut tree: Art<[u8]> = Art::new(memory(1 << 20), ObjectId(1));
    tree.insert(b"ab", 1).unwrap();
    let _ = tree.insert(b"abc", 2);
}

#[test]
fn memory_comes_back() {
    let memory = memory(1 << 30);
    let before = memory.mapped_bytes();
    let mut pair: Pair<u64> = Pair::new(memory.clone());
    let mut choices = Random(9);
    for i in 0..KEYS {
        pair.tree
            .insert(choices.below(u64::MAX).unwrap(), i)
            .unwrap();
    }
    let full = pair.tree.footprint();
    assert!(full.used <= full.held && full.held as u64 <= memory.mapped_bytes());
    let keys: Vec<u64> = pair.tree.iter().map(|(key, _)| key).collect();
    let (gone, kept) = keys.split_at(keys.len() * 9 / 10);
    for key in gone {
        pair.tree.remove(*key).unwrap();
    }
    pair.tree.trim();
    pair.tree.check();
    assert!(
        pair.tree.footprint().used * 4 < full.used,
        "{:?} of {full:?}",
        pair.tree.footprint()
    );
    for key in kept {
        pair.tree.remove(*key).unwrap();
    }
    memory.trim();
    assert_eq!(memory.mapped_bytes(), before, "an empty tree holds nothing");
    pair.tree.insert(1, 1).unwrap();
    drop(pair);
    memory.trim();
    assert_eq!(memory.mapped_bytes(), before);
}

#[test]
fn a_tree_is_handed_over_as_it_is() {
    let memory = memory(1 << 30);
    let mut tree: Art<u64> = Art::new(memory.clone(), ObjectId(1));
    for key in 0..KEYS {
        tree.insert(key * key, key).unwrap();
    }
    let bytes = memory.mapped_bytes();
    let owner = std::thread::spawn(move || {
        tree.insert(3, 3).unwrap();
        tree
    });
    let tree = owner.join().unwrap();
    assert_eq!(memory.mapped_bytes(), bytes, "nothing was copied");
    assert_eq!(
        (tree.get(3), tree.get(KEYS * KEYS - 2 * KEYS + 1)),
        (Some(3), Some(KEYS - 1))
    );
}
