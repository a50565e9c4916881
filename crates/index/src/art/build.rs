//! A tree from sorted entries: every node is made once, in the class that it needs, after what is below it.
//!
//! ```text
//! made      children of open nodes   61:●  63:●  64:●│02:● 05:●     an open node's children are the last ones,
//! open      branches, from the root  byte 3 ─────────┘byte 5        behind where its own begin
//! values    of the last node         [10 11 17 …]                   keys that differ in their last byte only
//! ```
//! How many bytes a key has in common with the one before it tells which of the open nodes are complete. So a tree
//! takes less time than by inserting, and records lie in the order of keys, as a range reads them.

use super::node::{BranchNode, Inner6, Inner12, Inner25, Inner51, Inner256};
use super::node::{Value7, Value14, Value28, Value56, Value256};
use super::reference::Ref;
use super::{Art, Key, MAX_KEY};
use crate::{BatchError, IndexError};
use eris_numa::NodeMemory;
use eris_types::ObjectId;

/// An inner node that is not complete.
struct Open {
    /// Its children differ in this byte of their keys.
    branch: usize,
    /// They begin here among those that are made.
    children: usize,
}

/// What is complete, and from which byte of the key on its node branches; a record does not.
type Below = (Ref, Option<usize>);

/// A tree that is being built, some entries at a time, so that its owner can do other work in between.
pub struct Build<K: Key + ?Sized> {
    tree: Art<K>,
    open: Vec<Open>,
    /// Children of the nodes that are open, with the bytes that lead to them.
    made: Vec<(u8, Ref)>,
    /// Keys of one length: the last bytes and values of those that have all others in common with the last key.
    bytes: [u8; 256],
    values: [u64; 256],
    count: usize,
    /// Other keys: the record of the last one.
    record: Ref,
    last: Option<K::Owned>,
}

impl<K: Key + ?Sized> Art<K> {
    /// A tree of entries that ascend by key, without equal keys.
    ///
    /// # Errors
    /// No memory, a key that is too long, or one that is not greater than the one before it; with its number. Nothing
    /// is kept then.
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
        let built = build.extend(entries.iter().copied());
        built
            .and_then(|()| build.finish())
            .map_err(|error| BatchError {
                done: entries.len(),
                error,
            })
    }
}

