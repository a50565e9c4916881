//! Walking through the tree in order, forwards or backwards.

use super::node::{BranchNode, Inner6, Inner12, Prefix, with_inner, with_value};
use super::reference::{NodeKind, Ref};
use super::{Art, Key};
use crate::prefetch::prefetch;

/// A part of the tree, and how one gets there.
pub(super) struct Subtree<K: Key + ?Sized> {
    pub(super) at: Ref,
    /// Bytes of the key that lie above.
    pub(super) depth: usize,
    pub(super) path: K::Path,
}

impl<K: Key + ?Sized> Clone for Subtree<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Key + ?Sized> Copy for Subtree<K> {}

impl<K: Key + ?Sized> Subtree<K> {
    /// The child of a byte.
    #[inline(always)]
    fn child(self, byte: u8, at: Ref) -> Self {
        Subtree {
            at,
            depth: self.depth + 1,
            path: K::step(self.path, self.depth, byte),
        }
    }
}

/// A node of which some children have been visited.
struct CursorFrame<K: Key + ?Sized> {
    node: Subtree<K>,
    /// The least byte to visit; of a walk backwards the byte after the greatest one.
    next: u16,
    /// The same of the children to fetch, and of those, now arrived, whose children are to be; `None`: none were yet.
    ahead: Option<(u16, u16)>,
}

/// A walk; `BACK` if from the greatest key down.
pub(super) struct Cursor<'a, K: Key + ?Sized, const BACK: bool> {
    tree: &'a Art<K>,
    /// From the top down.
    stack: Vec<CursorFrame<K>>,
    /// To be visited before what is on the stack.
    pending: Option<Subtree<K>>,
}

/// How many children further on are fetched.
const AHEAD: usize = 16;

impl<'a, K: Key + ?Sized, const BACK: bool> Cursor<'a, K, BACK> {
    /// At the beginning of a part of the tree, in the direction of the walk.
    pub(super) fn new(tree: &'a Art<K>, part: Subtree<K>) -> Self {
        Cursor {
            tree,
            stack: Vec::new(),
            pending: Some(part),
        }
    }

    /// At a key, or where it would be: what comes before it in the direction of the walk is left out.
    pub(super) fn seek(tree: &'a Art<K>, part: Subtree<K>, key: K::View<'_>) -> Self {
        let mut cursor = Cursor {
            tree,
            stack: Vec::new(),
            pending: None,
        };
        let mut part = part;
        // References in the tree lead to live nodes and records, and the kind says the type: all `unsafe` rests on it.
        loop {
            let Subtree { at, depth, .. } = part;
            match at.kind() {
                NodeKind::None => break,
                NodeKind::Record => {
                    // SAFETY: a live record.
                    let order = K::compare(unsafe { tree.space.record_key::<K>(at) }, key);
                    if if BACK { order.is_le() } else { order.is_ge() } {
                        cursor.pending = Some(part);
                    }
                    break;
                }
                NodeKind::Prefix => {
                    // SAFETY: a live prefix.
                    let prefix = unsafe { tree.space.node::<Prefix>(at) };
                    let matching = K::matching(prefix, key, depth);
                    if let Some(&byte) = prefix.bytes().get(matching) {
                        // All below is on the same side of the key.
                        let below =
                            K::byte(key, depth + matching).is_some_and(|of_key| byte < of_key);
                        if below == BACK {
                            cursor.pending = Some(part);
                        }
                        break;
                    }
                    part = through(part, prefix);
                }
                kind => {
                    let Some(byte) = K::byte(key, depth) else {
                        // The key ends here: all below is greater.
                        if !BACK {
                            cursor.pending = Some(part);
                        }
                        break;
                    };
                    // An inner child with this byte is entered now, a value is still to be visited.
                    let (child, passed) = with_inner!(kind, N => {
                        // SAFETY: a live node of this type.
                        (unsafe { tree.space.node::<N>(at) }.find(byte), 1)
                    }, _ => (None, 0));
                    cursor.stack.push(CursorFrame {
                        node: part,
                        next: u16::from(byte) + if BACK { 1 - passed } else { passed },
                        ahead: None,
                    });
                    match child {
                        Some(child) => part = part.child(byte, child),
                        None => break,
                    }
                }
            }
        }
        cursor
    }

