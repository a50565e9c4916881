//! Many keys at a time, which go down side by side.
//!
//! While the next node of one key comes from memory, the others take their steps. Keys of a batch that lie in one leaf
//! one after the other, as those of a sorted batch do, are put in or taken out while that is held once.

use crate::key::Key;
use crate::node::{Held, Node, Side};
use crate::tree::{Tree, value_of};
use std::array;
use std::ops::ControlFlow;

/// Keys that go down side by side.
const SIDE_BY_SIDE: usize = 32;

impl<K: Key + ?Sized> Tree<K> {
    /// The values of many keys, in their order. Each is looked up for itself.
    ///
    /// # Panics
    /// If there are not as many places as keys.
    pub fn get_many(&self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a place for each key");
        let parts = values.chunks_mut(SIDE_BY_SIDE);
        for (keys, values) in keys.chunks(SIDE_BY_SIDE).zip(parts) {
            self.find_side_by_side(keys.iter().copied(), |_, key, leaf| value_of(leaf, key))
                .into_iter()
                .zip(values)
                .for_each(|(found, value)| *value = found.flatten());
        }
    }

    /// Puts many entries in, each as [`put`](Self::put) does, in their order. `replaced` is told of each that has
    /// replaced one: its position, and the value before.
    ///
    /// # Errors
    /// There is no memory for one, or its key is too long; those before it are there.
    pub fn put_many(
        &self,
        entries: &[(K::Ref<'_>, u64)],
        mut replaced: impl FnMut(usize, u64),
    ) -> Result<(), K::Error> {
        for (part, some) in entries.chunks(SIDE_BY_SIDE).enumerate() {
            self.space.prepare();
            let leaves = self.leaves(some.iter().map(|(key, _)| *key));
            let mut held = None;
            for (at, &(key, value)) in some.iter().enumerate() {
                K::check(key)?;
                let leaf = self.hold_next(held.take(), key, leaves[at]);
                let (before, leaf) = self.put_into(leaf, key, value)?;
                held = leaf.filter(|(number, _)| leaves.get(at + 1) == Some(&Some(*number)));
                if let Some(before) = before {
                    replaced(part * SIDE_BY_SIDE + at, before);
                }
            }
        }
        Ok(())
    }

    /// Takes many entries out, each as [`remove`](Self::remove) does, in their order. `removed` is told of each that
    /// was there: its position, and its value.
    pub fn remove_many(&self, keys: &[K::Ref<'_>], mut removed: impl FnMut(usize, u64)) {
        for (part, some) in keys.chunks(SIDE_BY_SIDE).enumerate() {
            let leaves = self.leaves(some.iter().copied());
            let mut held = None;
            for (at, &key) in some.iter().enumerate() {
                let leaf = self.hold_next(held.take(), key, leaves[at]);
                let (before, leaf) = self.remove_from(leaf, key);
                held = leaf.filter(|(number, _)| leaves.get(at + 1) == Some(&Some(*number)));
                if let Some(before) = before {
                    removed(part * SIDE_BY_SIDE + at, before);
                }
            }
        }
    }

    /// The numbers of the leaves that have these keys.
    #[inline]
    fn leaves<'k>(
        &self,
        keys: impl ExactSizeIterator<Item = K::Ref<'k>> + Clone,
    ) -> [Option<u32>; SIDE_BY_SIDE] {
        self.find_side_by_side(keys, |number, _, _| number)
    }

    /// The leaf that has a key, held: the one that is held still, or the one with this number, or where it leads.
    #[inline]
    fn hold_next<'a>(
        &'a self,
        held: Option<(u32, Held<'a, K>)>,
        key: K::Ref<'_>,
        leaf: Option<u32>,
    ) -> (u32, Held<'a, K>) {
        // Who holds a leaf waits for no other one: it lets go of it before.
        if let Some((number, held)) = held
            && K::side(held.node, key, 0) == Side::Here
        {
            return (number, held);
        }
        leaf.and_then(|number| self.hold_from(number, key, 0))
            .unwrap_or_else(|| self.hold_leaf(key))
    }

    /// What `found` says of the leaves that have these keys, in their order; at most [`SIDE_BY_SIDE`].
    #[inline]
    fn find_side_by_side<'k, T: Copy>(
        &self,
        keys: impl ExactSizeIterator<Item = K::Ref<'k>> + Clone,
        found: impl Fn(u32, K::Ref<'k>, Node<'_, K>) -> T,
    ) -> [Option<T>; SIDE_BY_SIDE] {
        let mut results = [None; SIDE_BY_SIDE];
        let Some(first) = keys.clone().next() else {
            return results;
        };
        let mut all = [first; SIDE_BY_SIDE];
        let mut left = keys.len();
        all.iter_mut()
            .zip(keys)
            .for_each(|(place, key)| *place = key);
        let mut ways = [self.root(); SIDE_BY_SIDE];
        let mut under_way: [usize; SIDE_BY_SIDE] = array::from_fn(|at| at);
        while left > 0 {
            let mut still = 0;
            for place in 0..left {
                let of = under_way[place];
                let key = all[of];
                // While the next node of one comes, the others take their steps.
                match self.step(ways[of], (key, 0), |number, leaf| found(number, key, leaf)) {
                    ControlFlow::Break(found) => results[of] = Some(found),
                    ControlFlow::Continue(next) => {
                        ways[of] = next;
                        under_way[still] = of;
                        still += 1;
                    }
                }
            }
            left = still;
        }
        results
    }
}
