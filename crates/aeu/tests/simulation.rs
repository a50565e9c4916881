//! Seeded schedules with faults. A failure prints its seed.
#![cfg(not(loom))]

mod common;

use common::*;
use eris_aeu::{Faults, Random, Session, Simulation, Turn};
use eris_numa::Topology;
use eris_route::{BufferSizes, FlushState};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

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
struct Client {
    number: usize,
    left: u64,
    impatient: bool,
    open: BTreeSet<u64>,
    log: Log,
}

impl Client {
    fn turn(&mut self, port: &mut TestPort, random: &mut Random) -> Turn {
        for (kind, callback, words) in answers(port) {
            self.log.borrow_mut().push((self.number, kind, callback));
            assert!(words.len() <= 5);
            assert!(
                self.open.remove(&callback),
                "client {}: {kind} {callback} is not open",
                self.number
            );
        }
        while !self.must_wait() && random.one_in(2) {
            self.left -= 1;
            self.ask((self.left % AEUS as u64) as u16, self.left, port, random);
            self.open.insert(self.left);
        }
        let flushed = if random.one_in(3) {
            port.split().0.flush_some(random.below(3))
        } else {
            port.flush()
        };
        let finished = self.left == 0 && flushed == FlushState::Empty && self.open.is_empty();
        if finished || self.impatient && random.one_in(200) {
            Turn::Done
        } else {
            Turn::More
        }
    }

    fn ask(&self, to: u16, callback: u64, port: &mut TestPort, random: &mut Random) {
        let aeu = random.below(AEUS as usize) as u64;
        match random.below(7) {
            0 => ask(port, to, 1, COUNT, callback, &[random.below(9) as u64]),
            // For ever, as far as clocks go.
            4 => ask(port, to, 1, REST, callback, &[3, 1 << 40]),
            1 => ask(port, to, 1, FORWARD, callback, &[aeu, 1, 2, 3]),
            2 => ask(port, to, 2, FLOOD, callback, &[aeu, 20, 0]),
            3 => ask(port, to, 2, PANIC, callback, &[]),
            _ => ask(port, to, random.below(3) as u32, NOTE, callback, &[0; 5]),
        }
    }

    /// Whether it can go on only after an answer.
    fn must_wait(&self) -> bool {
        self.left == 0 || self.open.len() == 8
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client that does nothing from the poll that found nothing until it is woken, whatever is still to be flushed.
fn sleepy(
    mut client: Client,
    mut session: Session<Arc<()>>,
) -> impl FnMut(&mut TestPort, &mut Random) -> Turn {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    move |_, random| {
        if !woken.0.swap(false, Ordering::Relaxed) {
            return Turn::More;
        }
        let turn = client.turn(session.port(), random);
        let mut cx = Context::from_waker(&waker);
        if !client.must_wait() || session.poll_ready(&mut cx).is_ready() {
            waker.wake_by_ref();
        }
        turn
    }
}

/// Every second client sleeps while it waits.
fn run(seed: u64, faults: Faults) -> (u64, Vec<(usize, u16, u64)>) {
    let mut simulation = Simulation::new(seed, &Topology::fake(2, AEUS / 2), SIZES, faults, |_| {
        Numbers::default()
    });
    let log = Log::default();
    for number in 0..5 {
        let mut client = Client {
            number,
            left: 60,
            impatient: number >= 3,
            open: BTreeSet::new(),
            log: log.clone(),
        };
        if number % 2 == 0 {
            let session = Session::new(simulation.router().session().unwrap());
            simulation.session(sleepy(client, session)).unwrap();
        } else {
            let polling = move |port: &mut TestPort, random: &mut Random| client.turn(port, random);
            simulation.session(polling).unwrap();
        }
    }
    simulation.run(200_000);
    assert_eq!(simulation.tasks(), 0, "seed {seed}: a task was left behind");
    let log = log.take();
    (simulation.trace(), log)
}

const FAULTS: Faults = Faults {
    group_panics: 9,
    late_group_panics: 0,
    panicking_kinds: None,
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
        .session(|_: &mut TestPort, _: &mut Random| Turn::More)
        .unwrap();
    simulation.run(1000);
}
