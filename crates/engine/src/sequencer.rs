//! Commit order: timestamps are drawn here and become visible in order.
//!
//! ```text
//!            visible            next
//!               │                │
//!  …  t5  t6   t7   t8   t9   t10 ▼        t7 is the newest snapshot; t9 has finished but waits for t8
//!  ──────────────┤  open done open
//! ```
//!
//! A writer draws a timestamp once all its rows are written, has them stamped by their owners, and then finishes it.
//! Readers take [`Sequencer::visible`] as their snapshot, so whoever sees a write sees every earlier one. While they
//! read they hold their snapshot. The *horizon* stays at or before the oldest that is held. Nobody can see what was
//! deleted before the horizon.
//!
//! Where commits are flushed, a commit is *applied* first, when its owners have stamped its rows, and visible once it
//! is *durable*, too: nobody is shown what a crash can take back (docs/decisions/0034). Without a log all that is
//! applied is visible.
//!
//! ```text
//!        durable = visible    applied       next
//!               │                │            │
//!  …  t5  t6   t7   t8   t9   t10   t11  t12  ▼     t8 to t10 are being flushed; whoever writes next builds on t10
//! ```
//!
//! Whoever has a write lock reads what is applied. So write locks pass on without waiting for the disk. Who flushes is
//! woken by the first commit that is applied after it has looked. If the disk fails, nothing becomes visible any more,
//! and whoever waits is told.
//!
//! No lock of the engine is on the way of a short statement. How the parts do without one is said in `eris_atomics`. So
//! are the ways in which timestamps are drawn. Nobody lives at the home of this sequence: an owner may be busy with a
//! scan, and no commit shall wait for it. So owners change the word themselves, or by node, whichever costs less here.
//! When the machine becomes known, the way is changed in use.
//!
//! Why a timestamp is drawn so late: docs/decisions/0003.

mod doorbell;

pub(crate) use doorbell::Doorbell;

use eris_atomics::{
    CommitOrder, Hold, Lock, Sequence, Snapshots, Waiting, Way, cheapest, estimate,
};
use eris_home::Newest;
use eris_machine::best_way;
use eris_numa::Topology;
use eris_types::{NodeId, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

/// How many timestamps may be open at a time.
const OPEN: u64 = 4096;
/// So many readers hold their snapshots without a lock: more than there are cores, for tasks that wait hold them, too.
const READERS: usize = 256;
/// To gather costs a look at each slot that was ever used. So many of these a commit may cost.
const LOOKS: u64 = 4;

/// So many owners of a node ask for timestamps at a time. There is no use for more.
const SENDERS: usize = 64;

/// What readers may see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Nobody can see what was deleted before.
    pub horizon: Timestamp,
    /// Where commits are not visible as soon as they are applied: the newest that is.
    pub behind: Option<Timestamp>,
}

/// Draws timestamps and publishes them in order.
#[derive(Debug)]
pub(crate) struct Sequencer {
    /// The timestamps that are drawn.
    next: Sequence,
    /// Those that have finished, and what is applied.
    order: CommitOrder,
    /// Up to where commits are durable; `u64::MAX` where nobody waits for that. Who flushes raises it, after a flush.
    durable: AtomicU64,
    /// Writers that wait until their timestamp is visible.
    waiting: Waiting,
    /// Those who wait until a timestamp is applied, where that is not the same.
    waiting_for_applied: Waiting,
    /// What readers hold, and the horizon.
    snapshots: Snapshots,
    /// Wakes who flushes.
    flusher: Doorbell,
    /// Why nothing becomes durable any more.
    failure: OnceLock<Arc<str>>,
    /// Held by who changes what commits wait for, and by who says that nothing becomes durable any more.
    switching: Lock<()>,
}

impl Sequencer {
    /// The first one of all.
    #[cfg(test)]
    pub fn new(nodes: usize, way: Way) -> Self {
        Self::begin_behind(Timestamp::ZERO, nodes, way)
    }

