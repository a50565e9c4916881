//! One cycle of balancing: ranges of keys get other owners, and then everybody learns of it at once.

use super::KeyIndex;
use super::transfers::Transfers;
use crate::error::EngineError;
use crate::key_index::layout::PartitionTable;
use crate::key_index::shift::{Shift, changed};
use crate::key_index::transfer::Transfer;
use crate::protocol::callback::TransferId;
use crate::protocol::keys::MoveOut;
use eris_home::Moved;
use eris_types::AeuId;
use std::future::poll_fn;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;

/// What came of a shift.
#[derive(Clone, Debug)]
pub struct Shifted {
    /// The keys of one former owner.
    pub shift: Shift,
    /// Who had them.
    pub from: AeuId,
    /// What was moved, or why the keys stayed where they were. Then some of them may have been moved nevertheless.
    pub result: Result<Moved, String>,
    /// From the command to its end.
    pub time: Duration,
}

impl KeyIndex {
    /// Gives keys to other owners, while operations on them go on, and returns once everybody knows: what came of each
    /// shift, in the order of the keys. One cycle at a time is under way for an index.
    ///
    /// Whoever does not wait for the end gives up nothing but the answer.
    ///
    /// # Errors
    /// There are too many clients and statements, or the index was dropped; an AEU does not exist, a shift is of no
    /// keys, or two are of one.
    pub async fn shift(&self, shifts: &[Shift]) -> Result<Vec<Shifted>, EngineError> {
        let object = self.object();
        self.check(shifts)?;
        let mut cycle = Waiting {
            index: self,
            pending: self.index.cycle.lock().await,
        };
        self.finish(&mut cycle.pending).await;
        if object.is_dropped() {
            return Err(EngineError::NoSuchObject(object.id));
        }
        *cycle.pending = Some(self.begin(shifts)?);
        Ok(self.finish(&mut cycle.pending).await)
    }

    /// Whether a cycle can do this.
    fn check(&self, shifts: &[Shift]) -> Result<(), EngineError> {
        let reject = |reason: String| {
            Err(EngineError::Shift {
                index: self.name().to_owned(),
                reason,
            })
        };
        let aeus = self.engine().topology().aeus().len();
        if let Some(shift) = shifts.iter().find(|shift| shift.to.index() >= aeus) {
            return reject(format!("there is no {}, only {aeus} AEUs", shift.to));
        }
        let mut parts: Vec<_> = shifts.iter().map(|shift| (shift.low, shift.high)).collect();
        if let Some((low, high)) = parts.iter().find(|(low, high)| low > high) {
            return reject(format!("there are no keys from {low} to {high}"));
        }
        parts.sort_unstable();
        match parts.windows(2).find(|pair| pair[0].1 >= pair[1].0) {
            Some(pair) => reject(format!("key {} shall have two owners", pair[1].0)),
            None => Ok(()),
        }
    }

    /// Has owners begin.
    fn begin(&self, shifts: &[Shift]) -> Result<Transfers, EngineError> {
        let object = self.object();
        let mut client = self.engine().client()?;
        let table = object.layout.newest();
        let mut transfers = Vec::new();
        let mut shifts = shifts.to_vec();
        shifts.sort_by_key(|shift| shift.low);
        for shift in &shifts {
            for (low, high, from) in table.owners(shift.low, shift.high) {
                if from != shift.to {
                    transfers.push((
                        Shift {
                            low,
                            high,
                            ..*shift
                        },
                        from,
                    ));
                }
            }
        }
        let first = self.engine().next_callbacks(transfers.len() as u64);
        for number in from_ends(&table, &transfers) {
            let (shift, from) = &transfers[number];
            let transfer = Transfer {
                object: object.clone(),
                low: shift.low,
                high: shift.high,
                to: shift.to,
            };
            let number = TransferId(first + number as u64);
            client.send(*from, object.id, number, MoveOut(transfer));
        }
        client.flush();
        Ok(Transfers {
            client,
            table,
            first: TransferId(first),
            done: transfers.iter().map(|_| None).collect(),
            wanted: transfers,
            began: Instant::now(),
        })
    }

