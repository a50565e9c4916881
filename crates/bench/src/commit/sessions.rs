//! Sessions that do something again and again at the same time.

use super::CommitBenchError;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// What a session does again and again, each time as soon as the time before is acknowledged.
pub type Act = Box<dyn FnMut() -> Result<(), CommitBenchError> + Send>;

/// What sessions have done.
pub struct Ran {
    /// What each act took, ascending.
    times: Vec<Duration>,
    /// How long all of it took.
    lasted: Duration,
}

impl Ran {
    /// Does one thing again and again, at least once, until so much time has passed.
    pub fn of(
        time: Duration,
        mut act: impl FnMut() -> Result<(), CommitBenchError>,
    ) -> Result<Ran, CommitBenchError> {
        let mut times = Vec::new();
        let (begun, mut now) = (Instant::now(), Instant::now());
        while times.is_empty() || now - begun < time {
            act()?;
            let before = std::mem::replace(&mut now, Instant::now());
            times.push(now - before);
        }
        times.sort_unstable();
        Ok(Ran {
            times,
            lasted: now - begun,
        })
    }

    /// All of these, which ran at the same time.
    pub fn together(rans: impl IntoIterator<Item = Ran>) -> Ran {
        let mut all = Ran {
            times: Vec::new(),
            lasted: Duration::ZERO,
        };
        for ran in rans {
            all.times.extend(ran.times);
            all.lasted = all.lasted.max(ran.lasted);
        }
        all.times.sort_unstable();
        all
    }

    /// How often something was done.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// So many percent of the acts took no longer than this, in seconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        let place = (self.times.len() * percent / 100).min(self.times.len() - 1);
        self.times[place].as_secs_f64()
    }

    /// Acts per second.
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.lasted.as_secs_f64()
    }
}

/// Each act in a thread of its own, all from the same time on; what each has done, in their order.
///
/// # Errors
/// That of the first act that has failed.
pub fn at_once(acts: Vec<Act>, time: Duration) -> Result<Vec<Ran>, CommitBenchError> {
    let start = Barrier::new(acts.len());
    thread::scope(|scope| {
        let session = |act: Act| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                Ran::of(time, act)
            })
        };
        let threads: Vec<_> = acts.into_iter().map(session).collect();
        let ends = threads.into_iter();
        ends.map(|thread| thread.join().expect("it does not panic"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(milliseconds: impl IntoIterator<Item = u64>, lasted: u64) -> Ran {
        Ran {
            times: (milliseconds.into_iter())
                .map(Duration::from_millis)
                .collect(),
            lasted: Duration::from_millis(lasted),
        }
    }

    #[test]
    fn percentiles_and_rates_are_of_all_sessions() {
        let all = Ran::together([ran(1..=50, 400), ran(51..=100, 500)]);
        assert_eq!((all.count(), all.rate()), (100, 200.0));
        assert_eq!((all.percentile(50), all.percentile(99)), (0.051, 0.1));
        assert_eq!(ran([7], 7).percentile(99), 0.007);
    }

    #[test]
    fn each_session_acts_at_least_once_and_a_failure_is_told() {
        let fine = || Box::new(|| Ok(())) as Act;
        let done = at_once(vec![fine(), fine()], Duration::ZERO).expect("both are fine");
        assert_eq!(done.iter().map(Ran::count).collect::<Vec<_>>(), [1, 1]);
        let wrong = Box::new(|| CommitBenchError::unless_equal("it", 1, 2));
        assert!(at_once(vec![fine(), wrong], Duration::ZERO).is_err());
    }
}
