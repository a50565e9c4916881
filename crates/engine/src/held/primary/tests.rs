//! Owners that share their trees against one map of all entries.

use super::keyed::{Keyed, Unsharing};
use super::span::{Bounds, Span};
use crate::held::reorganize::Watched;
use eris_aeu::Random;
use eris_index::{Art, Key};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;
use std::ops::Bound;

const OWNERS: usize = 3;
const KEYS: usize = 160;

struct Owners<K: Key + ?Sized> {
    owners: Vec<Keyed<K>>,
    /// Whose each key is, and its value.
    whose: Vec<usize>,
    values: BTreeMap<usize, u64>,
    random: Random,
    key: fn(usize) -> K::Owned,
    next: u64,
    shared: usize,
}

impl<K: Key + ?Sized> Owners<K> {
    fn any_key(&mut self) -> usize {
        self.random.below(KEYS)
    }

    fn any_span(&mut self) -> (usize, usize) {
        let (one, other) = (self.any_key(), self.any_key());
        (one.min(other), one.max(other) + 1)
    }

    fn span(&self, (low, end): (usize, usize)) -> Span<K> {
        Span {
            low: (low > 0).then(|| (self.key)(low)),
            end: (end < KEYS).then(|| (self.key)(end)),
        }
    }

    fn step(&mut self) {
        self.next += 1;
        let value = self.next;
        match self.random.below(16) {
            0..3 => {
                let at = self.any_key();
                let key = (self.key)(at);
                let owner = &mut self.owners[self.whose[at]];
                let before = owner.upsert(K::view(&key), value).unwrap();
                assert_eq!(before, self.values.insert(at, value), "{at}");
            }
            3..6 => {
                let at = self.any_key();
                let key = (self.key)(at);
                let removed = self.owners[self.whose[at]].remove(K::view(&key));
                assert_eq!(removed, self.values.remove(&at), "{at}");
            }
            6..8 => {
                let owner = self.random.below(OWNERS);
                let some: Vec<usize> = (0..6).map(|_| self.any_key()).collect();
                let own = some.into_iter().filter(|at| self.whose[*at] == owner);
                let own: Vec<usize> = own.collect();
                let keys: Vec<K::Owned> = own.iter().map(|at| (self.key)(*at)).collect();
                let entries: Vec<_> = keys.iter().map(|key| (K::view(key), value)).collect();
                let mut present = vec![None; own.len()];
                self.owners[owner]
                    .insert_many(&entries, &mut present)
                    .unwrap();
                for (at, present) in own.iter().zip(present) {
                    assert_eq!(present, self.values.get(at).copied(), "{at}");
                    self.values.entry(*at).or_insert(value);
                }
            }
            8..10 => self.hand_over(),
            10 => self.copy(),
            _ => {
                let owner = self.random.below(OWNERS);
                self.owners[owner].unshare().unwrap();
            }
        }
    }

    /// Gives keys of one owner to another, unless they have come lately; or begins to, and gives it up.
    fn hand_over(&mut self) {
        let (low, end) = self.any_span();
        let from = self.whose[low];
        let end = (low..end).find(|at| self.whose[*at] != from).unwrap_or(end);
        let to = (from + 1 + self.random.below(OWNERS - 1)) % OWNERS;
        let span = self.span((low, end));
        let can_share = self.owners[from].can_share(&span);
        let part = self.owners[from].share(&span);
        assert_eq!(can_share, part.is_some());
        if let Some(part) = part
            && !self.random.one_in(4)
        {
            self.owners[from].give(span);
            self.owners[to].take(part);
            self.whose[low..end].fill(to);
            self.shared += 1;
        }
    }

    /// Gives keys of one owner to another one by one.
    fn copy(&mut self) {
        let (low, end) = self.any_span();
        let to = self.random.below(OWNERS);
        for at in low..end {
            let key = (self.key)(at);
            let value = self.owners[self.whose[at]].remove(K::view(&key));
            assert_eq!(value, self.values.get(&at).copied());
            if let Some(value) = value {
                let before = self.owners[to].upsert(K::view(&key), value).unwrap();
                assert_eq!(before, None, "{at}");
            }
            self.whose[at] = to;
        }
    }

