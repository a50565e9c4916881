//! What a tree looks like inside, after what was done to it.

use crate::bytes::KEY_BYTES;
use crate::entries::Buffer;
use crate::error::{BuildError, PutError};
use crate::key::Key;
use crate::node::Node;
use crate::tasks::Operation;
use crate::tree::Tree;
use eris_aeu::task::{MOST_WORDS, Resource, Task};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_types::{NodeId, ObjectId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn memory(bytes: u64) -> NodeMemory {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(bytes)).unwrap();
    memory.node(NodeId(0))
}

fn tree() -> Tree {
    Tree::new(memory(1 << 30), ObjectId(1)).unwrap()
}

fn strings() -> Tree<[u8]> {
    Tree::of_bytes(memory(1 << 30), ObjectId(1)).unwrap()
}

/// A number that looks like no other: all of them differ.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Where the range of a node begins, exclusive, and ends. `None`: there is no fence.
fn fences<K: Key + ?Sized>(node: Node<'_, K>) -> (Option<K::Owned>, Option<K::Owned>) {
    let (meta, (low, high)) = (node.meta(), K::fences(node));
    (
        (!meta.is_first()).then_some(low),
        (!meta.is_last()).then_some(high),
    )
}

/// Checks a tree to which nobody does anything: how many nodes it has.
fn check<K: Key<Owned: PartialEq> + ?Sized>(tree: &Tree<K>) -> u64 {
    let (root, height) = tree.root();
    let mut of_level = vec![root];
    let mut nodes = 0;
    for level in (0..=height).rev() {
        let mut below = Vec::new();
        let mut low: Option<K::Owned> = None;
        for (place, &number) in of_level.iter().enumerate() {
            let node = tree.space.node(number);
            let meta = node.meta();
            assert!(meta.is_alive() && meta.level() == level);
            let (begin, high) = fences(node);
            assert_eq!(begin, low, "a range begins where the one before it ends");
            match of_level.get(place + 1) {
                Some(&right) => {
                    assert_eq!(meta.right(), right, "all that was split is in its parent")
                }
                None => assert_eq!(high, None),
            }
            assert!(K::size(node) <= K::SPACE);
            let mut entries = K::Entries::default();
            K::read(node, 0..node.count(), &mut entries);
            let keys: Vec<K::Owned> = (0..node.count() - usize::from(level > 0))
                .map(|at| K::own(entries.entry(at).0))
                .collect();
            let is_less = |a: &K::Owned, b: &K::Owned| K::compare(K::lend(a), K::lend(b)).is_lt();
            assert!(keys.is_sorted_by(is_less));
            for (at, key) in keys.iter().enumerate() {
                assert!(low.as_ref().is_none_or(|low| is_less(low, key)));
                assert!(high.as_ref().is_none_or(|high| !is_less(high, key)));
                assert_eq!(K::find(node, K::lend(key)), (at, true));
            }
            if level > 0 {
                for at in 0..node.count() {
                    let child = K::child_at(node, at);
                    let ends = keys.get(at).cloned().or(high.clone());
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
    assert_eq!((leaf.meta().level(), leaf.count()), (0, 30));
    assert_eq!(u64::child(leaf, u64::MAX), 7);
}

#[test]
fn what_was_denied_memory_leaves_a_whole_tree() {
    let tree = Tree::new(memory(3 << 20), ObjectId(1)).unwrap();
    let keys = || (0..200_000).map(scattered);
    let denied = keys().filter(|&key| tree.put(key, key).is_err()).count();
    assert!(denied > 0);
    check(&tree);
    keys().for_each(|key| {
        tree.remove(key);
    });
    assert!(check(&tree) < 60);
}

/// Strings that share beginnings, are beginnings of others, and end in zeros; some as long as may be.
fn string(random: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let (kind, letters) = (random(8), 1 + random(3));
    let length = match kind {
        0 => random(1025),
        1 => 1000 + random(25),
        2..5 => random(40),
        _ => random(6),
    };
    let common = if random(3) == 0 {
        0
    } else {
        length * random(5) / 5
    };
    let letter = |at, random: &mut dyn FnMut(u64) -> u64| match at < common {
        true => 0,
        false => [0, 1, 255, b'a'][random(1 + letters) as usize],
    };
    (0..length).map(|at| letter(at, random)).collect()
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut number = scattered(seed);
    move |below| {
        number = scattered(number.wrapping_add(seed));
        (number >> 16) % below
    }
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| {
        let text = std::env::var(name).ok();
        text.map(|text| text.parse().expect("a number"))
    };
    match number("ERIS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ERIS_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn strings_of_all_lengths_leave_a_whole_tree() {
    for seed in seeds(30) {
        println!("seed {seed}");
        let mut random = random(seed);
        let tree = strings();
        let mut model = std::collections::BTreeMap::new();
        for step in 0..3_000 {
            let key = string(&mut random);
            match random(8) > u64::from(step < 1_500) * 2 + 2 {
                true => assert_eq!(tree.put(&key, step).unwrap(), model.insert(key, step)),
                false => {
                    let near = model
                        .range(key.clone()..)
                        .next()
                        .map(|(near, _)| near.clone());
                    let key = near.unwrap_or(key);
                    assert_eq!(tree.remove(&key), model.remove(&key));
                }
            }
            if step % 500 == 0 {
                check(&tree);
            }
        }
        check(&tree);
        assert!(tree.range(..).eq(model.clone()));
        for (key, value) in model {
            assert_eq!(tree.remove(&key), Some(value));
        }
        check(&tree);
    }
}

#[test]
fn what_is_built_is_a_tree() {
    for seed in seeds(20) {
        println!("seed {seed}");
        let mut random = random(seed);
        let count = [0, 1, 2, 30, 3_000, 20_000][random(6) as usize];
        let numbers: Vec<(u64, u64)> = (0..count).map(|at| (at * 10 + random(9), at)).collect();
        let tree = tree();
        tree.build(numbers.iter().copied()).unwrap();
        check(&tree);
        assert!(tree.range(..).eq(numbers.iter().copied()));
        let mut keys: Vec<Vec<u8>> = (0..count).map(|_| string(&mut random)).collect();
        keys.sort();
        keys.dedup();
        let strings = strings();
        let entries = || keys.iter().map(Vec::as_slice).zip(0..);
        strings.build(entries()).unwrap();
        check(&strings);
        let own = |(key, value): (&[u8], u64)| (key.to_vec(), value);
        assert!(strings.range(..).eq(entries().map(own)));
        assert!(
            strings
                .range(..)
                .rev()
                .eq(entries().map(own).collect::<Vec<_>>().into_iter().rev())
        );
        // It is a tree like others.
        for (key, value) in entries() {
            assert_eq!(strings.put(key, value + 1).unwrap(), Some(value));
            assert_eq!(
                strings.put(&[key, b"x"].concat(), 7).is_ok(),
                key.len() < 1024
            );
        }
        check(&strings);
    }
}

/// Any fences will do, also those of parts without keys.
#[test]
fn parts_are_filled_by_any_thread() {
    for seed in seeds(20) {
        println!("seed {seed}");
        let mut random = random(seed);
        let count = [0, 1, 200, 20_000][random(4) as usize];
        let mut keys: Vec<Vec<u8>> = (0..count).map(|_| string(&mut random)).collect();
        keys.sort();
        keys.dedup();
        let mut fences: Vec<Vec<u8>> = (0..random(20))
            .map(|_| match keys.len() {
                some if some > 0 && random(2) == 0 => keys[random(some as u64) as usize].clone(),
                _ => string(&mut random),
            })
            .collect();
        fences.sort();
        fences.dedup();
        let tree = strings();
        let lent: Vec<&[u8]> = fences.iter().map(Vec::as_slice).collect();
        let parts = tree.parts(&lent).unwrap();
        assert_eq!(parts.len(), fences.len() + 1);
        let mut rest = &keys[..];
        let leaves: Vec<_> = std::thread::scope(|scope| {
            let filling: Vec<_> = (parts.into_iter().enumerate())
                .map(|(at, part)| {
                    let high = fences.get(at);
                    let end = rest.partition_point(|key| high.is_none_or(|high| key <= high));
                    let (own, others) = rest.split_at(end);
                    rest = others;
                    let first = (keys.len() - others.len() - own.len()) as u64;
                    let entries = own.iter().map(Vec::as_slice).zip(first..);
                    let tree = &tree;
                    scope.spawn(move || tree.fill(part, entries).unwrap())
                })
                .collect();
            filling.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(tree.range(..).next(), None);
        tree.raise(leaves).unwrap();
        check(&tree);
        let own = |(key, value): (&[u8], u64)| (key.to_vec(), value);
        let entries = || keys.iter().map(Vec::as_slice).zip(0..).map(own);
        assert!(tree.range(..).eq(entries()));
        for (key, value) in entries() {
            assert_eq!(tree.remove(&key), Some(value));
        }
        check(&tree);
    }
}

#[test]
fn a_part_has_keys_between_its_fences() {
    let tree = strings();
    let fill = |key: &[u8]| {
        let mut parts = tree.parts(&[b"c", b"f"]).unwrap();
        tree.fill(parts.remove(1), [(key, 1)]).map(drop)
    };
    assert_eq!(fill(b"f"), Ok(()));
    assert_eq!(fill(b"c"), Err(BuildError::NotAscending(0)));
    assert_eq!(fill(b"fa"), Err(BuildError::NotAscending(0)));
}

#[test]
fn built_leaves_are_nearly_full() {
    let key = |number: u64| {
        [
            &[1][..],
            &scattered(number % 9000).to_be_bytes(),
            &number.to_be_bytes(),
        ]
        .concat()
    };
    let mut keys: Vec<Vec<u8>> = (0..200_000).map(key).collect();
    keys.sort();
    let tree = strings();
    tree.build(keys.iter().map(Vec::as_slice).zip(0..)).unwrap();
    check(&tree);
    let statistics = tree.statistics();
    assert!((0.85..0.92).contains(&statistics.fill), "{statistics:?}");
    assert_eq!((statistics.entries, statistics.splits), (200_000, 0));
}

#[test]
fn what_cannot_be_built_changes_nothing() {
    let tree = strings();
    let nodes = tree.statistics().nodes;
    let keys: Vec<Vec<u8>> = (0..5_000u32)
        .map(|key| key.to_be_bytes().to_vec())
        .collect();
    let good = || keys.iter().map(Vec::as_slice).zip(0..);
    let long = [255; 1025];
    let not_ascending = good().chain([(&keys[4_999][..], 0)]);
    assert_eq!(
        tree.build(not_ascending),
        Err(BuildError::NotAscending(5_000))
    );
    let too_long = good().chain([(&long[..], 0)]);
    assert_eq!(
        tree.build(too_long),
        Err(BuildError::Entry(PutError::TooLong(1025)))
    );
    assert_eq!(tree.statistics().nodes, nodes);
    // Somebody else is faster.
    let meanwhile = good().inspect(|(_, value)| {
        if *value == 4_000 {
            tree.put(b"first", 1).unwrap();
        }
    });
    assert_eq!(tree.build(meanwhile), Err(BuildError::NotEmpty));
    assert_eq!(tree.statistics().nodes, nodes);
    assert!(tree.range(..).eq([(b"first".to_vec(), 1)]));
    let memory = memory(3 << 20);
    let poor = Tree::of_bytes(memory, ObjectId(1)).unwrap();
    let keys: Vec<Vec<u8>> = (0..500_000u32)
        .map(|key| key.to_be_bytes().to_vec())
        .collect();
    let built = poor.build(keys.iter().map(Vec::as_slice).zip(0..));
    assert!(matches!(
        built,
        Err(BuildError::Entry(PutError::OutOfMemory(_)))
    ));
    assert_eq!(poor.statistics().nodes, nodes);
    poor.build(good()).unwrap();
    check(&poor);
}

/// A node may be found with any words, for it is looked at while others write. The version is looked at afterwards.
#[test]
fn no_words_are_a_harm_to_readers() {
    for seed in seeds(200) {
        let mut random = random(seed);
        let tree = strings();
        for _ in 0..random(200) {
            tree.put(&string(&mut random), 1).unwrap();
        }
        let node = tree.space.node(tree.root().0);
        for _ in 0..100 {
            for _ in 0..1 + random(4) {
                let at = 1 + if random(2) == 0 {
                    random(60)
                } else {
                    random(511)
                } as usize;
                let word = match random(3) {
                    0 => random(u64::MAX),
                    1 => node.word(1 + random(511) as usize),
                    _ => node.word(at) ^ 1 << random(64),
                };
                node.words()[at].store(word, Ordering::Relaxed);
            }
            let key = string(&mut random);
            for level in 0..3 {
                <[u8]>::side(node, &key, level);
            }
            let (at, _) = <[u8]>::find(node, &key);
            <[u8]>::child(node, &key);
            <[u8]>::value(node, at);
            <[u8]>::fences(node);
            <[u8]>::size(node);
            let mut entries = Default::default();
            <[u8]>::read(node, at..random(300) as usize, &mut entries);
            <[u8]>::read(node, 0..node.count(), &mut entries);
        }
    }
}

/// Runs all tasks of an operation, one after the other.
fn by_tasks(tree: &Tree<[u8]>, operation: Operation<'_, [u8]>) -> Option<u64> {
    struct Spawned {
        kind: u16,
        resource: Resource,
        words: Vec<u64>,
    }
    let keep = |task: Task<'_>| Spawned {
        kind: task.kind,
        resource: task.resource,
        words: task.words.to_vec(),
    };
    let mut spawned = tree.begin(operation, keep);
    loop {
        let Spawned {
            kind,
            resource,
            words,
        } = spawned;
        let mut next = None;
        let task = Task::new(kind, resource, &words);
        if let Some(outcome) = tree.advance(&task, |task| next = Some(keep(task))) {
            return outcome.unwrap();
        }
        spawned = next.expect("it goes on");
    }
}

#[test]
fn tasks_carry_keys_of_all_lengths_and_forget_them() {
    let tree = strings();
    let lengths = [0, 1, 8, 79, 80, 81, KEY_BYTES - 1, KEY_BYTES];
    let keys: Vec<Vec<u8>> = lengths.map(|bytes| vec![bytes as u8; bytes]).to_vec();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    for (&key, value) in keys.iter().zip(1..) {
        assert_eq!(by_tasks(&tree, Operation::put(key, value)), None);
        assert_eq!(tree.get(key), Some(value), "{} bytes", key.len());
        assert_eq!(by_tasks(&tree, Operation::get(key)), Some(value));
    }
    let too_long = &[7; KEY_BYTES + 1][..];
    assert_eq!(by_tasks(&tree, Operation::get(too_long)), None);
    assert_eq!(by_tasks(&tree, Operation::remove(too_long)), None);
    for (&key, value) in keys.iter().zip(1..) {
        assert_eq!(by_tasks(&tree, Operation::remove(key)), Some(value));
    }
    assert_eq!(tree.range(..).count(), 0);
    assert_eq!(tree.long_keys.len(), 0);
    let mut words = 0;
    for key in keys {
        tree.begin(Operation::get(key), |task| {
            words = words.max(task.words.len())
        });
    }
    assert_eq!(words, MOST_WORDS);
    assert_eq!(tree.long_keys.len(), 3, "they wait for their tasks");
}
