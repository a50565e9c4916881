//! What a running task may do.

use crate::AeuContext;
use crate::task::work::Task;
use eris_route::{Endpoint, Header, Rank};
use eris_types::{AeuId, NodeId, ObjectId};
use std::iter;

/// The kind of answers.
pub(crate) const ANSWER: u16 = u16::MAX;
/// The kind of the answer that a task has panicked. Its words: the length of the message, and its bytes.
pub(crate) const FAILED: u16 = u16::MAX - 1;
/// Those who wait at a latch are to be run. Its word: the slot + 1 of the first one.
pub(crate) const RESUME: u16 = u16::MAX - 2;

/// Bytes of a panic's message that are told.
const MESSAGE: usize = 512;

/// Lent to a task while it runs.
pub struct TaskContext<'a, 'b> {
    pub(crate) cx: &'a mut AeuContext<'b, (), ()>,
    pub(crate) spawned: u64,
    /// Where the resource goes, once the task is done with it.
    pub(crate) moves_to: Option<AeuId>,
}

impl<'a, 'b> TaskContext<'a, 'b> {
    pub(crate) fn new(cx: &'a mut AeuContext<'b, (), ()>) -> Self {
        TaskContext {
            cx,
            spawned: 0,
            moves_to: None,
        }
    }

    /// Which AEU this is.
    pub fn id(&self) -> AeuId {
        self.cx.id()
    }

    /// The node whose memory is local.
    pub fn node(&self) -> NodeId {
        self.cx.node()
    }

    /// Spawns a task: it runs at the home of its resource, otherwise here, in one of the next steps. Its rank is not
    /// below that of this one (asserted in debug builds). It keeps the sender and the callback that it is given: made
    /// as `Task { …, ..*task }` of the task that runs it answers for that one, made by [`Task::new`] nobody.
    ///
    /// Nobody waits for room: what a target does not take yet is kept here. So a task that spawns very many should
    /// spawn some, and itself again behind them.
    ///
    /// # Panics
    /// If the kind is one of those that are taken, or there are too many words; see [`Task`].
    // Inlined always, as all that it calls, so that the task stays in registers: see `Outgoing::send`.
    #[inline(always)]
    pub fn spawn(&mut self, task: Task<'_>) {
        self.spawned += 1;
        let here = self.cx.endpoint();
        let target = task.resource.home().map_or(here, Endpoint::aeu);
        self.send(target, task);
    }

    #[inline(always)]
    pub(crate) fn send(&mut self, target: Endpoint, task: Task<'_>) {
        task.check();
        let (header, resource) = (task.header(), task.resource.to_bits());
        self.cx
            .send_with_first(target, header, resource, task.words);
    }

    /// Answers who spawned the first of the tasks that led to this one.
    #[inline]
    pub fn answer(&mut self, task: &Task<'_>, words: &[u64]) {
        self.reply(&task.header(), ANSWER, words);
    }

    pub(crate) fn tell_failure(&mut self, asked: &Header, message: &str) {
        let message = &message.as_bytes()[..message.floor_char_boundary(MESSAGE)];
        let bytes = message.chunks(size_of::<u64>()).map(|some| {
            let mut word = [0; size_of::<u64>()];
            word[..some.len()].copy_from_slice(some);
            u64::from_le_bytes(word)
        });
        let words: Vec<u64> = iter::once(message.len() as u64).chain(bytes).collect();
        self.reply(asked, FAILED, &words);
    }

    /// Has those who wait at a latch run in a later step, from this slot + 1 on.
    #[cold]
    pub(crate) fn resume_later(&mut self, first: u32) {
        let here = self.cx.endpoint();
        let header = resume_header(here);
        self.cx.send(here, header, &[u64::from(first)], None);
    }

    fn reply(&mut self, asked: &Header, kind: u16, words: &[u64]) {
        let header = Header {
            kind,
            rank: asked.rank.max(Rank::Reply),
            ..*asked
        };
        self.cx.send(asked.sender, header, words, None);
    }

    /// Moves the resource of a task with [`Access::Mapped`](crate::task::Access::Mapped) to another AEU, as soon as the
    /// task has ended. Tasks of other kinds of access move nothing.
    ///
    /// # Panics
    /// If there is no such AEU.
    pub fn move_resource(&mut self, to: AeuId) {
        let aeus = self.cx.topology().aeus().len();
        assert!(to.index() < aeus, "{to} is none of {aeus} AEUs");
        self.moves_to = Some(to);
    }
}

fn resume_header(sender: Endpoint) -> Header {
    Header {
        object: ObjectId(0),
        sender,
        callback: 0,
        kind: RESUME,
        // It never waits for room: those who wait at the latch may have any rank.
        rank: Rank::Control,
    }
}

/// Has an AEU run those who wait at a latch that somebody else has held.
#[cfg(test)]
pub(crate) fn send_resume(port: &mut eris_route::Port<()>, to: AeuId, first: u32) {
    let header = resume_header(port.endpoint());
    let outgoing = port.outgoing();
    outgoing.send(Endpoint::aeu(to), header, &[u64::from(first)], None);
}
