//! Trees of byte strings against `BTreeMap`, and by several threads at a time.

use eris_blink::{Entries, PutError, Tree};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

type Model = BTreeMap<Vec<u8>, u64>;

fn tree_within(bytes: u64) -> (Tree<[u8]>, Memory) {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(bytes)).unwrap();
    let tree = Tree::of_bytes(memory.node(NodeId(0)), ObjectId(1)).unwrap();
    (tree, memory)
}

/// A number that looks like no other: all of them differ.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = scattered(self.0 + 1);
        (self.0 >> 20) as usize % limit
    }

    /// Strings of few letters that share beginnings, are beginnings of others, and end in zeros. Each style has its own
    /// lengths.
    fn string(&mut self, style: usize) -> Vec<u8> {
        let length = match style % 4 {
            0 => self.below(5),
            1 => 17,
            2 => self.below(60),
            _ => self.below(1025),
        };
        let common = length * self.below(5) / 4;
        let letters = [0, 1, b'a', u8::MAX];
        let letter = |at| match at < common {
            true => 0,
            false => letters[self.below(letters.len())],
        };
        (0..length).map(letter).collect()
    }

    fn bound(&mut self, style: usize) -> Bound<Vec<u8>> {
        match self.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(self.string(style)),
            _ => Bound::Included(self.string(style)),
        }
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

/// A range from both ends, in any mixture of entries and leaves.
fn check_range(tree: &Tree<[u8]>, model: &Model, random: &mut Random, style: usize) {
    let (first, last) = (random.bound(style), random.bound(style));
    let bounds = (
        first.as_ref().map(Vec::as_slice),
        last.as_ref().map(Vec::as_slice),
    );
    let is_in = |key: &[u8]| std::ops::RangeBounds::<[u8]>::contains(&bounds, key);
    let mut expected: VecDeque<(&[u8], u64)> = (model.iter())
        .map(|(key, value)| (&key[..], *value))
        .filter(|(key, _)| is_in(key))
        .collect();
    let mut range = tree.range(bounds);
    let mut entries = Entries::default();
    while !expected.is_empty() {
        match random.below(4) {
            0 => {
                let (key, value) = range.next().expect("there are some left");
                assert_eq!(Some((&key[..], value)), expected.pop_front());
            }
            1 => {
                let (key, value) = range.next_back().expect("there are some left");
                assert_eq!(Some((&key[..], value)), expected.pop_back());
            }
            2 => {
                assert!(range.next_leaf(&mut entries));
                let read = expected.drain(..entries.len());
                assert!(entries.iter().eq(read));
            }
            _ => {
                assert!(range.next_leaf_back(&mut entries));
                let read = expected.drain(expected.len() - entries.len()..);
                assert!(entries.iter().eq(read));
            }
        }
    }
    assert_eq!((range.next(), range.next_back()), (None, None));
    assert!(!range.next_leaf(&mut entries) && entries.is_empty());
    assert!(!range.next_leaf_back(&mut entries) && entries.is_empty());
}

#[test]
fn it_is_a_map() {
    for seed in seeds(40) {
        println!("seed {seed}");
        let (tree, mut model, mut random) = (tree_within(1 << 30).0, Model::new(), Random(seed));
        let style = seed as usize;
        if random.below(2) == 0 {
            for value in 0..random.below(2_000) as u64 {
                model.insert(random.string(style), value);
            }
            let entries = model.iter().map(|(key, value)| (&key[..], *value));
            tree.build(entries).unwrap();
        }
        for step in 0..300 {
            let count = random.below(40);
            let mut keys: Vec<Vec<u8>> = (0..count).map(|_| random.string(style)).collect();
            if random.below(2) == 0 {
                keys.sort();
            }
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let mut told = Vec::new();
            let mut expected = Vec::new();
            // As many are put in as are taken out, by turns more.
            match random.below(10) + 4 * usize::from(step / 50 % 2 == 0) {
                0..4 => {
                    tree.remove_many(&keys, |at, before| told.push((at, before)));
                    for (at, &key) in keys.iter().enumerate() {
                        expected.extend(model.remove(key).map(|before| (at, before)));
                    }
                }
                4..6 => {
                    for &key in &keys {
                        assert_eq!(tree.remove(key), model.remove(key));
                    }
                }
                6..9 => {
                    let entries: Vec<(&[u8], u64)> =
                        keys.iter().copied().zip(step * 100..).collect();
                    tree.put_many(&entries, |at, before| told.push((at, before)))
                        .unwrap();
                    for (at, &(key, value)) in entries.iter().enumerate() {
                        let before = model.insert(key.to_vec(), value);
                        expected.extend(before.map(|before| (at, before)));
                    }
                }
                _ => {
                    for &key in &keys {
                        let before = model.insert(key.to_vec(), step);
                        assert_eq!(tree.put(key, step).unwrap(), before);
                    }
                }
            }
            assert_eq!(told, expected);
            let mut values = vec![None; keys.len()];
            tree.get_many(&keys, &mut values);
            for (key, value) in keys.into_iter().zip(values) {
                assert_eq!(value, model.get(key).copied());
                let behind = [key, &[0]].concat();
                assert_eq!(tree.get(&behind), model.get(&behind).copied());
            }
            check_range(&tree, &model, &mut random, style);
        }
        assert_eq!(tree.statistics().entries, model.len() as u64);
        assert!(tree.range(..).eq(model));
    }
}

