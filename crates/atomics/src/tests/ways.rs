//! Sequences and latches in all ways, on real threads. `ERIS_SEED` replays one.

use crate::{Cost, Latch, Sequence, Way, calibrate, cheapest, estimate};
use eris_types::NodeId;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn way(&mut self) -> Way {
        Way::ALL[self.below(3) as usize]
    }
}

/// The seed that is given, or a new one; shown when the test fails.
fn seed() -> u64 {
    let given = std::env::var("ERIS_SEED").ok();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = given.map_or(now | 1, |seed| seed.parse().unwrap());
    println!("ERIS_SEED={seed}");
    seed
}

/// Threads draw while ways are changed and the home comes and goes. Some have a way of their own: the paper's mix.
#[test]
fn on_threads_no_number_is_drawn_twice_or_left_out() {
    let seed = seed();
    for senders in [1, 3, 64] {
        let sequence = Sequence::new(100, Way::Cpu, 2, senders);
        let is_over = AtomicBool::new(false);
        let drawn = thread::scope(|scope| {
            let threads = [1, 2, 3, 4].map(|number| {
                let (sequence, mut random) = (&sequence, Random(seed.wrapping_mul(number) | 1));
                scope.spawn(move || {
                    let (mut drawn, node) = (Vec::new(), NodeId(number as u16 % 2));
                    for _ in 0..5_000 {
                        let count = 1 + random.below(4);
                        let first = match random.below(8) {
                            0 => sequence.draw_by(random.way(), count, node),
                            _ => sequence.draw(count, node),
                        };
                        if drawn.last().is_some_and(|last| *last >= first) {
                            panic!("a thread's numbers do not ascend");
                        }
                        drawn.extend(first..first + count);
                    }
                    drawn
                })
            });
            let home = scope.spawn(|| {
                let mut random = Random(seed);
                while !is_over.load(Relaxed) {
                    sequence.set_way(random.way());
                    sequence.set_home(random.below(2) == 0);
                    (0..random.below(50)).for_each(|_| {
                        sequence.serve();
                    });
                    thread::yield_now();
                }
                sequence.set_home(false);
            });
            let drawn = threads.map(|thread| thread.join().unwrap());
            is_over.store(true, Relaxed);
            home.join().unwrap();
            drawn
        });
        let mut all: Vec<u64> = drawn.into_iter().flatten().collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(100..sequence.next()), "seed {seed}");
    }
}

#[test]
fn whoever_lives_at_home_adds_once_for_all() {
    let sequence = Sequence::new(0, Way::Delegated, 1, 8);
    sequence.set_home(true);
    assert_eq!(sequence.serve(), 0);
    thread::scope(|scope| {
        let drawing = [2, 3, 4].map(|count| {
            let sequence = &sequence;
            scope.spawn(move || sequence.draw(count, NodeId(0)))
        });
        let mut served = 0;
        while served < 3 && !drawing.iter().all(|thread| thread.is_finished()) {
            served += sequence.serve();
        }
        let firsts: HashSet<u64> = drawing.map(|thread| thread.join().unwrap()).into();
        assert_eq!(firsts.len(), 3);
    });
    assert_eq!(sequence.next(), 9);
}

/// What a latch guards is not atomic as a whole.
#[test]
fn on_threads_one_at_a_time_has_a_latch() {
    let seed = seed();
    for senders in [1, 64] {
        let latch = Latch::new(Way::Cpu, 2, senders);
        let (numbers, is_over) = ([const { AtomicU64::new(0) }; 2], AtomicBool::new(false));
        let entered: u64 = thread::scope(|scope| {
            let threads = [1, 2, 3, 4].map(|number| {
                let (latch, numbers) = (&latch, &numbers);
                let mut random = Random(seed.wrapping_mul(number) | 1);
                scope.spawn(move || {
                    let (mut entered, node) = (0, NodeId(number as u16 % 2));
                    for _ in 0..5_000 {
                        let guard = match random.below(8) {
                            0 => latch.try_lock_by(random.way(), node),
                            1 => Some(latch.lock_by(random.way(), node)),
                            2 => latch.try_lock(node),
                            _ => Some(latch.lock(node)),
                        };
                        let Some(_guard) = guard else { continue };
                        let [one, other] = numbers.each_ref().map(|number| number.load(Relaxed));
                        assert_eq!(one, other, "seed {seed}");
                        numbers[0].store(one + 1, Relaxed);
                        numbers[1].store(one + 1, Relaxed);
                        entered += 1;
                    }
                    entered
                })
            });
            let home = scope.spawn(|| {
                let mut random = Random(seed);
                while !is_over.load(Relaxed) {
                    latch.set_way(random.way());
                    latch.set_home(random.below(2) == 0);
                    (0..random.below(50)).for_each(|_| {
                        latch.serve();
                    });
                    thread::yield_now();
                }
                latch.set_home(false);
            });
            let entered = threads.map(|thread| thread.join().unwrap());
            is_over.store(true, Relaxed);
            home.join().unwrap();
            entered.iter().sum()
        });
        assert_eq!(numbers[0].load(Relaxed), entered);
        assert!(latch.try_lock(NodeId(0)).is_some(), "nobody has it");
    }
}

#[test]
fn a_latch_that_is_taken_is_denied_in_every_way() {
    let latch = Latch::new(Way::Cpu, 1, 4);
    for way in Way::ALL {
        let guard = latch.lock_by(way, NodeId(0));
        for other in Way::ALL {
            assert!(latch.try_lock_by(other, NodeId(0)).is_none());
        }
        drop(guard);
        for other in Way::ALL {
            assert!(latch.try_lock_by(other, NodeId(0)).is_some());
        }
    }
}

fn way_of(contenders: &[u16], local: f64, remote: f64) -> Way {
    let contenders: Vec<NodeId> = contenders.iter().map(|node| NodeId(*node)).collect();
    let latency = |from, to| if from == to { local } else { remote };
    cheapest(&estimate(&contenders, latency))
}

#[test]
fn the_estimate_goes_by_who_contends_and_how_far_they_are() {
    assert_eq!(way_of(&[], 100.0, 200.0), Way::Cpu);
    assert_eq!(way_of(&[3], 100.0, 200.0), Way::Cpu);
    assert_eq!(way_of(&[0, 0], 100.0, 100.0), Way::Cpu);
    // One on each of four nodes: nobody to share with in a node.
    assert_eq!(way_of(&[0, 1, 2, 3], 100.0, 200.0), Way::Delegated);
    let many: Vec<u16> = (0..64).map(|thread| thread / 8).collect();
    assert_eq!(way_of(&many, 100.0, 200.0), Way::Hierarchical);
    // Two have little to share.
    let pairs: Vec<u16> = (0..16).map(|thread| thread / 2).collect();
    assert_eq!(way_of(&pairs, 100.0, 900.0), Way::Delegated);
}

#[test]
fn a_calibration_measures_all_ways() {
    let contenders = [NodeId(0), NodeId(0)];
    let begun = AtomicU64::new(0);
    let begin = |number| {
        begun.fetch_max(number as u64, Relaxed);
    };
    let costs = calibrate(&contenders, begin, Duration::from_millis(15));
    assert_eq!(begun.load(Relaxed), 1);
    assert_eq!(costs.map(|cost: Cost| cost.way), Way::ALL);
    assert!(costs.iter().all(|cost| cost.nanoseconds > 0.0), "{costs:?}");
    println!("{costs:?}: {:?}", cheapest(&costs));
}
