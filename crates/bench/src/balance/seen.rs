//! What a phase has shown of one contender.

use eris_engine::Balanced;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

/// Of the balanced level a phase has recovered.
const RECOVERED: f64 = 0.95;
/// Seconds over which throughput is averaged.
const SMOOTH: f64 = 1.0;
/// Transfers that end within this time are one cycle's.
const TOGETHER: Duration = Duration::from_millis(5);

pub(super) struct Observation {
    /// Millions of lookups per second, tick by tick.
    pub ticks: Vec<f64>,
    pub tick: Duration,
    /// When the first tick began.
    pub began: SystemTime,
    pub keys_moved: u64,
    /// From when to when keys moved, cycle by cycle.
    cycles: Vec<Range<SystemTime>>,
}

impl Observation {
    /// Nothing yet.
    pub fn new(tick: Duration) -> Self {
        Observation {
            ticks: Vec::new(),
            tick,
            began: SystemTime::now(),
            keys_moved: 0,
            cycles: Vec::new(),
        }
    }

    /// What was moved since the last call, the oldest first.
    pub fn note(&mut self, moved: &[Balanced]) {
        let keys = moved.iter().flat_map(|one| &one.result);
        self.keys_moved += keys.map(|moved| moved.keys).sum::<u64>();
        let together =
            |a: &Balanced, b: &Balanced| b.at.duration_since(a.at).unwrap_or_default() < TOGETHER;
        self.cycles.extend(moved.chunk_by(together).map(|cycle| {
            let end = cycle[cycle.len() - 1].at;
            let longest = cycle.iter().map(|one| one.time).max();
            end - longest.unwrap_or_default()..end
        }));
    }

    /// Millions of lookups.
    pub fn lookups(&self) -> f64 {
        self.ticks.iter().sum::<f64>() * self.tick.as_secs_f64()
    }

    pub fn mean(&self) -> f64 {
        mean(&self.ticks)
    }

    /// As good as it gets: the mean of the last third.
    pub fn level(&self) -> f64 {
        mean(&self.ticks[self.ticks.len() * 2 / 3..])
    }

    pub fn least(&self) -> f64 {
        self.means().fold(f64::INFINITY, f64::min)
    }

    /// Seconds from the change to the end of the first second near this level, if from there on it stays so on average.
    /// None if it never does.
    pub fn recovered(&self, level: f64) -> Option<f64> {
        let is_near = |mean: f64| mean >= RECOVERED * level;
        let mut means = self.means().enumerate();
        let (first, _) = means.find(|(first, of_second)| {
            is_near(*of_second) && is_near(mean(&self.ticks[*first..]))
        })?;
        Some((first + self.smooth()) as f64 * self.tick.as_secs_f64())
    }

    /// Seconds in which keys moved.
    pub fn moving(&self) -> f64 {
        let lengths = self
            .cycles
            .iter()
            .flat_map(|cycle| cycle.end.duration_since(cycle.start));
        lengths.map(|length| length.as_secs_f64()).sum()
    }

    /// Throughput while keys moved, as a part of what it was just before: of the cycle that took most from it.
    pub fn while_moving(&self) -> Option<f64> {
        let tick = self.tick.as_secs_f64();
        let at = |time: SystemTime| {
            let since = time.duration_since(self.began).unwrap_or_default();
            (since.as_secs_f64() / tick) as usize
        };
        let cycles: Vec<Range<usize>> = (self.cycles.iter())
            .map(|cycle| at(cycle.start)..(at(cycle.end) + 1).min(self.ticks.len()))
            .collect();
        let is_still = |at: &usize| !cycles.iter().any(|cycle| cycle.contains(at));
        let parts = cycles.iter().filter_map(|cycle| {
            // One that begins after the phase's end is not seen.
            let during = self.ticks.get(cycle.clone())?;
            let before = (0..cycle.start).rev().filter(is_still);
            let before: Vec<f64> = before
                .take(self.smooth())
                .map(|at| self.ticks[at])
                .collect();
            // One that begins with the phase has nothing before it.
            let is_seen = !before.is_empty() && !during.is_empty();
            is_seen.then(|| mean(during) / mean(&before))
        });
        parts.reduce(f64::min)
    }

