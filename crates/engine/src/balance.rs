//! Load balancing that follows the workload (ERIS paper, Section 3.3).
//!
//! ```text
//!        ┌───────────────── every period ─────────────────┐
//! owners: busy time, keys sampled ─▶ loads ─▶ uneven? ─▶ target ─▶ pays? ─▶ shifts ─▶ one table for all
//!                                            threshold   One-Shot   gain against the
//!                                                        or MA-k    cost of copying
//! ```
//! What counts is the time that owners were busy with a segment, whatever they did there; of tables that are scanned,
//! bytes. A move must gain more than it costs. The gain is counted for as long as the load is expected to last. The
//! cost follows the speed of earlier moves. Keys that go straight back must gain twice as much each time.
//!
//! What loads are, and what pays: docs/decisions/0024.

mod cycle;
mod decide;
mod experience;
mod history;
mod keys;
mod lend;
mod loads;
mod rows;
mod tables;
mod target;

use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::{KeyIndex, Shift};
use decide::{Decision, decide};
use eris_home::{Algorithm, Balanced, Balancing};
use eris_types::ObjectId;
use experience::Experience;
use futures::future::select;
use history::BalancingHistory;
use loads::by_owner;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tables::Tables;
use tokio::sync::Notify;

/// The loop that balances an engine's indexes and tables, on a thread of its own. Ends when it is dropped.
pub struct Balancer {
    shared: Arc<BalancerState>,
    thread: Option<JoinHandle<()>>,
}

struct BalancerState {
    state: Mutex<Control>,
    /// Rung when the settings change, and at the end.
    changed: Condvar,
    /// Rung at the end, for whoever waits in a cycle.
    over: Notify,
    history: BalancingHistory,
    tables: Tables,
}

struct Control {
    balancing: Balancing,
    /// Of tables that are balanced in another way.
    own: HashMap<ObjectId, Balancing>,
    is_over: bool,
}

impl Balancer {
    /// Begins to balance what the engine has.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(engine: &Engine, balancing: Balancing) -> Result<Balancer, EngineError> {
        let state = Control {
            balancing,
            own: HashMap::new(),
            is_over: false,
        };
        let shared = Arc::new(BalancerState {
            state: Mutex::new(state),
            changed: Condvar::new(),
            over: Notify::new(),
            history: BalancingHistory::default(),
            tables: Tables::default(),
        });
        let (of_loop, engine) = (shared.clone(), engine.clone());
        let thread = thread::Builder::new().name("eris-balancer".to_owned());
        let thread = thread.spawn(move || of_loop.work(&engine));
        let thread = thread.map_err(|error| EngineError::Start(error.to_string()))?;
        Ok(Balancer {
            shared,
            thread: Some(thread),
        })
    }

    /// How it balances from now on.
    pub fn set(&self, balancing: Balancing) {
        self.shared.lock().balancing = balancing;
        self.shared.changed.notify_all();
    }

    /// How it balances now.
    pub fn get(&self) -> Balancing {
        self.shared.lock().balancing
    }

    /// How it balances one table now.
    pub fn get_for(&self, table: ObjectId) -> Balancing {
        self.shared.balancing_of(table)
    }

    /// How it balances one table from now on; `None`: like all others. How often it looks at loads is the same for all.
    pub fn set_for(&self, table: ObjectId, balancing: Option<Balancing>) {
        let own = &mut self.shared.lock().own;
        match balancing {
            Some(balancing) => own.insert(table, balancing),
            None => own.remove(&table),
        };
        self.shared.changed.notify_all();
    }

    /// Makes the loads of a table's owners equal at once, by One-Shot, whether or not that pays; how many rows have
    /// moved.
    ///
    /// # Errors
    /// There is no such table, or there are too many clients and statements. What becomes of each move is in the
    /// [history](Self::history).
    pub async fn balance(&self, engine: &Engine, table: ObjectId) -> Result<u64, EngineError> {
        let balancing = Balancing {
            algorithm: Some(Algorithm::OneShot),
            ..self.get()
        };
        let object = engine.object(table)?;
        let cycle = self.shared.balance_table(engine, &object, balancing, true);
        Ok(cycle.await)
    }

    /// What was moved, the oldest first.
    pub fn history(&self) -> Vec<Balanced> {
        self.shared.history.all()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        self.shared.over.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl BalancerState {
    fn lock(&self) -> MutexGuard<'_, Control> {
        self.state.lock().expect("nothing panics under this lock")
    }

    /// The settings, once a period has passed; `None` at the end.
    fn wait(&self) -> Option<Balancing> {
        let mut state = self.lock();
        let began = Instant::now();
        while !state.is_over {
            let mut all = [state.balancing]
                .into_iter()
                .chain(state.own.values().copied());
            let left = match all.any(|one| one.algorithm.is_some()) {
                true => state.balancing.period.saturating_sub(began.elapsed()),
                false => Duration::MAX,
            };
            if left.is_zero() {
                return Some(state.balancing);
            }
            let waited = match left {
                Duration::MAX => Ok(self.changed.wait(state).expect(UNPOISONED)),
                left => self
                    .changed
                    .wait_timeout(state, left)
                    .map(|(state, _)| state),
            };
            state = waited.expect(UNPOISONED);
        }
        None
    }

    fn work(&self, engine: &Engine) {
        let mut experience = HashMap::new();
        while let Some(balancing) = self.wait() {
            let indexes = engine.key_indexes();
            experience.retain(|id, _| indexes.iter().any(|index| index.id() == *id));
            for index in indexes {
                let experience = experience.entry(index.id()).or_default();
                // Whoever drops an index, or has all sessions, need not hear that it was not balanced.
                self.until_over(self.balance(&index, balancing, experience));
            }
            self.forget_others(engine);
            for table in engine.objects() {
                let balancing = self.balancing_of(table.id);
                self.until_over(self.balance_table(engine, &table, balancing, false));
            }
        }
    }

    /// Waits for a cycle, or gives it up at the end: it may wait for somebody's write lock, who waits for the end.
    fn until_over<T>(&self, cycle: impl Future<Output = T>) {
        if !self.lock().is_over {
            futures::executor::block_on(select(pin!(cycle), pin!(self.over.notified())));
        }
    }

    fn balancing_of(&self, table: ObjectId) -> Balancing {
        let state = self.lock();
        *state.own.get(&table).unwrap_or(&state.balancing)
    }

    /// Whether a table's rows are to be moved still: nobody has switched it off, or `must` be moved.
    fn goes_on(&self, table: ObjectId, must: bool) -> bool {
        !self.lock().is_over && (must || self.balancing_of(table).algorithm.is_some())
    }

    /// One cycle for one index.
    async fn balance(
        &self,
        index: &KeyIndex,
        balancing: Balancing,
        experience: &mut Experience,
    ) -> Result<(), EngineError> {
        let loads = index.measure().await?;
        let topology = index.engine().topology();
        let by_owner = by_owner(&loads, topology.aeus().len());
        self.history.note_effect(index.id(), &by_owner);
        let Some(Decision { shifts, imbalance }) = decide(&loads, topology, balancing, experience)
        else {
            return Ok(());
        };
        let shifted = index.shift(&shifts).await?;
        let node = |aeu| topology.node_of(aeu);
        experience.learn(&shifted, |one| node(one.from) == node(one.shift.to));
        let named = (index.id(), index.name());
        let range = |shift: &Shift| Some(format!("{} to {}", shift.low, shift.high));
        self.history.add(named, imbalance, shifted, range);
        // What was asked for meanwhile tells little of what comes.
        index.measure().await.map(drop)
    }
}

const UNPOISONED: &str = "nothing panics under this lock";
