//! Snapshots, commit order, waiting and pools.

use crate::{CommitOrder, Pool, Record, Snapshots, Waiting, acquisitions};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::thread;

#[derive(Clone, Debug)]
enum Turn {
    Commit,
    Hold,
    Release(usize),
    Gather,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        Just(Turn::Commit),
        Just(Turn::Hold),
        any::<usize>().prop_map(Turn::Release),
        Just(Turn::Gather),
    ];
    prop::collection::vec(turn, 0..100)
}

proptest! {
    #[test]
    fn the_horizon_is_the_oldest_snapshot_that_is_held(turns in turns(), slots in 0usize..4) {
        let snapshots = Snapshots::new(slots);
        let mut newest = 1;
        let mut held = Vec::new();
        let mut horizon = 0;
        for turn in turns {
            match turn {
                Turn::Commit => newest += 1,
                Turn::Hold => {
                    let hold = snapshots.hold(|| newest);
                    prop_assert_eq!(hold.at(), newest);
                    held.push(hold);
                }
                Turn::Release(any) => if !held.is_empty() {
                    let hold = held.swap_remove(any % held.len());
                    let at = hold.at();
                    prop_assert_eq!(snapshots.release(hold), at);
                },
                Turn::Gather => {
                    let oldest = held.iter().map(|hold| hold.at()).min();
                    horizon = oldest.unwrap_or(newest);
                    prop_assert_eq!(snapshots.gather(|| newest), horizon);
                    prop_assert_eq!(snapshots.gathered(), newest);
                }
            }
            prop_assert_eq!(snapshots.horizon(), horizon);
        }
    }

    #[test]
    fn what_is_visible_has_no_gap(order in Just((1..=64u64).collect::<Vec<_>>()).prop_shuffle(), open in 1u64..80) {
        let commits = CommitOrder::new(open);
        let mut finished = BTreeSet::new();
        for number in order {
            commits.finish(number);
            finished.insert(number);
            let whole = (1..).take_while(|number| finished.contains(number)).count();
            prop_assert_eq!(commits.visible(), whole as u64);
        }
    }
}

/// Threads draw, finish and read, with more readers than slots; somebody gathers all the while.
#[test]
fn on_threads_no_horizon_passes_a_reader() {
    let (order, next) = (CommitOrder::new(8), AtomicU64::new(1));
    let snapshots = Snapshots::new(2);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads = [0, 1, 2].map(|_| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let hold = snapshots.hold(|| order.visible());
                    order.finish(next.fetch_add(1, SeqCst));
                    assert!(snapshots.horizon() <= hold.at());
                    assert!(hold.at() <= order.visible());
                    let _ = snapshots.release(hold);
                }
            })
        });
        scope.spawn(|| {
            let mut last = 0;
            while !is_over.load(SeqCst) {
                let horizon = snapshots.gather(|| order.visible());
                assert!(horizon >= last, "it went back");
                last = horizon;
            }
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        is_over.store(true, SeqCst);
    });
    assert_eq!(order.visible(), 60_000);
    assert_eq!(snapshots.gather(|| order.visible()), 60_000);
}

#[test]
fn holding_and_finishing_take_no_lock() {
    let (order, snapshots, waiting) = (CommitOrder::new(8), Snapshots::new(4), Waiting::new());
    let before = acquisitions();
    for number in 1..1_000 {
        let hold = snapshots.hold(|| order.visible());
        order.finish(number);
        waiting.wake(|| order.visible());
        snapshots.gather(|| order.visible());
        let _ = snapshots.release(hold);
    }
    assert_eq!(acquisitions(), before);
    order.finish(2_000);
    assert!(acquisitions() > before, "locks are counted");
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn on_threads_who_waits_is_woken() {
    let (order, waiting, next) = (CommitOrder::new(64), Waiting::new(), AtomicU64::new(1));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let waker = Waker::from(Arc::new(Unpark(thread::current())));
                for _ in 0..5_000 {
                    let mine = next.fetch_add(1, SeqCst);
                    order.finish(mine);
                    waiting.wake(|| order.visible());
                    while order.visible() < mine {
                        waiting.add(mine, &waker);
                        if order.visible() < mine {
                            thread::park();
                        }
                    }
                }
            });
        }
    });
    assert_eq!(order.visible(), 20_000);
}

#[test]
fn on_threads_a_pool_loses_and_doubles_nothing() {
    let pool = Pool::new(4);
    (0..3).for_each(|number: usize| pool.put(Box::new(number)));
    let taken = [const { AtomicBool::new(false) }; 3];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let Some(one) = pool.take() else { continue };
                    assert!(!taken[*one].swap(true, SeqCst), "taken twice");
                    taken[*one].store(false, SeqCst);
                    pool.put(one);
                }
            });
        }
    });
    let mut left: Vec<usize> = std::iter::from_fn(|| pool.take()).map(|one| *one).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2]);
}

#[test]
fn a_full_pool_drops_what_it_has_no_room_for() {
    let pool = Pool::new(2);
    let one = Arc::new(());
    (0..5).for_each(|_| pool.put(Box::new(one.clone())));
    assert_eq!(Arc::strong_count(&one), 3);
    assert!(Pool::<()>::new(0).take().is_none());
}

#[test]
fn on_threads_no_record_is_torn() {
    let record = Record::new(9);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            (1..=50_000).for_each(|value| record.write([value; 9]));
            is_over.store(true, SeqCst);
        });
        let mut last = 0;
        while !is_over.load(SeqCst) {
            let words = record.read();
            assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
            assert!(
                words[0] >= last && record.word(8) >= words[0],
                "it went back"
            );
            last = words[0];
        }
    });
    record.write([7]);
    assert_eq!(record.read()[..2], [7, 50_000]);
}
