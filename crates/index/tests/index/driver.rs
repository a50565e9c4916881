//! Random operations on an [`Art`] and on a `BTreeMap`, which must agree: shared by the differential test, which draws
//! the choices from a seed, and the fuzz target, which draws them from its input.

use eris_index::{Art, Build, Key, Reorganization};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Where choices come from.
pub trait Choices {
    /// A number below `end`, which is not zero; `None` when there are no more.
    fn below(&mut self, end: u64) -> Option<u64>;
}

/// A generator of pseudo-random numbers (SplitMix64), as choices without end.
pub struct Random(pub u64);

impl Choices for Random {
    fn below(&mut self, end: u64) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        Some(((u128::from(bits) * u128::from(end)) >> 64) as u64)
    }
}

/// A type of keys with a way to make them, such that all node classes and prefixes arise.
pub trait TestKey: Key {
    /// Families of keys that fill one node each, from the smallest class to the largest.
    fn families() -> Vec<Vec<Self::Owned>>;
    fn make(choices: &mut impl Choices) -> Option<Self::Owned>;
}

impl TestKey for u64 {
    fn families() -> Vec<Vec<u64>> {
        let inner = (0..256).map(|byte| 0x7777_0000_0000_1234 | byte << 32);
        let last = (0..256).map(|byte| 0x7777_7777_7777_7700 | byte);
        vec![inner.collect(), last.collect()]
    }

    fn make(choices: &mut impl Choices) -> Option<u64> {
        Some(match choices.below(4)? {
            // Dense keys in two places, of which one has a prefix in common with little else.
            0 => choices.below(1000)?,
            1 => 0x0102_0304_0506_0000 + choices.below(600)?,
            // Few values per byte: nodes of every size at every depth.
            2 => {
                let mut key = 0;
                for depth in 0..8 {
                    let values = [2, 200, 1, 20, 1, 3, 1, 60][depth];
                    key = key << 8 | choices.below(values)?;
                }
                key
            }
            _ => choices.below(u64::MAX)?,
        })
    }
}

impl TestKey for [u8] {
    fn families() -> Vec<Vec<Box<[u8]>>> {
        let key = |byte: u8| [&[b'q'; 100][..], &[byte, b'q', 0]].concat().into();
        vec![(1..=255).map(key).collect()]
    }

    /// Ends with zero, which occurs nowhere else: so no key is the beginning of another.
    fn make(choices: &mut impl Choices) -> Option<Box<[u8]>> {
        let mut key = Vec::new();
        // Long common beginnings, so that prefixes are chains.
        let beginning = [0, 1, 5, 27, 28, 60, 90][choices.below(7)? as usize];
        key.extend((0..beginning).map(|i| b'a' + i as u8 % 20));
        for _ in 0..choices.below(4)? {
            let values = [1, 5, 40, 255][choices.below(4)? as usize];
            key.push(1 + choices.below(values)? as u8);
        }
        if choices.below(30)? == 0 {
            key.extend((0..choices.below(500)?).map(|_| b'z'));
        }
        key.push(0);
        Some(key.into())
    }
}

/// One node without limit of its own.
pub fn memory(budget: u64) -> NodeMemory {
    all_memory(budget).node(NodeId(0))
}

/// The memory of the one node with its budget.
pub fn all_memory(budget: u64) -> Memory {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, Some(budget));
    memory.expect("a budget was given")
}

/// A tree beside its model.
pub struct Pair<K: TestKey + ?Sized> {
    pub tree: Art<K>,
    model: BTreeMap<K::Owned, u64>,
    /// Of a hundred writes this many remove.
    removing: u64,
    /// Which classes have turned into which, as names.
    pub transitions: BTreeSet<(&'static str, &'static str)>,
    counts: Vec<usize>,
}

impl<K: TestKey + ?Sized> Pair<K> {
    pub fn new(memory: NodeMemory) -> Self {
        let tree: Art<K> = Art::new(memory, ObjectId(1));
        Pair {
            counts: tree.classes().map(|class| class.count).collect(),
            tree,
            model: BTreeMap::new(),
            removing: 30,
            transitions: BTreeSet::new(),
        }
    }

