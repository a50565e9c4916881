//! The loop of an AEU, as a state machine.

use crate::group::{Batch, Group};
use crate::handler::{Handler, Panicked, Slice, Sliced};
use crate::tasks::{Next, OWN_TURN, Tasks};
use crate::{AeuContext, TaskId};
use eris_numa::{AeuPlace, Topology};
use eris_route::{
    Command, FlushState, Header, Incoming, Outgoing, OwnedCommand, Piece, Port, Rank,
};
use eris_telemetry::Telemetry;
use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// At most so many slices of tasks run in a step; fewer when commands arrive meanwhile.
const SLICES: usize = 16;

/// Of so many commands of a kind the time of one group is taken, the first one's to begin with; of so many slices of a
/// kind that of one.
const TIMED_COMMANDS: u64 = 64;
const TIMED_SLICES: u64 = 8;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was executed, or can be now: step again. An AEU that sleeps instead is not woken for it.
    Worked,
    /// Nothing to do.
    Idle,
    /// Nothing to do but to wait for room at some target. The AEU is rung when there is.
    Held,
}

/// An autonomous execution unit: its handler with all it owns, its tasks, its port.
pub struct Aeu<H: Handler> {
    port: Port<H::Parcel>,
    handler: H,
    batch: Batch<'static, H::Parcel>,
    /// Commands put off because those they would cause find no room; in arrival order.
    deferred: Vec<OwnedCommand<H::Parcel>>,
    own: Own<H::Task>,
}

/// What the context of a handler borrows, apart from the port.
struct Own<T> {
    place: AeuPlace,
    topology: Arc<Topology>,
    telemetry: Telemetry,
    tasks: Tasks<T>,
}

impl<H: Handler> Aeu<H> {
    /// An AEU at its place. `telemetry` has counters for it.
    pub fn new(
        place: AeuPlace,
        topology: Arc<Topology>,
        telemetry: Telemetry,
        port: Port<H::Parcel>,
        handler: H,
    ) -> Self {
        let own = Own {
            place,
            topology,
            telemetry,
            tasks: Tasks::new(),
        };
        Aeu {
            port,
            handler,
            batch: Batch::new(),
            deferred: Vec::new(),
            own,
        }
    }

    /// One round of the loop. Never blocks.
    pub fn step(&mut self) -> Step {
        self.step_within(SLICES, usize::MAX)
    }

    /// A step of one slice at most; says whether more are to be run. For a client that holds the AEU in place, and
    /// looks at the time in between.
    pub fn work(&mut self) -> bool {
        self.step_within(1, usize::MAX);
        self.has_tasks()
    }

    /// A step that runs at most so many slices, and flushes the buffers of at most so many targets.
    pub(crate) fn step_within(&mut self, slices: usize, targets: usize) -> Step {
        let lowest = self.port.split().0.congested().unwrap_or(Rank::Client);
        let mut worked = self.execute_commands(lowest);
        if worked && self.own.tasks.has_queued(lowest) {
            // Who waits for an answer need not wait for the tasks of others, too.
            self.port.split().0.flush_some(targets);
        }
        worked |= self.run_tasks(lowest, slices);
        worked |= !worked && self.run_idle_hook();
        let flushed = self.port.split().0.flush_some(targets);
        worked = worked || self.has_become_ready(lowest);
        match (worked, flushed) {
            (true, _) => Step::Worked,
            (false, FlushState::Empty) => Step::Idle,
            (false, FlushState::Held) => Step::Held,
        }
    }

    /// Whether this step, in which work below `lowest` was put off, leaves work that the next one would do. The target
    /// whose room the flush found has rung already, perhaps before this AEU announced its sleep, and will not ring
    /// again.
    fn has_become_ready(&mut self, lowest: Rank) -> bool {
        let next = self.port.split().0.congested().unwrap_or(Rank::Client);
        // Commands were put off, and senders told to wait at the door, exactly below `lowest`. Tasks may also be left
        // over from the bound on slices, or come from the idle hook.
        next < lowest || self.own.tasks.has_queued(next)
    }

    /// Whether slices of tasks are due.
    pub(crate) fn has_tasks(&self) -> bool {
        self.own.tasks.has_queued(Rank::Client)
    }

    /// When the first of the tasks that rest is to go on.
    pub(crate) fn first_rested(&self) -> Option<Instant> {
        self.own.tasks.first_rested()
    }

    /// Queues tasks whose rest ends at a time that has come.
    pub(crate) fn end_rests(&mut self, has_come: impl Fn(Instant) -> bool) {
        self.own.tasks.end_rests(has_come);
    }

