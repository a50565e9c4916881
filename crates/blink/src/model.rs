//! Model-checked schedules: `RUSTFLAGS="--cfg loom" cargo test --release -p eris-blink --lib model`.
//!
//! Nodes have three entries, so that few operations split and merge them.

use crate::tree::Tree;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use loom::thread;
use std::sync::Arc;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // Byte strings are read in many words.
    builder.max_branches = 10_000;
    builder.check(model);
}

/// A tree of two levels at most: these keys, of which each is its value.
fn tree(keys: &[u64]) -> Arc<Tree> {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
    let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    put(&tree, keys);
    Arc::new(tree)
}

fn put(tree: &Tree, keys: &[u64]) {
    for &key in keys {
        assert_eq!(tree.put(key, key).unwrap(), None);
    }
}

fn remove(tree: &Tree, keys: &[u64]) {
    for &key in keys {
        assert_eq!(tree.remove(key), Some(key));
    }
}

type Operation = fn(&Tree);

/// Others do something while one does something else. All of them join in the end.
fn beside(
    preemptions: usize,
    keys: &'static [u64],
    others: &'static [Operation],
    one: Operation,
    left: &'static [u64],
) {
    check(preemptions, move || {
        let tree = tree(keys);
        let others: Vec<_> = others
            .iter()
            .map(|&other| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || other(&tree))
            })
            .collect();
        one(&tree);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(tree.range(..).map(|(key, _)| key).eq(left.iter().copied()));
    });
}

#[test]
fn a_reader_while_a_leaf_is_split() {
    beside(
        3,
        &[10, 20, 30],
        &[|tree| put(tree, &[15])],
        |tree| {
            assert_eq!(tree.get(30), Some(30));
            assert_eq!(tree.get(10), Some(10));
            assert!(tree.get(15).is_none_or(|value| value == 15));
        },
        &[10, 15, 20, 30],
    );
}

#[test]
fn a_reader_while_leaves_are_merged() {
    beside(
        3,
        &[10, 20, 30, 40],
        &[|tree| remove(tree, &[40])],
        |tree| {
            assert_eq!(tree.get(30), Some(30));
            assert_eq!(tree.get(20), Some(20));
        },
        &[10, 20, 30],
    );
}

/// Finds what stays, in order from the front or from the back.
fn scan(tree: &Tree, stays: [u64; 3]) {
    let is_there = |key: &u64| stays.contains(key);
    let found = tree.range(..).map(|(key, _)| key).filter(is_there);
    assert!(found.eq(stays));
}

fn scan_back(tree: &Tree, stays: [u64; 3]) {
    let is_there = |key: &u64| stays.contains(key);
    let found = tree.range(..).rev().map(|(key, _)| key).filter(is_there);
    assert!(found.eq(stays.into_iter().rev()));
}

#[test]
fn a_scan_while_a_leaf_is_split() {
    beside(
        3,
        &[10, 20, 30],
        &[|tree| put(tree, &[25])],
        |tree| scan(tree, [10, 20, 30]),
        &[10, 20, 25, 30],
    );
}

#[test]
fn a_scan_from_the_back_while_a_leaf_is_split() {
    beside(
        3,
        &[10, 20, 30],
        &[|tree| put(tree, &[15])],
        |tree| scan_back(tree, [10, 20, 30]),
        &[10, 15, 20, 30],
    );
}

#[test]
fn a_scan_while_leaves_are_merged() {
    beside(
        // With three it takes minutes.
        2,
        &[10, 20, 30, 40],
        &[|tree| remove(tree, &[40])],
        |tree| scan(tree, [10, 20, 30]),
        &[10, 20, 30],
    );
}

#[test]
fn a_scan_from_the_back_while_leaves_are_merged() {
    beside(
        // With three it takes minutes.
        2,
        &[10, 20, 30, 40],
        &[|tree| remove(tree, &[40])],
        |tree| scan_back(tree, [10, 20, 30]),
        &[10, 20, 30],
    );
}

