//! AEUs in production: one pinned thread and one run token each.

use crate::aeu::sweep;
use crate::spin::{self, Spin};
use crate::throttle::Throttle;
use crate::token::Token;
use crate::{Aeu, Handler, Session, Step};
use crossbeam_utils::CachePadded;
use eris_numa::{AeuPlace, PinError, Topology, pin_current_thread};
use eris_route::{Bell, BufferSizes, RouteError, Router};
use eris_telemetry::Telemetry;
use eris_types::AeuId;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use thiserror::Error;

/// The AEUs could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// A thread could not be bound to its CPU.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The operating system gave no thread.
    #[error("cannot start a thread for {aeu}: {source}")]
    Thread {
        /// For whom.
        aeu: AeuId,
        /// Why.
        source: io::Error,
    },
}

/// All AEUs of an engine, running. Each steps on its own thread while there is work, spins for about the time a wake-up
/// costs, then parks: an idle engine uses no CPU.
///
/// [`Runtime::shutdown`] ends it in order; dropping it ends the threads after their current step and drops all tasks.
pub struct Runtime<H: Handler> {
    shared: Arc<RuntimeState<H>>,
    threads: Vec<JoinHandle<()>>,
    router: Arc<Router<H::Parcel>>,
    telemetry: Telemetry,
    topology: Arc<Topology>,
    /// AEUs have no more than a share of a core each, so that nobody else may run them either.
    is_throttled: bool,
}

struct RuntimeState<H: Handler> {
    cells: Box<[CachePadded<AeuCell<H>>]>,
    /// Written once by whoever ends the runtime, before it rings; read by every thread between steps. Relaxed: the
    /// ring's and the token's fences order it.
    stop: AtomicBool,
}

/// An AEU and the token that guards it.
struct AeuCell<H: Handler> {
    token: Arc<Token>,
    /// `None` before its thread has made it, and after the end.
    aeu: UnsafeCell<Option<Aeu<H>>>,
    /// A client was here while it slept. Touched only by the owner of the token.
    is_visited: AtomicBool,
}

// SAFETY: the AEU is touched only by the owner of the token, which is one thread at a time, with the acquire and
// release operations of the token between one owner and the next; and an AEU may be sent from thread to thread.
unsafe impl<H: Handler> Sync for AeuCell<H> where Aeu<H>: Send {}

impl<H: Handler> Runtime<H> {
    /// Starts an AEU at every place of the topology. Returns when all of them run.
    pub fn start(
        topology: &Topology,
        sizes: BufferSizes,
        make_handler: impl FnMut(AeuPlace) -> H,
    ) -> Result<Self, StartError> {
        Self::start_with_share(topology, sizes, None, make_handler)
    }

    /// The same, with AEUs that use no more than this share of a core each, if it is given: as many slow cores as there
    /// are AEUs.
    pub fn start_with_share(
        topology: &Topology,
        sizes: BufferSizes,
        share: Option<f64>,
        mut make_handler: impl FnMut(AeuPlace) -> H,
    ) -> Result<Self, StartError> {
        let topology = Arc::new(topology.clone());
        let places = topology.aeus();
        let cell = |_: &AeuPlace| {
            let (token, aeu) = (Arc::new(Token::new()), UnsafeCell::new(None));
            CachePadded::new(AeuCell {
                token,
                aeu,
                is_visited: AtomicBool::new(false),
            })
        };
        let cells = places.iter().map(cell).collect();
        let shared = Arc::new(RuntimeState {
            cells,
            stop: AtomicBool::new(false),
        });
        let mut runtime = Runtime {
            shared,
            threads: Vec::new(),
            router: Router::new(places.len(), sizes),
            telemetry: Telemetry::new(places.len()),
            topology: topology.clone(),
            is_throttled: share.is_some(),
        };
        let spin = spin::measure_hand_over();
        let (started, all_started) = mpsc::channel();
        for &place in places {
            let handler = make_handler(place);
            let worker = Worker {
                place,
                shared: runtime.shared.clone(),
                router: runtime.router.clone(),
                telemetry: runtime.telemetry.clone(),
                topology: topology.clone(),
                spin: Spin::new(spin),
                share,
            };
            let started = started.clone();
            let thread = thread::Builder::new()
                .name(format!("eris-aeu-{}", place.aeu.0))
                .spawn(move || worker.run(handler, started))
                .map_err(|source| StartError::Thread {
                    aeu: place.aeu,
                    source,
                })?;
            runtime.threads.push(thread);
        }
        drop(started);
        // An error drops the runtime, which stops those that did start.
        all_started.into_iter().collect::<Result<(), PinError>>()?;
        Ok(runtime)
    }