    /// Whether another step is due after this one, instead of sleep: it worked, or something arrives.
    pub(crate) fn is_restless(&self, step: Step) -> bool {
        step == Step::Worked || !self.port.is_empty()
    }

    /// Executes one command as if it had just arrived, and flushes what it caused: for a client that holds the AEU in
    /// place. Commands that the same sender has sent before and that are still on their way are overtaken.
    pub fn execute_in_place(
        &mut self,
        header: Header,
        words: &[u64],
        parcel: Option<Box<H::Parcel>>,
    ) {
        let Aeu {
            port,
            handler,
            batch,
            own,
            ..
        } = self;
        let mut grouped = std::mem::replace(batch, Batch::new()).recycle();
        grouped.push(Command {
            header,
            words,
            parcel,
        });
        own.execute(handler, port.split().0, &mut grouped);
        *batch = grouped.recycle();
        self.port.flush();
    }

    fn execute_commands(&mut self, lowest: Rank) -> bool {
        let Aeu {
            port,
            handler,
            batch,
            deferred,
            own,
        } = self;
        let (outgoing, incoming): (&mut Outgoing<H::Parcel>, &mut Incoming<H::Parcel>) =
            port.split();
        incoming.admit_from(lowest);
        let mut ready: Vec<_> = deferred
            .extract_if(.., |command| command.header.rank >= lowest)
            .collect();
        let received = incoming.receive();
        let mut grouped = std::mem::replace(batch, Batch::new()).recycle();
        for OwnedCommand {
            header,
            words,
            parcel,
        } in &mut ready
        {
            grouped.push(Command {
                header: *header,
                words,
                parcel: parcel.take(),
            });
        }
        if let Some(mut received) = received {
            while let Some(piece) = received.next_piece() {
                match piece {
                    Piece::Stretch(stretch) => {
                        if stretch.header().is_some_and(|header| header.rank >= lowest) {
                            grouped.push_stretch(stretch);
                        } else {
                            deferred.extend(stretch.map(OwnedCommand::of));
                        }
                    }
                    Piece::Command(command) if command.header.rank >= lowest => {
                        grouped.push(command);
                    }
                    Piece::Command(command) => deferred.push(command.into_owned()),
                }
            }
        }
        let worked = !grouped.is_empty();
        own.execute(handler, outgoing, &mut grouped);
        *batch = grouped.recycle();
        worked
    }

    /// Runs slices, in turn, until a command arrives or the bound is reached.
    fn run_tasks(&mut self, lowest: Rank, slices: usize) -> bool {
        let Aeu {
            port, handler, own, ..
        } = self;
        let (outgoing, incoming) = port.split();
        for ran in 0..slices {
            if !own.run_slice(handler, outgoing, lowest) {
                return ran > 0;
            }
            if !incoming.is_empty() {
                break;
            }
        }
        slices > 0
    }

    fn run_idle_hook(&mut self) -> bool {
        let Aeu {
            port, handler, own, ..
        } = self;
        let outgoing = port.split().0;
        let result = catch(|| handler.idle(&mut own.context(outgoing, Rank::Client, None)));
        result.unwrap_or_else(|message| {
            own.report(handler, outgoing, Rank::Client, Panicked::Idle, &message);
            true
        })
    }

