//! Workload-conscious reorganisation of indexes: what is asked for most is moved together, while it is used.
//! (art-tlb-misses: *TLB misses – the missing issue of adaptive radix tree?*, Section 5; there, updates have to stop
//! meanwhile.)
//!
//! ```text
//! lookups, upserts ─► the tree, and a key of so many into a ring of samples          watched
//!                          │ ring full: few keys, many pages? ──── or: CALL          policy
//!                          ▼
//!                     counting ─► measuring ─► moving ─► measuring ─► effect         work
//! ```
//! The owner does the work in units of one key, between commands. Lookups pay for each unit: as many as it takes that
//! all go on at most of their speed. So it goes on as fast as the index is used, and an index that nobody uses is left
//! alone. Whoever asks for it explicitly also gets a [task](crate::tasks::reorganize), which does the work while there
//! is no other.
//!
//! How much it gains is told by a model of a translation buffer, for hardly any machine counts its misses for us.
//!
//! When it pays, and who pays for it: docs/decisions/0014.

mod policy;
#[cfg(test)]
mod tests;
mod watched;
mod work;

pub(crate) use watched::Watched;

use eris_home::{
    IndexReorganization, ReorganizationCause, ReorganizationEffect, ReorganizationState,
};
use eris_index::Key;
use eris_types::{AeuId, NodeId};

/// What can be reorganised, whatever its keys are.
pub(crate) trait Reorganizable {
    /// See [`Watched::work_for_lookups`].
    fn work_for_lookups(&mut self, extra: u64);
    /// See [`Watched::begin`].
    fn begin(&mut self);
    /// See [`Watched::is_at_work`].
    fn is_at_work(&self) -> bool;
    /// See [`Watched::slice`].
    fn slice(&mut self) -> bool;
    /// See [`Watched::give_up`].
    fn give_up(&mut self, reason: &str);
    /// How things are: an entry for each tree.
    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>);
}

impl<K: Key + ?Sized> Reorganizable for Watched<K> {
    fn work_for_lookups(&mut self, extra: u64) {
        Watched::work_for_lookups(self, extra);
    }

    fn begin(&mut self) {
        Watched::begin(self, ReorganizationCause::Call);
    }

    fn is_at_work(&self) -> bool {
        Watched::is_at_work(self)
    }

    fn slice(&mut self) -> bool {
        Watched::slice(self)
    }

    fn give_up(&mut self, reason: &str) {
        Watched::give_up(self, reason);
    }

    fn status(&self, aeu: AeuId, node: NodeId, all: &mut Vec<IndexReorganization>) {
        let (samples, ended) = self.counts();
        all.push(IndexReorganization {
            aeu,
            node,
            keys: self.len() as u64,
            bytes: self.footprint().used as u64,
            state: self.state(),
            samples,
            ended,
            effect: self.effect(),
        });
    }
}