    /// One random operation; `None` when the choices have ended.
    pub fn step(&mut self, choices: &mut impl Choices) -> Option<()> {
        if choices.below(4000)? == 0 {
            self.removing = [10, 30, 50, 70, 90][choices.below(5)? as usize];
        }
        match choices.below(100)? {
            0..70 => self.write(choices)?,
            70..90 => {
                let key = self.key(choices)?;
                assert_eq!(
                    self.tree.get(K::view(&key)),
                    self.model.get(&key).copied(),
                    "{key:?}"
                );
            }
            90..96 => self.range(choices)?,
            96..98 => self.batch(choices)?,
            98 => {
                let own = |entry: Option<(K::View<'_>, u64)>| {
                    entry.map(|(key, value)| (K::own(key), value))
                };
                let copy = |(key, value): (&K::Owned, &u64)| (key.clone(), *value);
                assert_eq!(
                    own(self.tree.first()),
                    self.model.first_key_value().map(copy)
                );
                assert_eq!(own(self.tree.last()), self.model.last_key_value().map(copy));
            }
            _ => {
                if choices.below(200)? == 0 {
                    self.check();
                }
            }
        }
        Some(())
    }

    /// Compares everything.
    pub fn check(&self) {
        self.tree.check();
        let entries = self.tree.iter().map(|(key, value)| (K::own(key), value));
        assert!(entries.eq(self.model.iter().map(|(key, value)| (key.clone(), *value))));
    }

    /// A key that is there as often as not.
    fn key(&self, choices: &mut impl Choices) -> Option<K::Owned> {
        let key = K::make(choices)?;
        if choices.below(2)? == 0
            && let Some((next, _)) = self.model.range(&key..).next()
        {
            return Some(next.clone());
        }
        Some(key)
    }

    fn write(&mut self, choices: &mut impl Choices) -> Option<()> {
        let removes = choices.below(100)? < self.removing;
        let key = if removes {
            self.key(choices)?
        } else {
            K::make(choices)?
        };
        if removes {
            self.remove(&key);
            return Some(());
        }
        let value = choices.below(u64::MAX)?;
        if choices.below(2)? == 0 {
            let before = self.tree.upsert(K::view(&key), value).expect("memory");
            assert_eq!(before, self.model.insert(key.clone(), value), "{key:?}");
        } else {
            let before = self.tree.insert(K::view(&key), value).expect("memory");
            assert_eq!(before, self.model.get(&key).copied(), "{key:?}");
            self.model.entry(key).or_insert(value);
        }
        self.note_transitions();
        Some(())
    }

    fn remove(&mut self, key: &K::Owned) {
        assert_eq!(
            self.tree.remove(K::view(key)),
            self.model.remove(key),
            "{key:?}"
        );
        self.note_transitions();
    }

    /// Builds the same tree anew, which takes no more memory, and goes on with it.
    pub fn rebuild(&mut self) {
        let entries: Vec<_> = self
            .model
            .iter()
            .map(|(key, value)| (K::view(key), *value))
            .collect();
        let before = self.tree.footprint();
        let (memory, object) = (self.tree.memory().clone(), self.tree.object());
        self.tree = match entries.len() % 8 {
            0 => Art::build(memory, object, &entries).expect("memory, and keys that ascend"),
            // Some entries at a time, as an owner does it.
            some => {
                let mut build: Build<K> = Build::new(memory, object);
                for piece in entries.chunks(1 + entries.len() / 5 * (some - 1)) {
                    build.extend(piece.iter().copied()).expect("memory");
                }
                build.finish().expect("memory")
            }
        };
        assert_eq!(self.tree.len(), entries.len());
        assert!(self.tree.footprint().used <= before.used, "{before:?}");
        self.check();
    }

    /// Fills a node to the last child and empties it again, both in random order.
    pub fn sweep(&mut self, choices: &mut impl Choices, mut family: Vec<K::Owned>) -> Option<()> {
        for adding in [true, false] {
            for i in (1..family.len()).rev() {
                family.swap(i, choices.below(i as u64 + 1)? as usize);
            }
            for key in &family {
                if adding {
                    self.tree.upsert(K::view(key), 7).expect("memory");
                    self.model.insert(key.clone(), 7);
                    self.note_transitions();
                } else {
                    self.remove(key);
                }
            }
            self.check();
        }
        Some(())
    }

    /// A write that makes one class fewer by one and another more has turned a node of the one into the other.
    fn note_transitions(&mut self) {
        assert_eq!(self.tree.len(), self.model.len());
        let mut lost = Vec::new();
        let mut won = Vec::new();
        for (class, before) in self.tree.classes().zip(&mut self.counts) {
            if class.count < *before {
                lost.push(class.name);
            }
            if class.count > *before {
                won.push(class.name);
            }
            *before = class.count;
        }
        for from in lost {
            self.transitions.extend(won.iter().map(|to| (from, *to)));
        }
    }

