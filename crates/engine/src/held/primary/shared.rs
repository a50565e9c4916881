//! A tree that two owners read, and what each of them has changed since.
//!
//! ```text
//! former owner ─ all but what it gave ─┐                           ┌─ what it was given ─ new owner
//!                                      ▼                           ▼
//! changed here: 3 → new, 7 gone      tree, which nobody changes      changed there: 12 → new
//! ```
//!
//! So keys change owners without a look at any of them.

use super::span::{Bounds, Span, is_nothing, least, views};
use eris_index::{Art, Key};
use eris_numa::{Budget, Reservation};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The part of a shared tree that is one owner's.
pub(crate) struct Shared<K: Key + ?Sized> {
    pub(super) tree: Arc<Art<K>>,
    /// Its keys
    pub(super) span: Span<K>,
    /// but for these, which are not its own any more.
    pub(super) given: Vec<Span<K>>,
    /// What has changed for this owner since the tree is shared; `None`: the key is gone.
    changed: BTreeMap<K::Owned, Option<u64>>,
    /// For `changed`, also beyond the limit: a commit cannot fail.
    reserved: Reservation,
    /// It was this owner's alone, who gets it back.
    pub(super) is_lent: bool,
}

impl<K: Key + ?Sized> Shared<K> {
    /// All of a tree that has been its owner's alone.
    pub(super) fn lent(tree: Art<K>) -> Self {
        Shared {
            reserved: nothing(tree.memory().budget()),
            tree: Arc::new(tree),
            span: Span::all(),
            given: Vec::new(),
            changed: BTreeMap::new(),
            is_lent: true,
        }
    }

    /// Some of these keys, none of which was given, for another owner.
    pub(super) fn part(&self, span: &Span<K>) -> Self {
        let mut part = Shared {
            tree: self.tree.clone(),
            span: self.span.and(span),
            given: Vec::new(),
            changed: BTreeMap::new(),
            reserved: nothing(self.tree.memory().budget()),
            is_lent: false,
        };
        if !part.span.is_empty() {
            let changed = self.changed.range::<K::Owned, _>(part.span.bounds());
            let changed = changed.map(|(key, value)| (key.clone(), *value));
            part.changed = changed.collect();
        }
        let bytes = part.changed.keys().map(bytes::<K>).sum();
        part.reserved.grow(bytes);
        part
    }

    /// Whether a key's entry, if there is one, is here.
    pub(super) fn has(&self, key: K::View<'_>) -> bool {
        self.span.has(key) && !self.given.iter().any(|given| given.has(key))
    }

    /// Keys are another owner's from now on.
    pub(super) fn give(&mut self, span: Span<K>) {
        self.forget(&span);
        // No key is in two of them: each is taken back once.
        self.given.extend(span.without(self.given.clone()));
    }

    /// Nothing has changed any more in some keys.
    pub(super) fn forget(&mut self, span: &Span<K>) {
        if span.is_empty() {
            return;
        }
        let gone = self.changed.extract_if(span.bounds(), |_, _| true);
        let bytes = gone.map(|(key, _)| bytes::<K>(&key)).sum();
        self.reserved.shrink(bytes);
    }

    /// The value of a key.
    pub(super) fn get(&self, key: K::View<'_>) -> Option<u64> {
        if !self.changed.is_empty()
            && let Some(changed) = self.changed.get(&K::own(key))
        {
            return *changed;
        }
        self.tree.get(key)
    }

    /// The values of keys that have their entries here.
    pub(super) fn get_many(&self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        self.tree.get_many(keys, values);
        if !self.changed.is_empty() {
            for (key, value) in keys.iter().zip(values) {
                if let Some(changed) = self.changed.get(&K::own(*key)) {
                    *value = *changed;
                }
            }
        }
    }

    /// Gives a key another value, or none; the value before.
    pub(super) fn set(&mut self, key: K::View<'_>, value: Option<u64>) -> Option<u64> {
        let (before, key) = (self.get(key), K::own(key));
        let bytes = bytes::<K>(&key);
        if self.changed.insert(key, value).is_none() {
            self.reserved.grow(bytes);
        }
        before
    }

