//! A hash join that was given up: both inputs are repartitioned into files, then joined pair by pair.
//!
//! The build side is repartitioned once, by whichever partition of the output comes first; all wait for it. Then
//! there are two ways:
//!
//! ```text
//! the join yields unmatched build rows,   a task per probe partition repartitions it;
//! and there are several partitions:       then each partition of the output takes the next pair that is left
//!
//! otherwise:                              each partition of the output repartitions its own probe partition
//!                                         and joins all pairs of these rows
//! ```

use super::buckets::{Buckets, Repartitioner};
use super::feed::{BuildRest, Feed};
use super::pairs::Pairs;
use super::{DEEPEST, pairs};
use crate::once::OnceExec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::JoinType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::{BoxFuture, Shared};
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// An input that is being repartitioned; whoever waits for it drives it.
type Repartitioning = Shared<BoxFuture<'static, Result<Arc<Buckets>, Arc<DataFusionError>>>>;

/// What replaces the hash join over one partition of the build side.
pub(super) struct Spilled {
    join: Arc<HashJoinExec>,
    feed: Arc<Feed>,
    build: usize,
    /// The partitions of the probe side that are joined with it.
    probes: Range<usize>,
    depth: usize,
    metrics: SpillMetrics,
    context: Arc<TaskContext>,
    /// Both inputs, once somebody has begun; the probe side only where it is repartitioned as a whole.
    begun: Mutex<Option<SpilledInputs>>,
    /// The next pair that nobody has taken, where partitions share the pairs.
    next: Arc<AtomicUsize>,
}

#[derive(Clone)]
enum SpilledInputs {
    Repartitioning {
        build: Repartitioning,
        probe: Option<Repartitioning>,
    },
    /// At the greatest depth: the merge join's stream, for the only partition.
    Merging(Arc<Mutex<Option<SendableRecordBatchStream>>>),
    Failed(Arc<DataFusionError>),
}

impl Spilled {
    pub fn new(
        join: Arc<HashJoinExec>,
        feed: Arc<Feed>,
        build: usize,
        probes: Range<usize>,
        depth: usize,
        metrics: &ExecutionPlanMetricsSet,
        context: Arc<TaskContext>,
    ) -> Self {
        Spilled {
            join,
            feed,
            build,
            probes,
            depth,
            metrics: SpillMetrics::new(metrics, build),
            context,
            begun: Mutex::new(None),
            next: Arc::new(AtomicUsize::new(0)),
        }
    }

    /// Whether partitions of the output share the pairs, because a pair needs all of the probe side.
    fn shares_pairs(&self) -> bool {
        let unmatched = matches!(
            self.join.join_type(),
            JoinType::Left
                | JoinType::Full
                | JoinType::LeftSemi
                | JoinType::LeftAnti
                | JoinType::LeftMark
        );
        unmatched && self.probes.len() > 1
    }

