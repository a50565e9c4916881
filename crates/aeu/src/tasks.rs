//! The tasks of one AEU: a slab with generations, and a queue.
//!
//! ```text
//! queue    a1 │ b1 │ m │ c1       one slice each, in turns
//!          a2   b2                tasks of the same turn wait until the one before them begins its slice
//!          a3
//! ```
//!
//! *Turns.* Tasks that name the same turn have one place in the queue, however many they are. So a statement of twenty
//! scans gets as much of a core as one of a single scan. A task that names none has a place of its own, and so has each
//! for its first slice: others may wait for what it says then. In all other slices it waits for those of its turn, also
//! if it only has to end.

use eris_route::Rank;
use std::collections::VecDeque;
use std::time::Instant;

/// Names a task of one AEU. Never valid for another task, even when the task is gone and its place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    slot: u32,
    generation: u32,
}

impl TaskId {
    /// As 64 bits: fits the callback of a command.
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// From [`TaskId::to_u64`]. Other bits name no task.
    pub const fn from_u64(bits: u64) -> Self {
        TaskId {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// ```text
///            next              Again, or resumed meanwhile
///  queued ─────────► running ─────────────────────────────► queued
///    ▲ ▲                │ Suspend, Rest
///    │ └─── resume ──── suspended
///    └──── in time ──── resting
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Queued,
    Running { resumed: bool, cancelled: bool },
    Suspended,
    Resting,
}

/// What becomes of a task after its slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Queue,
    Suspend,
    /// It is queued at this time, by [`Tasks::end_rests`].
    Rest(Instant),
}

struct TaskSlot<T> {
    generation: u32,
    rank: Rank,
    turn: u64,
    /// Whether it has not had a slice yet.
    is_new: bool,
    state: TaskState,
    /// `None` while the task runs, and in a vacant slot.
    task: Option<T>,
    vacant: bool,
}

/// The turn of a task that shares it with no other one.
pub(crate) const OWN_TURN: u64 = 0;

/// The turn that tasks share. It has one place for each rank: a task that may run now does not wait for one of a lower
/// rank, which is put off.
type Turn = (u64, Rank);

impl<T> TaskSlot<T> {
    /// The turn that it shares with others now.
    fn shared_turn(&self) -> Option<Turn> {
        (self.turn != OWN_TURN && !self.is_new).then_some((self.turn, self.rank))
    }
}

pub(crate) struct Tasks<T> {
    slots: Vec<TaskSlot<T>>,
    vacant: Vec<u32>,
    queue: VecDeque<TaskId>,
    /// Of each turn with a task in the queue, those that wait for it. As few as statements: a search is quick.
    waiting: Vec<(Turn, VecDeque<TaskId>)>,
    /// Few, if any.
    resting: Vec<(Instant, TaskId)>,
    len: usize,
}

impl<T> Tasks<T> {
    pub(crate) fn new() -> Self {
        Tasks {
            slots: Vec::new(),
            vacant: Vec::new(),
            queue: VecDeque::new(),
            waiting: Vec::new(),
            resting: Vec::new(),
            len: 0,
        }
    }

    /// Tasks of any state.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, rank: Rank, turn: u64, task: T) -> TaskId {
        let state = TaskState::Queued;
        let slot = match self.vacant.pop() {
            Some(slot) => {
                let place = &mut self.slots[slot as usize];
                (place.rank, place.turn, place.is_new) = (rank, turn, true);
                (place.state, place.task, place.vacant) = (state, Some(task), false);
                slot
            }
            None => {
                self.slots.push(TaskSlot {
                    generation: 0,
                    rank,
                    turn,
                    is_new: true,
                    state,
                    task: Some(task),
                    vacant: false,
                });
                (self.slots.len() - 1) as u32
            }
        };
        let id = TaskId {
            slot,
            generation: self.slots[slot as usize].generation,
        };
        self.len += 1;
        self.enqueue(id);
        id
    }

    /// Queues a task behind all others, or behind those of its turn.
    fn enqueue(&mut self, id: TaskId) {
        let slot = &self.slots[id.slot as usize];
        if let Some(turn) = slot.shared_turn() {
            match self.waiting_for(turn) {
                Some(at) => return self.waiting[at].1.push_back(id),
                None => self.waiting.push((turn, VecDeque::new())),
            }
        }
        self.queue.push_back(id);
    }

    /// Where those are who wait for a turn, if one of it is in the queue.
    fn waiting_for(&self, turn: Turn) -> Option<usize> {
        self.waiting.iter().position(|(of, _)| *of == turn)
    }

