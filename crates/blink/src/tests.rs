//! What a tree looks like inside, after what was done to it.

use crate::node::Node;
use crate::tree::Tree;
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn tree() -> Tree {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
    Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap()
}

/// A number that looks like no other: all of them differ.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Where the range of a node begins, exclusive, and ends. `None`: there is no fence.
fn fences(node: Node<'_>) -> (Option<u64>, Option<u64>) {
    let meta = node.meta();
    let low = (!meta.is_first()).then(|| node.low());
    let high = (!meta.is_last()).then(|| node.high());
    (low, high)
}

/// Checks a tree to which nobody does anything: how many nodes it has.
fn check(tree: &Tree) -> u64 {
    let (root, height) = tree.root();
    let mut of_level = vec![root];
    let mut nodes = 0;
    for level in (0..=height).rev() {
        let mut below = Vec::new();
        let mut low = None;
        for (place, &number) in of_level.iter().enumerate() {
            let node = tree.space.node(number);
            let meta = node.meta();
            assert!(meta.is_alive() && meta.level() == level);
            assert_eq!(
                fences(node).0,
                low,
                "a range begins where the one before it ends"
            );
            let (_, high) = fences(node);
            match of_level.get(place + 1) {
                Some(&right) => {
                    assert_eq!(meta.right(), right, "all that was split is in its parent")
                }
                None => assert_eq!(high, None),
            }
            let keys = meta.count() - usize::from(level > 0);
            let keys: Vec<u64> = (0..keys).map(|at| node.key(at)).collect();
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert!(keys.iter().all(|&key| low.is_none_or(|low| low < key)));
            assert!(keys.iter().all(|&key| high.is_none_or(|high| key <= high)));
            if level > 0 {
                for at in 0..meta.count() {
                    let child = node.value(at) as u32;
                    let ends = keys.get(at).copied().or(high);
                    assert_eq!(fences(tree.space.node(child)).1, ends, "as its parent says");
                    below.push(child);
                }
            }
            low = high;
        }
        nodes += of_level.len() as u64;
        of_level = below;
    }
    assert_eq!(tree.statistics().nodes, nodes, "no node is lost");
    nodes
}

#[test]
fn what_is_removed_gives_its_nodes_back() {
    for order in [|number: u64| number, scattered] {
        let tree = tree();
        for number in 0..100_000 {
            tree.put(order(number), number).unwrap();
        }
        let full = check(&tree);
        for number in 0..90_000 {
            assert_eq!(tree.remove(order(number)), Some(number));
        }
        let left = check(&tree);
        let statistics = tree.statistics();
        assert!(left * 4 < full, "{left} of {full}: {statistics:?}");
        assert_eq!(statistics.entries, 10_000);
        for number in 90_000..100_000 {
            assert_eq!(tree.remove(order(number)), Some(number));
        }
        assert!(check(&tree) < 60, "{:?}", tree.statistics());
    }
}

#[test]
fn a_window_that_slides_leaves_nothing_behind() {
    const WINDOW: u64 = 5_000;
    for is_forwards in [true, false] {
        let tree = tree();
        let key = |number: u64| {
            if is_forwards {
                number
            } else {
                u64::MAX - number
            }
        };
        let mut most = 0;
        for number in 0..300_000 {
            tree.put(key(number), number).unwrap();
            if number >= WINDOW {
                assert_eq!(tree.remove(key(number - WINDOW)), Some(number - WINDOW));
            }
            if number % 10_000 == 0 {
                most = most.max(check(&tree));
            }
        }
        // Half full at the least, and some that are being emptied.
        assert!(
            most < 2 * WINDOW / 15,
            "{most} nodes: {:?}",
            tree.statistics()
        );
    }
}

#[test]
fn batches_are_put_in_as_one_by_one() {
    let (one, many) = (tree(), tree());
    let entries: Vec<(u64, u64)> = (0..50_000)
        .map(|number| (scattered(number % 30_000) >> 40, number))
        .collect();
    let mut replaced = Vec::new();
    many.put_many(&entries, |at, before| replaced.push((at, before)))
        .unwrap();
    let mut expected = Vec::new();
    for (at, &(key, value)) in entries.iter().enumerate() {
        expected.extend(one.put(key, value).unwrap().map(|before| (at, before)));
    }
    assert_eq!(replaced, expected);
    assert!(many.range(..).eq(one.range(..)));
    check(&many);
}

/// Few keys, so that nodes are split and merged all the time under those who read and write them.
#[test]
fn threads_split_and_merge_side_by_side() {
    const WRITERS: u64 = 3;
    let tree = tree();
    let stay: Vec<(u64, u64)> = (0..2_000).map(|number| (number * 64, number)).collect();
    tree.put_many(&stay, |_, _| ()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS)
            .map(|writer| {
                let tree = &tree;
                scope.spawn(move || {
                    for round in 0..60 {
                        let first = scattered(round * WRITERS + writer) % 1_500;
                        let keys = (first..first + 500)
                            .flat_map(|at| [at * 64 + writer, at * 64 + 8 + writer]);
                        let entries: Vec<(u64, u64)> = keys.clone().map(|key| (key, key)).collect();
                        let never = |at, _| panic!("entry {at} was there");
                        tree.put_many(&entries, never).unwrap();
                        keys.for_each(|key| assert_eq!(tree.remove(key), Some(key)));
                    }
                })
            })
            .collect();
        let (tree, is_over) = (&tree, &is_over);
        let readers = [true, false].map(|by_key| {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    match by_key {
                        true => {
                            let keys: Vec<u64> = (0..2_000).map(|number| number * 64).collect();
                            let mut values = vec![None; keys.len()];
                            tree.get_many(&keys, &mut values);
                            assert!(values.into_iter().eq((0..2_000).map(Some)));
                        }
                        false => {
                            let found = tree.range(..).filter(|(key, _)| key % 64 == 0);
                            assert!(found.map(|(_, value)| value).eq(0..2_000));
                        }
                    }
                }
            })
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    assert!(tree.statistics().merges > 100, "{:?}", tree.statistics());
    assert!(tree.range(..).map(|(_, value)| value).eq(0..2_000));
    check(&tree);
}

/// A reader may find a leaf where an inner node was, and looks at the version only afterwards.
#[test]
fn a_full_leaf_is_no_harm_where_an_inner_node_is_expected() {
    let tree = tree();
    (0..30).for_each(|key| assert_eq!(tree.put(key, 7).unwrap(), None));
    let leaf = tree.space.node(tree.root().0);
    assert_eq!((leaf.meta().level(), leaf.meta().count()), (0, 30));
    assert_eq!(leaf.child(u64::MAX), 7);
}

#[test]
fn what_was_denied_memory_leaves_a_whole_tree() {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(3 << 20)).unwrap();
    let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    let keys = || (0..200_000).map(scattered);
    let denied = keys().filter(|&key| tree.put(key, key).is_err()).count();
    assert!(denied > 0);
    check(&tree);
    keys().for_each(|key| {
        tree.remove(key);
    });
    assert!(check(&tree) < 60);
}