    /// Waits for the transfers that are under way, if there are any, and publishes what they did.
    pub(crate) async fn finish(&self, cycle: &mut Option<Transfers>) -> Vec<Shifted> {
        let Some(pending) = cycle else {
            return Vec::new();
        };
        poll_fn(|cx| pending.poll(cx)).await;
        let mut pending = cycle.take().expect("looked above");
        self.engine().give_back(&mut pending.client);
        let done = pending.done.into_iter();
        let done = done.map(|done| done.expect("all have answered"));
        let transfers: Vec<_> = pending.wanted.into_iter().zip(done).collect();
        let given = transfers.iter().flat_map(|((shift, _), (given, _))| {
            let ranges = given.ranges.iter();
            ranges.map(|&(low, high)| Shift {
                low,
                high,
                ..*shift
            })
        });
        self.object().layout.publish(changed(&pending.table, given));
        let shifted = transfers
            .into_iter()
            .map(|((shift, from), (given, time))| Shifted {
                shift,
                from,
                result: given.failure.map_or(Ok(given.moved), Err),
                time,
            });
        shifted.collect()
    }
}

/// Somebody who waits for a cycle. If he leaves before its end a thread waits in his place, so that clients learn what
/// was done.
struct Waiting<'a> {
    index: &'a KeyIndex,
    pending: MutexGuard<'a, Option<Transfers>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // A simulation has no threads.
        if self.pending.is_none() || self.index.engine().runtime().is_none() {
            return;
        }
        let index = self.index.clone();
        let wait = move || {
            futures::executor::block_on(async {
                let mut cycle = index.index.cycle.lock().await;
                index.finish(&mut cycle).await;
            });
        };
        // Without a thread the next cycle does it.
        let _ = thread::Builder::new()
            .name("eris-shift".to_owned())
            .spawn(wait);
    }
}

/// In which order owners are to give keys, as positions in what is sorted by them: of each range from its ends inwards.
/// What lies in the midst of a segment has to be parted on both sides.
fn from_ends(table: &PartitionTable, transfers: &[(Shift, AeuId)]) -> Vec<usize> {
    let range = |at: usize| {
        let mut ranges = table.owners(0, u64::MAX);
        let range = ranges.find(|(_, end, _)| *end >= transfers[at].0.low);
        range.expect("all keys are in one")
    };
    let mut order: Vec<usize> = (0..transfers.len()).collect();
    for of_range in order.chunk_by_mut(|a, b| range(*a) == range(*b)) {
        let (mut next, end, _) = range(of_range[0]);
        let from_beginning = of_range.iter().take_while(|at| {
            let shift = transfers[**at].0;
            shift.low == std::mem::replace(&mut next, shift.high.wrapping_add(1))
        });
        let others = from_beginning.count();
        let others = &mut of_range[others..];
        if others
            .last()
            .is_some_and(|last| transfers[*last].0.high == end)
        {
            others.reverse();
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_index::layout::NewestTable;

    #[test]
    fn what_goes_from_an_end_of_a_range_goes_from_there_inwards() {
        let table = NewestTable::new([(0, AeuId(0)), (100, AeuId(1)), (200, AeuId(0))]).newest();
        let order = |parts: &[(u64, u64)]| {
            let transfer = |&(low, high)| {
                let to = AeuId(7);
                (Shift { low, high, to }, table.owner(low))
            };
            from_ends(&table, &parts.iter().map(transfer).collect::<Vec<_>>())
        };
        assert_eq!(
            order(&[(0, 9), (10, 19), (150, 169), (170, 199)]),
            [0, 1, 3, 2]
        );
        assert_eq!(order(&[(0, 9), (10, 19), (50, 59), (90, 99)]), [0, 1, 3, 2]);
        assert_eq!(order(&[(0, 9), (20, 29), (30, 39)]), [0, 1, 2]);
        assert_eq!(order(&[(0, 49), (50, 99)]), [0, 1]);
        assert_eq!(
            order(&[(80, 89), (90, 99), (100, 109), (110, 119)]),
            [1, 0, 2, 3]
        );
        assert_eq!(order(&[(300, 399), (400, u64::MAX)]), [1, 0]);
        assert_eq!(order(&[]), [0; 0]);
    }
}
