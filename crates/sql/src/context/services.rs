//! What runs beside the statements, one of each per database. Settings, system tables, CALL and KILL name it.

use super::StatementContext;
use crate::maintenance::balance::Balance;
use crate::running::queries::Queries;
use datafusion::execution::context::SessionState;
use eris_exact::Spill;
use eris_home::{Budget, ReadBandwidth};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OnceCell;

/// Batches that wait for their readers may have this part of the memory limit.
const WAITING_PART: u64 = 8;

/// The services of a database.
pub(crate) struct Services {
    pub balance: Balance,
    pub spill: Spill,
    /// The statements that run, and the last ones that did.
    pub queries: Arc<Queries>,
    /// The memory limit at the start.
    pub first_memory_limit: u64,
    /// What batches that wait for their readers may have, those of all statements together. It is beside the memory of
    /// tables and operators, for a reader that takes its time must not be why another statement fails.
    pub waiting: Budget,
    /// The state without tables; statements run on copies of it.
    pub state: Arc<SessionState>,
    /// What memory delivers, once that has been measured.
    bandwidth: OnceCell<ReadBandwidth>,
    /// Sessions so far.
    sessions: AtomicU64,
}

impl Services {
    pub fn new(
        balance: Balance,
        spill: Spill,
        state: SessionState,
        first_memory_limit: u64,
    ) -> Self {
        Services {
            balance,
            spill,
            queries: Arc::default(),
            first_memory_limit,
            waiting: Budget::new(first_memory_limit / WAITING_PART),
            state: Arc::new(state),
            bandwidth: OnceCell::new(),
            sessions: AtomicU64::new(0),
        }
    }

    /// The number of a new session, from 1 on.
    pub fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Services {
    /// What each worker can read, if that has been measured.
    pub fn bandwidth(&self) -> Option<&ReadBandwidth> {
        self.bandwidth.get()
    }
}

impl StatementContext {
    /// What each worker can read, measured when somebody asks for it first, in a tenth of a second or so. `None`: it
    /// cannot be measured now, for want of memory.
    pub async fn read_bandwidth(&self) -> Option<&ReadBandwidth> {
        let measured = self.services.bandwidth.get_or_try_init(async || {
            let home = Arc::clone(&self.home);
            let measured = tokio::task::spawn_blocking(move || home.measure_bandwidth()).await;
            measured.ok().flatten().ok_or(())
        });
        measured.await.ok()
    }
}
