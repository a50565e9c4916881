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
use crate::node::{Held, Meta, ROOM};
use crate::sync::Ordering::{AcqRel, Acquire};
use crate::tree::{Tree, root_word};
use eris_numa::OutOfMemory;

impl Tree {
    /// Puts a key at a position of a held node, and a value at another; splits the node if it is full.
    ///
    /// # Errors
    /// There is no memory; nothing is changed then.
    pub(crate) fn enter<'a>(
        &'a self,
        mut node: Held<'a>,
        key: (usize, u64),
        value: (usize, u64),
    ) -> Result<(), OutOfMemory> {
        let meta = node.node.meta();
        let count = meta.count();
        if count < ROOM {
            node.insert(key, value);
            node.set_meta(meta.with_count(count + 1));
            return Ok(());
        }
        let number = self.space.take(meta.level())?;
        let mut right = self.space.node(number).hold();
        // Keys that ascend leave full nodes behind.
        let is_at_end = meta.is_last() && value.0 == count;
        let kept = if is_at_end { count - 1 } else { count / 2 };
        let fence = divide(&mut node, &mut right, number, kept);
        let (into, moved) = match key.1 <= fence {
            true => (&mut node, 0),
            false => (&mut right, kept),
        };
        let meta = into.node.meta();
        into.insert((key.0 - moved, key.1), (value.0 - moved, value.1));
        into.set_meta(meta.with_count(meta.count() + 1));
        let level = meta.level() + 1;
        self.counts.add(Count::Splits);
        // The new one first: the link to it becomes visible with the other.
        drop(right);
        drop(node);
        self.separate(fence, number, level);
        Ok(())
    }

    /// Divides the entry in which a fence lies, which only who has split a node does. The reserve has memory for it; if
    /// it has not, the right link is left to do.
    fn separate(&self, fence: u64, right: u32, level: u8) {
        loop {
            let Some(parent) = self.hold(fence, level) else {
                match self.grow(fence, right, level) {
                    true => return,
                    // Somebody else was faster.
                    false => continue,
                }
            };
            let at = parent.node.position(fence);
            let _ = self.enter(parent, (at, fence), (at + 1, u64::from(right)));
            return;
        }
    }

    /// Makes a root above the one that was split. Says whether that is done, as far as it can be.
    fn grow(&self, fence: u64, right: u32, level: u8) -> bool {
        let root = self.root.0.load(Acquire);
        if (root >> 32) as u8 + 1 != level {
            return false;
        }
        let Ok(number) = self.space.take(level) else {
            return true;
        };
        let mut above = self.space.node(number).hold();
        above.truncate(0);
        above.set_key(0, fence);
        above.set_value(0, u64::from(root as u32));
        above.set_value(1, u64::from(right));
        above.set_meta(Meta::new(level, 2, 0).first(true).last(true));
        drop(above);
        let grown = root_word(number, level);
        let grown = (self.root.0).compare_exchange(root, grown, AcqRel, Acquire);
        if grown.is_err() {
            self.space.node(number).hold().set_meta(Meta::dead());
            self.space.give(number);
        }
        grown.is_ok()
    }
}

/// Moves what a full node has behind its first `kept` entries to a new node, which gets the number. The fence between
/// them.
fn divide(left: &mut Held<'_>, right: &mut Held<'_>, number: u32, kept: usize) -> u64 {
    let meta = left.node.meta();
    let fence = left.node.key(kept - 1);
    // An inner node's last child has no key.
    let keys_left = match meta.level() {
        0 => kept,
        _ => kept - 1,
    };
    right.truncate(0);
    for at in kept..ROOM {
        right.set_key(at - kept, left.node.key(at));
        right.set_value(at - kept, left.node.value(at));
    }
    right.set_low(fence);
    right.set_high(left.node.high());
    let of_right = Meta::new(meta.level(), meta.count() - kept, meta.right());
    right.set_meta(of_right.last(meta.is_last()));
    left.truncate(keys_left);
    left.set_high(fence);
    let of_left = Meta::new(meta.level(), kept, number);
    left.set_meta(of_left.first(meta.is_first()));
    fence
}
