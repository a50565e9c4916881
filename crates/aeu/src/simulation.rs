//! Many AEUs and scripted sessions in one thread, under a seeded schedule.

use crate::aeu::sweep;
use crate::{Aeu, AeuContext, Group, Handler, Panicked, Random, Slice};
use eris_numa::Topology;
use eris_route::{BufferSizes, Port, RouteError, Router};
use eris_telemetry::Telemetry;
use eris_types::{AeuId, ObjectId};
use std::sync::Arc;
use std::thread;

/// What a client does in a simulation.
pub trait Script {
    /// The schedule has chosen this session. It may receive, send and flush; whatever it draws from `random` is part of the
    /// replay.
    fn turn(&mut self, port: &mut Port, random: &mut Random) -> Turn;
}

impl<F: FnMut(&mut Port, &mut Random) -> Turn> Script for F {
    fn turn(&mut self, port: &mut Port, random: &mut Random) -> Turn {
        self(port, random)
    }
}

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
    /// A slice of a task panics instead of being run.
    pub slice_panics: usize,
    /// A step flushes to some of the targets only.
    pub partial_flushes: usize,
    /// A step runs no slice, or few.
    pub few_slices: usize,
}

/// A deterministic run of AEUs and sessions. Equal seeds, handlers and scripts give equal runs; [`Simulation::trace`] tells
/// whether two runs were equal. When a test panics inside a run, the seed is printed.
pub struct Simulation<H: Handler> {
    seed: u64,
    random: Random,
    faults: Faults,
    router: Arc<Router>,
    aeus: Vec<Aeu<Faulty<H>>>,
    sessions: Vec<(Port, Box<dyn Script>)>,
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
            let port = router.aeu_port(place.aeu);
            Aeu::new(place, topology.clone(), telemetry.clone(), port, handler)
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
    pub fn session(&mut self, script: impl Script + 'static) -> Result<(), RouteError> {
        self.sessions
            .push((self.router.session()?, Box::new(script)));
        Ok(())
    }

    /// Runs until every script is done and no AEU has anything left to do but to wait.
    ///
    /// # Panics
    /// After `limit` turns: something is stuck.
    pub fn run(&mut self, limit: usize) {
        let _seed = PrintSeed(self.seed);
        for _ in 0..limit {
            if !self.sessions.is_empty() || self.random.one_in(2) {
                self.turn();
            } else if !self.sweep() {
                return;
            }
        }
        panic!(
            "still busy after {limit} turns, with {} sessions",
            self.sessions.len()
        );
    }

    /// One choice of the schedule: an AEU that steps, or a session that has its turn.
    fn turn(&mut self) {
        let chosen = self.random.below(self.aeus.len() + self.sessions.len());
        let outcome = match chosen.checked_sub(self.aeus.len()) {
            None => {
                let slices = if self.random.one_in(self.faults.few_slices) {
                    self.random.below(3)
                } else {
                    4
                };
                let partial = self.random.one_in(self.faults.partial_flushes);
                let targets = if partial {
                    self.random.below(3)
                } else {
                    usize::MAX
                };
                self.aeus[chosen].step_within(slices, targets) as u64
            }
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

    /// Steps every AEU once; whether there is more to do.
    fn sweep(&mut self) -> bool {
        sweep(&mut self.aeus)
    }

    /// The inboxes, for clients that open sessions of their own.
    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// A fingerprint of every choice and its outcome so far.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// The handlers, by AEU.
    pub fn handlers(&mut self) -> impl Iterator<Item = &mut H> {
        self.aeus.iter_mut().map(|aeu| &mut aeu.handler_mut().inner)
    }

    /// The tasks of all AEUs, suspended ones included.
    pub fn tasks(&self) -> usize {
        self.aeus.iter().map(|aeu| aeu.tasks()).sum()
    }

    /// The counters of all AEUs.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.aeus.first().map(|aeu| aeu.telemetry())
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

    fn execute(
        &mut self,
        object: ObjectId,
        kind: u16,
        commands: Group<'_>,
        cx: &mut AeuContext<'_, H::Task>,
    ) {
        if self.random.one_in(self.faults.group_panics) {
            injected();
        }
        self.inner.execute(object, kind, commands, cx);
    }

    fn run(&mut self, task: &mut H::Task, cx: &mut AeuContext<'_, H::Task>) -> Slice {
        if self.random.one_in(self.faults.slice_panics) {
            injected();
        }
        self.inner.run(task, cx)
    }

    fn idle(&mut self, cx: &mut AeuContext<'_, H::Task>) -> bool {
        self.inner.idle(cx)
    }

    fn panicked(
        &mut self,
        what: Panicked<'_, H::Task>,
        message: &str,
        cx: &mut AeuContext<'_, H::Task>,
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
