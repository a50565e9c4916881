//! What a tree consists of, and whether it is as it should be.

use super::node::{BranchNode, Prefix, with_inner, with_value};
use super::reference::{KINDS, NodeKind};
use super::{Art, Key};
use crate::slabs::Footprint;

/// The nodes of one class, or the records. See [`Art::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClass {
    /// Its name: what its children are, and how many of them it has room for.
    pub name: &'static str,
    /// How many there are.
    pub count: usize,
    /// Their bytes, and those of their slabs.
    pub bytes: Footprint,
}

/// The classes with their names.
const CLASSES: [(NodeKind, &str); KINDS - 1] = [
    (NodeKind::Prefix, "prefix"),
    (NodeKind::Inner6, "inner 6"),
    (NodeKind::Inner12, "inner 12"),
    (NodeKind::Inner25, "inner 25"),
    (NodeKind::Inner51, "inner 51"),
    (NodeKind::Inner256, "inner 256"),
    (NodeKind::Value7, "value 7"),
    (NodeKind::Value14, "value 14"),
    (NodeKind::Value28, "value 28"),
    (NodeKind::Value56, "value 56"),
    (NodeKind::Value256, "value 256"),
    (NodeKind::Record, "record"),
];

impl<K: Key + ?Sized> Art<K> {
    /// The nodes by class, from small to large, then the records.
    pub fn classes(&self) -> impl Iterator<Item = NodeClass> {
        CLASSES.into_iter().map(|(kind, name)| {
            let slabs = self.space.slabs(kind);
            let mut bytes = Footprint::default();
            slabs.measure(&mut bytes);
            NodeClass {
                name,
                count: slabs.count(),
                bytes,
            }
        })
    }

    /// Walks through the whole tree and verifies its structure: for tests.
    ///
    /// # Panics
    /// If a node or record is lost or found twice, keys are out of order or not where they belong, a node has no child
    /// or a prefix leads to a record.
    pub fn check(&self) {
        let mut found = [0; KINDS];
        let mut unseen = vec![self.root];
        while let Some(at) = unseen.pop() {
            found[at.kind() as usize] += 1;
            // SAFETY: references in the tree lead to live nodes and records, and the kind says the type.
            unsafe {
                match at.kind() {
                    NodeKind::None => assert!(self.is_empty(), "a reference to nothing"),
                    NodeKind::Record => {}
                    NodeKind::Prefix => {
                        let prefix = self.space.node::<Prefix>(at);
                        assert!(!prefix.bytes().is_empty(), "a prefix of no bytes");
                        assert_ne!(
                            prefix.child.kind(),
                            NodeKind::Record,
                            "a prefix above a record"
                        );
                        unseen.push(prefix.child);
                    }
                    kind => with_inner!(kind, N => {
                        let node = self.space.node::<N>(at);
                        assert!(node.ceil(0).is_some(), "an empty {kind:?}");
                        unseen.extend(node.entries().map(|(_, child)| child));
                    }, kind => with_value!(kind, N => {
                        assert!(self.space.node::<N>(at).ceil(0).is_some(), "an empty {kind:?}");
                    }, _ => unreachable!("every kind is named"))),
                }
            }
        }
        for (class, (kind, name)) in self.classes().zip(CLASSES) {
            assert_eq!(
                class.count, found[kind as usize],
                "live and reachable: {name}"
            );
        }
        let mut last = None;
        let mut len = 0;
        for (key, value) in self.iter() {
            assert!(
                last.is_none_or(|last| K::compare(last, key).is_lt()),
                "{key:?} after {last:?}"
            );
            assert_eq!(self.get(key), Some(value), "{key:?}");
            last = Some(key);
            len += 1;
        }
        assert_eq!(len, self.len);
    }
}
