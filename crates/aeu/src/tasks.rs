//! The tasks of one AEU: a slab with generations, and a queue.

use eris_route::Rank;
use std::collections::VecDeque;

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
///    ▲                  │ Suspend
///    └──── resume ──── suspended
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    Running { resumed: bool, cancelled: bool },
    Suspended,
}

struct Slot<T> {
    generation: u32,
    rank: Rank,
    state: State,
    /// `None` while the task runs, and in a vacant slot.
    task: Option<T>,
    vacant: bool,
}

pub(crate) struct Tasks<T> {
    slots: Vec<Slot<T>>,
    vacant: Vec<u32>,
    queue: VecDeque<TaskId>,
    len: usize,
}

impl<T> Tasks<T> {
    pub(crate) fn new() -> Self {
        Tasks {
            slots: Vec::new(),
            vacant: Vec::new(),
            queue: VecDeque::new(),
            len: 0,
        }
    }

    /// Tasks of any state.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, rank: Rank, task: T) -> TaskId {
        let state = State::Queued;
        let slot = match self.vacant.pop() {
            Some(slot) => {
                let place = &mut self.slots[slot as usize];
                (place.rank, place.state, place.task, place.vacant) =
                    (rank, state, Some(task), false);
                slot
            }
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    rank,
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
        self.queue.push_back(id);
        id
    }

    fn slot(&mut self, id: TaskId) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        (slot.generation == id.generation && !slot.vacant).then_some(slot)
    }

    /// A task that is not running.
    pub(crate) fn get(&mut self, id: TaskId) -> Option<&mut T> {
        self.slot(id)?.task.as_mut()
    }

    /// Queues a suspended task. True if the task exists.
    pub(crate) fn resume(&mut self, id: TaskId) -> bool {
        let Some(slot) = self.slot(id) else {
            return false;
        };
        match &mut slot.state {
            State::Queued => {}
            State::Running { resumed, .. } => *resumed = true,
            State::Suspended => {
                slot.state = State::Queued;
                self.queue.push_back(id);
            }
        }
        true
    }

    /// Removes a task and returns it. A task that is running ends after its slice instead.
    pub(crate) fn cancel(&mut self, id: TaskId) -> Option<T> {
        let slot = self.slot(id)?;
        match &mut slot.state {
            State::Running { cancelled, .. } => {
                *cancelled = true;
                None
            }
            State::Queued => {
                // Its id in the queue would otherwise look like work to do.
                self.queue.retain(|&queued| queued != id);
                self.remove(id)
            }
            State::Suspended => self.remove(id),
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
        let slot = self.slot(id)?;
        slot.state = State::Running {
            resumed: false,
            cancelled: false,
        };
        let rank = slot.rank;
        slot.task.take().map(|task| (id, rank, task))
    }

    /// Puts a task back after its slice: to the queue if `again`, else suspended. Returns it if it was cancelled meanwhile.
    pub(crate) fn put_back(&mut self, id: TaskId, task: T, again: bool) -> Option<T> {
        let slot = self.slot(id)?;
        let State::Running { resumed, cancelled } = slot.state else {
            return Some(task);
        };
        if cancelled {
            self.remove(id);
            return Some(task);
        }
        slot.task = Some(task);
        if again || resumed {
            slot.state = State::Queued;
            self.queue.push_back(id);
        } else {
            slot.state = State::Suspended;
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
        let first = tasks.insert(Rank::Client, "first");
        assert_eq!(tasks.cancel(first), Some("first"));
        assert!(tasks.start(Rank::Client).is_none(), "not even queued");
        let second = tasks.insert(Rank::Client, "second");
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
    fn a_resume_during_the_slice_is_not_lost() {
        let mut tasks = Tasks::new();
        let id = tasks.insert(Rank::Client, ());
        let (running, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(running, id);
        assert!(tasks.resume(id));
        assert_eq!(tasks.put_back(id, task, false), None);
        assert!(tasks.start(Rank::Client).is_some(), "queued, not suspended");
    }

    #[test]
    fn a_task_that_cancels_itself_ends_after_the_slice() {
        let mut tasks = Tasks::new();
        let id = tasks.insert(Rank::Client, 5);
        let (_, _, task) = tasks.start(Rank::Client).unwrap();
        assert_eq!(tasks.cancel(id), None);
        assert_eq!(tasks.put_back(id, task, true), Some(5));
        assert_eq!(tasks.len(), 0);
        assert!(tasks.start(Rank::Client).is_none());
    }

    #[test]
    fn tasks_take_turns_and_low_ranks_can_be_put_off() {
        let mut tasks = Tasks::new();
        let low = tasks.insert(Rank::Client, 'l');
        let high = tasks.insert(Rank::Reply, 'h');
        for _ in 0..2 {
            let (id, rank, task) = tasks.start(Rank::Scan).unwrap();
            assert_eq!((id, rank), (high, Rank::Reply));
            tasks.put_back(id, task, true);
        }
        assert_eq!(tasks.start(Rank::Client).unwrap().0, low);
        assert_eq!(tasks.start(Rank::Client).unwrap().0, high);
        assert!(tasks.start(Rank::Client).is_none());
    }
}