    /// The next key with its value.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<(K::View<'a>, u64)> {
        if self.pending.is_none()
            && let Some(frame) = self.stack.last_mut()
        {
            let Subtree { at, depth, path } = frame.node;
            with_value!(at.kind(), N => {
                // SAFETY: as in `seek`.
                let node = unsafe { self.tree.space.node::<N>(at) };
                if let Some((byte, value)) = step::<N, BACK>(node, &mut frame.next) {
                    return Some((K::whole(K::step(path, depth, byte)), value));
                }
                self.stack.pop();
            }, _ => {})
        }
        self.climb()
    }

    /// The next key with its value, in another node than the one before.
    #[inline(never)]
    fn climb(&mut self) -> Option<(K::View<'a>, u64)> {
        loop {
            let part = match self.pending.take() {
                Some(part) => part,
                None => {
                    let frame = self.stack.last_mut()?;
                    let child = with_inner!(frame.node.at.kind(), N => {
                        // SAFETY: as in `seek`.
                        let node = unsafe { self.tree.space.node::<N>(frame.node.at) };
                        // SAFETY: the same node.
                        unsafe { self.tree.fetch_ahead::<N, BACK>(node, frame) };
                        step::<N, BACK>(node, &mut frame.next)
                    }, _ => return self.next());
                    let Some((byte, child)) = child else {
                        self.stack.pop();
                        continue;
                    };
                    frame.node.child(byte, child)
                }
            };
            match part.at.kind() {
                NodeKind::None => return None,
                NodeKind::Record => {
                    let space = &self.tree.space;
                    // SAFETY: as in `seek`.
                    return Some(unsafe {
                        (
                            space.record_key::<K>(part.at),
                            space.record_value::<K>(part.at),
                        )
                    });
                }
                NodeKind::Prefix => {
                    // SAFETY: as in `seek`.
                    let prefix = unsafe { self.tree.space.node(part.at) };
                    self.pending = Some(through(part, prefix));
                }
                _ => self.stack.push(CursorFrame {
                    node: part,
                    next: if BACK { 256 } else { 0 },
                    ahead: None,
                }),
            }
        }
    }
}

impl<K: Key + ?Sized> Art<K> {
    /// Fetches children of a node that a walk will come to, and what is below them: some at first, then one with each
    /// child that is visited.
    ///
    /// # Safety
    /// The node is one of the live tree.
    #[inline(always)]
    unsafe fn fetch_ahead<N: BranchNode<Child = Ref>, const BACK: bool>(
        &self,
        node: &N,
        frame: &mut CursorFrame<K>,
    ) {
        let ((mut far, mut near), counts) = match frame.ahead {
            None => ((frame.next, frame.next), (AHEAD, AHEAD / 2)),
            Some(ahead) => (ahead, (1, 1)),
        };
        for _ in 0..counts.0 {
            let Some((_, child)) = step::<N, BACK>(node, &mut far) else {
                break;
            };
            // SAFETY: by contract.
            prefetch(unsafe { self.space.pointer(child.kind(), child) });
        }
        for _ in 0..counts.1 {
            let Some((_, child)) = step::<N, BACK>(node, &mut near) else {
                break;
            };
            // SAFETY: by contract.
            unsafe { self.fetch_below(child) };
        }
        frame.ahead = Some((far, near));
    }

    /// Fetches the children of a small inner node.
    ///
    /// # Safety
    /// The reference is one of the live tree.
    #[inline(always)]
    unsafe fn fetch_below(&self, at: Ref) {
        // SAFETY: by contract; the kind says the type.
        unsafe {
            match at.kind() {
                NodeKind::Inner6 => self.fetch_children(self.space.node::<Inner6>(at)),
                NodeKind::Inner12 => self.fetch_children(self.space.node::<Inner12>(at)),
                _ => {}
            }
        }
    }

    /// Fetches the children of a node.
    ///
    /// # Safety
    /// The node is one of the live tree.
    #[inline(always)]
    unsafe fn fetch_children(&self, node: &impl BranchNode<Child = Ref>) {
        for (_, child) in node.entries() {
            // SAFETY: by contract.
            prefetch(unsafe { self.space.pointer(child.kind(), child) });
        }
    }
}

/// What is below a prefix.
pub(super) fn through<K: Key + ?Sized>(part: Subtree<K>, prefix: &Prefix) -> Subtree<K> {
    let bytes = prefix.bytes().iter().enumerate();
    Subtree {
        at: prefix.child,
        depth: part.depth + prefix.bytes().len(),
        path: bytes.fold(part.path, |path, (i, &byte)| {
            K::step(path, part.depth + i, byte)
        }),
    }
}

/// The next child in the direction of the walk.
#[inline(always)]
fn step<N: BranchNode, const BACK: bool>(node: &N, next: &mut u16) -> Option<(u8, N::Child)> {
    let found = if BACK {
        node.floor(*next)
    } else {
        node.ceil(*next)
    };
    let (byte, _) = found?;
    *next = u16::from(byte) + u16::from(!BACK);
    found
}