    /// The same for many keys, some of them several times.
    fn batch(&mut self, choices: &mut impl Choices) -> Option<()> {
        let most = if cfg!(miri) { 3 } else { 5 };
        let count = [1, 3, 65, 64, 200][choices.below(most)? as usize];
        let keys: Option<Vec<_>> = (0..count).map(|_| self.key(choices)).collect();
        let mut keys = keys?;
        // Those that differ in their last byte only come side by side, too.
        if choices.below(2)? == 0 {
            keys.sort_unstable();
        }
        let views: Vec<_> = keys.iter().map(K::view).collect();
        let first = choices.below(u64::MAX)?;
        let values = (0..).map(|i| first.wrapping_add(i));
        let entries: Vec<_> = views.iter().copied().zip(values).collect();
        let mut found = vec![None; keys.len()];
        let model = &mut self.model;
        let expected: Vec<_> = match choices.below(8)? {
            0 => {
                self.tree.insert_many(&entries, &mut found).expect("memory");
                let insert = |(key, entry): (&K::Owned, &(_, u64))| {
                    let present = model.get(key).copied();
                    model.entry(key.clone()).or_insert(entry.1);
                    present
                };
                keys.iter().zip(&entries).map(insert).collect()
            }
            1 => {
                self.tree.upsert_many(&entries, &mut found).expect("memory");
                let upsert =
                    |(key, entry): (&K::Owned, &(_, u64))| model.insert(key.clone(), entry.1);
                keys.iter().zip(&entries).map(upsert).collect()
            }
            2 => {
                self.tree.remove_many(&views, &mut found);
                keys.iter().map(|key| model.remove(key)).collect()
            }
            3 => {
                let bounds: Vec<_> = views.iter().map(|key| *key..).collect();
                let mut of_tree = vec![Vec::new(); keys.len()];
                self.tree.range_many(&bounds, |number, key, value| {
                    of_tree[number].push((K::own(key), value));
                    of_tree[number].len() < 3
                });
                for (key, of_tree) in keys.iter().zip(of_tree) {
                    let of_model = model
                        .range(key..)
                        .take(3)
                        .map(|(key, value)| (key.clone(), *value));
                    assert!(of_model.eq(of_tree), "from {key:?}");
                }
                found.clone()
            }
            4 => {
                // As far as it gets; nothing can be told from outside.
                let mut reorganization = Reorganization::begin(&mut self.tree, keys.clone());
                reorganization
                    .step(&mut self.tree, count as usize)
                    .expect("memory");
                found.clone()
            }
            _ => {
                self.tree.get_many(&views, &mut found);
                keys.iter().map(|key| model.get(key).copied()).collect()
            }
        };
        assert_eq!(found, expected);
        self.counts = self.tree.classes().map(|class| class.count).collect();
        Some(())
    }

    fn range(&mut self, choices: &mut impl Choices) -> Option<()> {
        let keys = [self.key(choices)?, self.key(choices)?];
        let [low, high] = if keys[0] <= keys[1] { [0, 1] } else { [1, 0] };
        let mut bound = |key| {
            Some(match choices.below(3)? {
                0 => Bound::Unbounded,
                1 => Bound::Included(key),
                _ => Bound::Excluded(key),
            })
        };
        let (lower, upper) = (bound(&keys[low])?, bound(&keys[high])?);
        if keys[0] == keys[1] && matches!((lower, upper), (Bound::Excluded(_), Bound::Excluded(_)))
        {
            return Some(());
        }
        let mut expected = self.model.range((lower, upper));
        let mut found = self.tree.range((lower.map(K::view), upper.map(K::view)));
        for _ in 0..choices.below(60)? {
            let back = choices.below(3)? == 0;
            let (of_tree, of_model) = if back {
                (found.next_back(), expected.next_back())
            } else {
                (found.next(), expected.next())
            };
            let of_tree = of_tree.map(|(key, value)| (K::own(key), value));
            assert_eq!(
                of_tree,
                of_model.map(|(key, value)| (key.clone(), *value)),
                "{lower:?} {upper:?}"
            );
            if of_tree.is_none() {
                break;
            }
        }
        Some(())
    }
}
