//! What a handler may do: the evidence that it runs on its AEU.

use crate::TaskId;
use crate::handler::Sliced;
use crate::tasks::{OWN_TURN, Tasks};
use eris_numa::{AeuPlace, Topology};
use eris_route::{Endpoint, Header, Outgoing, Rank};
use eris_telemetry::{AeuCounters, RANKS};
use eris_types::{AeuId, NodeId};
use std::marker::PhantomData;

const _: () = assert!(Rank::ALL.len() == RANKS);

/// Lent to the handler while it executes. It cannot leave the thread that steps the AEU:
///
/// ```compile_fail
/// fn send_away<T: Send>(_: T) {}
/// fn handler(cx: &mut eris_aeu::AeuContext<'_, ()>) {
///     send_away(cx);
/// }
/// ```
pub struct AeuContext<'a, T, P = ()> {
    pub(crate) place: &'a AeuPlace,
    pub(crate) topology: &'a Topology,
    pub(crate) counters: &'a AeuCounters,
    pub(crate) outgoing: &'a mut Outgoing<P>,
    pub(crate) tasks: &'a mut Tasks<T>,
    pub(crate) rank: Rank,
    pub(crate) current: Option<TaskId>,
    pub(crate) not_send: PhantomData<*const ()>,
}

impl<T, P> AeuContext<'_, T, P> {
    /// Which AEU this is.
    pub fn id(&self) -> AeuId {
        self.place.aeu
    }

    /// The node whose memory is local.
    pub fn node(&self) -> NodeId {
        self.place.node
    }

    /// Nodes and AEUs of the machine.
    pub fn topology(&self) -> &Topology {
        self.topology
    }

    /// This AEU as the sender of commands.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::aeu(self.place.aeu)
    }

    /// The counters of this AEU.
    pub fn counters(&self) -> &AeuCounters {
        self.counters
    }

    /// The rank of the command or task that is being executed; in the idle hook [`Rank::Client`].
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Sends a command; see [`Outgoing::send`]. Its rank must not be below that of the work in hand (asserted in debug
    /// builds): otherwise back-pressure could go in circles. See the page of `eris_route`.
    #[inline(always)]
    pub fn send(
        &mut self,
        target: Endpoint,
        header: Header,
        words: &[u64],
        parcel: Option<Box<P>>,
    ) {
        self.check_rank(header.rank);
        self.counters.sent[header.rank as usize].increment();
        self.outgoing.send(target, header, words, parcel);
    }

    /// The same of a command without a parcel, whose first word lies elsewhere than the others.
    #[inline(always)]
    pub(crate) fn send_with_first(
        &mut self,
        target: Endpoint,
        header: Header,
        first: u64,
        rest: &[u64],
    ) {
        self.check_rank(header.rank);
        self.counters.sent[header.rank as usize].increment();
        self.outgoing.send_with_first(target, header, first, rest);
    }

    /// Sends one command to several AEUs; see [`Outgoing::multicast`]. The rule for ranks is that of
    /// [`AeuContext::send`].
    pub fn multicast(
        &mut self,
        targets: impl IntoIterator<Item = AeuId>,
        header: Header,
        words: &[u64],
        parcel: Option<impl Fn() -> P>,
    ) {
        self.check_rank(header.rank);
        let mut count = 0;
        let counted = targets.into_iter().inspect(|_| count += 1);
        self.outgoing.multicast(counted, header, words, parcel);
        self.counters.sent[header.rank as usize].add(count);
    }

    #[inline]
    fn check_rank(&self, rank: Rank) {
        debug_assert!(
            rank >= self.rank,
            "{} sends a {rank:?} command on behalf of {:?} work: ranks may only ascend",
            self.place.aeu,
            self.rank,
        );
    }

    /// Words that wait here for room at a target. A session's credits keep it small.
    pub fn pending(&self, target: Endpoint) -> usize {
        self.outgoing.pending(target)
    }

    /// Queues a suspended task again. False if there is no such task. Harmless if it is queued or rests; if it is
    /// running, a `Suspend` at the end of its slice has no effect.
    pub fn resume(&mut self, id: TaskId) -> bool {
        self.tasks.resume(id)
    }

    /// The same, and queues a task that rests.
    pub fn rouse(&mut self, id: TaskId) -> bool {
        self.tasks.rouse(id)
    }

    /// A task's state; `None` if there is no such task or it is the one running.
    pub fn task(&mut self, id: TaskId) -> Option<&mut T> {
        self.tasks.get(id)
    }

    /// Takes a queued task out to work for it in this slice; `None` if it is not queued. It stays queued, and must be
    /// [put back](AeuContext::put_back) before the slice ends.
    pub fn take_out(&mut self, id: TaskId) -> Option<T> {
        self.tasks.take_out(id)
    }

    /// Puts a task back that was taken out.
    ///
    /// # Panics
    /// If that was not so.
    pub fn put_back(&mut self, id: TaskId, task: T) {
        self.tasks.put_in(id, task);
    }

    /// The task whose slice this is.
    pub fn current_task(&self) -> Option<TaskId> {
        self.current
    }
}

impl<T: Sliced, P> AeuContext<'_, T, P> {
    /// Queues a new task. It inherits the rank of the work in hand.
    pub fn spawn(&mut self, task: T) -> TaskId {
        self.spawn_at(self.rank, task)
    }

    /// Queues a new task with a rank of its own. A task that makes many commands of a rank must itself be ranked below
    /// it: it is then put off while they find no room, instead of piling them up here.
    pub fn spawn_at(&mut self, rank: Rank, task: T) -> TaskId {
        self.spawn_in_turn(rank, OWN_TURN, task)
    }

    /// The same of a task that shares its turn with those of the same number: with all others they take turns as one
    /// task. 0: it has a turn of its own.
    pub fn spawn_in_turn(&mut self, rank: Rank, turn: u64, task: T) -> TaskId {
        self.counters.work.of(task.work()).spawned.increment();
        self.tasks.insert(rank, turn, task)
    }

    /// Ends a task and returns it. The task that is running right now ends after its slice, and `None` is returned.
    pub fn cancel(&mut self, id: TaskId) -> Option<T> {
        let task = self.tasks.cancel(id)?;
        self.counters.work.of(task.work()).ended.increment();
        Some(task)
    }
}
