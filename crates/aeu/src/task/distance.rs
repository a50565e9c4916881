//! How many tasks ahead lines are asked for.

use std::time::Duration;

/// The policy of a runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// Lines are not asked for.
    Off,
    /// So many tasks ahead.
    Fixed(usize),
    /// Each AEU tries distances out and keeps the best one. What is best depends on how long tasks take, and on whether
    /// their lines are in a cache already: then to ask for them costs more than it gains.
    #[default]
    Adaptive,
}

/// What is tried.
const DISTANCES: [usize; 7] = [0, 1, 2, 4, 6, 8, 12];
/// What holds before anything was tried: index of 4.
const FIRST: usize = 3;
/// Tasks of a sample: of fewer the clock would be a part.
const SAMPLE: usize = 64;
/// Samples of each in a trial. Their median counts, as a thread may lose its core within a group.
const SAMPLES: usize = 9;
/// Groups between two trials, once a distance is chosen.
const PAUSE: usize = 200;
/// Another distance has to be better by so much, and none at all may be worse by so much.
const BETTER: f64 = 0.97;
const AS_GOOD: f64 = 1.01;

/// The distance of one AEU and one kind of tasks, chosen by trials.
///
/// ```text
/// first: all distances, one after the other    then, now and then:  now │ other │ now │ other …
///        0   1   2   4   6   8   12 ──▶ best                        sample by sample, in turn
/// ```
pub(crate) struct Distance {
    policy: Prefetch,
    /// Index into the distances.
    now: usize,
    /// The sample that is being taken: tasks and seconds.
    sample: (usize, f64),
    state: State,
}

enum State {
    /// The times of each distance so far; the last one is tried.
    First(Vec<Vec<f64>>),
    /// So many groups until the next trial, and whom that is for.
    Pause { groups: usize, other: usize },
    /// Times of the present one and of another one.
    Trial { other: usize, times: [Vec<f64>; 2] },
}

impl Distance {
    pub fn new(policy: Prefetch) -> Self {
        Distance {
            policy,
            now: FIRST,
            sample: (0, 0.0),
            state: State::First(vec![Vec::new()]),
        }
    }

    /// What holds for the next group.
    #[inline]
    pub fn get(&self) -> usize {
        match self.policy {
            Prefetch::Off => 0,
            Prefetch::Fixed(distance) => distance,
            Prefetch::Adaptive => DISTANCES[self.tried()],
        }
    }

    /// What was chosen.
    pub fn chosen(&self) -> usize {
        match self.policy {
            Prefetch::Adaptive => DISTANCES[self.now],
            _ => self.get(),
        }
    }

    fn tried(&self) -> usize {
        match &self.state {
            State::First(times) => times.len() - 1,
            State::Trial { other, times } if times[0].len() > times[1].len() => *other,
            State::Pause { .. } | State::Trial { .. } => self.now,
        }
    }

    /// Whether the next group is part of a trial, and has to be timed.
    #[inline]
    pub fn is_trial(&self) -> bool {
        self.policy == Prefetch::Adaptive && !matches!(self.state, State::Pause { .. })
    }

    /// A group was run that was no part of a trial.
    #[inline]
    pub fn pass(&mut self) {
        if let State::Pause { groups, other } = &mut self.state {
            *groups -= 1;
            if *groups == 0 {
                self.state = State::Trial {
                    other: *other,
                    times: [Vec::new(), Vec::new()],
                };
            }
        }
    }

    /// So many tasks of a group that is part of a trial took so long.
    pub fn took(&mut self, tasks: usize, time: Duration) {
        self.sample.0 += tasks;
        self.sample.1 += time.as_secs_f64();
        if self.sample.0 >= SAMPLE {
            let (tasks, seconds) = std::mem::take(&mut self.sample);
            self.end_sample(seconds / tasks as f64);
        }
    }

    fn end_sample(&mut self, time: f64) {
        match &mut self.state {
            State::Pause { .. } => {}
            State::First(times) => {
                let all = times.len();
                let of_tried = &mut times[all - 1];
                of_tried.push(time);
                if of_tried.len() < SAMPLES {
                    return;
                }
                if all < DISTANCES.len() {
                    return times.push(Vec::new());
                }
                let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
                self.now = best(&medians);
                self.pause(self.now);
            }
            State::Trial { other, times } => {
                let [now, of_other] = times;
                if now.len() > of_other.len() {
                    of_other.push(time);
                } else {
                    now.push(time);
                }
                if of_other.len() < SAMPLES {
                    return;
                }
                let (now, of_other) = (median(now), median(of_other));
                let other = *other;
                let bound = if other == 0 { AS_GOOD } else { BETTER };
                if of_other < now * bound {
                    self.now = other;
                }
                self.pause(other);
            }
        }
    }

    /// Others are tried in turn: the neighbours, and none.
    fn pause(&mut self, last: usize) {
        let around = [self.now + 1, self.now.wrapping_sub(1), 0];
        let is_other = |other: &usize| *other < DISTANCES.len() && *other != self.now;
        let others: Vec<usize> = around.into_iter().filter(is_other).collect();
        let behind = others.iter().position(|other| *other == last);
        let other = others[behind.map_or(0, |at| at + 1) % others.len()];
        self.state = State::Pause {
            groups: PAUSE,
            other,
        };
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The best one; none at all if that is as good.
fn best(medians: &[f64]) -> usize {
    let least = (0..medians.len()).min_by(|one, other| medians[*one].total_cmp(&medians[*other]));
    let least = least.unwrap_or(0);
    if medians[0] <= medians[least] * AS_GOOD {
        0
    } else {
        least
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Runs groups whose tasks take what `cost` says, in nanoseconds, and a tenth of which take much longer.
    fn settle(distance: &mut Distance, groups: usize, cost: impl Fn(usize) -> u64) -> usize {
        for group in 0..groups {
            let tasks = 30 + group % 50;
            if distance.is_trial() {
                let outlier = if group % 10 == 3 { 50 } else { 1 };
                let each = cost(distance.get()) * outlier;
                distance.took(tasks, Duration::from_nanos(each * tasks as u64));
            } else {
                distance.pass();
            }
        }
        distance.chosen()
    }

    #[test]
    fn the_best_distance_is_found_and_found_again() {
        let far = |distance: usize| 100 - 9 * distance.min(6) as u64;
        let cached = |distance: usize| 10 + distance.min(1) as u64;
        let mut distance = Distance::new(Prefetch::Adaptive);
        assert_eq!(distance.chosen(), 4);
        assert_eq!(settle(&mut distance, 3 * SAMPLES * DISTANCES.len(), far), 6);
        assert_eq!(settle(&mut distance, 20_000, cached), 0);
        assert_eq!(settle(&mut distance, 20_000, far), 6);
    }

    #[test]
    fn what_is_fixed_stays() {
        for (policy, expected) in [(Prefetch::Off, 0), (Prefetch::Fixed(3), 3)] {
            let mut distance = Distance::new(policy);
            assert!(!distance.is_trial());
            distance.pass();
            assert_eq!((distance.get(), distance.chosen()), (expected, expected));
        }
    }

    #[test]
    fn small_groups_are_one_sample_together() {
        let mut distance = Distance::new(Prefetch::Adaptive);
        for _ in 0..SAMPLES * SAMPLE {
            assert_eq!(distance.get(), 0);
            distance.took(1, Duration::from_nanos(10));
        }
        assert_eq!(distance.get(), 1);
    }
}