    /// Takes over what the hash join has left.
    pub fn begin(&self) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.is_some() {
            return;
        }
        let Some(rest) = self.feed.take(self.build) else {
            let error = DataFusionError::Internal("a build side was taken twice".into());
            *begun = Some(SpilledInputs::Failed(Arc::new(error)));
            return;
        };
        *begun = Some(if self.depth >= DEEPEST && self.probes.len() == 1 {
            let stream = self.merge(rest);
            match stream {
                Ok(stream) => SpilledInputs::Merging(Arc::new(Mutex::new(Some(stream)))),
                Err(error) => SpilledInputs::Failed(Arc::new(error)),
            }
        } else {
            let probe = self.shares_pairs().then(|| self.repartition_all_probes());
            SpilledInputs::Repartitioning {
                build: self.repartition_build(rest),
                probe,
            }
        });
    }

    /// One partition of the output.
    pub fn output(&self, partition: usize) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.clone().expect("begun before");
        let stream = match begun {
            SpilledInputs::Failed(error) => return Err(DataFusionError::Shared(error)),
            SpilledInputs::Merging(stream) => {
                let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                stream.ok_or_else(|| DataFusionError::Internal("a join was opened twice".into()))?
            }
            SpilledInputs::Repartitioning { build, probe } => {
                self.pairs(partition, build, probe)?
            }
        };
        let stream = self.sorted(stream)?;
        Ok(match self.join.fetch() {
            Some(fetch) => cut(stream, fetch).boxed(),
            None => stream.boxed(),
        })
    }

    /// The pairs that fall to a partition of the output.
    fn pairs(
        &self,
        partition: usize,
        build: Repartitioning,
        probe: Option<Repartitioning>,
    ) -> Result<SendableRecordBatchStream> {
        let next = match probe {
            Some(_) => Arc::clone(&self.next),
            None => Arc::default(),
        };
        let probe = match probe {
            Some(probe) => probe
                .map(|buckets| buckets.map_err(DataFusionError::Shared))
                .boxed(),
            None => {
                let repartitioner = self.probe_repartitioner();
                let input = self
                    .join
                    .right()
                    .execute(partition, Arc::clone(&self.context))?;
                let build = build.clone();
                async move {
                    // One after the other: their buffers need not exist at the same time.
                    build.await.map_err(DataFusionError::Shared)?;
                    repartition(repartitioner, input).await.map(Arc::new)
                }
                .boxed()
            }
        };
        let (join, context, depth) = (
            Arc::clone(&self.join),
            Arc::clone(&self.context),
            self.depth,
        );
        let output = async move {
            let build = build.await.map_err(DataFusionError::Shared)?;
            let probe = probe.await?;
            let pairs = Pairs {
                join,
                build,
                probe,
                depth,
                context,
            };
            Ok::<_, DataFusionError>(pairs.stream(next))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.join.schema(),
            stream::once(output).try_flatten(),
        )))
    }

    fn repartition_build(&self, rest: BuildRest) -> Repartitioning {
        let keys = self.join.on().iter().map(|(build, _)| Arc::clone(build));
        let repartitioner =
            self.repartitioner(keys.collect(), rest.input.schema(), "join build side");
        let BuildRest {
            read,
            reservation,
            input,
        } = rest;
        let buckets = async move {
            let mut repartitioner = repartitioner;
            give_up(&mut repartitioner, read, reservation)?;
            repartition(repartitioner, input).await
        };
        shared(buckets)
    }

    fn repartition_all_probes(&self) -> Repartitioning {
        let repartitioners: Vec<Repartitioner> = self
            .probes
            .clone()
            .map(|_| self.probe_repartitioner())
            .collect();
        let (right, context) = (Arc::clone(self.join.right()), Arc::clone(&self.context));
        let probes = self.probes.clone();
        shared(async move {
            // Tasks, so that all inputs make progress whichever partition of the output is read.
            let mut tasks = JoinSet::new();
            for (partition, repartitioner) in probes.zip(repartitioners) {
                let input = right.execute(partition, Arc::clone(&context))?;
                tasks.spawn(repartition(repartitioner, input));
            }
            let mut all = Buckets::default();
            while let Some(buckets) = tasks.join_next().await {
                let buckets =
                    buckets.map_err(|error| DataFusionError::External(Box::new(error)))?;
                all = all.join(buckets?);
            }
            Ok(all)
        })
    }

    fn probe_repartitioner(&self) -> Repartitioner {
        let keys = self.join.on().iter().map(|(_, probe)| Arc::clone(probe));
        self.repartitioner(
            keys.collect(),
            self.join.right().schema(),
            "join probe side",
        )
    }

    fn repartitioner(
        &self,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
        what: &'static str,
    ) -> Repartitioner {
        let context = Arc::clone(&self.context);
        Repartitioner::new(
            keys,
            schema,
            self.depth,
            what,
            context,
            self.metrics.clone(),
        )
    }

    /// Sorts both inputs and merges them.
    fn merge(&self, rest: BuildRest) -> Result<SendableRecordBatchStream> {
        let BuildRest {
            read,
            reservation,
            input,
        } = rest;
        let schema = input.schema();
        // The sort accounts for what it has taken.
        let read = read.into_iter().map(move |batch| {
            reservation.shrink(pairs::batch_bytes(&batch).min(reservation.size()));
            Ok(batch)
        });
        let build = RecordBatchStreamAdapter::new(schema, stream::iter(read).chain(input));
        let build = Arc::new(OnceExec::new(Box::pin(build)));
        let plan = pairs::merge_join(&self.join, build, Arc::clone(self.join.right()))?;
        plan.execute(self.probes.start, Arc::clone(&self.context))
    }

    /// The rows in the order that the plan relies on.
    fn sorted(&self, stream: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let Some(order) = self.join.properties().output_ordering() else {
            return Ok(stream);
        };
        let sort = SortExec::new(order.clone(), Arc::new(OnceExec::new(stream)));
        sort.execute(0, Arc::clone(&self.context))
    }
}

impl fmt::Debug for Spilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spilled(partition {})", self.build)
    }
}

fn shared(buckets: impl Future<Output = Result<Buckets>> + Send + 'static) -> Repartitioning {
    let buckets = buckets.map(|buckets| buckets.map(Arc::new).map_err(Arc::new));
    buckets.boxed().shared()
}

/// Repartitions what the hash join had read, and gives its memory back batch by batch.
fn give_up(
    repartitioner: &mut Repartitioner,
    read: Vec<RecordBatch>,
    reservation: MemoryReservation,
) -> Result<()> {
    let share = reservation.size() / read.len().max(1);
    for batch in read {
        repartitioner.add(batch)?;
        reservation.shrink(share);
    }
    Ok(())
}

async fn repartition(
    mut repartitioner: Repartitioner,
    mut input: SendableRecordBatchStream,
) -> Result<Buckets> {
    while let Some(batch) = input.next().await {
        repartitioner.add(batch?)?;
    }
    repartitioner.finish()
}

/// The first rows.
fn cut(
    stream: SendableRecordBatchStream,
    fetch: usize,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    stream::try_unfold((stream, fetch), |(mut stream, rest)| async move {
        if rest == 0 {
            return Ok(None);
        }
        let Some(batch) = stream.try_next().await? else {
            return Ok(None);
        };
        let rows = batch.num_rows().min(rest);
        Ok(Some((batch.slice(0, rows), (stream, rest - rows))))
    })
}
