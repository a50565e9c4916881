//! The entries of one owner: its own tree, and parts of trees that it shares with others for a while.
//!
//! ```text
//!             own tree      │ shared: keys that came       │ own tree         a key's entry is in one place
//!                             └─▶ copied, piece by piece
//! is lent ─ others have copied what they got ─ changes put in ─ what was given removed ─▶ the own tree again
//! ```

use super::shared::{Piece, Shared, nth, split};
use super::span::{Bounds, Span, is_nothing, least, views};
use crate::held::reorganize::Watched;
use eris_index::{Art, BatchError, IndexError, Key};
use eris_numa::Extent;
use std::sync::Arc;

/// Entries that go from tree to tree, or are removed, in one step. Few in tests, so that much happens between two.
const STEP: usize = if cfg!(test) { 8 } else { 256 };

/// The entries of one owner.
pub(crate) struct Keyed<K: Key + ?Sized> {
    pub own: Watched<K>,
    shared: Vec<Shared<K>>,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsharing {
    /// There is more to be done.
    Again,
    /// Others still read the tree.
    Waits,
    /// All entries are in the own tree.
    Done,
}

impl<K: Key + ?Sized> From<Watched<K>> for Keyed<K> {
    fn from(own: Watched<K>) -> Self {
        Keyed {
            own,
            shared: Vec::new(),
        }
    }
}

impl<K: Key + ?Sized> Keyed<K> {
    /// Where a key's entry is, if that is not the own tree.
    fn place(&self, key: K::View<'_>) -> Option<&Shared<K>> {
        self.shared.iter().find(|shared| shared.has(key))
    }

    fn place_mut(&mut self, key: K::View<'_>) -> Option<&mut Shared<K>> {
        self.shared.iter_mut().find(|shared| shared.has(key))
    }

    pub fn get(&self, key: K::View<'_>) -> Option<u64> {
        match self.place(key) {
            Some(shared) => shared.get(key),
            None => self.own.get(key),
        }
    }

    pub fn get_many(&self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        if self.shared.is_empty() {
            return self.own.get_many(keys, values);
        }
        // Place by place, so that the misses of different keys overlap.
        let mut left: Vec<usize> = (0..keys.len()).collect();
        for shared in &self.shared {
            let here: Vec<usize> = left.extract_if(.., |at| shared.has(keys[*at])).collect();
            scatter(keys, values, &here, |keys, found| {
                shared.get_many(keys, found)
            });
        }
        scatter(keys, values, &left, |keys, found| {
            self.own.get_many(keys, found)
        });
    }

    pub fn upsert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        match self.place_mut(key) {
            Some(shared) => Ok(shared.set(key, Some(value))),
            None => self.own.upsert(key, value),
        }
    }