    /// Queues a task from outside a handler: what an AEU should do before the first command comes.
    pub fn spawn(&mut self, rank: Rank, task: H::Task) -> TaskId {
        let counters = self.own.telemetry.of(self.own.place.aeu);
        counters.work.of(task.work()).spawned.increment();
        self.own.tasks.insert(rank, OWN_TURN, task)
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// The handler, to look into it or to change it between steps.
    pub fn handler_mut(&mut self) -> &mut H {
        &mut self.handler
    }

    /// Where this AEU works.
    pub fn place(&self) -> AeuPlace {
        self.own.place
    }

    /// The counters of all AEUs.
    pub fn telemetry(&self) -> &Telemetry {
        &self.own.telemetry
    }

    /// Its end of the routing layer.
    pub fn port(&self) -> &Port<H::Parcel> {
        &self.port
    }

    /// How many tasks it has, suspended ones included.
    pub fn tasks(&self) -> usize {
        self.own.tasks.len()
    }
}

/// Steps every AEU once. False if none of them did anything, and nothing is on the way between them.
pub(crate) fn sweep<H: Handler>(aeus: &mut [Aeu<H>]) -> bool {
    let worked = aeus.iter_mut().fold(false, |worked, aeu| {
        aeu.end_rests(|_| true);
        worked | (aeu.step() == Step::Worked)
    });
    worked || aeus.iter().any(|aeu| !aeu.port.is_empty())
}

impl<T: Sliced> Own<T> {
    fn context<'a, P>(
        &'a mut self,
        outgoing: &'a mut Outgoing<P>,
        rank: Rank,
        current: Option<TaskId>,
    ) -> AeuContext<'a, T, P> {
        AeuContext {
            place: &self.place,
            topology: &self.topology,
            counters: self.telemetry.of(self.place.aeu),
            outgoing,
            tasks: &mut self.tasks,
            rank,
            current,
            not_send: PhantomData,
        }
    }

    fn execute<H: Handler<Task = T>>(
        &mut self,
        handler: &mut H,
        outgoing: &mut Outgoing<H::Parcel>,
        grouped: &mut Batch<'_, H::Parcel>,
    ) {
        for group in grouped.groups() {
            let (object, kind, rank, headers) =
                (group.object(), group.kind(), group.rank(), group.headers());
            let counters = self.telemetry.of(self.place.aeu);
            let (count, work) = (group.len() as u64, H::work_of_commands(kind));
            let before = counters.work.of(work).run.get();
            let is_timed =
                before.div_ceil(TIMED_COMMANDS) != (before + count).div_ceil(TIMED_COMMANDS);
            let begun = is_timed.then(Instant::now);
            counters.groups.increment();
            counters.received[rank as usize].add(count);
            let mut execute = |group: Group<'_, H::Parcel>| {
                handler.execute(object, kind, group, &mut self.context(outgoing, rank, None));
            };
            if let Err(message) = catch(|| execute(group)) {
                let what = Panicked::Group {
                    object,
                    kind,
                    headers,
                };
                self.report(handler, outgoing, rank, what, &message);
            }
            self.count(work, count, begun);
        }
    }

    /// Some work has been done.
    #[inline]
    fn count(&self, work: usize, count: u64, begun: Option<Instant>) {
        let counters = self.telemetry.of(self.place.aeu).work.of(work);
        counters.run.add(count);
        if let Some(begun) = begun {
            counters.timed.add(count);
            counters.nanoseconds.add(begun.elapsed().as_nanos() as u64);
        }
    }

    /// Runs a slice of the next task; false if there is none.
    fn run_slice<H: Handler<Task = T>>(
        &mut self,
        handler: &mut H,
        outgoing: &mut Outgoing<H::Parcel>,
        lowest: Rank,
    ) -> bool {
        let Some((id, rank, mut task)) = self.tasks.start(lowest) else {
            return false;
        };
        let counters = self.telemetry.of(self.place.aeu);
        let work = task.work();
        let before = counters.work.of(work).run.get();
        let is_timed = before.is_multiple_of(TIMED_SLICES);
        let begun = is_timed.then(Instant::now);
        counters.slices.increment();
        let slice = catch(|| handler.run(&mut task, &mut self.context(outgoing, rank, Some(id))));
        self.count(work, 1, begun);
        if matches!(slice, Ok(Slice::Suspend)) {
            let counters = self.telemetry.of(self.place.aeu);
            counters.work.of(work).waits.increment();
        }
        let ended = match slice {
            Ok(Slice::Again) => self.tasks.put_back(id, task, Next::Queue).is_some(),
            Ok(Slice::Suspend) => self.tasks.put_back(id, task, Next::Suspend).is_some(),
            Ok(Slice::Rest(time)) => {
                let next = Next::Rest(Instant::now() + time);
                self.tasks.put_back(id, task, next).is_some()
            }
            Ok(Slice::Done) => {
                self.tasks.remove(id);
                true
            }
            Err(message) => {
                self.tasks.remove(id);
                self.report(
                    handler,
                    outgoing,
                    rank,
                    Panicked::Task { id, task },
                    &message,
                );
                true
            }
        };
        let counters = self.telemetry.of(self.place.aeu);
        counters.tasks.add(ended as u64);
        counters.work.of(work).ended.add(ended as u64);
        true
    }

    fn report<H: Handler<Task = T>>(
        &mut self,
        handler: &mut H,
        outgoing: &mut Outgoing<H::Parcel>,
        rank: Rank,
        what: Panicked<'_, T, H::Parcel>,
        message: &str,
    ) {
        self.telemetry.of(self.place.aeu).panics.increment();
        let mut context = self.context(outgoing, rank, None);
        // A handler that cannot even report has failed its statement silently, but the AEU goes on.
        if catch(|| handler.panicked(what, message, &mut context)).is_err() {
            self.telemetry.of(self.place.aeu).panics.increment();
        }
    }
}

/// Runs something of the handler's; a panic becomes its message. What the handler owns is used again afterwards: its
/// structures stay usable across a panic, which is a rule of the house for handlers.
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".into())
    })
}
