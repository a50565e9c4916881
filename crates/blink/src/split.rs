//! Entries in nodes, and nodes that are split for them.
//!
//! ```text
//! one ──split──▶ two, of which the parent knows one ──separate──▶ two
//!               (the other is behind the right link)
//! ```
//! To separate is right whenever it is done. Before, the parent's entry for a range leads to the first node of a chain
//! that covers it; the rest is reached by right links. Who separates finds the entry of the range in which the new
//! fence lies, and divides it there.

use crate::counts::Count;
use crate::entries::Buffer;
use crate::key::Key;
use crate::node::{Held, Meta};
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::tree::{Tree, root_word};
use eris_numa::OutOfMemory;

impl<K: Key + ?Sized> Tree<K> {
    /// Puts a key at a position of a held node, with its value, or with the child behind it; splits the node if it is
    /// full.
    ///
    /// # Errors
    /// There is no memory; then no entry is put in.
    #[inline]
    pub(crate) fn enter(
        &self,
        mut node: Held<'_, K>,
        at: usize,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<(), OutOfMemory> {
        match K::insert(&mut node, at, key, value) {
            true => Ok(()),
            false => self.split(node, at, key, value),
        }
    }

    /// Splits a held node in which a key has no room, and puts it in.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn split(
        &self,
        mut node: Held<'_, K>,
        at: usize,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<(), OutOfMemory> {
        let level = node.node.meta().level();
        let number = self.space.take(level)?;
        let mut right = self.space.node(number).hold();
        let fence = K::divide(&mut node, &mut right, number, (at, key));
        self.counts.add(Count::Splits);
        let into = match K::compare(key, K::lend(&fence)).is_le() {
            true => {
                drop(right);
                node
            }
            false => {
                drop(node);
                right
            }
        };
        let at = K::find(into.node, key).0;
        // A long string may have no room in a half.
        let done = self.enter(into, at, key, value);
        self.separate(K::lend(&fence), number, level + 1);
        done
    }

    /// Divides the entry in which a fence lies, which only who has split a node does. The reserve has memory for it; if
    /// it has not, the right link is left to do.
    fn separate(&self, fence: K::Ref<'_>, right: u32, level: u8) {
        loop {
            let Some(parent) = self.hold(fence, level) else {
                match self.grow(fence, right, level) {
                    true => return,
                    // Somebody else was faster.
                    false => continue,
                }
            };
            let at = K::find(parent.node, fence).0;
            let _ = self.enter(parent, at, fence, u64::from(right));
            return;
        }
    }

    /// Makes a root above the one that was split. Says whether that is done, as far as it can be.
    fn grow(&self, fence: K::Ref<'_>, right: u32, level: u8) -> bool {
        let root = self.root.0.load(Acquire);
        if (root >> 32) as u8 + 1 != level {
            return false;
        }
        let Ok(number) = self.space.take(level) else {
            return true;
        };
        let mut children = K::Entries::default();
        children.add(fence, u64::from(root as u32));
        children.add(K::least(), u64::from(right));
        let mut above = self.space.node(number).hold();
        K::write(&mut above, (level, 0), (None, None), &children);
        drop(above);
        let grown = root_word(number, level);
        let grown = (self.root.0).compare_exchange(root, grown, AcqRel, Acquire);
        if grown.is_err() {
            self.bury(number);
        }
        grown.is_ok()
    }

    /// Gives a node back to which no entry leads.
    pub(crate) fn bury(&self, number: u32) {
        self.space.node(number).hold().set_meta(Meta::dead());
        self.space.give(number);
    }
}