    /// As [`Art::insert_many`].
    pub fn insert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        present: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        if self.shared.is_empty() {
            return self.own.insert_many(entries, present);
        }
        for (done, ((key, value), present)) in entries.iter().zip(present).enumerate() {
            *present = match self.place_mut(*key) {
                None => self.own.insert(*key, *value),
                Some(shared) => {
                    let present = shared.get(*key);
                    if present.is_none() {
                        shared.set(*key, Some(*value));
                    }
                    Ok(present)
                }
            }
            .map_err(|error| BatchError { done, error })?;
        }
        Ok(())
    }

    pub fn remove(&mut self, key: K::View<'_>) -> Option<u64> {
        match self.place_mut(key) {
            Some(shared) => shared.set(key, None),
            None => self.own.remove(key),
        }
    }

    /// Visits entries within bounds in the order of their keys, or backwards, until `visit` says no.
    pub fn visit(
        &self,
        bounds: Bounds<'_, K::Owned>,
        descending: bool,
        mut visit: impl FnMut(K::View<'_>, u64) -> bool,
    ) {
        let own = |bounds: Bounds<'_, K::Owned>,
                   visit: &mut dyn FnMut(K::View<'_>, u64) -> bool| {
            let mut entries = self.own.range(views::<K>(bounds));
            match descending {
                true => entries.rev().all(|(key, value)| visit(key, value)),
                false => entries.all(|(key, value)| visit(key, value)),
            }
        };
        if self.shared.is_empty() {
            own(bounds, &mut visit);
            return;
        }
        let shared = self.shared.iter().flat_map(|shared| {
            let spans = shared.span.without(shared.given.clone()).into_iter();
            spans.map(move |span| (span, Some(shared)))
        });
        let mut parts: Vec<(Span<K>, Option<&Shared<K>>)> = shared.collect();
        let others = parts.iter().map(|(span, _)| span.clone()).collect();
        let rest = Span::all().without(others).into_iter();
        parts.extend(rest.map(|span| (span, None)));
        parts.sort_by(|one, other| one.0.low.cmp(&other.0.low));
        if descending {
            parts.reverse();
        }
        let _ = parts.iter().all(|(span, shared)| {
            let bounds = span.cut(bounds);
            match shared {
                Some(shared) => shared.visit(bounds, descending, &mut visit),
                None if is_nothing(&bounds) => true,
                None => own(bounds, &mut visit),
            }
        });
    }

    /// Whether there are no entries, not even in trees that are shared.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }

    pub fn clear(&mut self) {
        self.shared.clear();
        self.own.clear();
    }

    /// The memory of the trees that are its own, shared or not.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.own.extents(all);
        let lent = self.shared.iter().filter(|shared| shared.is_lent);
        lent.for_each(|shared| shared.tree.extents(all));
    }

    /// Whether all entries are in the own tree.
    pub fn is_unshared(&self) -> bool {
        self.shared.is_empty()
    }

    /// Shares keys with another owner: the part that it gets. `None`: these have come lately, and are not in the own
    /// tree yet.
    pub fn share(&mut self, span: &Span<K>) -> Option<Shared<K>> {
        if !self.can_share(span) {
            return None;
        }
        if self.shared.is_empty() {
            let empty = Art::new(self.own.memory().clone(), self.own.object());
            self.shared.push(Shared::lent(self.own.replace(empty)));
        }
        Some(self.shared[0].part(span))
    }

    /// Whether keys can be [shared](Self::share).
    pub fn can_share(&self, span: &Span<K>) -> bool {
        match &self.shared[..] {
            [] => true,
            [lent] if lent.is_lent => {
                let mut given = lent.given.iter();
                given.all(|given| given.and(span).is_empty())
            }
            _ => false,
        }
    }

    /// Keys that were [shared](Self::share) are another owner's from now on.
    pub fn give(&mut self, span: Span<K>) {
        let lent = self.shared.iter_mut().find(|shared| shared.is_lent);
        lent.expect("a tree that others read stays shared")
            .give(span);
    }

    /// Takes over keys of which it has no entry.
    pub fn take(&mut self, part: Shared<K>) {
        // Were they its own before, what is left of them is still to be removed, or not to be copied.
        let mut others = Vec::new();
        for mut shared in self.shared.drain(..) {
            if shared.is_lent {
                shared.give(part.span.clone());
                others.push(shared);
                continue;
            }
            let left = shared.span.without(vec![part.span.clone()]);
            others.extend(left.iter().map(|left| shared.part(left)));
        }
        self.shared = others;
        if !part.span.is_empty() {
            self.shared.push(part);
        }
    }

    /// Brings some entries to where they belong.
    ///
    /// # Errors
    /// No memory: they are where they were.
    pub fn unshare(&mut self) -> Result<Unsharing, IndexError> {
        if let Some(at) = self.shared.iter().position(|shared| !shared.is_lent) {
            let shared = &mut self.shared[at];
            let Piece {
                span,
                entries,
                left,
            } = shared.piece(&shared.span, STEP);
            put::<K>(&mut self.own, &entries)?;
            shared.forget(&span);
            match left {
                Some(left) => shared.span = left,
                None => drop(self.shared.swap_remove(at)),
            }
            return Ok(Unsharing::Again);
        }
        let Some(lent) = self.shared.first_mut() else {
            return Ok(Unsharing::Done);
        };
        if Arc::get_mut(&mut lent.tree).is_none() {
            return Ok(Unsharing::Waits);
        }
        for _ in 0..STEP {
            let Some((key, value)) = lent.pop_change() else {
                break;
            };
            let tree = Arc::get_mut(&mut lent.tree).expect("looked above");
            let view = K::view(&key);
            match value {
                None => drop(tree.remove(view)),
                Some(new) => {
                    if let Err(error) = tree.upsert(view, new) {
                        lent.set(view, value);
                        return Err(error);
                    }
                }
            }
        }
        if lent.has_changes() {
            return Ok(Unsharing::Again);
        }
        if let Some(given) = lent.given.pop() {
            let tree = Arc::get_mut(&mut lent.tree).expect("looked above");
            match retake::<K>(&given, tree, &mut self.own) {
                Ok(left) => lent.given.extend(left),
                Err(error) => {
                    lent.given.push(given);
                    return Err(error);
                }
            }
            return Ok(Unsharing::Again);
        }
        let lent = self.shared.pop().expect("looked above");
        assert!(self.own.is_empty(), "its entries are in the tree");
        let tree = Arc::into_inner(lent.tree).expect("looked above");
        self.own.replace(tree);
        self.own.trim();
        Ok(Unsharing::Done)
    }
}

/// Looks up those of the keys that are at some places of a batch.
fn scatter<V: Copy>(
    keys: &[V],
    values: &mut [Option<u64>],
    places: &[usize],
    get_many: impl FnOnce(&[V], &mut [Option<u64>]),
) {
    if !places.is_empty() {
        let some: Vec<V> = places.iter().map(|at| keys[*at]).collect();
        let mut found = vec![None; some.len()];
        get_many(&some, &mut found);
        let found = places.iter().zip(found);
        found.for_each(|(at, value)| values[*at] = value);
    }
}

/// Removes some entries of keys that were given, and puts those in that have come back; what is left of the keys.
fn retake<K: Key + ?Sized>(
    given: &Span<K>,
    tree: &mut Art<K>,
    own: &mut Art<K>,
) -> Result<Option<Span<K>>, IndexError> {
    let next = least(nth(tree, given, STEP), nth(own, given, STEP));
    let (span, left) = split(given, next);
    let entries = |tree: &Art<K>| -> Vec<(K::Owned, u64)> {
        let entries = tree.range(views::<K>(span.bounds()));
        entries.map(|(key, value)| (K::own(key), value)).collect()
    };
    let back = entries(own);
    for (key, _) in entries(tree) {
        tree.remove(K::view(&key));
    }
    put::<K>(tree, &back)?;
    for (key, _) in &back {
        own.remove(K::view(key));
    }
    Ok(left)
}

/// Puts entries of new keys in, all or none.
fn put<K: Key + ?Sized>(tree: &mut Art<K>, entries: &[(K::Owned, u64)]) -> Result<(), IndexError> {
    let views: Vec<_> = entries
        .iter()
        .map(|(key, value)| (K::view(key), *value))
        .collect();
    let result = tree.upsert_many(&views, &mut vec![None; views.len()]);
    result.map_err(|failed| {
        for (key, _) in &views[..failed.done] {
            tree.remove(*key);
        }
        failed.error
    })
}