    /// Ticks over which throughput is averaged.
    fn smooth(&self) -> usize {
        let ticks = (SMOOTH / self.tick.as_secs_f64()).ceil() as usize;
        ticks.clamp(1, self.ticks.len().max(1))
    }

    /// From each tick on.
    fn means(&self) -> impl Iterator<Item = f64> + '_ {
        self.ticks.windows(self.smooth()).map(mean)
    }
}

/// Millions of lookups per second, tick by tick. Clients get their answers together, as slow AEUs work off what has
/// come meanwhile: the keys of a batch count evenly from when it was asked for to when it was answered, or ticks would
/// differ by what few batches make up.
pub(super) fn throughput(
    batches: &[Range<Instant>],
    batch: usize,
    began: Instant,
    tick: Duration,
    ticks: usize,
) -> Vec<f64> {
    let (mut keys, tick) = (vec![0.0; ticks], tick.as_secs_f64());
    let at = |time: Instant| match time.checked_duration_since(began) {
        Some(since) => since.as_secs_f64() / tick,
        None => -(began - time).as_secs_f64() / tick,
    };
    for one in batches {
        let (from, to) = (at(one.start), at(one.end));
        let per_tick = batch as f64 / (to - from).max(f64::EPSILON);
        let (from, to) = (from.max(0.0), to.max(0.0));
        let touched = (from as usize).min(ticks)..(to.ceil() as usize).min(ticks);
        for (number, keys) in touched.clone().zip(&mut keys[touched]) {
            let number = number as f64;
            *keys += (to.min(number + 1.0) - from.max(number)) * per_tick;
        }
    }
    keys.iter().map(|keys| keys / tick / 1e6).collect()
}

fn mean(ticks: &[f64]) -> f64 {
    ticks.iter().sum::<f64>() / ticks.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_batch_count_while_it_is_under_way() {
        let began = Instant::now() + Duration::from_secs(1);
        let at = |ms: u64| began - Duration::from_secs(1) + Duration::from_millis(1_000 + ms);
        let early = began - Duration::from_millis(100);
        // The last one takes longer than what is counted.
        let batches = [early..at(100), at(50)..at(250), at(250)..at(900)];
        let tick = Duration::from_millis(100);
        let seen = throughput(&batches, 1_000_000, began, tick, 3);
        let right = [5.0 + 2.5, 5.0, 2.5 + 10.0 / 13.0];
        let is_right = |(seen, right): (&f64, f64)| (seen - right).abs() < 1e-6;
        assert!(seen.iter().zip(right).all(is_right), "{seen:?}");
    }

    fn seen(ticks: &[f64]) -> Observation {
        let mut seen = Observation::new(Duration::from_millis(500));
        seen.ticks = ticks.to_vec();
        seen
    }

    #[test]
    fn a_phase_has_recovered_once_it_stays_near_the_level() {
        let one = seen(&[5.0, 10.0, 10.0, 2.0, 3.0, 10.0, 10.0, 9.0, 10.0]);
        // Not with its first good second, after which it falls back.
        assert_eq!(one.recovered(10.0), Some(3.5));
        assert_eq!(one.recovered(12.0), None);
        assert_eq!(one.least(), 2.5);
    }

    #[test]
    fn what_moving_takes_is_told_beside_the_second_before() {
        let mut one = seen(&[5.0, 5.0, 3.0, 2.0, 10.0, 10.0, 9.0]);
        let at = |ms: u64| one.began + Duration::from_millis(ms);
        // The last one begins when all is over.
        one.cycles = vec![
            at(1_000)..at(1_900),
            at(2_500)..at(2_600),
            at(9_000)..at(9_001),
        ];
        assert_eq!(one.while_moving(), Some(0.5));
        assert!((one.moving() - 1.001).abs() < 1e-9);
    }
}
