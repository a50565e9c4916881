//! Between a hash join and its inputs: keeps the build side until the hash table is finished.
//!
//! ```text
//! building ── the probe side is read for the first time ──► probing: nothing is kept any more
//!    ├─────── the hash join was denied memory ────────────► given up ─► taken: what was kept, and the rest, spill
//!    └─────── the input failed ───────────────────────────► failed:   as without all this
//! ```
//!
//! What is kept is no copy. But the hash join makes one, when it joins the batches of the build side to one, and does
//! not ask for it: so the feed does, for as long as it keeps the batches.

use super::keys::BuildKeys;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

/// The build sides of one join, by partition.
pub(super) struct Feed {
    builds: Vec<Mutex<FeedState>>,
    /// If the probe side is told its keys.
    keys: Option<Arc<BuildKeys>>,
    /// Whether the join collects the keys.
    has_keys_of_join: bool,
}

enum FeedState {
    Waiting,
    Building(BuildInput),
    Probing,
    GivenUp(BuildRest),
    Taken,
    Failed,
}

/// A build side that is being read.
struct BuildInput {
    input: SendableRecordBatchStream,
    kept: Vec<RecordBatch>,
    counter: RecordBatchMemoryCounter,
    /// For the copy of what is kept.
    reservation: MemoryReservation,
    has_ended: bool,
}

/// A build side of which no hash table was made: what has been read of it and what has not.
pub(super) struct BuildRest {
    pub read: Vec<RecordBatch>,
    /// What the batches in `read` take.
    pub reservation: MemoryReservation,
    pub input: SendableRecordBatchStream,
}

impl Feed {
    /// Of so many partitions, whose keys are collected here unless the join does it.
    pub fn new(builds: usize, keys: Option<Arc<BuildKeys>>, has_keys_of_join: bool) -> Self {
        let builds = (0..builds).map(|_| Mutex::new(FeedState::Waiting));
        Feed {
            builds: builds.collect(),
            keys,
            has_keys_of_join,
        }
    }

    /// The state, also behind a panic in an input, whose statement is lost anyway.
    fn state(&self, build: usize) -> MutexGuard<'_, FeedState> {
        self.builds[build]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the hash join over this build side is to be done otherwise, because it was denied memory before it
    /// began to probe.
    pub fn give_up(&self, build: usize) -> bool {
        let mut state = self.state(build);
        match std::mem::replace(&mut *state, FeedState::Failed) {
            FeedState::Building(BuildInput {
                input,
                kept,
                counter,
                reservation,
                has_ended: _,
            }) => {
                // The batches exist; nobody else accounts for them any more.
                let bytes = counter.memory_usage();
                reservation.shrink(reservation.size().saturating_sub(bytes));
                reservation.grow(bytes.saturating_sub(reservation.size()));
                *state = FeedState::GivenUp(BuildRest {
                    read: kept,
                    reservation,
                    input,
                });
                true
            }
            // By another partition of the probe side.
            given_up @ (FeedState::GivenUp(_) | FeedState::Taken) => {
                *state = given_up;
                true
            }
            other => {
                *state = other;
                false
            }
        }
    }

