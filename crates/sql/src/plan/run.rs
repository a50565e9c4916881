//! One run of a fragment whose streams DataFusion reads as partitions.
//!
//! ```text
//! waiting ── first poll of any stream ──► starting ──┬──► running: each partition takes its stream
//!    │                                     │       └──► failed:  each yields the error
//!    └─────────────────────────────────────┴ who is dropped here is abandoned: its stream is dropped once there is one
//! ```
//!
//! Partitions are opened long before they are polled, and a hash join completes its filter in between: hence the first
//! poll, not the opening, starts the work. Starting may take a while, for filters are evaluated; it is a future that
//! all streams which wait for it drive together, so it goes no further once they are dropped.

use crate::progress::Scanning;
use datafusion::error::DataFusionError;
use eris_fragment::{Execution, FragmentError, FragmentReport, FragmentStream};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type ReadReport = Arc<dyn Fn() -> FragmentReport + Send + Sync>;

/// Completes when the run has been started or has failed.
pub(crate) type Starting = Shared<BoxFuture<'static, ()>>;

/// The streams of one execution. Shared by their streams; the mutex is held neither while a fragment starts
/// nor while a stream is dropped.
pub(crate) struct FragmentRun {
    state: Mutex<RunState>,
    progress: Arc<Scanning>,
}

enum RunState {
    Waiting {
        abandoned: Vec<bool>,
    },
    Starting {
        abandoned: Vec<bool>,
        starting: Starting,
    },
    Running {
        streams: Vec<Option<FragmentStream>>,
        is_merged: Arc<dyn Fn() -> bool + Send + Sync>,
        report: ReadReport,
    },
    Failed(FragmentError),
}

impl FragmentRun {
    pub fn new(streams: usize, progress: Arc<Scanning>) -> Self {
        FragmentRun {
            progress,
            state: Mutex::new(RunState::Waiting {
                abandoned: vec![false; streams],
            }),
        }
    }

    /// The state, also behind a panic: it is replaced as a whole.
    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to wait for before a stream is taken. `start` brings the streams to life if no other stream has begun with
    /// it; it must not hold on to this run. A panic in it is an error of the run.
    pub fn start<F>(self: &Arc<Self>, start: impl FnOnce() -> F) -> Starting
    where
        F: Future<Output = Result<Execution, FragmentError>> + Send + 'static,
    {
        let mut state = self.state();
        match &mut *state {
            RunState::Waiting { abandoned } => {
                let start = AssertUnwindSafe(start()).catch_unwind();
                let abandoned = std::mem::take(abandoned);
                // The run owns the future, not the other way round.
                let run = Arc::downgrade(self);
                let starting = async move {
                    let result = start.await.unwrap_or_else(|panic| Err(panicked(&*panic)));
                    if let Some(run) = run.upgrade() {
                        run.started(result);
                    }
                };
                let starting = starting.boxed().shared();
                *state = RunState::Starting {
                    abandoned,
                    starting: starting.clone(),
                };
                starting
            }
            RunState::Starting { starting, .. } => starting.clone(),
            RunState::Running { .. } | RunState::Failed(_) => async {}.boxed().shared(),
        }
    }

    fn started(&self, result: Result<Execution, FragmentError>) {
        let (mut streams, next) = match result {
            Ok(Execution {
                streams,
                is_merged,
                report,
            }) => {
                let streams: Vec<_> = streams.into_iter().map(Some).collect();
                self.progress.began(Arc::clone(&report));
                (streams, Ok((is_merged, report)))
            }
            Err(error) => (Vec::new(), Err(error)),
        };
        let mut dropped = Vec::new();
        let mut state = self.state();
        if let RunState::Starting { abandoned, .. } = &*state {
            for (partition, gone) in streams.iter_mut().zip(abandoned) {
                dropped.extend(partition.take_if(|_| *gone));
            }
        }
        let before = std::mem::replace(
            &mut *state,
            match next {
                Ok((is_merged, report)) => RunState::Running {
                    streams,
                    is_merged,
                    report,
                },
                Err(error) => RunState::Failed(error),
            },
        );
        // Dropping a stream may send a message: not under the lock.
        std::mem::drop(state);
        std::mem::drop((before, dropped));
    }

    /// The stream of a stream, behind the end of [`start`](Self::start).
    ///
    /// # Errors
    /// What starting failed with, for every stream.
    pub fn take(&self, partition: usize) -> Result<FragmentStream, FragmentError> {
        let taken = match &mut *self.state() {
            RunState::Running { streams, .. } => streams.get_mut(partition).and_then(Option::take),
            RunState::Failed(error) => return Err(error.clone()),
            RunState::Waiting { .. } | RunState::Starting { .. } => None,
        };
        taken.ok_or(FragmentError::Malformed {
            reason: "a stream was not there to be taken",
        })
    }

