//! Removing one key.
//!
//! A removal never fails. A node that gets smaller, or is not needed any more, wants a new slot first; if that is
//! rejected, it stays as it is, larger than it should be. So a node may even have one child, and when that goes too,
//! what leads to it alone goes with it.

use super::node::{
    BranchNode, Inner6, Inner12, Inner25, Inner51, Inner256, PREFIX_BYTES, Prefix, Remainder,
};
use super::node::{Value7, Value14, Value28, Value56, Value256, with_inner, with_value};
use super::reference::{NodeKind, Ref};
use super::{Art, Key, Link};

/// A node on the way to a key.
#[derive(Clone, Copy)]
struct PathStep {
    /// What leads to the prefixes right above the node, or to the node itself.
    chain: Link,
    /// What leads to the node.
    link: Link,
    at: Ref,
}

impl<K: Key + ?Sized> Art<K> {
    /// Removes a key; returns its value, if it was there.
    pub fn remove(&mut self, key: K::View<'_>) -> Option<u64> {
        let mut step = PathStep {
            chain: Link::ROOT,
            link: Link::ROOT,
            at: self.root,
        };
        let mut above = None;
        let mut depth = 0;
        // References in the tree lead to live nodes and records, and the kind says the type: all `unsafe` rests on it.
        let value = loop {
            match step.at.kind() {
                NodeKind::None => return None,
                NodeKind::Record => {
                    // SAFETY: a live record, and the way to it.
                    break unsafe { self.remove_record(above, step, key)? };
                }
                NodeKind::Prefix => {
                    // SAFETY: a live prefix.
                    let prefix = unsafe { self.space.node::<Prefix>(step.at) };
                    let matching = K::matching(prefix, key, depth);
                    if matching < prefix.bytes().len() {
                        return None;
                    }
                    depth += matching;
                    step.link = Link {
                        node: step.at,
                        byte: 0,
                    };
                    step.at = prefix.child;
                }
                kind => with_inner!(kind, N => {
                    let byte = K::byte(key, depth)?;
                    // SAFETY: a live node of this type.
                    let child = unsafe { self.space.node::<N>(step.at) }.find(byte)?;
                    above = Some(step);
                    let link = Link { node: step.at, byte };
                    step = PathStep { chain: link, link, at: child };
                    depth += 1;
                }, kind => with_value!(kind, N => {
                    let byte = K::byte(key, depth)?;
                    // SAFETY: a live node of this type.
                    let node = unsafe { self.space.node_mut::<N>(step.at) };
                    let value = node.find(byte)?;
                    let shape = node.remove(byte);
                    // SAFETY: the step led here.
                    unsafe { self.reshape(step, shape, key) };
                    break value;
                }, _ => unreachable!("every kind is named"))),
            }
        };
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        Some(value)
    }

    /// Removes a record, if its key is this one; returns its value.
    ///
    /// # Safety
    /// The steps are those of the way to the key in the live tree: to the record, and to the inner node above it, if
    /// there is one. So below.
    #[inline(always)]
    unsafe fn remove_record(
        &mut self,
        above: Option<PathStep>,
        step: PathStep,
        key: K::View<'_>,
    ) -> Option<u64> {
        // SAFETY: by contract; the record is given back when nothing leads to it any more.
        unsafe {
            if K::compare(self.space.record_key::<K>(step.at), key).is_ne() {
                return None;
            }
            let value = self.space.record_value::<K>(step.at);
            match above {
                None => self.root = Ref::NONE,
                Some(above) => self.remove_child(above, step.link.byte, key),
            }
            self.space.give(step.at);
            Some(value)
        }
    }

    /// Takes a child from the inner node of a step.
    ///
    /// # Safety
    /// As [`Art::remove_record`], and the node has this child.
    unsafe fn remove_child(&mut self, step: PathStep, byte: u8, key: K::View<'_>) {
        // SAFETY: by contract; the kind says the type.
        unsafe {
            let shape = with_inner!(step.at.kind(), N => {
                self.space.node_mut::<N>(step.at).remove(byte)
            }, _ => unreachable!("an inner node"));
            self.reshape(step, shape, key);
        }
    }

