//! What clients and owners know of a bare index.

use super::layout::NewestTable;
use super::measure::Measured;
use eris_types::{AeuId, ObjectId};
use std::sync::atomic::{AtomicBool, Ordering};

/// What clients and owners know of an index.
pub(crate) struct KeyObject {
    pub id: ObjectId,
    pub name: String,
    pub layout: NewestTable,
    /// What is known of the owners' work.
    pub measured: Measured,
    /// Set once by whoever drops it, before owners are told; read by owners before they would make a tree.
    dropped: AtomicBool,
}

impl KeyObject {
    /// An index without keys, of ranges with these lower bounds, ascending.
    pub fn new(
        id: ObjectId,
        name: &str,
        bounds: Vec<(u64, AeuId)>,
        aeus: impl Iterator<Item = AeuId>,
    ) -> Self {
        KeyObject {
            id,
            name: name.to_owned(),
            layout: NewestTable::new(bounds),
            measured: Measured::new(aeus),
            dropped: AtomicBool::new(false),
        }
    }

    /// Whether it was dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Says that it is dropped.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
}