    /// The stream will not be read.
    pub fn abandon(&self, partition: usize) {
        let dropped = match &mut *self.state() {
            RunState::Waiting { abandoned } | RunState::Starting { abandoned, .. } => {
                abandoned[partition] = true;
                None
            }
            RunState::Running { streams, .. } => streams.get_mut(partition).and_then(Option::take),
            RunState::Failed(_) => None,
        };
        // As above.
        drop(dropped);
    }

    /// Whether each of its groups arrives once, merged; known behind the first batch.
    pub fn is_merged(&self) -> bool {
        let is_merged = match &*self.state() {
            RunState::Running { is_merged, .. } => Arc::clone(is_merged),
            _ => return false,
        };
        is_merged()
    }

    /// What the fragment did so far; `None` before it began.
    pub fn report(&self) -> Option<FragmentReport> {
        let report = match &*self.state() {
            RunState::Running { report, .. } => Arc::clone(report),
            _ => return None,
        };
        Some(report())
    }
}

/// The error of a panic while a fragment was being started.
fn panicked(panic: &(dyn std::any::Any + Send)) -> FragmentError {
    let message = (panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let message = message.unwrap_or_else(|| "a panic without message".into());
    FragmentError::Evaluation(Arc::new(DataFusionError::Internal(message)))
}

impl std::fmt::Debug for FragmentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &*self.state() {
            RunState::Waiting { .. } => "FragmentRun(waiting)",
            RunState::Starting { .. } => "FragmentRun(starting)",
            RunState::Running { .. } => "FragmentRun(running)",
            RunState::Failed(_) => "FragmentRun(failed)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::oneshot;
    use futures::executor::block_on;
    use futures::future::Ready;
    use futures::stream;

    fn execution(streams: usize) -> Execution {
        let empty = || Box::pin(stream::empty()) as FragmentStream;
        Execution {
            streams: (0..streams).map(|_| empty()).collect(),
            is_merged: Arc::new(|| true),
            report: Arc::new(FragmentReport::default),
        }
    }

    fn begin(run: &Arc<FragmentRun>, result: Result<Execution, FragmentError>) {
        block_on(run.start(|| async { result }));
    }

    fn begin_again(run: &Arc<FragmentRun>) {
        block_on(run.start(|| -> Ready<_> { panic!("started twice") }));
    }

    #[test]
    fn the_first_stream_starts_it_and_the_others_find_it_running() {
        let run = Arc::new(FragmentRun::new(3, Arc::default()));
        assert!(run.report().is_none());
        run.abandon(2);
        begin(&run, Ok(execution(3)));
        assert!(run.take(1).is_ok());
        begin_again(&run);
        assert!(run.take(0).is_ok());
        assert!(run.take(2).is_err(), "abandoned");
        assert!(run.report().is_some());
    }

    #[test]
    fn a_failed_start_fails_every_stream() {
        let run = Arc::new(FragmentRun::new(2, Arc::default()));
        begin(&run, Err(FragmentError::ShuttingDown));
        assert!(run.take(0).is_err());
        begin_again(&run);
        assert!(run.take(1).is_err());
    }

    #[test]
    fn a_panic_while_it_starts_fails_every_stream_and_no_more() {
        let run = Arc::new(FragmentRun::new(2, Arc::default()));
        let other = run.start(|| async { panic!("on purpose") });
        begin_again(&run);
        block_on(other);
        for partition in 0..2 {
            let error = run.take(partition).err().expect("has failed");
            assert!(error.to_string().contains("on purpose"), "{error}");
            run.abandon(partition);
        }
    }

    #[test]
    fn streams_wait_for_each_other_without_a_lock() {
        let run = Arc::new(FragmentRun::new(3, Arc::default()));
        let (go, gone) = oneshot::channel();
        let first = run.start(|| async {
            gone.await.unwrap();
            Ok(execution(3))
        });
        assert!(first.clone().now_or_never().is_none());
        let mut second = run.start(|| -> Ready<_> { panic!("started twice") });
        assert!((&mut second).now_or_never().is_none());
        // A stream that is dropped while it starts does not stop it for the others.
        drop(first);
        run.abandon(0);
        go.send(()).unwrap();
        block_on(second);
        assert!(run.take(1).is_ok());
        assert!(run.take(0).is_err());
    }

    #[test]
    fn a_start_that_nobody_waits_for_goes_no_further() {
        let run = Arc::new(FragmentRun::new(1, Arc::default()));
        let (witness, ended) = oneshot::channel::<()>();
        let starting = run.start(|| async move {
            std::future::pending::<()>().await;
            drop(witness);
            Ok(execution(1))
        });
        assert!(starting.clone().now_or_never().is_none());
        drop(starting);
        run.abandon(0);
        drop(run);
        assert!(block_on(ended).is_err(), "the future is gone with the run");
    }
}
