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
use crate::key::Key;
use crate::node::Held;
use crate::tree::Tree;

/// Whether a node that has just lost an entry tries to be merged: with so many left, and of these sizes before and
/// behind. It tries several times, but not each time.
#[inline]
pub(crate) fn is_few<K: Key + ?Sized>(count: usize, before: usize, behind: usize) -> bool {
    let falls_to = |size: usize| before > size && behind <= size;
    count <= 1 || falls_to(K::SPACE / 4) || falls_to(K::SPACE / 8)
}

impl<K: Key + ?Sized> Tree<K> {
    /// Merged nodes are not fuller, for the next entry would split them again, unless one of them has next to nothing.
    const FULL: usize = K::SPACE * 3 / 4;

    /// Merges the node of a level that has a key with a neighbour, if they fit into one.
    pub(crate) fn merge(&self, key: K::Ref<'_>, level: u8) {
        // A root has no neighbours, and stays.
        let Some(mut parent) = self.hold(key, level + 1) else {
            return;
        };
        let at = K::find(parent.node, key).0;
        let size = K::size(parent.node);
        let pairs = [Some(at), at.checked_sub(1)];
        let merged = pairs
            .into_iter()
            .flatten()
            .any(|left| self.merge_pair(&mut parent, left));
        let few = is_few::<K>(parent.node.count(), size, K::size(parent.node));
        drop(parent);
        if merged && few {
            self.merge(key, level + 1);
        }
    }

    /// Merges a child with the one to its right. Whether that was done.
    fn merge_pair(&self, parent: &mut Held<'_, K>, at: usize) -> bool {
        if at + 1 >= parent.node.count() {
            return false;
        }
        let gone = K::child_at(parent.node, at + 1);
        let left = K::child_at(parent.node, at);
        let Some(mut left) = self.space.node(left).try_hold() else {
            return false;
        };
        if left.node.meta().right() != gone {
            return false;
        }
        let Some(mut right) = self.space.node(gone).try_hold() else {
            return false;
        };
        let fewer = left.node.count().min(right.node.count());
        let most = if fewer <= 1 { K::SPACE } else { Self::FULL };
        if !K::take_all(&mut left, &mut right, most) {
            return false;
        }
        K::take_out(parent, at);
        // Whoever goes right finds all of it there before they find this one dead.
        drop(left);
        drop(right);
        self.space.give(gone);
        self.counts.add(Count::Merges);
        true
    }
}
