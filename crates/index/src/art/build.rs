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
        let mut tree = Self::new(memory, object);
        tree.root = tree.build_nodes(entries).map_err(|error| BatchError {
            done: entries.len(),
            error,
        })?;
        tree.len = entries.len();
        Ok(tree)
    }

    fn build_nodes(&mut self, entries: &[(K::View<'_>, u64)]) -> Result<Ref, IndexError> {
        let mut open: Vec<Open> = Vec::new();
        // Finished nodes of those that are open, with the bytes that lead to them.
        let mut made: Vec<(u8, Ref)> = Vec::new();
        // What is to be made next: entries, the depth, the byte.
        let mut part = (!entries.is_empty()).then_some((0, entries.len(), 0, 0));
        loop {
            if let Some((start, end, depth, byte)) = part.take() {
                let branch = K::common(entries[start].0, entries[end - 1].0);
                if end - start == 1 {
                    let (key, value) = entries[start];
                    made.push((byte, self.space.take_record::<K>(key, value)?));
                } else if K::INLINE && branch + 1 == K::length(entries[start].0) {
                    let values = entries[start..end].iter();
                    let values = values.map(|(key, value)| (byte_at::<K>(*key, branch), *value));
                    let node = match end - start {
                        ..=7 => self.make::<Value7>(values)?,
                        8..=14 => self.make::<Value14>(values)?,
                        15..=28 => self.make::<Value28>(values)?,
                        29..=56 => self.make::<Value56>(values)?,
                        _ => self.make::<Value256>(values)?,
                    };
                    made.push((byte, self.chain(entries[start].0, depth, branch, node)?));
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
                return Ok(made.pop().map_or(Ref::NONE, |(_, root)| root));
            };
            if top.next < top.end {
                let start = top.next;
                let byte = byte_at::<K>(entries[start].0, top.branch);
                let same = |entry: &(K::View<'_>, u64)| byte_at::<K>(entry.0, top.branch) == byte;
                top.next += entries[start..top.end].partition_point(same);
                part = Some((start, top.next, top.branch + 1, byte));
                continue;
            }
            let Some(top) = open.pop() else { continue };
            let children = made[top.children..].iter().copied();
            let node = match children.len() {
                ..=6 => self.make::<Inner6>(children)?,
                7..=12 => self.make::<Inner12>(children)?,
                13..=25 => self.make::<Inner25>(children)?,
                26..=51 => self.make::<Inner51>(children)?,
                _ => self.make::<Inner256>(children)?,
            };
            made.truncate(top.children);
            made.push((
                top.byte,
                self.chain(entries[top.end - 1].0, top.depth, top.branch, node)?,
            ));
        }
    }

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
