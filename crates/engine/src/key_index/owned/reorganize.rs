//! All segments' trees are reorganised as one.

use super::OwnedKeys;
use crate::held::reorganize::Reorganizable;
use eris_home::IndexReorganization;
use eris_types::{AeuId, NodeId};

impl Reorganizable for OwnedKeys {
    fn work_for_lookups(&mut self, extra: u64) {
        (self.segments.iter_mut()).for_each(|segment| segment.tree().work_for_lookups(extra));
    }

    fn begin(&mut self) {
        let segments = self.segments.iter_mut();
        segments.for_each(|segment| Reorganizable::begin(segment.tree()));
    }

    fn is_at_work(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.watched().is_at_work())
    }

    fn slice(&mut self) -> bool {
        let segments = self.segments.iter_mut();
        // None of them must miss its turn.
        segments.fold(false, |any, segment| segment.tree().slice() | any)
    }

    fn give_up(&mut self, reason: &str) {
        let segments = self.segments.iter_mut();
        segments.for_each(|segment| segment.tree().give_up(reason));
    }

    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>) {
        let segments = self.segments.iter();
        segments.for_each(|segment| segment.watched().status(aeu, node, all));
    }
}
