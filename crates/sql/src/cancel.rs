//! Stopping a statement: its holder goes away, another session kills it, or its time is over.
//!
//! ```text
//!             ┌── given up ── by its holder: nobody waits for an answer
//! running ────┼── stopped ─── by KILL or statement_timeout: the holder gets an error that says so
//!             └── committing: from here on it can neither be stopped nor fail, only finish
//! ```
//!
//! A task is stopped where it yields. A nested-loop join compares all pairs of two inputs and yields only with what it
//! finds, which may be never. But it evaluates its condition for every few thousand pairs: so the condition asks
//! whether anybody still wants the answer, and what time it is.

use crate::error::{SqlError, SqlErrorKind};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use eris_fragment::FragmentError;
use std::fmt;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// How far a statement's life has come. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct CancelToken(Arc<TokenState>);

#[derive(Debug)]
struct TokenState {
    /// One of the states below. Leaves RUNNING once, by compare-and-swap: who gets there first decides. Sequentially
    /// consistent, for it is read and written a few times per statement.
    state: AtomicU8,
    /// Written with STOPPED, under its lock.
    reason: Mutex<Option<SqlErrorKind>>,
    stopped: Notify,
    deadline: Option<(Instant, Duration)>,
}

const RUNNING: u8 = 0;
const GIVEN_UP: u8 = 1;
const STOPPED: u8 = 2;
const COMMITTING: u8 = 3;

tokio::task_local! {
    /// The token of the statement that the current task serves.
    pub(crate) static STATEMENT: CancelToken;
}

impl CancelToken {
    /// A statement that begins now and may take so long.
    pub fn new(timeout: Option<Duration>) -> Self {
        CancelToken(Arc::new(TokenState {
            state: AtomicU8::new(RUNNING),
            reason: Mutex::new(None),
            stopped: Notify::new(),
            deadline: timeout
                .and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout))),
        }))
    }

    /// Gives the statement up; says whether nothing of it takes effect.
    pub fn cancel(&self) -> bool {
        self.leave_running(GIVEN_UP) || self.state() != COMMITTING
    }

    /// Stops the statement for this reason; says whether it did, or came too late.
    pub fn stop(&self, reason: SqlErrorKind) -> bool {
        let mut told = self.reason();
        let stopped = self.leave_running(STOPPED);
        if stopped {
            *told = Some(reason);
        }
        drop(told);
        self.0.stopped.notify_waiters();
        stopped
    }

    /// From here on the statement cannot be stopped.
    ///
    /// # Errors
    /// It was stopped or given up before.
    pub fn begin_commit(&self) -> Result<(), SqlError> {
        self.check()?;
        match self.leave_running(COMMITTING) || self.state() == COMMITTING {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    /// What was to be committed was not, and nothing was written: it can be stopped again.
    pub fn end_commit(&self) {
        // Nobody else leaves that state.
        let state = &self.0.state;
        let _ = state.compare_exchange(COMMITTING, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
        // Who waits for the end of its time looks at the clock again.
        self.0.stopped.notify_waiters();
    }

    /// Waits until it is stopped, which may be never; why it was.
    pub async fn stopped(&self) -> SqlError {
        loop {
            let mut notified = pin!(self.0.stopped.notified());
            notified.as_mut().enable();
            if self.state() == STOPPED {
                return self.error();
            }
            match self.0.deadline.filter(|_| self.state() == RUNNING) {
                None => notified.await,
                Some((deadline, timeout)) => tokio::select! {
                    () = tokio::time::sleep_until(deadline.into()) => {
                        self.stop(SqlErrorKind::Timeout(timeout));
                    }
                    () = notified => {}
                },
            }
        }
    }

    /// What `work` yields, unless the statement is stopped before.
    pub async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, SqlError>>,
    ) -> Result<T, SqlError> {
        let result = tokio::select! {
            biased;
            result = work => result,
            error = self.stopped() => Err(error),
        };
        // An operator that was stopped may have said so in its own words.
        result.map_err(|error| match self.state() {
            STOPPED => self.error(),
            _ => error,
        })
    }

    /// The same for whoever may have no timer, as those of another runtime or of none.
    pub async fn guard_anywhere<T>(
        &self,
        runtime: &Handle,
        work: impl Future<Output = Result<T, SqlError>>,
    ) -> Result<T, SqlError> {
        let mut guarded = pin!(self.guard(work));
        match self.0.deadline {
            None => guarded.await,
            Some(_) => {
                poll_fn(|cx| {
                    let _timer = runtime.enter();
                    guarded.as_mut().poll(cx)
                })
                .await
            }
        }
    }

    fn state(&self) -> u8 {
        self.0.state.load(Ordering::SeqCst)
    }

    fn leave_running(&self, next: u8) -> bool {
        let state = &self.0.state;
        let changed = state.compare_exchange(RUNNING, next, Ordering::SeqCst, Ordering::SeqCst);
        changed.is_ok()
    }

    fn error(&self) -> SqlError {
        match &*self.reason() {
            Some(reason) => SqlError::new(reason.clone()),
            None => FragmentError::Cancelled.into(),
        }
    }

    /// Why it was stopped, if it was.
    fn reason(&self) -> MutexGuard<'_, Option<SqlErrorKind>> {
        let reason = self.0.reason.lock();
        reason.unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), SqlError> {
        if let Some((deadline, timeout)) = self.0.deadline
            && self.state() == RUNNING
            && Instant::now() >= deadline
        {
            self.stop(SqlErrorKind::Timeout(timeout));
        }
        match self.state() {
            GIVEN_UP | STOPPED => Err(self.error()),
            _ => Ok(()),
        }
    }
}

/// The token of the statement that the current task serves, or one that nobody else knows.
pub(crate) fn current() -> CancelToken {
    let known = STATEMENT.try_with(CancelToken::clone);
    known.unwrap_or_else(|_| CancelToken::new(None))
}

/// The current statement's writes are complete and will now take effect: it cannot be stopped any more.
///
/// # Errors
/// It was stopped before; nothing may take effect.
pub(crate) fn begin_commit() -> Result<(), SqlError> {
    STATEMENT
        .try_with(CancelToken::begin_commit)
        .unwrap_or(Ok(()))
}

/// The plan, whose nested-loop joins end when the current statement is given up.
pub(crate) fn heed(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Ok(token) = STATEMENT.try_with(CancelToken::clone) else {
        return Ok(plan);
    };
    plan.transform_up(|node| {
        let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        let Some(filter) = join.filter() else {
            return Ok(Transformed::no(node));
        };
        let asking = JoinFilter::new(
            Arc::new(UnlessCancelled {
                condition: Arc::clone(filter.expression()),
                token: token.clone(),
            }),
            filter.column_indices().to_vec(),
            Arc::clone(filter.schema()),
        );
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(asking));
        Ok(Transformed::yes(Arc::new(join.build()?) as _))
    })
    .data()
}

/// A condition that fails once the statement is given up.
#[derive(Debug)]
struct UnlessCancelled {
    condition: Arc<dyn PhysicalExpr>,
    token: CancelToken,
}

impl PartialEq for UnlessCancelled {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition) && Arc::ptr_eq(&self.token.0, &other.token.0)
    }
}

impl Eq for UnlessCancelled {}

impl Hash for UnlessCancelled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for UnlessCancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for UnlessCancelled {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.token.check().map_err(SqlError::into_datafusion)?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(UnlessCancelled {
            condition: children.remove(0),
            token: self.token.clone(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
