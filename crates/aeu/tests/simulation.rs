//! Seeded schedules with faults. A failure prints its seed.
#![cfg(not(loom))]

mod common;

use common::*;
use eris_aeu::{Faults, Random, Simulation, Turn};
use eris_numa::Topology;
use eris_route::{BufferSizes, FlushState, Port};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const SIZES: BufferSizes = BufferSizes {
    outgoing: 24,
    aeu_inbox: 96,
    session_inbox: 256,
};
const AEUS: u16 = 4;

/// Every answer of every session, in the order in which it came.
type Log = Rc<RefCell<Vec<(usize, u16, u64)>>>;

/// A client that asks for `left` things, never with more than 8 open, and leaves when all are answered; or, if it is
/// impatient, at any time.
fn client(
    number: usize,
    mut left: u64,
    impatient: bool,
    log: Log,
) -> impl FnMut(&mut Port, &mut Random) -> Turn {
    let mut open = BTreeSet::new();
    move |port, random| {
        for (kind, callback, words) in answers(port) {
            log.borrow_mut().push((number, kind, callback));
            assert!(words.len() <= 5);
            assert!(
                open.remove(&callback),
                "client {number}: {kind} {callback} is not open"
            );
        }
        while left > 0 && open.len() < 8 && random.one_in(2) {
            left -= 1;
            let (to, callback) = ((left % AEUS as u64) as u16, left);
            match random.below(6) {
                0 => ask(port, to, 1, COUNT, callback, &[random.below(9) as u64]),
                1 => ask(
                    port,
                    to,
                    1,
                    FORWARD,
                    callback,
                    &[random.below(AEUS as usize) as u64, 1, 2, 3],
                ),
                2 => ask(
                    port,
                    to,
                    2,
                    FLOOD,
                    callback,
                    &[random.below(AEUS as usize) as u64, 20, 0],
                ),
                3 => ask(port, to, 2, PANIC, callback, &[]),
                _ => ask(port, to, random.below(3) as u32, NOTE, callback, &[0; 5]),
            }
            open.insert(callback);
        }
        let flushed = if random.one_in(3) {
            port.split().0.flush_some(random.below(3))
        } else {
            port.flush()
        };
        let finished = left == 0 && flushed == FlushState::Empty && open.is_empty();
        if finished || impatient && random.one_in(200) {
            Turn::Done
        } else {
            Turn::More
        }
    }
}

fn run(seed: u64, faults: Faults) -> (u64, Vec<(usize, u16, u64)>) {
    let mut simulation = Simulation::new(seed, &Topology::fake(2, AEUS / 2), SIZES, faults, |_| {
        Numbers::default()
    });
    let log = Log::default();
    for number in 0..5 {
        simulation
            .session(client(number, 60, number >= 3, log.clone()))
            .unwrap();
    }
    simulation.run(200_000);
    assert_eq!(simulation.tasks(), 0, "seed {seed}: a task was left behind");
    let log = log.take();
    (simulation.trace(), log)
}

const FAULTS: Faults = Faults {
    group_panics: 9,
    slice_panics: 9,
    partial_flushes: 3,
    few_slices: 2,
};

#[test]
fn every_statement_is_answered_whatever_the_schedule() {
    for seed in 0..60 {
        run(seed, Faults::default());
        run(seed, FAULTS);
    }
}

#[test]
fn a_seed_is_a_schedule() {
    let first = run(7, FAULTS);
    assert_eq!(first, run(7, FAULTS));
    assert_ne!(first.0, run(8, FAULTS).0);
}

#[test]
#[should_panic(expected = "still busy")]
fn a_run_that_is_stuck_says_so() {
    let mut simulation =
        Simulation::new(1, &Topology::fake(1, 1), SIZES, Faults::default(), |_| {
            Numbers::default()
        });
    simulation
        .session(|_: &mut Port, _: &mut Random| Turn::More)
        .unwrap();
    simulation.run(1000);
}