    /// Whether anything has changed.
    pub(super) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The first of the changes, taken away.
    pub(super) fn pop_change(&mut self) -> Option<(K::Owned, Option<u64>)> {
        let change = self.changed.pop_first()?;
        self.reserved.shrink(bytes::<K>(&change.0));
        Some(change)
    }

    /// Visits entries of its tree within bounds, given ones included, as they are for this owner, until `visit` says
    /// no; whether it never did.
    pub(super) fn visit(
        &self,
        bounds: Bounds<'_, K::Owned>,
        descending: bool,
        visit: &mut dyn FnMut(K::View<'_>, u64) -> bool,
    ) -> bool {
        if is_nothing(&bounds) {
            return true;
        }
        let tree = self.tree.range(views::<K>(bounds));
        let changed = self.changed.range::<K::Owned, _>(bounds);
        match descending {
            false => merge::<K>(tree, changed, |order| order, visit),
            true => merge::<K>(tree.rev(), changed.rev(), Ordering::reverse, visit),
        }
    }

    /// The first of a span's keys, `most` of the tree and as many of the changes at most, with their entries as they
    /// are for this owner; and what is left of the span.
    pub(super) fn piece(&self, span: &Span<K>, most: usize) -> Piece<K> {
        let changed = self.changed.range::<K::Owned, _>(span.bounds());
        let next = least(
            nth(&self.tree, span, most),
            changed.map(|(key, _)| key.clone()).nth(most),
        );
        let (first, left) = split(span, next);
        let mut entries = Vec::new();
        self.visit(first.bounds(), false, &mut |key, value| {
            entries.push((K::own(key), value));
            true
        });
        Piece {
            span: first,
            entries,
            left,
        }
    }
}

/// The first keys of a span.
pub(super) struct Piece<K: Key + ?Sized> {
    pub span: Span<K>,
    /// Ascending.
    pub entries: Vec<(K::Owned, u64)>,
    /// The rest of the span, if there may be more keys.
    pub left: Option<Span<K>>,
}

/// What is before a key of a span, and the rest; all, if there is no such key.
pub(super) fn split<K: Key + ?Sized>(
    span: &Span<K>,
    next: Option<K::Owned>,
) -> (Span<K>, Option<Span<K>>) {
    let Some(next) = next else {
        return (span.clone(), None);
    };
    let first = Span {
        low: span.low.clone(),
        end: Some(next.clone()),
    };
    let left = Span {
        low: Some(next),
        end: span.end.clone(),
    };
    (first, Some(left))
}

/// The key in a span with so many before it.
pub(super) fn nth<K: Key + ?Sized>(tree: &Art<K>, span: &Span<K>, at: usize) -> Option<K::Owned> {
    let mut keys = tree.range(views::<K>(span.bounds()));
    keys.nth(at).map(|(key, _)| K::own(key))
}

fn merge<'a, K: Key + ?Sized>(
    tree: impl Iterator<Item = (K::View<'a>, u64)>,
    changed: impl Iterator<Item = (&'a K::Owned, &'a Option<u64>)>,
    order: impl Fn(Ordering) -> Ordering,
    visit: &mut dyn FnMut(K::View<'_>, u64) -> bool,
) -> bool {
    let mut changed = changed.peekable();
    for (key, value) in tree {
        let mut is_changed = false;
        while let Some(&(other, new)) = changed.peek() {
            let is_behind = order(K::compare(K::view(other), key));
            if is_behind.is_gt() {
                break;
            }
            is_changed = is_behind.is_eq();
            changed.next();
            if let Some(new) = new
                && !visit(K::view(other), *new)
            {
                return false;
            }
        }
        if !is_changed && !visit(key, value) {
            return false;
        }
    }
    changed.all(|(key, new)| new.is_none_or(|new| visit(K::view(key), new)))
}

fn nothing(budget: &Budget) -> Reservation {
    budget.try_reserve(0).expect("nothing is always granted")
}

/// What a change takes.
fn bytes<K: Key + ?Sized>(key: &K::Owned) -> u64 {
    (size_of::<(K::Owned, Option<u64>)>() * 2 + K::length(K::view(key))) as u64
}
