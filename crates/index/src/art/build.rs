//! A tree from sorted entries at once: every node is made in the class that it needs, after what is below it.
//!
//! So a tree takes less time than by inserting, and records lie in the order of keys, as a range reads them.

use super::node::{Branch, Inner6, Inner12, Inner25, Inner51, Inner256};
use super::node::{Value7, Value14, Value28, Value56, Value256};
use super::reference::Ref;
use super::{Art, Key, MAX_KEY};
use crate::{BatchError, IndexError};
use eris_numa::NodeMemory;
use eris_types::ObjectId;

/// A node that is to be made of entries with a common beginning.
struct Open {
    /// Entries from here on have no node yet.
    next: usize,
    end: usize,
    /// Bytes of the key above the node's prefix, and above the node.
    depth: usize,
    branch: usize,
    /// The byte that leads to it.
    byte: u8,
    /// Its children begin here among those that are made.
    children: usize,
}

/// Entries in order, by number.
pub trait Entries<'k, K: Key + ?Sized> {
    /// How many there are.
    fn count(&self) -> usize;
    /// The key of an entry.
    fn key(&self, number: usize) -> K::View<'k>;
    /// Its value.
    fn value(&self, number: usize) -> u64;
}

impl<'k, K: Key + ?Sized> Entries<'k, K> for [(K::View<'k>, u64)] {
    fn count(&self) -> usize {
        self.len()
    }

    fn key(&self, number: usize) -> K::View<'k> {
        self[number].0
    }

    fn value(&self, number: usize) -> u64 {
        self[number].1
    }
}

/// A tree that is being built, some nodes at a time, so that its owner can do other work in between. The entries must be the
/// same ones each time.
pub struct Build<K: Key + ?Sized> {
    tree: Art<K>,
    open: Vec<Open>,
    /// Finished nodes of those that are open, with the bytes that lead to them.
    made: Vec<(u8, Ref)>,
    /// What is to be made next: entries, the depth, the byte.
    part: Option<(usize, usize, usize, u8)>,
    is_begun: bool,
}

impl<K: Key + ?Sized> Art<K> {
    /// A tree of entries that ascend by key, without equal keys.
    ///
    /// # Errors
    /// No memory, a key that is too long, or one that is not greater than the one before it; with its number. Nothing is
    /// kept then.
    ///
    /// # Panics
    /// If a key is the beginning of another.
    pub fn build(
        memory: NodeMemory,
        object: ObjectId,
        entries: &[(K::View<'_>, u64)],
    ) -> Result<Self, BatchError> {
        for (done, (key, _)) in entries.iter().enumerate() {
            let error = if K::length(*key) > MAX_KEY {
                IndexError::KeyTooLong(K::length(*key))
            } else if done > 0 && K::compare(entries[done - 1].0, *key).is_ge() {
                IndexError::OutOfOrder
            } else {
                continue;
            };
            return Err(BatchError { done, error });
        }
        let mut build = Build::new(memory, object);
        let built = build.step(entries, usize::MAX);
        built.map_err(|error| BatchError {
            done: entries.len(),
            error,
        })?;
        Ok(build.finish())
    }
}

impl<K: Key + ?Sized> Build<K> {
    /// Nothing built yet.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        Build {
            tree: Art::new(memory, object),
            open: Vec::new(),
            made: Vec::new(),
            part: None,
            is_begun: false,
        }
    }

    /// Makes so many more nodes; says whether that was all. The entries ascend by key, without equal keys, and no key is longer
    /// than [`MAX_KEY`].
    ///
    /// # Errors
    /// No memory. The tree cannot be finished then.
    ///
    /// # Panics
    /// If a key is the beginning of another, perhaps if the keys do not ascend.
    pub fn step<'k, E: Entries<'k, K> + ?Sized>(
        &mut self,
        entries: &E,
        nodes: usize,
    ) -> Result<bool, IndexError> {
        let Build {
            tree,
            open,
            made,
            part,
            is_begun,
        } = self;
        if !std::mem::replace(is_begun, true) {
            tree.len = entries.count();
            *part = (entries.count() > 0).then_some((0, entries.count(), 0, 0));
        }
        for _ in 0..nodes {
            if let Some((start, end, depth, byte)) = part.take() {
                let first = entries.key(start);
                let branch = K::common(first, entries.key(end - 1));
                if end - start == 1 {
                    made.push((
                        byte,
                        tree.space.take_record::<K>(first, entries.value(start))?,
                    ));
                } else if K::INLINE && branch + 1 == K::length(first) {
                    let values = (start..end).map(|entry| {
                        (
                            byte_at::<K>(entries.key(entry), branch),
                            entries.value(entry),
                        )
                    });
                    let node = match end - start {
                        ..=7 => tree.make::<Value7>(values)?,
                        8..=14 => tree.make::<Value14>(values)?,
                        15..=28 => tree.make::<Value28>(values)?,
                        29..=56 => tree.make::<Value56>(values)?,
                        _ => tree.make::<Value256>(values)?,
                    };
                    made.push((byte, tree.chain(first, depth, branch, node)?));
                } else {
                    open.push(Open {
                        next: start,
                        end,
                        depth,
                        branch,
                        byte,
                        children: made.len(),
                    });
                }
            }
            let Some(top) = open.last_mut() else {
                tree.root = made.pop().map_or(Ref::NONE, |(_, root)| root);
                return Ok(true);
            };
            if top.next < top.end {
                let start = top.next;
                let byte = byte_at::<K>(entries.key(start), top.branch);
                top.next = end_of_byte::<K, E>(entries, start, top.end, top.branch, byte);
                *part = Some((start, top.next, top.branch + 1, byte));
                continue;
            }
            let Some(top) = open.pop() else { continue };
            let children = made[top.children..].iter().copied();
            let node = match children.len() {
                ..=6 => tree.make::<Inner6>(children)?,
                7..=12 => tree.make::<Inner12>(children)?,
                13..=25 => tree.make::<Inner25>(children)?,
                26..=51 => tree.make::<Inner51>(children)?,
                _ => tree.make::<Inner256>(children)?,
            };
            made.truncate(top.children);
            made.push((
                top.byte,
                tree.chain(entries.key(top.end - 1), top.depth, top.branch, node)?,
            ));
        }
        Ok(false)
    }

    /// The tree.
    ///
    /// # Panics
    /// If the last step was not the last one.
    pub fn finish(self) -> Art<K> {
        assert!(
            self.is_begun && self.open.is_empty() && self.part.is_none(),
            "the tree is finished"
        );
        self.tree
    }
}

/// The first of the entries `start..end` whose key has another byte at a depth.
fn end_of_byte<'k, K: Key + ?Sized, E: Entries<'k, K> + ?Sized>(
    entries: &E,
    start: usize,
    end: usize,
    depth: usize,
    byte: u8,
) -> usize {
    let (mut low, mut high) = (start, end);
    while low < high {
        let middle = low.midpoint(high);
        match byte_at::<K>(entries.key(middle), depth) == byte {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

impl<K: Key + ?Sized> Art<K> {
    fn make<N: Branch>(
        &mut self,
        children: impl Iterator<Item = (u8, N::Child)>,
    ) -> Result<Ref, IndexError> {
        let node = self.space.take::<N>()?;
        // SAFETY: just taken.
        unsafe { self.space.node_mut::<N>(node) }.fill(children);
        Ok(node)
    }
}

fn byte_at<K: Key + ?Sized>(key: K::View<'_>, depth: usize) -> u8 {
    K::byte(key, depth).expect("no key is the beginning of another")
}