    /// For writers of so many nodes, which draw in this way, behind a commit up to which all are visible.
    pub fn begin_behind(last: Timestamp, nodes: usize, way: Way) -> Self {
        let sequencer = Sequencer {
            next: Sequence::new(last.0 + 1, way, nodes, SENDERS),
            order: CommitOrder::behind(last.0, OPEN),
            durable: AtomicU64::new(u64::MAX),
            waiting: Waiting::new(),
            waiting_for_applied: Waiting::new(),
            snapshots: Snapshots::new(READERS),
            flusher: Doorbell::default(),
            failure: OnceLock::new(),
            switching: Lock::default(),
        };
        sequencer.advance_horizon();
        sequencer
    }

    /// Timestamps are drawn in this way from now on.
    pub fn set_way(&self, way: Way) {
        self.next.set_way(way);
    }

    /// The newest snapshot.
    pub fn visible(&self) -> Timestamp {
        Timestamp(self.newest_visible())
    }

    /// The newest snapshot of these readers.
    pub fn newest(&self, newest: Newest) -> Timestamp {
        match newest {
            Newest::Visible => self.visible(),
            Newest::Applied => self.applied(),
        }
    }

    fn newest_visible(&self) -> u64 {
        self.order.visible().min(self.durable.load(SeqCst))
    }

    /// What owners have done: the newest snapshot of those who are about to write.
    pub fn applied(&self) -> Timestamp {
        Timestamp(self.order.visible())
    }

    /// From now on commits become visible when they are durable. All whose timestamps are drawn already count as
    /// durable: they may be visible. Where nothing becomes durable any more it changes nothing.
    pub fn wait_for_flushes(&self) {
        // As long as this one is open, nothing behind it is visible. So what is visible never goes back.
        let at = loop {
            match self.draw(NodeId::default()) {
                Some(at) => break at,
                None => thread::yield_now(),
            }
        };
        let switching = self.switching.lock();
        if self.failure.get().is_none() {
            self.durable.store(at.0, SeqCst);
        }
        drop(switching);
        self.finish(at);
    }

    /// From now on commits become visible when they are applied. Where nothing becomes durable any more it changes
    /// nothing: what a flush has not reached is shown to nobody.
    pub fn wait_for_no_flushes(&self) {
        let switching = self.switching.lock();
        if self.failure.get().is_some() {
            return;
        }
        self.durable.store(u64::MAX, SeqCst);
        drop(switching);
        self.waiting.wake(|| self.newest_visible());
        // Nobody wakes these any more: they ask again, and wait with the others.
        self.waiting_for_applied.wake(|| u64::MAX);
    }

    /// Commits up to here are durable. It changes nothing where commits become visible when they are applied.
    pub fn set_durable(&self, through: Timestamp) {
        if self.durable.fetch_max(through.0, SeqCst) < through.0 {
            self.waiting.wake(|| self.newest_visible());
        }
    }

    /// Who flushes waits for this: it rings when something is applied that is not durable.
    pub fn flusher(&self) -> &Doorbell {
        &self.flusher
    }

    /// Nothing becomes durable any more, for this reason. Whoever waits for that is told.
    pub fn fail(&self, reason: &str) {
        let switching = self.switching.lock();
        // Commits that are visible already stay so, and no others become visible.
        self.durable.fetch_min(self.newest_visible(), SeqCst);
        let _ = self.failure.set(reason.into());
        drop(switching);
        self.waiting.wake(|| u64::MAX);
        self.waiting_for_applied.wake(|| self.order.visible());
    }

    /// Why nothing becomes durable any more.
    pub fn failure(&self) -> Option<&Arc<str>> {
        self.failure.get()
    }

    /// Whether commits become visible when they are applied.
    pub fn shows_applied(&self) -> bool {
        self.durable.load(SeqCst) == u64::MAX
    }

    /// Holds the newest snapshot, until it is released.
    pub fn hold(&self) -> Hold {
        self.snapshots.hold(|| self.newest_visible())
    }

    /// Holds what is applied, likewise: for a statement that has a write lock.
    pub fn hold_applied(&self) -> Hold {
        self.snapshots.hold(|| self.order.visible())
    }

    /// Gives a snapshot up that was held. Returns the oldest one that it has kept readable. The horizon stays where it
    /// is: who waits for it to move asks afterwards whether it can.
    pub fn release(&self, hold: Hold) -> Timestamp {
        Timestamp(self.snapshots.release(hold))
    }

