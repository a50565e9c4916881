//! What a phase has shown of one contender.

use eris_engine::Balanced;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

/// Of the balanced level a phase has recovered.
const RECOVERED: f64 = 0.95;
/// Seconds over which throughput is averaged: for its least,
const SMOOTH: f64 = 1.0;
/// and for when it has recovered.
const LASTING: f64 = 2.0;
/// Transfers that end within this time are one cycle's.
const TOGETHER: Duration = Duration::from_millis(5);

pub(super) struct Seen {
    /// Millions of lookups per second, tick by tick.
    pub ticks: Vec<f64>,
    pub tick: Duration,
    /// When the first tick began.
    pub began: SystemTime,
    /// The load of the busiest AEU, as so many times the mean.
    pub imbalance: f64,
    pub keys_moved: u64,
    pub seconds_moving: f64,
    /// From when to when keys moved, cycle by cycle.
    pub cycles: Vec<Range<SystemTime>>,
}

impl Seen {
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
        self.means(SMOOTH).fold(f64::INFINITY, f64::min)
    }

    /// In seconds, since the phase began: until a time in which throughput was near this level. None if it never was.
    pub fn recovered(&self, level: f64) -> Option<f64> {
        let after = self
            .means(LASTING)
            .position(|mean| mean >= RECOVERED * level);
        after.map(|after| after as f64 * self.tick.as_secs_f64())
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
            let before = (0..cycle.start).rev().filter(is_still);
            let before: Vec<f64> = before
                .take((SMOOTH / tick) as usize)
                .map(|at| self.ticks[at])
                .collect();
            let during = self.ticks.get(cycle.clone())?;
            // One that begins with the phase has nothing before it, and one after its end nothing within.
            let is_seen = !before.is_empty() && !during.is_empty();
            is_seen.then(|| mean(during) / mean(&before))
        });
        parts.reduce(f64::min)
    }

    /// Means over so many seconds, from each tick on.
    fn means(&self, seconds: f64) -> impl Iterator<Item = f64> + '_ {
        let ticks = (seconds / self.tick.as_secs_f64()).ceil() as usize;
        self.ticks
            .windows(ticks.clamp(1, self.ticks.len()))
            .map(mean)
    }
}

/// From when to when the keys of each cycle moved.
pub(super) fn cycles(history: &[Balanced]) -> Vec<Range<SystemTime>> {
    let together =
        |a: &Balanced, b: &Balanced| b.at.duration_since(a.at).unwrap_or_default() < TOGETHER;
    let cycles = history.chunk_by(together).map(|cycle| {
        let end = cycle[cycle.len() - 1].at;
        let longest = cycle.iter().map(|one| one.time).max();
        end - longest.unwrap_or_default()..end
    });
    cycles.collect()
}

/// Millions of lookups per second, tick by tick. Clients get their answers together, as slow AEUs work off what has come meanwhile: the keys of a
/// batch count evenly from when it was asked for to when it was answered, or ticks would differ by what few batches make up.
pub(super) fn throughput(
    batches: &[Range<Instant>],
    batch: usize,
    began: Instant,
    tick: Duration,
    ticks: usize,
) -> Vec<f64> {
    let (mut keys, tick) = (vec![0.0; ticks], tick.as_secs_f64());
    let at = |time: Instant| (time - began).as_secs_f64() / tick;
    for one in batches {
        let (from, to) = (at(one.start), at(one.end));
        let per_tick = batch as f64 / (to - from).max(f64::EPSILON);
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
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let batches = [at(0)..at(100), at(50)..at(250), at(250)..at(900)];
        let tick = Duration::from_millis(100);
        let seen = throughput(&batches, 1_000_000, began, tick, 3);
        // In the third tick half of the second batch's last part, and a thirteenth of the last one.
        let right = [12.5, 5.0, 2.5 + 10.0 / 13.0];
        assert!(
            seen.iter()
                .zip(right)
                .all(|(seen, right)| (seen - right).abs() < 1e-6),
            "{seen:?}"
        );
    }

    #[test]
    fn a_phase_has_recovered_once_it_lasts_near_the_level() {
        let seen = |ticks: &[f64]| Seen {
            ticks: ticks.to_vec(),
            tick: Duration::from_millis(500),
            began: SystemTime::UNIX_EPOCH,
            imbalance: 2.0,
            keys_moved: 0,
            seconds_moving: 0.0,
            cycles: vec![
                SystemTime::UNIX_EPOCH + Duration::from_secs(1)
                    ..SystemTime::UNIX_EPOCH + Duration::from_millis(1_900),
            ],
        };
        let one = seen(&[5.0, 5.0, 3.0, 2.0, 10.0, 10.0, 10.0, 9.0, 10.0]);
        assert_eq!(one.recovered(10.0), Some(2.0));
        assert_eq!(one.recovered(12.0), None);
        assert_eq!(one.least(), 2.5);
        assert_eq!(one.while_moving(), Some(0.5));
    }
}