    /// Makes the node of a step what it should be after a removal.
    unsafe fn reshape(&mut self, step: PathStep, shape: Remainder, key: K::View<'_>) {
        // SAFETY: by contract.
        unsafe {
            match shape {
                Remainder::Right => {}
                Remainder::Sparse => self.shrink(step),
                Remainder::Single => self.dissolve(step, key),
                Remainder::Empty => self.cut(step.at, key),
            }
        }
    }

    /// Moves a node to the next smaller class.
    unsafe fn shrink(&mut self, step: PathStep) {
        let at = step.at;
        // SAFETY: by contract; the kind says the type, and nothing refers to the old node once the link leads to the
        // new.
        unsafe {
            let smaller = match at.kind() {
                NodeKind::Inner12 => self.space.convert::<Inner12, Inner6>(at),
                NodeKind::Inner25 => self.space.convert::<Inner25, Inner12>(at),
                NodeKind::Inner51 => self.space.convert::<Inner51, Inner25>(at),
                NodeKind::Inner256 => self.space.convert::<Inner256, Inner51>(at),
                NodeKind::Value14 => self.space.convert::<Value14, Value7>(at),
                NodeKind::Value28 => self.space.convert::<Value28, Value14>(at),
                NodeKind::Value56 => self.space.convert::<Value56, Value28>(at),
                NodeKind::Value256 => self.space.convert::<Value256, Value56>(at),
                kind => unreachable!("{kind:?} is of the smallest class"),
            };
            if let Ok(smaller) = smaller {
                self.set(step.link, smaller);
                self.space.give(at);
            }
        }
    }

    /// Replaces a node with one child: by the record, if the child is one, and else by a prefix.
    unsafe fn dissolve(&mut self, step: PathStep, key: K::View<'_>) {
        let at = step.at;
        // SAFETY: by contract; the kind says the type.
        unsafe {
            let record = with_value!(at.kind(), N => {
                let (byte, value) = self.space.node::<N>(at).ceil(0).expect("one child");
                match self.space.take_record::<K>(K::with_last(key, byte), value) {
                    Ok(record) => record,
                    Err(_) => return,
                }
            }, kind => with_inner!(kind, N => {
                let (byte, child) = self.space.node::<N>(at).ceil(0).expect("one child");
                if child.kind() != NodeKind::Record {
                    return self.merge(step, byte, child);
                }
                child
            }, _ => unreachable!("a node with children")));
            self.give_chain(step.chain, at);
            self.set(step.chain, record);
            self.space.give(at);
        }
    }

    /// Gives back the prefixes from `chain` down to `end`, which stays.
    unsafe fn give_chain(&mut self, chain: Link, end: Ref) {
        // SAFETY: by contract a live chain of prefixes, which the caller makes nothing refer to any more.
        unsafe {
            let mut top = self.follow(chain);
            while top != end {
                let prefix = top;
                top = self.space.node::<Prefix>(prefix).child;
                self.space.give(prefix);
            }
        }
    }

    /// Where a link leads.
    unsafe fn follow(&self, link: Link) -> Ref {
        if link.node.is_none() {
            return self.root;
        }
        // SAFETY: by contract.
        unsafe {
            with_inner!(link.node.kind(), N => {
                self.space.node::<N>(link.node).find(link.byte).expect("a link's child")
            }, _ => self.space.node::<Prefix>(link.node).child)
        }
    }