    /// Moves the horizon as far as it can be; returns it.
    pub fn advance_horizon(&self) -> Timestamp {
        Timestamp(self.snapshots.gather(|| self.newest_visible()))
    }

    /// Up to where nobody needs to tell commits apart.
    pub fn horizon(&self) -> Timestamp {
        let horizon = self.snapshots.horizon();
        match horizon < self.newest_visible() {
            true => self.advance_horizon(),
            false => Timestamp(horizon),
        }
    }

    /// What readers may see now.
    pub fn seen(&self) -> Seen {
        Seen {
            horizon: self.horizon(),
            behind: self.behind(),
        }
    }

    /// The same, of a few commits ago if many readers have held snapshots at a time: for who asks with every row.
    pub fn recently_seen(&self) -> Seen {
        Seen {
            horizon: self.recent_horizon(),
            behind: self.behind(),
        }
    }

    fn behind(&self) -> Option<Timestamp> {
        (!self.shows_applied()).then(|| self.visible())
    }

    /// As [`horizon`](Self::horizon), of a few commits ago if many readers have held snapshots at a time.
    pub fn recent_horizon(&self) -> Timestamp {
        let passed = self
            .newest_visible()
            .saturating_sub(self.snapshots.gathered());
        match passed * LOOKS > self.snapshots.reach() as u64 {
            true => self.advance_horizon(),
            false => Timestamp(self.snapshots.horizon()),
        }
    }

    /// Draws a timestamp, which must be finished by all means; `None` while too many are open. `node`: where it is
    /// drawn. Whoever draws at the same time may draw one too many; its order has room for that.
    pub fn draw(&self, node: NodeId) -> Option<Timestamp> {
        let open = self.next.next().saturating_sub(self.order.visible());
        (open <= OPEN).then(|| Timestamp(self.next.draw(1, node)))
    }

