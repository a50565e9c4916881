//! Hot nodes are moved together while the tree is used.

use crate::differential::seed;
use crate::driver::{Choices, Pair, Random, TestKey, memory};
use eris_index::{Art, Reorganization, Samples};
use eris_types::ObjectId;
use std::collections::BTreeSet;

/// Reads and writes of every kind between the slices, again and again.
fn run<K: TestKey + ?Sized>() {
    let mut choices = Random(seed());
    let mut pair: Pair<K> = Pair::new(memory(1 << 30));
    let (rounds, steps) = if cfg!(miri) { (2, 10) } else { (20, 300) };
    for _ in 0..rounds {
        let mut samples: Samples<K> = Samples::new(500, 3);
        for _ in 0..rounds * steps {
            pair.step(&mut choices).expect("choices without end");
            let key = K::make(&mut choices).expect("choices without end");
            samples.note(&[K::view(&key)]);
        }
        let hottest = samples.hottest().into_iter().map(|(key, _)| key);
        let mut reorganization = Reorganization::begin(&mut pair.tree, hottest);
        while !reorganization.step(&mut pair.tree, 7).expect("memory") {
            for _ in 0..steps / 10 {
                pair.step(&mut choices).expect("choices without end");
            }
        }
        let (done, all) = reorganization.progress();
        assert!(done == all && done > 0);
        pair.check();
    }
    for family in K::families().into_iter().filter(|_| !cfg!(miri)) {
        pair.sweep(&mut choices, family)
            .expect("choices without end");
    }
}

#[test]
fn a_tree_of_numbers_is_used_meanwhile() {
    run::<u64>();
}

#[test]
fn a_tree_of_byte_strings_is_used_meanwhile() {
    run::<[u8]>();
}

/// Pages of 4 KiB that lookups of these keys touch.
fn pages(tree: &Art<u64>, keys: &[u64]) -> usize {
    let mut pages = BTreeSet::new();
    for key in keys {
        tree.trace(*key, |visit| {
            for read in visit.reads {
                assert!((visit.address..visit.address + visit.bytes).contains(&read));
                pages.insert(read / 4096);
            }
        });
    }
    pages.len()
}

#[test]
fn hot_keys_share_pages() {
    let (keys, hot) = if cfg!(miri) {
        (200, 20)
    } else {
        (200_000, 1000)
    };
    let mut choices = Random(3);
    let mut tree: Art<u64> = Art::new(memory(1 << 30), ObjectId(1));
    let keys: Vec<u64> = (0..keys)
        .map(|_| choices.below(u64::MAX).unwrap())
        .collect();
    for key in &keys {
        tree.insert(*key, *key).unwrap();
    }
    let hot = &keys[keys.len() - hot..];
    let before = pages(&tree, hot);
    let bytes = tree.footprint();

    let mut samples: Samples<u64> = Samples::new(10 * hot.len(), 2);
    for _ in 0..40 {
        samples.note(hot);
    }
    let hottest: Vec<_> = samples.hottest();
    assert!(hottest.len() > hot.len() / 2 && hottest.is_sorted_by(|a, b| a.1 >= b.1));
    let mut reorganization = Reorganization::begin(&mut tree, hot.iter().copied());
    assert!(reorganization.step(&mut tree, usize::MAX).unwrap());
    assert!(reorganization.moved() > hot.len());
    tree.check();
    assert_eq!(tree.footprint().used, bytes.used, "moved, not copied");
    let after = pages(&tree, hot);
    assert!(
        cfg!(miri) || after * 3 < before,
        "{after} pages of {before}"
    );

    // What is hot now cools down, and the memory is used again.
    let cold = keys[..hot.len()].iter().copied();
    Reorganization::begin(&mut tree, cold)
        .step(&mut tree, usize::MAX)
        .unwrap();
    tree.check();
    keys.iter()
        .for_each(|key| assert_eq!(tree.remove(*key), Some(*key)));
    assert_eq!(tree.footprint().held, 0);
}
