//! One run of a fragment whose lanes DataFusion reads as partitions.
//!
//! ```text
//! waiting ── first poll of any lane ──► running: each lane takes its stream at its own first poll
//!    │                            └───► failed:  each lane yields the error
//!    └ a lane that is dropped before its first poll is abandoned: its stream is dropped as soon as there is one
//! ```
//!
//! Partitions are opened long before they are polled, and a hash join completes its filter in between: hence the
//! first poll, not the opening, starts the work.

use eris_fragment::{Execution, FragmentError, FragmentReport, FragmentStream};
use std::sync::{Arc, Mutex, MutexGuard};

type Report = Arc<dyn Fn() -> FragmentReport + Send + Sync>;

/// The lanes of one execution. Shared by their streams; the mutex is taken once per lane.
pub(crate) struct Run {
    state: Mutex<State>,
}

enum State {
    Waiting {
        abandoned: Vec<bool>,
    },
    Running {
        lanes: Vec<Option<FragmentStream>>,
        report: Report,
    },
    Failed(FragmentError),
}

impl Run {
    pub fn new(lanes: usize) -> Self {
        Run {
            state: Mutex::new(State::Waiting {
                abandoned: vec![false; lanes],
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    /// The stream of a lane, which `start` brings to life if no other lane has done so.
    ///
    /// # Errors
    /// What `start` failed with, for every lane.
    pub fn take(
        &self,
        lane: usize,
        start: impl FnOnce() -> Result<Execution, FragmentError>,
    ) -> Result<FragmentStream, FragmentError> {
        let mut state = self.state();
        if let State::Waiting { abandoned } = &*state {
            *state = match start() {
                Ok(Execution { lanes, report }) => {
                    let kept = lanes.into_iter().zip(abandoned);
                    let lanes = kept
                        .map(|(stream, gone)| (!gone).then_some(stream))
                        .collect();
                    State::Running { lanes, report }
                }
                Err(error) => State::Failed(error),
            };
        }
        match &mut *state {
            State::Running { lanes, .. } => Ok(lanes[lane].take().expect("a lane is taken once")),
            State::Failed(error) => Err(error.clone()),
            State::Waiting { .. } => unreachable!("started above"),
        }
    }

    /// The lane will not be read.
    pub fn abandon(&self, lane: usize) {
        let dropped = match &mut *self.state() {
            State::Waiting { abandoned } => {
                abandoned[lane] = true;
                None
            }
            State::Running { lanes, .. } => lanes[lane].take(),
            State::Failed(_) => None,
        };
        // Dropping a stream may send a message: not under the lock.
        drop(dropped);
    }

    /// What the fragment did so far; `None` before it began.
    pub fn report(&self) -> Option<FragmentReport> {
        let report = match &*self.state() {
            State::Running { report, .. } => Arc::clone(report),
            _ => return None,
        };
        Some(report())
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &*self.state() {
            State::Waiting { .. } => "Run(waiting)",
            State::Running { .. } => "Run(running)",
            State::Failed(_) => "Run(failed)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    fn execution(lanes: usize) -> Execution {
        let empty = || Box::pin(stream::empty()) as FragmentStream;
        Execution {
            lanes: (0..lanes).map(|_| empty()).collect(),
            report: Arc::new(FragmentReport::default),
        }
    }

    #[test]
    fn the_first_lane_starts_it_and_the_others_find_it_running() {
        let run = Run::new(3);
        assert!(run.report().is_none());
        run.abandon(2);
        assert!(run.take(1, || Ok(execution(3))).is_ok());
        assert!(run.take(0, || panic!("started twice")).is_ok());
        assert!(run.report().is_some());
    }

    #[test]
    fn a_failed_start_fails_every_lane() {
        let run = Run::new(2);
        assert!(run.take(0, || Err(FragmentError::ShuttingDown)).is_err());
        assert!(run.take(1, || panic!("started twice")).is_err());
    }
}
