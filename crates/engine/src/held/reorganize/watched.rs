//! An index whose lookups are sampled, and which reorganises itself when that is worth it.

use super::policy::{PER_UNIT, Policy};
use super::work::{ReorganizationPhase, ReorganizationWork};
use super::{ReorganizationCause, ReorganizationEffect, ReorganizationState};
use eris_index::{Art, BatchError, IndexError, Key, Samples};
use eris_numa::NodeMemory;
use eris_types::ObjectId;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A tree and what is known of how it is used. Its own methods note the keys; all others are the tree's.
pub(crate) struct Watched<K: Key + ?Sized> {
    tree: Art<K>,
    /// Readers note keys, too.
    samples: RefCell<Samples<K>>,
    /// Keys asked for since the last slice of work.
    asked: Cell<u64>,
    /// Whether anything was asked for since the last slice of a task.
    is_used: Cell<bool>,
    policy: Policy,
    /// How many samples are to be taken before the policy looks at them.
    due: u64,
    work: Option<Box<ReorganizationWork<K>>>,
    /// Of the newest reorganisation that ended.
    last: Option<ReorganizationEffect>,
    ended: u64,
}

/// A tree that nobody has looked into yet.
impl<K: Key + ?Sized> From<Art<K>> for Watched<K> {
    fn from(tree: Art<K>) -> Self {
        Self::around(tree, Policy::default())
    }
}