    /// The task has left the queue: the next one of its turn gets in, behind all others.
    fn left_queue(&mut self, id: TaskId) {
        let Some(turn) = self.slots[id.slot as usize].shared_turn() else {
            return;
        };
        let at = self.waiting_for(turn);
        let at = at.expect("it was in the queue");
        match self.waiting[at].1.pop_front() {
            Some(next) => self.queue.push_back(next),
            None => drop(self.waiting.swap_remove(at)),
        }
    }

    fn slot(&mut self, id: TaskId) -> Option<&mut TaskSlot<T>> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && !slot.vacant).then_some(slot)
    }

    /// A task that is not running.
    pub(crate) fn get(&mut self, id: TaskId) -> Option<&mut T> {
        self.slot(id)?.task.as_mut()
    }

    /// Takes a queued task out of its slot, in which it stays queued. It has to come back before the next one starts.
    pub(crate) fn take_out(&mut self, id: TaskId) -> Option<T> {
        let slot = self.slot(id)?;
        match slot.state {
            TaskState::Queued => slot.task.take(),
            TaskState::Running { .. } | TaskState::Suspended | TaskState::Resting => None,
        }
    }

    /// Puts a task back that was [taken out](Self::take_out).
    pub(crate) fn put_in(&mut self, id: TaskId, task: T) {
        let slot = self.slot(id).expect("nobody removes a task that is out");
        debug_assert!(slot.task.is_none());
        slot.task = Some(task);
    }

    /// Queues a suspended task. True if the task exists.
    pub(crate) fn resume(&mut self, id: TaskId) -> bool {
        let Some(slot) = self.slot(id) else {
            return false;
        };
        match &mut slot.state {
            TaskState::Queued | TaskState::Resting => {}
            TaskState::Running { resumed, .. } => *resumed = true,
            TaskState::Suspended => {
                slot.state = TaskState::Queued;
                self.enqueue(id);
            }
        }
        true
    }

    /// Queues a task that is suspended or rests. True if the task exists.
    pub(crate) fn rouse(&mut self, id: TaskId) -> bool {
        self.end_rests_of(|_, resting| resting == id);
        self.resume(id)
    }

    /// Removes a task and returns it. A task that is running ends after its slice instead.
    pub(crate) fn cancel(&mut self, id: TaskId) -> Option<T> {
        let slot = self.slot(id)?;
        match &mut slot.state {
            TaskState::Running { cancelled, .. } => {
                *cancelled = true;
                None
            }
            TaskState::Queued => {
                let turn = slot.shared_turn();
                // Its id in the queue would otherwise look like work to do.
                match self.queue.iter().position(|&queued| queued == id) {
                    Some(at) => {
                        self.queue.remove(at);
                        self.left_queue(id);
                    }
                    None => {
                        let at = turn.and_then(|turn| self.waiting_for(turn));
                        let at = at.expect("it waits");
                        self.waiting[at].1.retain(|&waits| waits != id);
                    }
                }
                self.remove(id)
            }
            TaskState::Resting => {
                self.resting.retain(|&(_, resting)| resting != id);
                self.remove(id)
            }
            TaskState::Suspended => self.remove(id),
        }
    }

    /// When the first of the tasks that rest goes on.
    pub(crate) fn first_rested(&self) -> Option<Instant> {
        self.resting.iter().map(|(until, _)| *until).min()
    }

    /// Queues the tasks that rest until a time that has come.
    pub(crate) fn end_rests(&mut self, has_come: impl Fn(Instant) -> bool) {
        self.end_rests_of(|until, _| has_come(until));
    }

    fn end_rests_of(&mut self, ends: impl Fn(Instant, TaskId) -> bool) {
        let ended = self.resting.extract_if(.., |(until, id)| ends(*until, *id));
        for (_, id) in ended.collect::<Vec<_>>() {
            self.slots[id.slot as usize].state = TaskState::Queued;
            self.enqueue(id);
        }
    }

    /// Whether a task of at least this rank is queued.
    pub(crate) fn has_queued(&self, lowest: Rank) -> bool {
        self.position(lowest).is_some()
    }

    /// Where in the queue the next task of at least this rank is.
    fn position(&self, lowest: Rank) -> Option<usize> {
        let runnable = |id: &TaskId| self.slots[id.slot as usize].rank >= lowest;
        self.queue.iter().position(runnable)
    }

    /// Takes the next queued task of at least this rank to run a slice of it.
    pub(crate) fn start(&mut self, lowest: Rank) -> Option<(TaskId, Rank, T)> {
        let at = self.position(lowest)?;
        let id = self.queue.remove(at)?;
        self.left_queue(id);
        let slot = self.slot(id)?;
        slot.is_new = false;
        slot.state = TaskState::Running {
            resumed: false,
            cancelled: false,
        };
        let rank = slot.rank;
        slot.task.take().map(|task| (id, rank, task))
    }

    /// Puts a task back after its slice. Returns it if it was cancelled meanwhile.
    pub(crate) fn put_back(&mut self, id: TaskId, task: T, next: Next) -> Option<T> {
        let slot = self.slot(id)?;
        let TaskState::Running { resumed, cancelled } = slot.state else {
            return Some(task);
        };
        if cancelled {
            self.remove(id);
            return Some(task);
        }
        slot.task = Some(task);
        match next {
            Next::Rest(until) => {
                slot.state = TaskState::Resting;
                self.resting.push((until, id));
            }
            Next::Suspend if !resumed => slot.state = TaskState::Suspended,
            Next::Queue | Next::Suspend => {
                slot.state = TaskState::Queued;
                self.enqueue(id);
            }
        }
        None
    }

    /// Vacates the slot of a task; the task itself, unless it is running.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<T> {
        let slot = self.slot(id)?;
        slot.vacant = true;
        slot.generation = slot.generation.wrapping_add(1);
        let task = slot.task.take();
        self.vacant.push(id.slot);
        self.len -= 1;
        task
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_id_outlives_its_task_without_naming_the_next() {
        let mut tasks = Tasks::new();
        let first = tasks.insert(Rank::Client, 0, "first");
        assert_eq!(tasks.cancel(first), Some("first"));
        assert!(tasks.start(Rank::Client).is_none(), "not even queued");
        let second = tasks.insert(Rank::Client, 0, "second");
        assert_eq!(first.slot, second.slot);
        assert_ne!(first, second);
        assert_eq!(tasks.get(first), None);
        assert!(!tasks.resume(first));
        assert_eq!(tasks.cancel(first), None);
        assert_eq!(
            tasks.get(TaskId::from_u64(second.to_u64())),
            Some(&mut "second")
        );
    }

    #[test]
    fn a_queued_task_can_be_taken_out_while_another_one_runs() {
        let mut tasks = Tasks::new();
        let (first, second) = (
            tasks.insert(Rank::Client, 0, 1),
            tasks.insert(Rank::Client, 0, 2),
        );
        let (running, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!((running, tasks.take_out(first)), (first, None));
        let out = tasks.take_out(second).unwrap();
        assert_eq!((tasks.take_out(second), tasks.get(second)), (None, None));
        assert!(tasks.resume(second), "it stays queued, once");
        tasks.put_in(second, out + 10);
        tasks.put_back(running, task, Next::Suspend);
        assert_eq!(tasks.start(Rank::Client).unwrap().2, 12);
        assert!(tasks.start(Rank::Client).is_none());
        assert_eq!(tasks.take_out(first), None, "suspended");
    }

    #[test]
    fn a_resume_during_the_slice_is_not_lost() {
        let mut tasks = Tasks::new();
        let id = tasks.insert(Rank::Client, 0, ());
        let (running, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(running, id);
        assert!(tasks.resume(id));
        assert_eq!(tasks.put_back(id, task, Next::Suspend), None);
        assert!(tasks.start(Rank::Client).is_some(), "queued, not suspended");
    }

    #[test]
    fn who_rests_is_queued_in_time() {
        let mut tasks = Tasks::new();
        let now = Instant::now();
        let later = now + std::time::Duration::from_secs(1);
        for until in [later, now] {
            let id = tasks.insert(Rank::Client, 0, until);
            let (_, _, task) = tasks.start(Rank::Client).unwrap();
            assert_eq!(tasks.put_back(id, task, Next::Rest(until)), None);
            assert!(tasks.resume(id), "which does not wake it");
        }
        assert_eq!((tasks.first_rested(), tasks.len()), (Some(now), 2));
        assert!(!tasks.has_queued(Rank::Client));
        tasks.end_rests(|until| until <= now);
        let (id, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(task, now);
        assert!(tasks.start(Rank::Client).is_none());
        assert_eq!(tasks.first_rested(), Some(later));
        tasks.put_back(id, task, Next::Rest(later));
        assert!(tasks.rouse(id));
        let (id, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(task, now, "which does");
        tasks.put_back(id, task, Next::Rest(now));
        assert_eq!(tasks.cancel(id), Some(now));
        tasks.end_rests(|_| true);
        assert_eq!(tasks.start(Rank::Client).unwrap().2, later);
        assert_eq!(tasks.first_rested(), None);
    }

    #[test]
    fn a_task_that_cancels_itself_ends_after_the_slice() {
        let mut tasks = Tasks::new();
        let id = tasks.insert(Rank::Client, 0, 5);
        let (_, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(tasks.cancel(id), None);
        assert_eq!(tasks.put_back(id, task, Next::Queue), Some(5));
        assert_eq!(tasks.len(), 0);
        assert!(tasks.start(Rank::Client).is_none());
    }

    #[test]
    fn tasks_take_turns_and_low_ranks_can_be_put_off() {
        let mut tasks = Tasks::new();
        let low = tasks.insert(Rank::Client, 0, 'l');
        let high = tasks.insert(Rank::Reply, 0, 'h');
        for _ in 0..2 {
            let (id, rank, task) = tasks.start(Rank::Scan).unwrap();
            assert_eq!((id, rank), (high, Rank::Reply));
            tasks.put_back(id, task, Next::Queue);
        }
        assert_eq!(tasks.start(Rank::Client).unwrap().0, low);
        assert_eq!(tasks.start(Rank::Client).unwrap().0, high);
        assert!(tasks.start(Rank::Client).is_none());
    }
    #[test]
    fn tasks_of_one_turn_share_a_place() {
        let mut tasks = Tasks::new();
        for task in ["a1", "a2", "a3"] {
            tasks.insert(Rank::Scan, 1, task);
        }
        tasks.insert(Rank::Scan, 2, "b1");
        tasks.insert(Rank::Scan, 0, "m");
        let mut order = Vec::new();
        for _ in 0..14 {
            let (id, _, task) = tasks.start(Rank::Scan).unwrap();
            order.push(task);
            tasks.put_back(id, task, Next::Queue);
        }
        // The first slice of each, and then in turns.
        assert_eq!(order[..5], ["a1", "a2", "a3", "b1", "m"]);
        assert_eq!(
            order[5..],
            ["a1", "b1", "m", "a2", "b1", "m", "a3", "b1", "m"]
        );
    }

    #[test]
    fn the_others_of_a_turn_go_on_when_one_ends_waits_or_is_cancelled() {
        let mut tasks = Tasks::new();
        let insert = |tasks: &mut Tasks<u8>, number| tasks.insert(Rank::Scan, 1, number);
        let all: Vec<TaskId> = (0..5).map(|number| insert(&mut tasks, number)).collect();
        for id in &all {
            // All have had a slice, and are queued again.
            let (running, _, task) = tasks.start(Rank::Scan).unwrap();
            assert_eq!(running, *id);
            tasks.put_back(running, task, Next::Queue);
        }
        // The first is in the queue, the third waits for it.
        assert_eq!(tasks.cancel(all[2]), Some(2));
        assert_eq!(tasks.cancel(all[0]), Some(0));
        let (id, _, task) = tasks.start(Rank::Scan).unwrap();
        assert_eq!(task, 1);
        tasks.put_back(id, task, Next::Suspend);
        let (id, _, task) = tasks.start(Rank::Scan).unwrap();
        assert_eq!(task, 3);
        tasks.remove(id);
        let (id, _, task) = tasks.start(Rank::Scan).unwrap();
        assert_eq!((task, tasks.has_queued(Rank::Scan)), (4, false));
        assert!(tasks.waiting.is_empty());
        tasks.put_back(id, task, Next::Queue);
        assert!(tasks.resume(all[1]));
        assert_eq!(tasks.start(Rank::Scan).unwrap().2, 4);
        assert_eq!(tasks.start(Rank::Scan).unwrap().2, 1);
        assert!(tasks.start(Rank::Scan).is_none() && tasks.waiting.is_empty());
    }

    #[test]
    fn a_higher_rank_does_not_wait_for_a_lower_one_of_its_turn() {
        let mut tasks = Tasks::new();
        tasks.insert(Rank::Scan, 1, 's');
        tasks.insert(Rank::Reply, 1, 'r');
        for _ in 0..2 {
            let (id, _, task) = tasks.start(Rank::Scan).unwrap();
            tasks.put_back(id, task, Next::Queue);
        }
        assert_eq!(tasks.start(Rank::Reply).unwrap().2, 'r');
        assert_eq!(tasks.start(Rank::Scan).unwrap().2, 's');
    }
}