    /// Like [`draw`](Self::draw), and wakes the task again while too many are open.
    pub fn poll_draw(&self, cx: &mut Context<'_>) -> Poll<Timestamp> {
        match self.draw(NodeId::default()) {
            Some(at) => Poll::Ready(at),
            None => {
                // Thousands of statements are committing; each takes microseconds.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Says that the writes of `drawn` are complete (or given up) everywhere.
    pub fn finish(&self, drawn: Timestamp) {
        self.order.finish(drawn.0);
        if !self.shows_applied() {
            self.waiting_for_applied.wake(|| self.order.visible());
            self.flusher.ring();
        }
        self.waiting.wake(|| self.newest_visible());
    }

    /// Whether `timestamp` is applied; if not, as [`poll_visible`](Self::poll_visible).
    pub fn poll_applied(&self, timestamp: Timestamp, waker: &Waker) -> bool {
        if self.shows_applied() {
            return self.poll_visible(timestamp, waker);
        }
        if timestamp <= self.applied() {
            return true;
        }
        self.waiting_for_applied.add(timestamp.0, waker);
        // Meanwhile nobody may wake these any more.
        if self.shows_applied() {
            return self.poll_visible(timestamp, waker);
        }
        timestamp <= self.applied()
    }

    /// Whether `timestamp` is visible; if not, `waker` is woken once it is, and when it never will be.
    pub fn poll_visible(&self, timestamp: Timestamp, waker: &Waker) -> bool {
        if timestamp <= self.visible() {
            return true;
        }
        self.waiting.add(timestamp.0, waker);
        // It may have become visible before the waker was in the list. Nor does a failure wake who comes behind it.
        if self.failure.get().is_some() {
            self.waiting.wake(|| u64::MAX);
        }
        timestamp <= self.visible()
    }
}

/// How timestamps are drawn until the machine is known: by the processor, which is best within a node. Of a machine
/// that is given as is best by its draws, or else by its links.
pub(crate) fn first_way(topology: &Topology) -> Way {
    let Some(machine) = topology.machine() else {
        return Way::Cpu;
    };
    let contenders: Vec<NodeId> = topology.aeus().iter().map(|place| place.node).collect();
    let speeds = machine.speeds();
    if let Some(way) = speeds.and_then(|speeds| best_way(speeds, contenders.len())) {
        return way;
    }
    let costs = estimate(&contenders, |from, to| machine.link(from, to).nanoseconds);
    let costs = costs.into_iter().filter(|cost| cost.way != Way::Delegated);
    cheapest(&costs.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{DrawCost, Profile, Speeds};
    use std::sync::atomic::AtomicUsize;

    const NODE: NodeId = NodeId(0);

    fn sequencer() -> Sequencer {
        Sequencer::new(1, Way::Cpu)
    }

    #[test]
    fn timestamps_become_visible_in_order() {
        let sequencer = sequencer();
        let drawn: Vec<Timestamp> = (0..3).map(|_| sequencer.draw(NODE).unwrap()).collect();
        assert_eq!(sequencer.visible(), Timestamp::ZERO);
        sequencer.finish(drawn[1]);
        assert_eq!(sequencer.visible(), Timestamp::ZERO);
        sequencer.finish(drawn[0]);
        assert_eq!(sequencer.visible(), drawn[1]);
        sequencer.finish(drawn[2]);
        assert_eq!(sequencer.visible(), drawn[2]);
    }

    #[test]
    fn what_is_applied_becomes_visible_when_it_is_durable() {
        let sequencer = sequencer();
        let commit = || {
            let drawn = sequencer.draw(NODE).unwrap();
            sequencer.finish(drawn);
            drawn
        };
        commit();
        assert!(sequencer.shows_applied());
        sequencer.wait_for_flushes();
        let first = sequencer.visible();
        let second = commit();
        assert_eq!((sequencer.visible(), sequencer.applied()), (first, second));
        let (reader, writer) = (sequencer.hold(), sequencer.hold_applied());
        assert_eq!((reader.at(), writer.at()), (first.0, second.0));
        assert_eq!(sequencer.advance_horizon(), first);
        assert!(sequencer.poll_applied(second, Waker::noop()));
        assert!(!sequencer.poll_visible(second, Waker::noop()));
        sequencer.release(reader);
        sequencer.set_durable(second);
        assert_eq!(sequencer.visible(), second);
        assert!(sequencer.poll_visible(second, Waker::noop()));
        assert_eq!(sequencer.horizon(), second);
        sequencer.release(writer);
    }

    #[test]
    fn what_no_flush_has_reached_stays_hidden_behind_a_failure() {
        let sequencer = sequencer();
        sequencer.wait_for_flushes();
        let shown = sequencer.visible();
        sequencer.finish(sequencer.draw(NODE).unwrap());
        sequencer.fail("on purpose");
        for switch in [Sequencer::wait_for_no_flushes, Sequencer::wait_for_flushes] {
            switch(&sequencer);
            assert_eq!(sequencer.visible(), shown);
            assert!(sequencer.applied() > shown);
        }
    }

    /// Waits until a waker is woken.
    fn wait(mut is_over: impl FnMut(&Waker) -> bool) {
        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while !is_over(&waker) {
            thread::park();
        }
    }

    #[test]
    fn what_is_visible_stays_visible_when_commits_wait_for_flushes_or_no_longer() {
        let sequencer = Sequencer::new(1, Way::Cpu);
        let (sequencer, writing) = (&sequencer, AtomicUsize::new(2));
        let is_written = || writing.load(SeqCst) > 0;
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for commit in 0..5_000 {
                        let drawn = sequencer.draw(NODE).unwrap();
                        sequencer.finish(drawn);
                        // Whoever waits is woken, whichever way it began to wait.
                        wait(|waker| match commit % 2 {
                            0 => sequencer.poll_visible(drawn, waker),
                            _ => sequencer.poll_applied(drawn, waker),
                        });
                    }
                    writing.fetch_sub(1, SeqCst);
                });
            }
            scope.spawn(|| {
                while is_written() {
                    sequencer.set_durable(sequencer.applied());
                }
            });
            scope.spawn(|| {
                while is_written() {
                    sequencer.wait_for_flushes();
                    let (shown, applied) = (sequencer.visible(), sequencer.applied());
                    assert!(shown <= applied && !sequencer.shows_applied());
                    sequencer.wait_for_no_flushes();
                    assert!(sequencer.shows_applied());
                }
            });
            let mut seen = Timestamp::ZERO;
            while is_written() {
                let held = sequencer.hold();
                assert!(seen <= Timestamp(held.at()), "{seen:?}");
                seen = Timestamp(held.at());
                assert!(sequencer.horizon() <= seen);
                sequencer.release(held);
                seen = seen.max(sequencer.visible());
            }
        });
        assert_eq!(sequencer.visible(), sequencer.applied());
    }

    #[test]
    fn the_horizon_waits_for_the_oldest_reader() {
        let sequencer = sequencer();
        let commit = || sequencer.finish(sequencer.draw(NODE).unwrap());
        commit();
        let old = sequencer.hold();
        commit();
        let (new, same) = (sequencer.hold(), sequencer.hold());
        assert_eq!((old.at(), new.at(), same.at()), (1, 2, 2));
        commit();
        assert_eq!(sequencer.advance_horizon(), Timestamp(1));
        assert_eq!(sequencer.release(new), Timestamp(2));
        assert_eq!(sequencer.horizon(), Timestamp(1));
        assert_eq!(sequencer.release(old), Timestamp(1));
        assert_eq!(sequencer.horizon(), Timestamp(2));
        assert_eq!(sequencer.release(same), Timestamp(2));
        assert_eq!(sequencer.horizon(), Timestamp(3));
    }

    #[test]
    fn a_recent_horizon_is_not_far_behind() {
        let sequencer = sequencer();
        let commit = || sequencer.finish(sequencer.draw(NODE).unwrap());
        let behind = || sequencer.visible().0 - sequencer.recent_horizon().0;
        (0..100).for_each(|_| {
            commit();
            assert_eq!(behind(), 0, "nobody reads");
        });
        let readers: Vec<_> = (0..2 * READERS).map(|_| sequencer.hold()).collect();
        (0..100).for_each(|_| commit());
        assert!(behind() >= 100);
        readers.into_iter().for_each(|reader| {
            sequencer.release(reader);
        });
        sequencer.advance_horizon();
        (0..100).for_each(|_| {
            commit();
            assert!(behind() <= READERS as u64 / LOOKS);
        });
    }

    #[test]
    fn only_so_many_timestamps_are_open() {
        let sequencer = sequencer();
        let drawn: Vec<_> = (0..OPEN).map(|_| sequencer.draw(NODE).unwrap()).collect();
        assert_eq!(sequencer.draw(NODE), None);
        sequencer.finish(drawn[0]);
        assert!(sequencer.draw(NODE).is_some());
    }

    #[test]
    fn threads_that_finish_at_a_time_leave_none_behind() {
        Way::ALL.into_iter().for_each(threads_leave_none_behind);
    }

    fn threads_leave_none_behind(way: Way) {
        let sequencer = Sequencer::new(1, way);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        // A thread that is interrupted between the two holds all others back, thousands of draws later.
                        let drawn = loop {
                            match sequencer.draw(NODE) {
                                Some(drawn) => break drawn,
                                None => std::thread::yield_now(),
                            }
                        };
                        sequencer.finish(drawn);
                    }
                });
            }
        });
        assert_eq!(sequencer.visible(), Timestamp(80_000));
    }

    #[test]
    fn a_node_draws_by_the_processor() {
        assert_eq!(first_way(&Topology::fake(1, 4)), Way::Cpu);
        assert_eq!(first_way(&Topology::fake(4, 2)), Way::Cpu);
    }

    #[test]
    fn the_draws_of_a_given_machine_say_how_numbers_are_drawn() {
        let way = |cpu: f64, hierarchical: f64| {
            let draw = |way: Way, nanoseconds| DrawCost {
                way: way.name().to_owned(),
                threads: 8,
                nanoseconds,
            };
            let speeds = Speeds {
                draws: vec![draw(Way::Cpu, cpu), draw(Way::Hierarchical, hierarchical)],
                ..Speeds::usual()
            };
            let machine = Profile::known("eris-intel").unwrap().with_speeds(speeds);
            first_way(&Topology::fake(4, 2).planned_as(Arc::new(machine)).unwrap())
        };
        assert_eq!(
            [way(90.0, 20.0), way(20.0, 90.0)],
            [Way::Hierarchical, Way::Cpu]
        );
    }
}
