//! Nodes with few entries, which are merged with a neighbour.
//!
//! ```text
//! parent   [ … │ ≤ 40 │ ≤ 90 │ … ]              [ … │ ≤ 90 │ … ]
//!                 │      │             ──▶             │       dead: an old number leads there
//! level    [ 20 ]──▶[ 50 90 ]──▶               [ 20 50 90 ]──▶
//! ```
//! The left one takes the right one's entries and range, while both are held, and their parent. So the ranges of a
//! level have no gap and nothing in common at any moment, and a key is where the range is that has it. Whoever comes to
//! the right one by an old number finds it dead, or a node of another range or level that has its place, and begins at
//! the root again.
//!
//! Only nodes are merged that lie beside each other in one parent, and of which the left one's link leads to the right
//! one. What was split and is not in the parent yet is left alone. Nobody waits while they hold the parent: if a
//! neighbour is held, the nodes stay as they are. So there is no order in which holders could wait for each other.
//!
//! Entries move when a node is a quarter full, for moving more often gains little room (Johnson and Shasha, *B-trees
//! with inserts and deletes: why free-at-empty is better than merge-at-half*, JCSS 1993). The levels above are merged
//! likewise, but the height stays.

use crate::counts::Count;
use crate::node::{Held, ROOM};
use crate::tree::Tree;

/// Merged nodes are not fuller, for the next entry would split them again, unless one of them has next to nothing.
const FULL: usize = ROOM * 3 / 4;

/// Whether a node that has just lost an entry tries to be merged. It tries several times, but not each time.
pub(crate) fn is_few(count: usize) -> bool {
    const FEW: [usize; 4] = [ROOM / 4, ROOM / 8, 1, 0];
    FEW.contains(&count)
}

impl Tree {
    /// Merges the node of a level that has a key with a neighbour, if they fit into one.
    pub(crate) fn merge(&self, key: u64, level: u8) {
        // A root has no neighbours, and stays.
        let Some(mut parent) = self.hold(key, level + 1) else {
            return;
        };
        let at = parent.node.position(key);
        let pairs = [Some(at), at.checked_sub(1)];
        let merged = pairs
            .into_iter()
            .flatten()
            .any(|left| self.merge_pair(&mut parent, left));
        let count = parent.node.meta().count();
        drop(parent);
        if merged && is_few(count) {
            self.merge(key, level + 1);
        }
    }

    /// Merges a child with the one to its right. Whether that was done.
    fn merge_pair(&self, parent: &mut Held<'_>, at: usize) -> bool {
        let meta = parent.node.meta();
        if at + 1 >= meta.count() {
            return false;
        }
        let child = |at: usize| parent.node.value(at) as u32;
        let gone = child(at + 1);
        let Some(mut left) = self.space.node(child(at)).try_hold() else {
            return false;
        };
        if left.node.meta().right() != gone {
            return false;
        }
        let Some(mut right) = self.space.node(gone).try_hold() else {
            return false;
        };
        let counts = [&left, &right].map(|node| node.node.meta().count());
        let most = if counts.contains(&0) || counts.contains(&1) {
            ROOM
        } else {
            FULL
        };
        if counts[0] + counts[1] > most {
            return false;
        }
        left.take_all(&mut right);
        parent.take_out(at, at + 1);
        parent.set_meta(meta.with_count(meta.count() - 1));
        // Whoever goes right finds all of it there before they find this one dead.
        drop(left);
        drop(right);
        self.space.give(gone);
        self.counts.add(Count::Merges);
        true
    }
}
