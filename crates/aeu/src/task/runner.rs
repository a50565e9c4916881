//! The handler that runs tasks.
//!
//! ```text
//! group of a kind ─▶ task ─▶ Free ─────────────────────────────────────▶ run
//!                            Mapped ── home is another AEU ─▶ sent on
//!                            Read ──── nobody writes ──────────────────▶ run with what was read
//!                            Write ─── enters ─▶ run ─▶ leaves, or takes those over who wait, and runs them
//!                                   └─ held ──▶ waits there
//! ```
//!
//! *Bounded runs.* Who holds a latch runs at most [`MOST`] of those who wait. The others are left to a command to
//! itself, so that tasks of other resources come in between. The latch stays held: it is always one holder, or one such
//! command.
//!
//! *Ranks.* A task that waited runs with its own rank, whoever runs it. The command for those who are left never waits
//! for room, so that no task waits for one of a lower rank to be sent.
//!
//! *Panics.* Each fails its task alone: its sender is told, and the others go on.

use crate::aeu::catch;
use crate::task::context::{RESUME, TaskContext};
use crate::task::distance::{Distance, Prefetch};
use crate::task::home::Home;
use crate::task::latch::{Entry, TaskLatch};
use crate::task::slots::{FreeSlots, Slots};
use crate::task::statistics::{KINDS, TaskCounters, TaskStatistics};
use crate::task::work::{Access, Task, Work};
use crate::{AeuContext, Group, Handler, Panicked, Slice};
use crossbeam_utils::CachePadded;
use eris_route::{Endpoint, Header};
use eris_types::{AeuId, NodeId, ObjectId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Tasks that waited and are run in one go.
const MOST: usize = 32;
/// An AEU with as many tasks in a group gives resources to one of its node that has none, so many at a time, and then
/// for so many groups no others. As it gives those that its next tasks touch, they are mostly the ones that are touched
/// most often.
const BUSY: usize = 64;
const GIVEN: usize = 16;
const BETWEEN_GIFTS: u64 = 16;
/// Of so many tasks of a kind the time of one group is taken, whoever wants to know.
const SAMPLE: u64 = 4096;

/// What all AEUs of a runtime share.
pub(crate) struct Shared<W> {
    pub work: W,
    slots: Slots,
    counters: Box<[CachePadded<TaskCounters>]>,
}

impl<W> Shared<W> {
    pub fn new(work: W, aeus: usize) -> Self {
        Shared {
            work,
            slots: Slots::new(),
            counters: (0..aeus).map(|_| CachePadded::default()).collect(),
        }
    }

    #[cfg(test)]
    pub fn reverse(&self, last: u32) -> u32 {
        self.slots.reverse(last)
    }

    pub fn counters(&self, aeu: AeuId) -> &TaskCounters {
        &self.counters[aeu.index()]
    }
}

/// Runs tasks on an AEU.
pub struct Runner<W: Work> {
    shared: Arc<Shared<W>>,
    free: FreeSlots,
    /// By kind: what one touches may be in a cache, and what another one touches not.
    distances: [Distance; KINDS],
    /// Groups since resources were given away.
    since_gift: u64,
}

impl<W: Work> Runner<W> {
    pub(crate) fn new(shared: Arc<Shared<W>>, prefetch: Prefetch) -> Self {
        Runner {
            shared,
            free: FreeSlots::default(),
            distances: std::array::from_fn(|_| Distance::new(prefetch)),
            since_gift: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared<W>> {
        &self.shared
    }

    /// What an AEU has done.
    pub fn statistics(&self, aeu: AeuId) -> TaskStatistics {
        self.shared.counters(aeu).read()
    }

    /// Handlers of AEUs that share some work, for a [`Simulation`](crate::Simulation).
    pub fn several(work: W, aeus: usize, prefetch: Prefetch) -> Vec<Self> {
        let shared = Arc::new(Shared::new(work, aeus));
        (0..aeus)
            .map(|_| Runner::new(shared.clone(), prefetch))
            .collect()
    }

    fn run_group(&mut self, kind: u16, tasks: Group<'_>, cx: &mut AeuContext<'_, ()>) {
        let (count, counted) = (tasks.len(), usize::from(kind).min(KINDS - 1));
        let receiver = self.receiver(count, cx);
        let distance = self.distances[counted].get();
        let before = self.shared.counters(cx.id()).run[counted].get();
        let is_sample = before / SAMPLE != (before + count as u64) / SAMPLE;
        let is_trial = self.distances[counted].is_trial();
        let begun = (is_trial || is_sample).then(Instant::now);
        let (ran, given) = self.with_running(cx, |running, work| {
            running.receiver = receiver;
            let mut tasks = tasks.announced(distance, |header, words| {
                eris_kernels::prefetch(work.lines(&Task::of(header, words)));
            });
            running.run_all(|running| {
                (tasks.by_ref()).for_each(|(header, words)| running.run(&Task::of(header, words)));
            });
        });
        self.since_gift = if given > 0 { 0 } else { self.since_gift + 1 };
        let counters = self.shared.counters(cx.id());
        counters.run[counted].add(ran);
        counters.load.store(count as u64, Relaxed);
        let Some(time) = begun.map(|begun| begun.elapsed()) else {
            return self.distances[counted].pass();
        };
        let (tasks, nanoseconds) = &counters.timed[counted];
        tasks.add(count as u64);
        nanoseconds.add(time.as_nanos() as u64);
        if is_trial {
            self.distances[counted].took(count, time);
        }
        counters.distances[counted].store(self.distances[counted].chosen() as u64, Relaxed);
    }

    /// Lends what tasks need. How many ran of those that came, and how many resources were given away.
    fn with_running(
        &mut self,
        cx: &mut AeuContext<'_, ()>,
        run: impl FnOnce(&mut Running<'_, '_, '_, W>, &W),
    ) -> (u64, usize) {
        let counters = self.shared.counters(cx.id());
        let work = &self.shared.work;
        let mut running = Running {
            work,
            slots: &self.shared.slots,
            free: &mut self.free,
            counters,
            header: None,
            held: None,
            left: MOST,
            ran: 0,
            cx: TaskContext::new(cx),
            receiver: None,
            given: 0,
        };
        run(&mut running, work);
        counters.spawned.add(running.cx.spawned);
        (running.ran, running.given)
    }

    /// An AEU of the same node that has nothing to do, if this one has much: resources move there.
    fn receiver(&self, tasks: usize, cx: &AeuContext<'_, ()>) -> Option<AeuId> {
        if tasks < BUSY || self.since_gift < BETWEEN_GIFTS {
            return None;
        }
        let (here, node) = (cx.id(), cx.node());
        let is_idle = |aeu: &AeuId| {
            let is_near = |node: NodeId| cx.topology().node_of(*aeu) == node;
            *aeu != here && is_near(node) && self.shared.counters(*aeu).is_idle()
        };
        let mut aeus = cx.topology().aeus().iter().map(|place| place.aeu);
        // Others look for one, too.
        (aeus.find(is_idle)).filter(|aeu| self.shared.counters(*aeu).claim())
    }
}

/// Tasks under way.
struct Running<'a, 'b, 'c, W> {
    work: &'a W,
    slots: &'a Slots,
    free: &'a mut FreeSlots,
    counters: &'a TaskCounters,
    /// The task that runs, to tell its sender if it panics.
    header: Option<Header>,
    held: Option<Hold<'a>>,
    /// How many of those who waited may still run before others.
    left: usize,
    /// Tasks of the group that were run.
    ran: u64,
    cx: TaskContext<'b, 'c>,
    /// Who gets resources that are touched at their home here, and how many it has got.
    receiver: Option<AeuId>,
    given: usize,
}

/// A latch that is held.
#[derive(Clone, Copy)]
struct Hold<'a> {
    latch: &'a TaskLatch,
    /// The slot + 1 of the first one that is still to run there.
    first: u32,
    /// Whether somebody may have written.
    is_changed: bool,
}

impl<'a, W: Work> Running<'a, '_, '_, W> {
    /// Calls `run` again, as long as one of its tasks panics.
    fn run_all(&mut self, mut run: impl FnMut(&mut Self)) {
        let rank = self.cx.cx.rank;
        while let Err(message) = catch(|| {
            // Who waits where a task has panicked.
            self.leave();
            run(self);
        }) {
            self.counters.panics.increment();
            // It was a task, and not what was said of one that is still to come.
            if let Some(header) = self.header.take() {
                self.cx.cx.rank = header.rank;
                self.cx.tell_failure(&header, &message);
            }
            self.cx.cx.rank = rank;
        }
    }

    #[inline]
    fn run(&mut self, task: &Task<'_>) {
        self.header = Some(task.header());
        let work = self.work;
        match work.access(task) {
            Access::Free => self.run_now(task, None),
            Access::Mapped(home) => self.run_at_home(home, task),
            Access::Read(latch) => match latch.read(|| work.read(task)) {
                seen @ Some(_) => self.run_now(task, seen),
                None => self.enter(latch, task, true),
            },
            Access::Write(latch) => self.enter(latch, task, false),
        }
        self.header = None;
    }

    #[inline]
    fn run_now(&mut self, task: &Task<'_>, seen: Option<W::Seen>) {
        self.work.run(task, seen, &mut self.cx);
        self.ran += 1;
    }

    fn run_at_home(&mut self, home: &Home, task: &Task<'_>) {
        let (here, at) = (self.cx.id(), home.get());
        if at != here {
            self.counters.sent_on.increment();
            let resource = task.resource.at(at);
            return self.cx.send(Endpoint::aeu(at), Task { resource, ..*task });
        }
        self.cx.moves_to = None;
        self.run_now(task, None);
        // Not before it is done with its resource.
        if let Some(to) = self.cx.moves_to.take() {
            home.set(to);
        } else if let Some(receiver) = self.receiver
            && self.given < GIVEN
        {
            home.set(receiver);
            self.given += 1;
            self.counters.moved.increment();
        }
    }

    /// Runs a task as the only one at its resource: now, or whoever holds the latch will.
    #[inline]
    fn enter(&mut self, latch: &'a TaskLatch, task: &Task<'_>, is_reader: bool) {
        if !latch.try_enter() && self.wait(latch, task) {
            return;
        }
        self.held = Some(Hold {
            latch,
            first: 0,
            is_changed: !is_reader,
        });
        self.left = MOST;
        let seen = is_reader.then(|| self.work.read(task));
        self.run_now(task, seen);
        self.leave();
    }

    /// Whether a task waits now; otherwise it has entered.
    #[cold]
    fn wait(&mut self, latch: &TaskLatch, task: &Task<'_>) -> bool {
        let Some(slot) = self.free.take(self.slots) else {
            // As many wait as there may be: it comes again.
            let here = self.cx.cx.endpoint();
            self.cx.send(here, *task);
            return true;
        };
        self.slots.write(slot, task);
        let entry = latch.enter_or_wait(slot, |before| self.slots.link(slot, before));
        match entry {
            Entry::Waits => self.counters.waited.increment(),
            Entry::Entered => self.free.give(slot, self.slots),
        }
        entry == Entry::Waits
    }

    /// Leaves the latch that is held, and before that runs those who wait there.
    #[inline]
    fn leave(&mut self) {
        while let Some(hold) = self.held {
            if hold.first > 0 {
                if self.left == 0 {
                    self.held = None;
                    return self.cx.resume_later(hold.first);
                }
                self.left -= 1;
                self.run_first(hold);
            } else if let Some(last) = hold.latch.leave(hold.is_changed) {
                let first = self.slots.reverse(last);
                self.held = Some(Hold { first, ..hold });
            } else {
                self.held = None;
            }
        }
    }

    /// Runs the first one that waits at a latch.
    #[cold]
    fn run_first(&mut self, hold: Hold<'a>) {
        let (waited, next) = self.slots.read(hold.first - 1);
        self.free.give(hold.first - 1, self.slots);
        let task = waited.task();
        // Known before anything may panic.
        self.header = Some(task.header());
        self.held = Some(Hold {
            first: next,
            is_changed: true,
            ..hold
        });
        let rank = std::mem::replace(&mut self.cx.cx.rank, task.rank);
        let is_reader = matches!(self.work.access(&task), Access::Read(_));
        self.held = Some(Hold {
            first: next,
            is_changed: hold.is_changed || !is_reader,
            ..hold
        });
        let seen = is_reader.then(|| self.work.read(&task));
        self.work.run(&task, seen, &mut self.cx);
        self.cx.cx.rank = rank;
        self.header = None;
        self.counters.run[usize::from(task.kind).min(KINDS - 1)].increment();
    }

    /// Goes on with those who wait at a latch that stayed held for them.
    fn resume(&mut self, first: u32) {
        self.left = MOST;
        let mut first = Some(first);
        self.run_all(|running| {
            let Some(first) = first.take() else {
                return;
            };
            let (waited, _) = running.slots.read(first - 1);
            match running.work.access(&waited.task()) {
                Access::Read(latch) | Access::Write(latch) => {
                    running.held = Some(Hold {
                        latch,
                        first,
                        is_changed: true,
                    });
                }
                Access::Free | Access::Mapped(_) => unreachable!("a task's access stays the same"),
            }
            running.leave();
        });
    }
}

impl<W: Work> Handler for Runner<W> {
    type Task = ();
    type Parcel = ();

    fn execute(
        &mut self,
        _: ObjectId,
        kind: u16,
        commands: Group<'_>,
        cx: &mut AeuContext<'_, ()>,
    ) {
        if kind == RESUME {
            self.with_running(cx, |running, _| {
                commands.for_each(|command| running.resume(command.words[0] as u32));
            });
        } else {
            self.run_group(kind, commands, cx);
        }
    }

    fn run(&mut self, _: &mut (), _: &mut AeuContext<'_, ()>) -> Slice {
        Slice::Done
    }

    fn idle(&mut self, cx: &mut AeuContext<'_, ()>) -> bool {
        self.shared.counters(cx.id()).load.store(0, Relaxed);
        false
    }

    /// Tasks' own panics do not come here.
    fn panicked(&mut self, what: Panicked<'_, ()>, message: &str, cx: &mut AeuContext<'_, ()>) {
        if let Panicked::Group { headers, kind, .. } = what
            && kind != RESUME
        {
            let mut cx = TaskContext::new(cx);
            headers.for_each(|header| cx.tell_failure(header, message));
        }
    }
}