    /// Replaces an inner node with one child, another node, by a prefix of the byte, in one with the prefixes around
    /// it.
    ///
    /// ```text
    /// ─► Prefix a b ─► Inner6 ─ c ─► Prefix d ─► child        ─► Prefix a b c d ─► child
    /// ```
    unsafe fn merge(&mut self, step: PathStep, byte: u8, child: Ref) {
        let mut bytes = [0; 2 * PREFIX_BYTES + 1];
        let mut length = 0;
        let mut append = |part: &[u8]| {
            bytes[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        };
        // SAFETY: by contract; prefixes above and below are live as the tree is, and each of the slots is either filled
        // anew and linked, or given back.
        unsafe {
            let mut slots = [Ref::NONE; 3];
            let mut have = 0;
            // The last prefix above has the node as its child, so that its place in the tree can be kept.
            let above = (step.link.node.kind() == NodeKind::Prefix).then_some(step.link.node);
            if let Some(above) = above {
                append(self.space.node::<Prefix>(above).bytes());
                slots[have] = above;
                have += 1;
            }
            append(&[byte]);
            let mut end = child;
            if child.kind() == NodeKind::Prefix {
                let below = self.space.node::<Prefix>(child);
                append(below.bytes());
                end = below.child;
                slots[have] = child;
                have += 1;
            }
            let need = length.div_ceil(PREFIX_BYTES);
            if have < need {
                let Ok(prefix) = self.space.take::<Prefix>() else {
                    return;
                };
                slots[have] = prefix;
                have += 1;
            }
            for (i, part) in bytes[..length].chunks(PREFIX_BYTES).enumerate() {
                let next = if i + 1 < need { slots[i + 1] } else { end };
                *self.space.node_mut(slots[i]) = Prefix::new(part, next);
            }
            if above.is_none() {
                self.set(step.link, slots[0]);
            }
            slots[need..have]
                .iter()
                .for_each(|&spare| self.space.give(spare));
            self.space.give(step.at);
        }
    }

    /// Removes a node without children, and all above that lead to it alone.
    unsafe fn cut(&mut self, empty: Ref, key: K::View<'_>) {
        // SAFETY: by contract.
        let branch = unsafe { self.last_branch(empty, key) };
        let mut dead = match branch {
            None => std::mem::replace(&mut self.root, Ref::NONE),
            Some((step, byte)) => {
                let node = step.at;
                // SAFETY: a node on the way, and the byte that leads on.
                unsafe { self.follow(Link { node, byte }) }
            }
        };
        while dead != empty {
            // SAFETY: a live node on the way; nothing but what is given back refers to it.
            dead = unsafe {
                let next = with_inner!(dead.kind(), N => {
                    self.space.node::<N>(dead).ceil(0).expect("one child").1
                }, _ => self.space.node::<Prefix>(dead).child);
                self.space.give(dead);
                next
            };
        }
        // SAFETY: by contract; what leads to the first of the nodes given back is taken from the branch.
        unsafe {
            self.space.give(empty);
            if let Some((step, byte)) = branch {
                self.remove_child(step, byte, key);
            }
        }
    }

    /// The last node with several children on the way to a node, and the byte that leads on.
    unsafe fn last_branch(&self, to: Ref, key: K::View<'_>) -> Option<(PathStep, u8)> {
        let mut branch = None;
        let mut step = PathStep {
            chain: Link::ROOT,
            link: Link::ROOT,
            at: self.root,
        };
        let mut depth = 0;
        while step.at != to {
            let at = step.at;
            if at.kind() == NodeKind::Prefix {
                // SAFETY: a live prefix on the way.
                let prefix = unsafe { self.space.node::<Prefix>(at) };
                depth += prefix.bytes().len();
                step.link = Link { node: at, byte: 0 };
                step.at = prefix.child;
                continue;
            }
            let byte = K::byte(key, depth).expect("a byte on the way");
            depth += 1;
            with_inner!(at.kind(), N => {
                // SAFETY: a live node on the way, whose kind says the type.
                let node = unsafe { self.space.node::<N>(at) };
                if node.entries().nth(1).is_some() {
                    branch = Some((step, byte));
                }
                let link = Link { node: at, byte };
                step = PathStep { chain: link, link, at: node.find(byte).expect("a child on the way") };
            }, _ => unreachable!("an inner node"));
        }
        branch
    }
}