    fn check(&mut self) {
        for at in 0..KEYS {
            let key = (self.key)(at);
            let owner = &self.owners[self.whose[at]];
            assert_eq!(
                owner.get(K::view(&key)),
                self.values.get(&at).copied(),
                "{at}"
            );
        }
        for (number, owner) in self.owners.iter().enumerate() {
            let own: Vec<usize> = (0..KEYS).filter(|at| self.whose[*at] == number).collect();
            let keys: Vec<K::Owned> = own.iter().map(|at| (self.key)(*at)).collect();
            let views: Vec<_> = keys.iter().map(|key| K::view(key)).collect();
            let mut found = vec![None; own.len()];
            owner.get_many(&views, &mut found);
            assert!(own.iter().map(|at| self.values.get(at).copied()).eq(found));
        }
        let (low, end) = self.any_span();
        let (from, to) = ((self.key)(low), (self.key)(end - 1));
        let bounds: Bounds<'_, K::Owned> = match self.random.below(3) {
            0 => (Bound::Included(&from), Bound::Included(&to)),
            1 => (Bound::Excluded(&from), Bound::Excluded(&to)),
            _ => (Bound::Unbounded, Bound::Included(&to)),
        };
        let is_within = |at: usize| match bounds {
            (Bound::Included(_), _) => (low..end).contains(&at),
            (Bound::Excluded(_), _) => low < at && at + 1 < end,
            _ => at < end,
        };
        for (number, owner) in self.owners.iter().enumerate() {
            let own = self.values.iter();
            let own = own.filter(|(at, _)| self.whose[**at] == number && is_within(**at));
            let mut expected: Vec<u64> = own.map(|(_, value)| *value).collect();
            for descending in [false, true] {
                let mut seen = Vec::new();
                owner.visit(bounds, descending, |_, value| {
                    seen.push(value);
                    true
                });
                assert_eq!(seen, expected, "{descending}");
                let (mut first, enough) = (Vec::new(), expected.len() / 2);
                owner.visit(bounds, descending, |_, value| {
                    first.push(value);
                    first.len() < enough
                });
                assert_eq!(first[..], expected[..enough.max(1).min(expected.len())]);
                expected.reverse();
            }
        }
    }
}

fn simulate<K: Key + ?Sized>(seed: u64, key: fn(usize) -> K::Owned) -> usize {
    let topology = Topology::fake(1, 1);
    let memory = Memory::new(&topology, HugePages::Never, Some(256 << 20)).unwrap();
    let tree = || Art::<K>::new(memory.node(NodeId(0)), ObjectId(1));
    let mut owners = Owners {
        owners: (0..OWNERS).map(|_| Watched::from(tree()).into()).collect(),
        whose: vec![0; KEYS],
        values: BTreeMap::new(),
        random: Random::new(seed),
        key,
        next: 0,
        shared: 0,
    };
    for _ in 0..600 {
        owners.step();
        owners.check();
    }
    for _ in 0..10_000 {
        let settled = owners
            .owners
            .iter_mut()
            .map(|owner| owner.unshare().unwrap());
        if settled
            .collect::<Vec<_>>()
            .iter()
            .all(|one| *one == Unsharing::Done)
        {
            break;
        }
    }
    owners.check();
    for (number, owner) in owners.owners.iter().enumerate() {
        assert!(owner.is_unshared());
        let own = owners
            .values
            .keys()
            .filter(|at| owners.whose[**at] == number);
        assert_eq!(owner.own.len(), own.count(), "and no others");
        owner.own.check();
    }
    let shared = owners.shared;
    drop(owners);
    assert_eq!(memory.budget().used(), 0, "memory is left over");
    shared
}

#[test]
fn keys_that_are_shared_are_found_once_whoever_has_changed_what() {
    let number = |at: usize| at as u64 * 0x1_0001;
    let bytes = |at: usize| format!("{at:05}\0").into_bytes().into_boxed_slice();
    let mut shared = 0;
    for seed in 0..20 {
        println!("seed {seed}");
        shared += simulate::<u64>(seed, number);
        shared += simulate::<[u8]>(seed, bytes);
    }
    assert!(shared > 500, "{shared}");
}

#[test]
fn without_memory_entries_stay_shared_and_are_found() {
    let topology = Topology::fake(1, 1);
    let memory = Memory::new(&topology, HugePages::Never, Some(64 << 20)).unwrap();
    let tree = || Art::<u64>::new(memory.node(NodeId(0)), ObjectId(1));
    let mut from: Keyed<u64> = Watched::from(tree()).into();
    let mut to: Keyed<u64> = Watched::from(tree()).into();
    for key in 0..50_000 {
        from.upsert(key, key + 1).unwrap();
    }
    let span = Span {
        low: Some(10_000),
        end: Some(40_000),
    };
    let part = from.share(&span).unwrap();
    from.give(span.clone());
    to.take(part);
    let budget = memory.budget();
    let rest = budget.try_reserve(budget.limit() - budget.used()).unwrap();
    assert!((0..50_000).any(|_| to.unshare().is_err()), "no memory");
    // What changes meanwhile is written down all the same.
    assert_eq!(to.upsert(39_999, 7).unwrap(), Some(40_000));
    assert_eq!(to.remove(39_998), Some(39_999));
    assert_eq!(from.unshare().unwrap(), Unsharing::Waits);
    assert_eq!(from.remove(5), Some(6));
    drop(rest);
    while to.unshare().unwrap() != Unsharing::Done {}
    while from.unshare().unwrap() != Unsharing::Done {}
    for key in 0..50_000 {
        let expected = match key {
            5 | 39_998 => None,
            39_999 => Some(7),
            _ => Some(key + 1),
        };
        let (there, gone) = if span.has(key) {
            (&to, &from)
        } else {
            (&from, &to)
        };
        assert_eq!((there.get(key), gone.get(key)), (expected, None), "{key}");
    }
    from.own.check();
    to.own.check();
}
