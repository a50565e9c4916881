//! Model-checked schedules: `RUSTFLAGS="--cfg loom" cargo test --release -p eris-aeu --lib model`.
//!
//! Two words that are equal whenever nobody holds the latch. Writers that find it held wait there; who holds it does
//! their work.
//!
//! Writers do not load these words, but a sum of their own: Loom would take their loads for the last ones before their
//! stores, and not try what readers see between the two.

use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::task::latch::{Entry, TaskLatch};
use crate::task::slots::{FreeSlots, Slots};
use crate::task::{Resource, Task};
use loom::thread;
use std::sync::Arc;

struct Pair {
    latch: TaskLatch,
    words: [AtomicU64; 2],
    /// Touched by writers alone.
    sum: AtomicU64,
    slots: Slots,
}

impl Pair {
    fn new() -> Arc<Self> {
        let slots = Slots::new();
        // From now on there is a block of them.
        FreeSlots::default().take(&slots).expect("a slot");
        Arc::new(Pair {
            latch: TaskLatch::new(),
            words: Default::default(),
            sum: AtomicU64::new(0),
            slots,
        })
    }

    fn seen(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    fn add(&self, number: u64) {
        let sum = self.sum.load(Relaxed) + number;
        self.sum.store(sum, Relaxed);
        self.words.iter().for_each(|word| word.store(sum, Relaxed));
    }

    /// A task that adds a number: done by this thread, or by who holds the latch.
    fn task(&self, slot: u32, number: u64) {
        if !self.latch.try_enter() {
            self.slots
                .write(slot, &Task::new(1, Resource::new(0), &[number]));
            let link = |before| self.slots.link(slot, before);
            if self.latch.enter_or_wait(slot, link) == Entry::Waits {
                return;
            }
        }
        self.add(number);
        self.leave();
    }

    fn leave(&self) {
        while let Some(last) = self.latch.leave(true) {
            let mut first = self.slots.reverse(last);
            while first > 0 {
                let (waited, next) = self.slots.read(first - 1);
                self.add(waited.task().words[0]);
                first = next;
            }
        }
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn who_waits_is_run_by_who_holds() {
    check(3, || {
        let pair = Pair::new();
        let others: Vec<_> = (1..3)
            .map(|at| {
                let pair = pair.clone();
                thread::spawn(move || pair.task(at, 1 << (8 * at)))
            })
            .collect();
        pair.task(0, 1);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pair.seen(), [0x10101; 2], "each has added once");
        assert!(!pair.latch.is_held());
    });
}

#[test]
fn who_reads_sees_words_of_one_time() {
    check(3, || {
        let pair = Pair::new();
        let others: Vec<_> = (1..3)
            .map(|at| {
                let pair = pair.clone();
                thread::spawn(move || pair.task(at, 1 << (8 * at)))
            })
            .collect();
        if let Some([first, second]) = pair.latch.read(|| pair.seen()) {
            assert_eq!(first, second);
        }
        others.into_iter().for_each(|thread| thread.join().unwrap());
        let seen = pair.latch.read(|| pair.seen());
        assert_eq!(seen, Some([0x10100; 2]), "each has added once");
    });
}

/// The home moves while tasks are on their way: who finds itself there finds what was done before.
#[test]
fn a_home_brings_what_was_done_there() {
    use crate::task::Home;
    use eris_types::AeuId;
    check(3, || {
        let home = Arc::new(Home::new(AeuId(0)));
        let word = Arc::new(AtomicU64::new(0));
        let other = {
            let (home, word) = (home.clone(), word.clone());
            thread::spawn(move || {
                if home.get() == AeuId(1) {
                    assert_eq!(word.load(Relaxed), 1);
                    word.store(2, Relaxed);
                    home.set(AeuId(0));
                }
            })
        };
        word.store(1, Relaxed);
        home.set(AeuId(1));
        if home.get() == AeuId(0) {
            assert_eq!(word.load(Relaxed), 2);
        }
        other.join().unwrap();
    });
}