#[test]
fn two_writers_split_a_leaf() {
    beside(
        3,
        &[10, 20, 30],
        &[|tree| put(tree, &[15])],
        |tree| put(tree, &[25]),
        &[10, 15, 20, 25, 30],
    );
}

#[test]
fn a_writer_while_leaves_are_merged() {
    beside(
        3,
        &[10, 20, 30, 40],
        &[|tree| remove(tree, &[40])],
        |tree| put(tree, &[35]),
        &[10, 20, 30, 35],
    );
}

/// A leaf that is split already is linked, but its parent does not know the new one.
#[test]
fn a_merge_while_a_neighbour_is_split() {
    beside(
        3,
        &[10, 20, 30, 40, 12],
        &[|tree| put(tree, &[15])],
        |tree| remove(tree, &[40]),
        &[10, 12, 15, 20, 30],
    );
}

#[test]
fn two_writers_and_a_reader() {
    beside(
        3,
        &[10, 20, 30],
        &[|tree| put(tree, &[15]), |tree| remove(tree, &[30])],
        |tree| {
            assert_eq!(tree.get(20), Some(20));
            assert!(tree.get(30).is_none_or(|value| value == 30));
        },
        &[10, 15, 20],
    );
}

/// The same of byte strings: each is one byte, as many as fit are in a leaf.
fn strings(keys: &'static [u8]) -> Arc<Tree<[u8]>> {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
    let tree = Tree::of_bytes(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    for &key in keys {
        assert_eq!(tree.put(&[key], u64::from(key)).unwrap(), None);
    }
    Arc::new(tree)
}

/// Another thread does something while one does something else.
fn strings_beside(
    keys: &'static [u8],
    other: fn(&Tree<[u8]>),
    one: fn(&Tree<[u8]>),
    left: &'static [u8],
) {
    check(2, move || {
        let tree = strings(keys);
        let shared = Arc::clone(&tree);
        let other = thread::spawn(move || other(&shared));
        one(&tree);
        other.join().unwrap();
        assert!(
            tree.range(..)
                .map(|(key, _)| key[0])
                .eq(left.iter().copied())
        );
    });
}

#[test]
fn a_reader_of_strings_while_a_leaf_is_split() {
    strings_beside(
        &[10, 20, 30],
        |tree| assert_eq!(tree.put(&[15], 15), Ok(None)),
        |tree| {
            assert_eq!(tree.get(&[30]), Some(30));
            assert_eq!(tree.get(&[10]), Some(10));
            assert!(tree.get(&[15]).is_none_or(|value| value == 15));
        },
        &[10, 15, 20, 30],
    );
}

#[test]
fn a_reader_of_strings_while_leaves_are_merged() {
    strings_beside(
        &[10, 20, 30, 40],
        |tree| assert_eq!(tree.remove(&[40]), Some(40)),
        |tree| {
            assert_eq!(tree.get(&[30]), Some(30));
            assert_eq!(tree.get(&[20]), Some(20));
        },
        &[10, 20, 30],
    );
}

#[test]
fn two_writers_of_strings_split_a_leaf() {
    strings_beside(
        &[10, 20, 30],
        |tree| assert_eq!(tree.put(&[15], 15), Ok(None)),
        |tree| assert_eq!(tree.put(&[25], 25), Ok(None)),
        &[10, 15, 20, 25, 30],
    );
}

/// What is built appears at one moment, or somebody has put something in before.
#[test]
fn a_tree_is_built_while_others_use_it() {
    check(3, || {
        let tree = tree(&[]);
        let shared = Arc::clone(&tree);
        let other = thread::spawn(move || {
            assert!(shared.get(2).is_none_or(|value| value == 2));
            assert!(shared.put(5, 50).unwrap().is_none_or(|value| value == 5));
        });
        let is_built = tree.build((0..6).map(|key| (key, key))).is_ok();
        other.join().unwrap();
        let count = if is_built { 6 } else { 1 };
        assert_eq!((tree.range(..).count(), tree.get(5)), (count, Some(50)));
    });
}