    /// The build side that was given up; once.
    pub fn take(&self, build: usize) -> Option<BuildRest> {
        let mut state = self.state(build);
        match std::mem::replace(&mut *state, FeedState::Taken) {
            FeedState::GivenUp(rest) => Some(rest),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Nobody reads this build side any more.
    pub fn abandon(&self, build: usize) {
        let before = std::mem::replace(&mut *self.state(build), FeedState::Failed);
        // Not under the lock.
        drop(before);
    }

    /// The hash table is finished.
    fn probing(&self, build: usize) {
        let before = match &mut *self.state(build) {
            state @ (FeedState::Building(_) | FeedState::Waiting) => {
                std::mem::replace(state, FeedState::Probing)
            }
            _ => return,
        };
        // Not under the lock.
        drop(before);
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Feed({} partitions)", self.builds.len())
    }
}

/// What both inputs of a feed have in common as nodes of a plan.
macro_rules! passing {
    ($node:ident, $name:literal) => {
        #[derive(Debug)]
        pub(super) struct $node {
            input: Arc<dyn ExecutionPlan>,
            feed: Arc<Feed>,
        }

        impl $node {
            pub fn new(input: Arc<dyn ExecutionPlan>, feed: Arc<Feed>) -> Self {
                $node { input, feed }
            }
        }

        impl DisplayAs for $node {
            fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($name)
            }
        }

        impl ExecutionPlan for $node {
            fn name(&self) -> &str {
                $name
            }

            fn properties(&self) -> &Arc<PlanProperties> {
                self.input.properties()
            }

            fn maintains_input_order(&self) -> Vec<bool> {
                vec![true]
            }

            fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
                vec![&self.input]
            }

            fn apply_expressions(
                &self,
                _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
            ) -> Result<TreeNodeRecursion> {
                Ok(TreeNodeRecursion::Continue)
            }

            fn replace_children(
                self: Arc<Self>,
                mut children: Vec<Arc<dyn ExecutionPlan>>,
                _: ReplaceChildrenOptions,
            ) -> Result<Arc<dyn ExecutionPlan>> {
                Ok(Arc::new($node::new(
                    children.remove(0),
                    Arc::clone(&self.feed),
                )))
            }

            fn with_new_children(
                self: Arc<Self>,
                mut children: Vec<Arc<dyn ExecutionPlan>>,
            ) -> Result<Arc<dyn ExecutionPlan>> {
                Ok(Arc::new($node::new(
                    children.remove(0),
                    Arc::clone(&self.feed),
                )))
            }

            fn execute(
                &self,
                partition: usize,
                context: Arc<TaskContext>,
            ) -> Result<SendableRecordBatchStream> {
                self.open(partition, context)
            }

            fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
                vec![ChildStats::At(partition)]
            }

            fn statistics_from_inputs(
                &self,
                inputs: &[Arc<Statistics>],
                _: &StatisticsArgs,
            ) -> Result<Arc<Statistics>> {
                Ok(Arc::clone(&inputs[0]))
            }
        }
    };
}

passing!(BuildExec, "BuildExec");
passing!(ProbeExec, "ProbeExec");

impl BuildExec {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("HashJoinCopy[{partition}]"));
        let build = BuildInput {
            input: self.input.execute(partition, Arc::clone(&context))?,
            kept: Vec::new(),
            counter: RecordBatchMemoryCounter::new(),
            reservation: consumer.register(context.memory_pool()),
            has_ended: false,
        };
        *self.feed.state(partition) = FeedState::Building(build);
        Ok(Box::pin(BuildStream {
            schema: self.schema(),
            feed: Arc::clone(&self.feed),
            partition,
        }))
    }
}

/// What the hash join reads as its build side.
struct BuildStream {
    schema: SchemaRef,
    feed: Arc<Feed>,
    partition: usize,
}

impl Stream for BuildStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.feed.state(self.partition);
        let FeedState::Building(build) = &mut *state else {
            return Poll::Ready(None);
        };
        match ready!(build.input.poll_next_unpin(cx)) {
            Some(Ok(batch)) => {
                let bytes = build.counter.count_batch(&batch);
                build.kept.push(batch.clone());
                Poll::Ready(Some(build.reservation.try_grow(bytes).map(|()| batch)))
            }
            Some(Err(error)) => {
                *state = FeedState::Failed;
                Poll::Ready(Some(Err(error)))
            }
            None => {
                if let Some(keys) = &self.feed.keys
                    && !self.feed.has_keys_of_join
                    && !std::mem::replace(&mut build.has_ended, true)
                {
                    keys.ended(&build.kept, &build.reservation)?;
                }
                Poll::Ready(None)
            }
        }
    }
}

impl RecordBatchStream for BuildStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl ProbeExec {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(ProbeStream {
            schema: self.schema(),
            feed: Arc::clone(&self.feed),
            partition,
            source: Some((Arc::clone(&self.input), context)),
            input: None,
        }))
    }
}

/// What the hash join reads as its probe side; opened when it is read, so that it can still be read by somebody else.
struct ProbeStream {
    schema: SchemaRef,
    feed: Arc<Feed>,
    partition: usize,
    source: Option<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)>,
    input: Option<SendableRecordBatchStream>,
}

impl Stream for ProbeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some((source, context)) = self.source.take() {
            let build = self.partition.min(self.feed.builds.len() - 1);
            self.feed.probing(build);
            if let Some(keys) = &self.feed.keys {
                keys.tell()?;
            }
            self.input = Some(source.execute(self.partition, context)?);
        }
        match &mut self.input {
            Some(input) => input.poll_next_unpin(cx),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for ProbeStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
