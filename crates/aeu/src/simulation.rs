//! Many AEUs and scripted sessions in one thread, under a seeded schedule.

use crate::token::Token;
use crate::{Aeu, AeuContext, Group, Handler, Panicked, Random, Slice};
use eris_numa::Topology;
use eris_route::{Bell, BufferSizes, Port, RouteError, Router};
use eris_telemetry::Telemetry;
use eris_types::{AeuId, ObjectId};
use std::sync::Arc;
use std::thread;

/// What a client does in a simulation.
pub trait Script<P = ()> {
    /// The schedule has chosen this session. It may receive, send and flush; whatever it draws from `random` is part of
    /// the replay.
    fn turn(&mut self, port: &mut Port<P>, random: &mut Random) -> Turn;
}

impl<P, F: FnMut(&mut Port<P>, &mut Random) -> Turn> Script<P> for F {
    fn turn(&mut self, port: &mut Port<P>, random: &mut Random) -> Turn {
        self(port, random)
    }
}

/// A session and its script.
type Scripted<P> = (Port<P>, Box<dyn Script<P>>);

/// How a script goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Choose it again.
    More,
    /// The session is closed, whatever is still on its way to it.
    Done,
}

/// What goes wrong in a simulation: each once in so many times, never for zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A group panics instead of being executed.
    pub group_panics: usize,
    /// A group panics after it was executed.
    pub late_group_panics: usize,
    /// The kinds of commands whose groups panic; `None`: all.
    pub panicking_kinds: Option<&'static [u16]>,
    /// A slice of a task panics instead of being run.
    pub slice_panics: usize,
    /// A step flushes to some of the targets only.
    pub partial_flushes: usize,
    /// A step runs no slice, or few.
    pub few_slices: usize,
}

/// A deterministic run of AEUs and sessions. Each AEU has a run token and goes to sleep by the protocol of
/// [`crate::Runtime`]: once parked it is not stepped until it is rung. A lost wake-up therefore shows, either as a run
/// that never ends or as an AEU that has work in the end and sleeps.
///
/// Equal seeds, handlers and scripts give equal runs; [`Simulation::trace`] tells whether two runs were equal. When a
/// test panics inside a run, the seed is printed.
pub struct Simulation<H: Handler> {
    seed: u64,
    random: Random,
    faults: Faults,
    router: Arc<Router<H::Parcel>>,
    aeus: Vec<Sleeper<H>>,
    sessions: Vec<Scripted<H::Parcel>>,
    trace: u64,
}

impl<H: Handler> Simulation<H> {
    /// AEUs on a topology, usually a fake one.
    pub fn new(
        seed: u64,
        topology: &Topology,
        sizes: BufferSizes,
        faults: Faults,
        mut make_handler: impl FnMut(AeuId) -> H,
    ) -> Self {
        let mut random = Random::new(seed);
        let topology = Arc::new(topology.clone());
        let telemetry = Telemetry::new(topology.aeus().len());
        let router = Router::new(topology.aeus().len(), sizes);
        let aeus = topology.aeus().iter().map(|&place| {
            let handler = Faulty {
                inner: make_handler(place.aeu),
                faults,
                random: Random::new(random.bits()),
            };
            let (port, token) = (router.aeu_port(place.aeu), Arc::new(Token::new()));
            port.set_bell(token.clone());
            Sleeper {
                aeu: Aeu::new(place, topology.clone(), telemetry.clone(), port, handler),
                token,
                phase: ThreadPhase::Busy,
            }
        });
        let aeus = aeus.collect();
        Simulation {
            seed,
            random,
            faults,
            router,
            aeus,
            sessions: Vec::new(),
            trace: 0,
        }
    }

    /// Adds a session with its script. Sessions may come at any time between runs.
    pub fn session(&mut self, script: impl Script<H::Parcel> + 'static) -> Result<(), RouteError> {
        self.sessions
            .push((self.router.session()?, Box::new(script)));
        Ok(())
    }

    /// Runs until every script is done and every AEU sleeps.
    ///
    /// # Panics
    /// After `limit` turns: something is stuck. And if an AEU sleeps in the end although it has work to do.
    pub fn run(&mut self, limit: usize) {
        let _seed = PrintSeed(self.seed);
        for _ in 0..limit {
            if self.sessions.is_empty() && self.asleep() == self.aeus.len() {
                return self.check_sleep();
            }
            self.turn();
        }
        panic!(
            "still busy after {limit} turns, with {} sessions; {} of {} AEUs sleep",
            self.sessions.len(),
            self.asleep(),
            self.aeus.len()
        );
    }

    /// How many AEUs wait to be rung.
    fn asleep(&self) -> usize {
        self.aeus.iter().filter(|aeu| aeu.sleeps()).count()
    }

    /// No AEU that sleeps would do anything if it were stepped.
    fn check_sleep(&mut self) {
        for Sleeper { aeu, .. } in &mut self.aeus {
            let step = aeu.step();
            assert!(
                !aeu.is_restless(step),
                "{} sleeps with work to do",
                aeu.place().aeu
            );
        }
    }

    /// One choice of the schedule: an AEU whose thread goes on, or a session that has its turn.
    fn turn(&mut self) {
        let chosen = self.random.below(self.aeus.len() + self.sessions.len());
        let outcome = match chosen.checked_sub(self.aeus.len()) {
            None => self.aeus[chosen].turn(self.faults, &mut self.random) as u64,
            Some(at) => {
                let (port, script) = &mut self.sessions[at];
                let turn = script.turn(port, &mut self.random);
                if turn == Turn::Done {
                    self.sessions.swap_remove(at);
                }
                turn as u64
            }
        };
        self.trace = (self.trace ^ (chosen as u64) << 8 ^ outcome).wrapping_mul(0x100_0000_01b3);
    }