    /// The inboxes.
    pub fn router(&self) -> &Arc<Router<H::Parcel>> {
        &self.router
    }

    /// The counters of all AEUs.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The topology the AEUs run on.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// A new client.
    pub fn session(&self) -> Result<Session<H::Parcel>, RouteError> {
        Ok(Session::new(self.router.session()?))
    }

    /// Takes the run token of a parked AEU, lets `run` use it on this thread, and gives it back; `None` if the AEU is
    /// not parked. Costs no hand-over between threads. Commands that had arrived have been executed before `run` is
    /// called.
    ///
    /// The handler then runs on the client's thread: near enough to the AEU's node in a command on few rows, not for a
    /// long scan.
    pub fn try_run_in_place<R>(&self, aeu: AeuId, run: impl FnOnce(&mut Aeu<H>) -> R) -> Option<R> {
        let cell = &self.shared.cells[aeu.index()];
        if self.is_throttled || !cell.token.take() {
            return None;
        }
        let mut visit = Visit { cell, until: None };
        cell.is_visited.store(true, Ordering::Relaxed);
        // SAFETY: this thread owns the token until `visit` is dropped, after the last use of the AEU here.
        let aeu = unsafe { &mut *cell.aeu.get() }.as_mut()?;
        visit.until = aeu.first_rested();
        aeu.step();
        let result = run(aeu);
        drop(visit);
        Some(result)
    }

    /// Whether the AEU sleeps, so that it can be taken; by the time this returns it may be awake.
    pub fn is_parked(&self, aeu: AeuId) -> bool {
        !self.is_throttled && self.shared.cells[aeu.index()].token.is_parked()
    }

    /// Whether another client is at work in this AEU, so that it may soon be free to be taken; by the time this returns
    /// it may be.
    pub fn is_run_in_place(&self, aeu: AeuId) -> bool {
        self.shared.cells[aeu.index()].token.is_held()
    }

    /// Ends the AEUs in order: their threads are joined, then every command that has arrived is executed and every task
    /// that is not suspended is run to its end, here, until nothing is left to do. Sessions that still exist find their
    /// AEUs gone afterwards.
    ///
    /// A task that never ends keeps this from returning: cancel before.
    pub fn shutdown(mut self) {
        self.join();
        // SAFETY: all threads are joined, and a client in place would borrow the runtime.
        let own = |cell: &CachePadded<AeuCell<H>>| unsafe { (*cell.aeu.get()).take() };
        let mut aeus: Vec<Aeu<H>> = self.shared.cells.iter().filter_map(own).collect();
        while sweep(&mut aeus) {}
    }

