//! Adding one key.
//!
//! Whatever an insertion needs is taken before anything is changed, and given back if something else is rejected then.

use super::node::{BranchNode, Grow, Inner6, PREFIX_BYTES, Prefix, Value7, with_inner, with_value};
use super::reference::{NodeKind, Ref};
use super::{Art, Key, Link, MAX_KEY};
use crate::IndexError;

/// What happens to a key that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    Keep,
    Replace,
}

impl<K: Key + ?Sized> Art<K> {
    /// Adds a key unless it is there; returns the value that it has then.
    ///
    /// # Errors
    /// No memory, or the key is too long; the tree is as before.
    ///
    /// # Panics
    /// If the key is the beginning of another or another is its beginning; the tree is as before.
    pub fn insert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        self.put(key, value, Present::Keep)
    }

    /// Adds a key, or replaces its value; returns the value before.
    ///
    /// # Errors
    /// As [`Art::insert`].
    ///
    /// # Panics
    /// As [`Art::insert`].
    pub fn upsert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        self.put(key, value, Present::Replace)
    }

    pub(super) fn put(
        &mut self,
        key: K::View<'_>,
        value: u64,
        present: Present,
    ) -> Result<Option<u64>, IndexError> {
        if K::length(key) > MAX_KEY {
            return Err(IndexError::KeyTooLong(K::length(key)));
        }
        let mut link = Link::ROOT;
        let mut at = self.root;
        let mut depth = 0;
        // References in the tree lead to live nodes and records, and the kind says the type: all `unsafe` rests on it.
        loop {
            match at.kind() {
                NodeKind::None => {
                    self.root = self.space.take_record::<K>(key, value)?;
                    break;
                }
                NodeKind::Record => {
                    // SAFETY: a live record.
                    match unsafe { self.put_at_record(link, at, depth, key, value, present)? } {
                        Some(before) => return Ok(Some(before)),
                        None => break,
                    }
                }
                NodeKind::Prefix => {
                    // SAFETY: a live prefix.
                    let prefix = unsafe { self.space.node::<Prefix>(at) };
                    let matching = K::matching(prefix, key, depth);
                    if matching < prefix.bytes().len() {
                        // SAFETY: as above; the link leads to it.
                        unsafe { self.split_prefix(link, at, depth, matching, key, value)? };
                        break;
                    }
                    depth += matching;
                    link = Link { node: at, byte: 0 };
                    at = prefix.child;
                }
                kind => with_inner!(kind, N => {
                    let byte = byte::<K>(key, depth);
                    // SAFETY: a live node of this type.
                    let node = unsafe { self.space.node::<N>(at) };
                    let Some(child) = node.find(byte) else {
                        // SAFETY: as above; the link leads to it, and it has no child of this byte.
                        unsafe { self.add_record::<N>(link, at, byte, key, value)? };
                        break;
                    };
                    depth += 1;
                    link = Link { node: at, byte };
                    at = child;
                }, kind => with_value!(kind, N => {
                    let byte = byte::<K>(key, depth);
                    // SAFETY: a live node of this type.
                    let node = unsafe { self.space.node_mut::<N>(at) };
                    if let Some(old) = node.find_mut(byte) {
                        return Ok(Some(replace(old, value, present)));
                    }
                    if !node.add(byte, value) {
                        // SAFETY: as above; the link leads to it.
                        unsafe { self.grow::<N>(link, at, byte, value)? };
                    }
                    break;
                }, _ => unreachable!("every kind is named"))),
            }
        }
        self.len += 1;
        Ok(None)
    }

    /// [`Art::put`] for keys that differ in their last byte only: all but the first few go straight to the node that
    /// has their values. `before` gets what was there; says how many are done before the first that was rejected.
    pub(super) fn put_beside(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        before: &mut [Option<u64>],
        present: Present,
    ) -> Result<(), (usize, IndexError)> {
        let mut done = 0;
        while done < entries.len() {
            let Some((link, at)) = self.values_beside(entries[done].0) else {
                let put = self.put(entries[done].0, entries[done].1, present);
                before[done] = put.map_err(|error| (done, error))?;
                done += 1;
                continue;
            };
            // Until it is full; then its successor is looked for.
            let added = with_value!(at.kind(), N => {
                // SAFETY: a live node, whose kind says the type.
                let node = unsafe { self.space.node_mut::<N>(at) };
                let mut added = 0;
                for ((key, value), before) in entries[done..].iter().zip(&mut before[done..]) {
                    let byte = byte::<K>(*key, K::length(*key) - 1);
                    *before = node.find_mut(byte).map(|old| replace(old, *value, present));
                    if before.is_none() {
                        if !node.add(byte, *value) {
                            break;
                        }
                        added += 1;
                    }
                    done += 1;
                }
                added
            }, _ => unreachable!("it has values"));
            self.len += added;
            if let Some((key, value)) = entries.get(done) {
                let byte = byte::<K>(*key, K::length(*key) - 1);
                let grown = with_value!(at.kind(), N => {
                    // SAFETY: as found above; it is full.
                    unsafe { self.grow::<N>(link, at, byte, *value) }
                }, _ => unreachable!("it has values"));
                grown.map_err(|error| (done, error))?;
                self.len += 1;
                done += 1;
            }
        }
        Ok(())
    }

    /// The node with the values of all keys that differ from this one in the last byte only, if there is such a node.
    fn values_beside(&self, key: K::View<'_>) -> Option<(Link, Ref)> {
        let mut link = Link::ROOT;
        let mut at = self.root;
        let mut depth = 0;
        // References in the tree lead to live nodes, and the kind says the type: all `unsafe` rests on it.
        loop {
            match at.kind() {
                NodeKind::None | NodeKind::Record => return None,
                NodeKind::Prefix => {
                    // SAFETY: a live prefix.
                    let prefix = unsafe { self.space.node::<Prefix>(at) };
                    let matching = K::matching(prefix, key, depth);
                    if matching < prefix.bytes().len() {
                        return None;
                    }
                    depth += matching;
                    link = Link { node: at, byte: 0 };
                    at = prefix.child;
                }
                kind => with_inner!(kind, N => {
                    let byte = byte::<K>(key, depth);
                    // SAFETY: a live node of this type.
                    let child = unsafe { self.space.node::<N>(at) }.find(byte)?;
                    depth += 1;
                    link = Link { node: at, byte };
                    at = child;
                }, _ => return Some((link, at))),
            }
        }
    }

    /// Puts a value to a record: to its own, if the key is the same, or beside it. Returns the value before.
    ///
    /// # Safety
    /// The link leads to `at`, a live record. So below, of each kind.
    #[inline(always)]
    unsafe fn put_at_record(
        &mut self,
        link: Link,
        at: Ref,
        depth: usize,
        key: K::View<'_>,
        value: u64,
        present: Present,
    ) -> Result<Option<u64>, IndexError> {
        // SAFETY: by contract.
        let old = unsafe { self.space.record_key::<K>(at) };
        let common = K::common(old, key);
        if common == K::length(key) && common == K::length(old) {
            // SAFETY: by contract.
            let old = unsafe { self.space.record_value_mut::<K>(at) };
            return Ok(Some(replace(old, value, present)));
        }
        // SAFETY: by contract.
        unsafe { self.split_record(link, at, depth, common, key, value)? };
        Ok(None)
    }

    /// A new child of an inner node.
    ///
    /// # Safety
    /// The link leads to `at`, a live node of the type `N` without a child of this byte.
    unsafe fn add_record<N: Grow<Child = Ref>>(
        &mut self,
        link: Link,
        at: Ref,
        byte: u8,
        key: K::View<'_>,
        value: u64,
    ) -> Result<(), IndexError> {
        let record = self.space.take_record::<K>(key, value)?;
        // SAFETY: by contract; the record is referred to by nobody if the node cannot grow.
        unsafe {
            if !self.space.node_mut::<N>(at).add(byte, record)
                && let Err(error) = self.grow::<N>(link, at, byte, record)
            {
                self.space.give(record);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Moves a full node to the next larger class and adds a child there.
    ///
    /// # Safety
    /// As [`Art::add_record`].
    #[inline(never)]
    unsafe fn grow<N: Grow>(
        &mut self,
        link: Link,
        at: Ref,
        byte: u8,
        child: N::Child,
    ) -> Result<(), IndexError> {
        // SAFETY: by contract; nothing refers to the old node once the link leads to the new.
        unsafe {
            let larger = self.space.convert::<N, N::Larger>(at)?;
            self.space.node_mut::<N::Larger>(larger).add(byte, child);
            self.set(link, larger);
            self.space.give(at);
        }
        Ok(())
    }

    /// Two keys where one was: they have `common` bytes in common, `depth` of which lie above.
    unsafe fn split_record(
        &mut self,
        link: Link,
        at: Ref,
        depth: usize,
        common: usize,
        key: K::View<'_>,
        value: u64,
    ) -> Result<(), IndexError> {
        // SAFETY: by contract `at` is a live record; what is given back here is referred to by nobody.
        unsafe {
            let old = self.space.record_key::<K>(at);
            let bytes = [byte::<K>(old, common), byte::<K>(key, common)];
            if K::INLINE && common + 1 == K::length(key) {
                let values = [self.space.record_value::<K>(at), value];
                let node = self.space.take::<Value7>()?;
                self.space
                    .node_mut::<Value7>(node)
                    .fill(in_order(bytes, values));
                let top = self.chain(key, depth, common, node);
                let top = top.inspect_err(|_| self.space.give(node))?;
                self.set(link, top);
                self.space.give(at);
                return Ok(());
            }
            let record = self.space.take_record::<K>(key, value)?;
            let node = self.space.take::<Inner6>();
            let node = node.inspect_err(|_| self.space.give(record))?;
            self.space
                .node_mut::<Inner6>(node)
                .fill(in_order(bytes, [at, record]));
            let top = self.chain(key, depth, common, node);
            let top = top.inspect_err(|_| {
                self.space.give(record);
                self.space.give(node);
            })?;
            self.set(link, top);
        }
        Ok(())
    }

    /// A branch inside of a prefix of which the key has only the first `matching` bytes, at `depth`.
    ///
    /// ```text
    /// ─► Prefix a b c d e ─► child        key a b x …, matching 2
    ///
    /// ─► Prefix a b ─► Inner6 ┬ c ─► Prefix d e ─► child
    ///                         └ x ─► record
    /// ```
    unsafe fn split_prefix(
        &mut self,
        link: Link,
        at: Ref,
        depth: usize,
        matching: usize,
        key: K::View<'_>,
        value: u64,
    ) -> Result<(), IndexError> {
        let key_byte = byte::<K>(key, depth + matching);
        // SAFETY: by contract `at` is a live prefix; what is given back here is referred to by nobody.
        unsafe {
            let old = *self.space.node::<Prefix>(at);
            let (front, rest) = old.bytes().split_at(matching);
            let (old_byte, rest) = (rest[0], &rest[1..]);
            let record = self.space.take_record::<K>(key, value)?;
            let node = self.space.take::<Inner6>();
            let node = node.inspect_err(|_| self.space.give(record))?;
            let mut top = node;
            if !front.is_empty() {
                let taken = self.space.take::<Prefix>();
                top = taken.inspect_err(|_| {
                    self.space.give(record);
                    self.space.give(node);
                })?;
                *self.space.node_mut(top) = Prefix::new(front, node);
            }
            let mut below = old.child;
            if !rest.is_empty() {
                *self.space.node_mut(at) = Prefix::new(rest, old.child);
                below = at;
            }
            let entries = in_order([old_byte, key_byte], [below, record]);
            self.space.node_mut::<Inner6>(node).fill(entries);
            self.set(link, top);
            if rest.is_empty() {
                self.space.give(at);
            }
        }
        Ok(())
    }

    /// Prefix nodes above `node` for the key's bytes `from..to`; the uppermost, or `node` itself if there are none.
    pub(super) fn chain(
        &mut self,
        key: K::View<'_>,
        from: usize,
        to: usize,
        node: Ref,
    ) -> Result<Ref, IndexError> {
        let mut top = node;
        for start in (from..to).step_by(PREFIX_BYTES).rev() {
            let mut bytes = [0; PREFIX_BYTES];
            let length = PREFIX_BYTES.min(to - start);
            for (i, place) in bytes[..length].iter_mut().enumerate() {
                *place = byte::<K>(key, start + i);
            }
            // SAFETY: nodes of this very chain, to which nothing refers yet.
            unsafe {
                match self.space.take::<Prefix>() {
                    Ok(prefix) => {
                        *self.space.node_mut(prefix) = Prefix::new(&bytes[..length], top);
                        top = prefix;
                    }
                    Err(error) => {
                        while top != node {
                            let above = top;
                            top = self.space.node::<Prefix>(above).child;
                            self.space.give(above);
                        }
                        return Err(error);
                    }
                }
            }
        }
        Ok(top)
    }
}

fn replace(old: &mut u64, value: u64, present: Present) -> u64 {
    match present {
        Present::Keep => *old,
        Present::Replace => std::mem::replace(old, value),
    }
}

#[inline(always)]
fn byte<K: Key + ?Sized>(key: K::View<'_>, depth: usize) -> u8 {
    K::byte(key, depth).expect("no key is the beginning of another")
}

fn in_order<T: Copy>(bytes: [u8; 2], children: [T; 2]) -> impl Iterator<Item = (u8, T)> {
    let first = usize::from(bytes[0] > bytes[1]);
    [first, 1 - first]
        .into_iter()
        .map(move |i| (bytes[i], children[i]))
}