#[test]
fn keys_that_are_too_long_change_nothing() {
    let tree = tree_within(1 << 30).0;
    let (most, long) = ([7; 1024], [7; 1025]);
    assert_eq!(tree.put(&long, 1), Err(PutError::TooLong(1025)));
    assert_eq!((tree.get(&long), tree.remove(&long)), (None, None));
    let entries = [(&b""[..], 1), (&most, 2), (&long, 3), (b"x", 4)];
    let put = tree.put_many(&entries, |_, _| ());
    assert_eq!(put, Err(PutError::TooLong(1025)));
    assert!(tree.range(..).eq([(vec![], 1), (most.to_vec(), 2)]));
    assert!(tree.range(&long[..]..).next().is_none());
    assert!(tree.range(..&long[..]).map(|(_, value)| value).eq([1, 2]));
}

/// An index of numbers: a byte, the number, and the number of the row.
fn row(number: u64) -> [u8; 17] {
    let mut key = [1; 17];
    key[1..9].copy_from_slice(&scattered(number).to_be_bytes());
    key[9..].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn entries_of_an_index_take_little() {
    let (tree, memory) = tree_within(1 << 30);
    for number in 0..300_000 {
        assert_eq!(tree.put(&row(number), number), Ok(None));
    }
    // 32 bytes each: a head, a slot, a value, and the rest of the key. Nodes are filled to two thirds.
    let of_entry = memory.budget().used() / 300_000;
    assert!(of_entry < 55, "{of_entry} bytes");
    let mut keys: Vec<[u8; 17]> = (0..300_000).map(row).collect();
    keys.sort();
    let (built, memory) = tree_within(1 << 30);
    built
        .build(keys.iter().map(|key| &key[..]).zip(0..))
        .unwrap();
    let of_entry = memory.budget().used() / 300_000;
    assert!(of_entry < 45, "{of_entry} bytes");
}

#[test]
fn without_memory_nothing_changes() {
    let (tree, memory) = tree_within(3 << 20);
    let key = |number: u64| [&row(number)[..], &vec![0; number as usize % 300]].concat();
    let put = |number| tree.put(&key(number), number).is_ok();
    let (there, denied): (Vec<u64>, Vec<u64>) = (0..60_000).partition(|&number| put(number));
    assert!(!denied.is_empty());
    for &number in &denied {
        assert_eq!(tree.get(&key(number)), None);
    }
    memory.budget().set_limit(1 << 30);
    for number in denied {
        assert_eq!(tree.put(&key(number), number), Ok(None));
    }
    for number in there {
        assert_eq!(tree.get(&key(number)), Some(number));
    }
    assert_eq!(tree.range(..).count(), 60_000);
}

/// Writers have keys of their own, in batches. Readers see all that stays, and no key twice.
#[test]
fn threads_share_it() {
    const WRITERS: u64 = 3;
    let tree = tree_within(1 << 30).0;
    let key = |number: u64, of: u8| {
        let beginning = vec![b'k'; (number % 7 * 90) as usize];
        [&beginning, &scattered(number).to_be_bytes()[..2], &[of]].concat()
    };
    let mut stay: Vec<Vec<u8>> = (0..3_000).map(|number| key(number, 0)).collect();
    stay.sort();
    stay.dedup();
    let entries: Vec<(&[u8], u64)> = stay.iter().map(Vec::as_slice).zip(0..).collect();
    tree.put_many(&entries, |_, _| ()).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS)
            .map(|writer| {
                let (tree, key) = (&tree, &key);
                scope.spawn(move || {
                    let mut model = Model::new();
                    let mut random = Random(writer);
                    for round in 0..1_500 {
                        let keys: Vec<Vec<u8>> = (0..40)
                            .map(|_| key(random.below(3_000) as u64, writer as u8))
                            .collect();
                        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                        // Most of the time many are put in, then many are taken out.
                        if random.below(4) > usize::from(round % 100 < 60) * 2 {
                            let mut left = keys.clone();
                            tree.remove_many(&keys, |at, before| {
                                assert_eq!(model.remove(keys[at]), Some(before));
                                left[at] = b"none";
                            });
                            assert!(left.iter().all(|&key| !model.contains_key(key)));
                        } else {
                            let entries: Vec<(&[u8], u64)> =
                                keys.iter().map(|&key| (key, round)).collect();
                            let mut replaced = 0;
                            tree.put_many(&entries, |_, _| replaced += 1).unwrap();
                            let there = entries
                                .iter()
                                .filter_map(|(key, value)| model.insert(key.to_vec(), *value));
                            assert_eq!(there.count(), replaced);
                        }
                        for key in keys {
                            assert_eq!(tree.get(key), model.get(key).copied());
                        }
                    }
                    model
                })
            })
            .collect();
        for is_backwards in [false, true] {
            let (tree, stay, is_over) = (&tree, &stay, &is_over);
            scope.spawn(move || {
                let mut entries = Entries::default();
                while !is_over.load(Ordering::Relaxed) {
                    let mut leaves = Vec::new();
                    let mut range = tree.range(..);
                    while match is_backwards {
                        false => range.next_leaf(&mut entries),
                        true => range.next_leaf_back(&mut entries),
                    } {
                        let keys = entries.iter().map(|(key, _)| key.to_vec());
                        leaves.push(keys.collect::<Vec<_>>());
                    }
                    if is_backwards {
                        leaves.reverse();
                    }
                    let keys = leaves.concat();
                    assert!(keys.is_sorted_by(|a, b| a < b), "no key twice");
                    let found = keys.iter().filter(|key| key.ends_with(&[0]));
                    assert!(found.eq(stay.iter()));
                }
            });
        }
        // A failure is told when the readers have ended.
        let models: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        let mut all: Model = models
            .into_iter()
            .flat_map(|model| model.unwrap())
            .collect();
        all.extend(stay.iter().cloned().zip(0..));
        assert!(tree.range(..).eq(all));
    });
    let statistics = tree.statistics();
    assert!(
        statistics.splits > 100 && statistics.merges > 10,
        "{statistics:?}"
    );
}
