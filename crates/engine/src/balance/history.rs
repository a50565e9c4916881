//! What was moved, and what came of it.

use super::loads::imbalance;
use crate::{Shift, Shifted};
use eris_atomics::{Lock, LockGuard};
use eris_home::Balanced;
use eris_types::ObjectId;
use std::collections::VecDeque;
use std::time::SystemTime;

/// So many shifts are remembered.
const KEPT: usize = 1_024;

#[derive(Default)]
pub(super) struct BalancingHistory(Lock<VecDeque<Balanced>>);

impl BalancingHistory {
    pub fn all(&self) -> Vec<Balanced> {
        self.lock().iter().cloned().collect()
    }

    /// What came of a cycle. `range` says which keys were meant; what has none was moved by size.
    pub fn add(
        &self,
        object: (ObjectId, &str),
        imbalance: f64,
        shifted: Vec<Shifted>,
        range: impl Fn(&Shift) -> Option<String>,
    ) {
        let mut all = self.lock();
        for one in shifted {
            if all.len() == KEPT {
                all.pop_front();
            }
            all.push_back(Balanced {
                at: SystemTime::now(),
                object: object.0,
                name: object.1.to_owned(),
                range: range(&one.shift),
                from: one.from,
                to: one.shift.to,
                result: one.result,
                time: one.time,
                imbalance,
                after: None,
            });
        }
    }

    /// The first loads after a cycle, one of each owner, show its effect.
    pub fn note_effect(&self, object: ObjectId, loads: &[f64]) {
        let mut all = self.lock();
        let newest = all.iter_mut().rev().filter(|one| one.object == object);
        let newest = newest.take_while(|one| one.after.is_none());
        newest.for_each(|one| one.after = Some(imbalance(loads)));
    }

    fn lock(&self) -> LockGuard<'_, VecDeque<Balanced>> {
        self.0.lock()
    }
}