impl<K: Key + ?Sized> Watched<K> {
    /// An empty tree, as [`Art::new`] makes it.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Self {
        Self::with_policy(memory, object, Policy::default())
    }

    pub(super) fn with_policy(memory: NodeMemory, object: ObjectId, policy: Policy) -> Self {
        Self::around(Art::new(memory, object), policy)
    }

    fn around(tree: Art<K>, policy: Policy) -> Self {
        Watched {
            tree,
            samples: RefCell::new(Samples::new(policy.ring, policy.every)),
            asked: Cell::new(0),
            is_used: Cell::new(false),
            due: policy.ring as u64,
            policy,
            work: None,
            last: None,
            ended: 0,
        }
    }

    /// [`Art::get`].
    pub fn get(&self, key: K::View<'_>) -> Option<u64> {
        self.note(1, |_| key);
        self.tree.get(key)
    }

    /// [`Art::get_many`].
    pub fn get_many(&self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        self.note(keys.len(), |at| keys[at]);
        self.tree.get_many(keys, values);
    }

    /// [`Art::upsert`].
    pub fn upsert(&mut self, key: K::View<'_>, value: u64) -> Result<Option<u64>, IndexError> {
        self.note(1, |_| key);
        self.tree.upsert(key, value)
    }

    /// [`Art::upsert_many`].
    pub fn upsert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        before: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        self.note(entries.len(), |at| entries[at].0);
        self.tree.upsert_many(entries, before)
    }

    #[inline]
    fn note<'a>(&self, count: usize, key: impl Fn(usize) -> K::View<'a>) {
        self.samples.borrow_mut().note_each(count, key);
        self.asked.set(self.asked.get() + count as u64);
        self.is_used.set(true);
    }

    /// What was asked for meanwhile pays for some work: called between commands. `extra` is what a command has cost
    /// beside its lookup, in lookups.
    #[inline]
    pub fn work_for_lookups(&mut self, extra: u64) {
        let asked = self.asked.get() + extra;
        if let Some(work) = &self.work {
            let units = asked / PER_UNIT[work.phase() as usize];
            if units > 0 {
                self.asked.set(0);
                self.work(units as usize);
            } else {
                self.asked.set(asked);
            }
            return;
        }
        self.asked.set(0);
        if self.samples.get_mut().taken() >= self.due {
            match self.tree.footprint().used >= self.policy.least_bytes {
                true => self.begin(ReorganizationCause::Policy),
                false => self.due = self.samples.get_mut().taken() + self.policy.ring as u64,
            }
        }
    }

    /// Begins a reorganisation with the samples there are, unless one is under way.
    pub fn begin(&mut self, cause: ReorganizationCause) {
        if self.work.is_some() {
            return;
        }
        let samples = self.samples.get_mut();
        self.due = samples.taken() + self.policy.ring as u64;
        if samples.is_empty() {
            return;
        }
        // The ring, a copy by number of times, and the hottest: about as much memory three times over.
        let bytes = (samples.len() * 3 * (size_of::<K::Owned>() + 32)) as u64;
        match self.tree.memory().budget().try_reserve(bytes) {
            Ok(reserved) => {
                self.work = Some(Box::new(ReorganizationWork::new(
                    cause,
                    samples.take(),
                    reserved,
                )));
            }
            Err(denied) => {
                self.end(ReorganizationEffect::new(cause, 0).with_failure(&denied.to_string()))
            }
        }
    }

    /// Whether a reorganisation is under way.
    pub fn is_at_work(&self) -> bool {
        self.work.is_some()
    }

    /// A slice of the work for its own sake. Says whether it may go on: not where lookups carry the work meanwhile.
    pub fn slice(&mut self) -> bool {
        if self.is_used.take() {
            return false;
        }
        self.work(self.policy.slice);
        self.is_at_work()
    }

    /// Ends what is under way: something in it panicked.
    pub fn give_up(&mut self, reason: &str) {
        if let Some(work) = self.work.take() {
            self.end(work.effect().with_failure(reason));
        }
    }

    fn work(&mut self, units: usize) {
        // Whoever panics in it does not find it again.
        let Some(mut work) = self.work.take() else {
            return;
        };
        match work.step(&mut self.tree, units, &self.policy) {
            Ok(false) => self.work = Some(work),
            Ok(true) => {
                let effect = work.effect();
                self.end(effect);
            }
            Err(error) => {
                let effect = work.effect().with_failure(&error.to_string());
                self.tree.trim();
                self.end(effect);
            }
        }
    }

    fn end(&mut self, effect: ReorganizationEffect) {
        // What has just been looked at is soon as it was.
        let rest = self.policy.rest(&effect);
        self.due = self.samples.get_mut().taken() + rest * self.policy.ring as u64;
        self.ended += 1;
        self.last = Some(effect);
    }

    /// Puts another tree in the place of this one, which is given back. What is under way ends.
    pub fn replace(&mut self, tree: Art<K>) -> Art<K> {
        self.give_up("the tree was shared with another owner");
        std::mem::replace(&mut self.tree, tree)
    }

    /// What is going on.
    pub fn state(&self) -> ReorganizationState {
        match self.work.as_ref().map(|work| work.phase()) {
            Some(ReorganizationPhase::Counting) => ReorganizationState::Counting,
            Some(ReorganizationPhase::Measuring) => ReorganizationState::Measuring,
            Some(ReorganizationPhase::Moving) => ReorganizationState::Moving,
            None if self.samples.borrow().is_empty() => ReorganizationState::Idle,
            None => ReorganizationState::Sampling,
        }
    }

    /// Keys sampled since the last analysis, and reorganisations that have ended.
    pub fn counts(&self) -> (u64, u64) {
        (self.samples.borrow().len() as u64, self.ended)
    }

    /// What the reorganisation under way has done so far, or else the newest that ended.
    pub fn effect(&self) -> Option<ReorganizationEffect> {
        let current = self.work.as_ref().map(|work| work.effect());
        current.or_else(|| self.last.clone())
    }
}

impl<K: Key + ?Sized> Deref for Watched<K> {
    type Target = Art<K>;

    fn deref(&self) -> &Art<K> {
        &self.tree
    }
}

impl<K: Key + ?Sized> DerefMut for Watched<K> {
    fn deref_mut(&mut self) -> &mut Art<K> {
        &mut self.tree
    }
}

impl<K: Key + ?Sized> fmt::Debug for Watched<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.tree, self.state())
    }
}