    /// The inboxes, for clients that open sessions of their own.
    pub fn router(&self) -> &Arc<Router<H::Parcel>> {
        &self.router
    }

    /// A fingerprint of every choice and its outcome so far.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// The handlers, by AEU. An AEU that sleeps looks at what was changed when it is next rung.
    pub fn handlers(&mut self) -> impl Iterator<Item = &mut H> {
        (self.aeus.iter_mut()).map(|aeu| &mut aeu.aeu.handler_mut().inner)
    }

    /// The tasks of all AEUs, suspended ones included.
    pub fn tasks(&self) -> usize {
        self.aeus.iter().map(|aeu| aeu.aeu.tasks()).sum()
    }

    /// The counters of all AEUs.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.aeus.first().map(|aeu| aeu.aeu.telemetry())
    }
}

/// An AEU with its token, and how far its thread would be in the loop of the runtime. One turn is what happens between
/// two looks at the token, so that a ring may come at each of them.
struct Sleeper<H: Handler> {
    aeu: Aeu<Faulty<H>>,
    token: Arc<Token>,
    phase: ThreadPhase,
}

/// ```text
///  Busy ─► Spinning ─► Dozing ─► Looked ─► Parked
///   ▲ ◄─────── work ──────┘         │        │
///   └──────────────── ring ─────────┴────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadPhase {
    /// The last step found work.
    Busy,
    /// It found none.
    Spinning,
    /// The sleep is announced.
    Dozing,
    /// The last step before it found nothing either.
    Looked,
    /// Not stepped until it is rung.
    Parked,
}

impl<H: Handler> Sleeper<H> {
    fn sleeps(&self) -> bool {
        self.phase == ThreadPhase::Parked
            && !self.token.is_running()
            && self.aeu.first_rested().is_none()
    }

    /// There is no time here: rests end by chance.
    fn end_rests(&mut self, random: &mut Random) {
        if self.aeu.first_rested().is_some() && random.one_in(3) {
            // Only its thread would, that has the token or rings for it.
            self.aeu.end_rests(|_| true);
            self.token.ring();
        }
    }

    fn turn(&mut self, faults: Faults, random: &mut Random) -> ThreadPhase {
        self.end_rests(random);
        self.phase = match self.phase {
            ThreadPhase::Parked if !self.token.is_running() => ThreadPhase::Parked,
            ThreadPhase::Spinning if random.one_in(2) => {
                self.token.doze();
                ThreadPhase::Dozing
            }
            ThreadPhase::Busy | ThreadPhase::Spinning | ThreadPhase::Parked => {
                if self.step(faults, random) {
                    ThreadPhase::Busy
                } else {
                    ThreadPhase::Spinning
                }
            }
            // Never cut short: a thread sleeps only after a step that has tried everything.
            ThreadPhase::Dozing => {
                if self.step(Faults::default(), random) {
                    self.token.wake();
                    ThreadPhase::Busy
                } else {
                    ThreadPhase::Looked
                }
            }
            ThreadPhase::Looked => {
                if self.token.lie_down() {
                    ThreadPhase::Parked
                } else {
                    ThreadPhase::Busy
                }
            }
        };
        self.phase
    }

    /// Whether another step is due.
    fn step(&mut self, faults: Faults, random: &mut Random) -> bool {
        let few = random.one_in(faults.few_slices);
        let slices = if few { random.below(3) } else { 4 };
        let partial = random.one_in(faults.partial_flushes);
        let targets = if partial { random.below(3) } else { usize::MAX };
        let step = self.aeu.step_within(slices, targets);
        self.aeu.is_restless(step)
    }
}

/// A handler whose groups and slices panic now and then.
struct Faulty<H> {
    inner: H,
    faults: Faults,
    random: Random,
}

impl<H: Handler> Handler for Faulty<H> {
    type Task = H::Task;
    type Parcel = H::Parcel;

    fn execute(
        &mut self,
        object: ObjectId,
        kind: u16,
        commands: Group<'_, H::Parcel>,
        cx: &mut AeuContext<'_, H::Task, H::Parcel>,
    ) {
        let mut panics = |one_in: usize| {
            let kinds = self.faults.panicking_kinds;
            kinds.is_none_or(|kinds| kinds.contains(&kind)) && self.random.one_in(one_in)
        };
        let (early, late) = (
            panics(self.faults.group_panics),
            panics(self.faults.late_group_panics),
        );
        if early {
            injected();
        }
        self.inner.execute(object, kind, commands, cx);
        if late {
            injected();
        }
    }

    fn run(&mut self, task: &mut H::Task, cx: &mut AeuContext<'_, H::Task, H::Parcel>) -> Slice {
        if self.random.one_in(self.faults.slice_panics) {
            injected();
        }
        self.inner.run(task, cx)
    }

    fn work_of_commands(kind: u16) -> usize {
        H::work_of_commands(kind)
    }

    fn idle(&mut self, cx: &mut AeuContext<'_, H::Task, H::Parcel>) -> bool {
        self.inner.idle(cx)
    }

    fn panicked(
        &mut self,
        what: Panicked<'_, H::Task, H::Parcel>,
        message: &str,
        cx: &mut AeuContext<'_, H::Task, H::Parcel>,
    ) {
        self.inner.panicked(what, message, cx);
    }
}

/// A panic that does not call the panic hook: it is meant, and would only fill the test's output.
fn injected() {
    std::panic::resume_unwind(Box::new("an injected fault"));
}

/// Prints the seed when the thread panics.
struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("simulation: seed {}", self.0);
        }
    }
}
