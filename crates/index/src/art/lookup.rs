//! Finding one key.

use super::node::{BranchNode, Prefix, with_inner, with_value};
use super::reference::NodeKind;
use super::{Art, Key};

impl<K: Key + ?Sized> Art<K> {
    /// The value of a key.
    pub fn get(&self, key: K::View<'_>) -> Option<u64> {
        let mut at = self.root;
        let mut depth = 0;
        loop {
            // SAFETY: references in the tree lead to live nodes and records, and the kind says the type.
            unsafe {
                match at.kind() {
                    NodeKind::None => return None,
                    NodeKind::Record => {
                        let found = K::compare(self.space.record_key::<K>(at), key).is_eq();
                        return found.then(|| self.space.record_value::<K>(at));
                    }
                    NodeKind::Prefix => {
                        let prefix = self.space.node::<Prefix>(at);
                        if K::matching(prefix, key, depth) < prefix.bytes().len() {
                            return None;
                        }
                        depth += prefix.bytes().len();
                        at = prefix.child;
                    }
                    kind => with_inner!(kind, N => {
                        at = self.space.node::<N>(at).find(K::byte(key, depth)?)?;
                        depth += 1;
                    }, kind => with_value!(kind, N => {
                        return self.space.node::<N>(at).find(K::byte(key, depth)?);
                    }, _ => unreachable!("every kind is named"))),
                }
            }
        }
    }

    /// Whether there is this key.
    pub fn contains(&self, key: K::View<'_>) -> bool {
        self.get(key).is_some()
    }
}