impl<K: Key + ?Sized> Build<K> {
    /// Nothing built yet.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        Build {
            tree: Art::new(memory, object),
            open: Vec::new(),
            made: Vec::new(),
            bytes: [0; 256],
            values: [0; 256],
            count: 0,
            record: Ref::NONE,
            last: None,
        }
    }

    /// Adds entries that ascend by key, from the last one of before on, without equal keys. No key is longer than
    /// [`MAX_KEY`].
    ///
    /// # Errors
    /// No memory. The tree cannot be finished then.
    ///
    /// # Panics
    /// If a key is the beginning of another, perhaps if the keys do not ascend.
    pub fn extend<'k>(
        &mut self,
        entries: impl IntoIterator<Item = (K::View<'k>, u64)>,
    ) -> Result<(), IndexError> {
        let mut entries = entries.into_iter();
        let Some((mut last, value)) = entries.next() else {
            return Ok(());
        };
        match self.last.take() {
            Some(before) => self.add(K::view(&before), last, value)?,
            None => self.begin(last, value)?,
        }
        for (key, value) in entries {
            if K::adjoin(last, key) {
                self.push(key, value);
            } else {
                self.complete(last, K::common(last, key))?;
                self.begin(key, value)?;
            }
            last = key;
        }
        self.last = Some(K::own(last));
        Ok(())
    }

    /// The tree.
    ///
    /// # Errors
    /// No memory.
    pub fn finish(mut self) -> Result<Art<K>, IndexError> {
        if let Some(last) = self.last.take() {
            let last = K::view(&last);
            let mut below = self.last_node(last)?;
            while let Some(top) = self.open.pop() {
                self.add_child(last, top.branch, below)?;
                below = self.close(top)?;
            }
            self.tree.root = match below {
                (record, None) => record,
                (node, Some(branch)) => self.tree.chain(last, 0, branch, node)?,
            };
        }
        Ok(self.tree)
    }

    /// An entry behind the last one, by whose key `before` it is another part of the entries.
    fn add(&mut self, before: K::View<'_>, key: K::View<'_>, value: u64) -> Result<(), IndexError> {
        if K::INLINE && K::common(before, key) + 1 == K::length(key) {
            self.push(key, value);
            return Ok(());
        }
        self.complete(before, K::common(before, key))?;
        self.begin(key, value)
    }

    /// An entry that begins a record, or a node of values.
    fn begin(&mut self, key: K::View<'_>, value: u64) -> Result<(), IndexError> {
        if K::INLINE {
            self.count = 0;
            self.push(key, value);
        } else {
            self.record = self.tree.space.take_record::<K>(key, value)?;
        }
        Ok(())
    }

    /// One more value. (There are too many only if keys do not ascend, which is noticed when their node is made.)
    #[inline(always)]
    fn push(&mut self, key: K::View<'_>, value: u64) {
        let at = self.count % 256;
        self.bytes[at] = byte_at::<K>(key, K::length(key) - 1);
        self.values[at] = value;
        self.count += 1;
    }

    /// The next key has `common` bytes in common with the last one, so that nodes that branch below are complete.
    fn complete(&mut self, last: K::View<'_>, common: usize) -> Result<(), IndexError> {
        let mut below = self.last_node(last)?;
        while let Some(top) = self.open.pop_if(|top| top.branch > common) {
            self.add_child(last, top.branch, below)?;
            below = self.close(top)?;
        }
        if self.open.last().is_none_or(|top| top.branch < common) {
            self.open.push(Open {
                branch: common,
                children: self.made.len(),
            });
        }
        self.add_child(last, common, below)
    }

    /// The record or the node of values of the last key.
    fn last_node(&mut self, last: K::View<'_>) -> Result<Below, IndexError> {
        let tree = &mut self.tree;
        if !K::INLINE {
            tree.len += 1;
            return Ok((self.record, None));
        }
        tree.len += self.count;
        let values = self.bytes[..self.count].iter().copied();
        let values = values.zip(self.values.iter().copied());
        let node = match self.count {
            1 => {
                let record = tree.space.take_record::<K>(last, self.values[0])?;
                return Ok((record, None));
            }
            ..=7 => tree.make::<Value7>(values)?,
            8..=14 => tree.make::<Value14>(values)?,
            15..=28 => tree.make::<Value28>(values)?,
            29..=56 => tree.make::<Value56>(values)?,
            _ => tree.make::<Value256>(values)?,
        };
        Ok((node, Some(K::length(last) - 1)))
    }

    /// Something complete becomes a child of the node that branches at a byte.
    fn add_child(
        &mut self,
        last: K::View<'_>,
        branch: usize,
        (below, below_branch): Below,
    ) -> Result<(), IndexError> {
        let child = match below_branch {
            None => below,
            Some(to) => self.tree.chain(last, branch + 1, to, below)?,
        };
        self.made.push((byte_at::<K>(last, branch), child));
        Ok(())
    }

    /// Makes a node of its children.
    fn close(&mut self, top: Open) -> Result<Below, IndexError> {
        let tree = &mut self.tree;
        let children = self.made[top.children..].iter().copied();
        let node = match children.len() {
            ..=6 => tree.make::<Inner6>(children)?,
            7..=12 => tree.make::<Inner12>(children)?,
            13..=25 => tree.make::<Inner25>(children)?,
            26..=51 => tree.make::<Inner51>(children)?,
            _ => tree.make::<Inner256>(children)?,
        };
        self.made.truncate(top.children);
        Ok((node, Some(top.branch)))
    }
}

impl<K: Key + ?Sized> Art<K> {
    fn make<N: BranchNode>(
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