    fn join(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.cells.iter().for_each(|cell| cell.token.ring());
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl<H: Handler> Drop for Runtime<H> {
    fn drop(&mut self) {
        self.join();
    }
}

/// A client's possession of a token, given back even if the client panics.
struct Visit<'a, H: Handler> {
    cell: &'a AeuCell<H>,
    /// Until when the AEU's thread has meant to sleep.
    until: Option<Instant>,
}

impl<H: Handler> Drop for Visit<'_, H> {
    fn drop(&mut self) {
        let token = &self.cell.token;
        // SAFETY: this thread owns the token, and the AEU is borrowed by nobody else.
        let aeu = unsafe { &mut *self.cell.aeu.get() };
        if aeu.as_ref().is_some_and(Aeu::has_tasks) {
            // More than the client was willing to do.
            return token.hand_over();
        }
        token.doze_held();
        let restless = aeu.as_mut().is_some_and(|aeu| {
            let step = aeu.step();
            let until = aeu.first_rested();
            let is_time = until.is_some_and(|until| until <= Instant::now());
            // The thread also has to know of a new time.
            aeu.is_restless(step) || until != self.until || is_time
        });
        if restless || !token.fall_asleep() {
            token.hand_over();
        }
    }
}

/// The thread of an AEU.
struct Worker<H: Handler> {
    place: AeuPlace,
    shared: Arc<RuntimeState<H>>,
    router: Arc<Router<H::Parcel>>,
    telemetry: Telemetry,
    topology: Arc<Topology>,
    spin: Spin,
    share: Option<f64>,
}

impl<H: Handler> Worker<H> {
    fn run(mut self, handler: H, started: mpsc::Sender<Result<(), PinError>>) {
        let cell = &self.shared.cells[self.place.aeu.index()];
        cell.token.adopt();
        let pinned = self.place.cpu.map_or(Ok(()), pin_current_thread);
        if pinned.is_ok() {
            // Here and not before: what the port touches first lies on this thread's node.
            let port = self.router.aeu_port(self.place.aeu);
            port.set_bell(cell.token.clone());
            let (topology, telemetry) = (self.topology.clone(), self.telemetry.clone());
            let aeu = Aeu::new(self.place, topology, telemetry, port, handler);
            // SAFETY: a new token belongs to this thread.
            unsafe { *cell.aeu.get() = Some(aeu) };
        }
        // Nobody listens any more only if the start has failed elsewhere; then `stop` is on its way.
        let failed = pinned.is_err();
        let _ = started.send(pinned);
        drop(started);
        if !failed {
            Self::work(
                &mut self.spin,
                self.share.map(Throttle::new),
                self.place.aeu,
                &self.shared,
                &self.telemetry,
            );
        }
    }

    fn work(
        spin: &mut Spin,
        mut throttle: Option<Throttle>,
        id: AeuId,
        shared: &RuntimeState<H>,
        telemetry: &Telemetry,
    ) {
        let (cell, counters) = (&shared.cells[id.index()], telemetry.of(id));
        let stopping = || shared.stop.load(Ordering::Relaxed);
        // Whether another step is due, and until when nothing is otherwise.
        let step = || {
            let start = Instant::now();
            // SAFETY: called only while this thread owns the token; the borrow ends with the call.
            let aeu = unsafe { &mut *cell.aeu.get() }
                .as_mut()
                .expect("made before, taken after the join");
            aeu.end_rests(|until| until <= start);
            let step = aeu.step();
            if step == Step::Worked {
                counters.steps_busy.increment();
                counters
                    .busy_nanoseconds
                    .add(start.elapsed().as_nanos() as u64);
            } else {
                counters.steps_idle.increment();
            }
            (aeu.is_restless(step), aeu.first_rested())
        };
        while !stopping() {
            throttle.iter_mut().for_each(Throttle::pause);
            let (is_restless, until) = step();
            if is_restless {
                spin.reset();
            } else if until.is_some() || cell.is_visited.load(Ordering::Relaxed) || !spin.wait() {
                // Clients who can do its work in its place are better off if it sleeps: awake, it would have to be sent
                // what they want, and wake them. So are they while it rests.
                cell.is_visited.store(false, Ordering::Relaxed);
                cell.token.doze();
                let (is_restless, until) = step();
                if is_restless || stopping() {
                    cell.token.wake();
                } else if cell.token.park(until) {
                    counters.parks.increment();
                    counters.wakes.increment();
                }
                spin.reset();
            }
        }
    }
}
