//! How even the owners' loads are, and what would be gained if they were more so.

use crate::SegmentLoad;

/// Loads whose mean is more than this part of the greatest are even enough.
const EVEN: f64 = 0.95;
/// What gains less is no use: it would only cut segments smaller, and a workload does not stay as it is for as many
/// cycles as it takes.
const LEAST: f64 = 0.02;

/// How busy each owner was with some segments.
pub(crate) fn by_owner(segments: &[SegmentLoad], owners: usize) -> Vec<f64> {
    let mut loads = vec![0.0; owners];
    for segment in segments {
        loads[segment.aeu.index()] += segment.busy.as_secs_f64();
    }
    loads
}

pub(super) fn max(loads: impl IntoIterator<Item = f64>) -> f64 {
    loads.into_iter().fold(0.0, f64::max)
}

/// The load of the busiest owner, as so many times the mean.
pub(crate) fn imbalance(loads: &[f64]) -> f64 {
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    match mean > 0.0 {
        true => max(loads.iter().copied()) / mean,
        false => 1.0,
    }
}

/// The standard deviation, as a share of the mean.
pub(super) fn deviation(loads: &[f64]) -> f64 {
    let count = loads.len().max(1) as f64;
    let mean = loads.iter().sum::<f64>() / count;
    let squares = loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>();
    match mean > 0.0 {
        true => (squares / count).sqrt() / mean,
        false => 0.0,
    }
}

/// The part of the busiest owner's time, which all wait for, that the most even loads that there can be, `best`, would
/// save; `None` if that is no use.
pub(super) fn whole_gain(before: &[f64], best: &[f64]) -> Option<f64> {
    let most = |loads: &[f64]| max(loads.iter().copied());
    let whole = 1.0 - most(best) / most(before);
    (whole >= 1.0 - EVEN).then_some(whole)
}

/// What a cycle saves of that which leaves loads `after`; `None` if that is no use.
///
/// A gentle cycle leaves the busiest owner what it has, and takes from those at the edge of what is asked for: so what
/// counts is the whole gain, as far as the cycle goes towards it.
pub(super) fn gain(whole: f64, before: &[f64], after: &[f64], best: &[f64]) -> Option<f64> {
    let gain = whole * progress(before, after, best);
    (gain >= LEAST).then_some(gain)
}

/// How far it is from some loads to others on the way to the best: one at the end.
pub(super) fn progress(before: &[f64], after: &[f64], best: &[f64]) -> f64 {
    let way = deviation(before) - deviation(best);
    match way > 0.0 {
        true => (deviation(before) - deviation(after)) / way,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::Algorithm;
    use crate::balance::target::targets;

    fn gain(before: &[f64], after: &[f64], best: &[f64]) -> Option<f64> {
        super::gain(whole_gain(before, best)?, before, after, best)
    }

    #[test]
    fn a_gentle_cycle_gains_though_the_busiest_keep_their_loads() {
        let half: Vec<f64> = (0..32).map(|at| f64::from(at / 8 % 3 != 0)).collect();
        assert_eq!(half.iter().sum::<f64>(), 16.0);
        let after = |algorithm| targets(&half, algorithm);
        let even = [0.5; 32];
        let of = |algorithm| gain(&half, &after(algorithm), &even).expect("it gains");
        assert!((of(Algorithm::OneShot) - 0.5).abs() < 1e-9);
        let (gentle, wide) = (Algorithm::MovingAverage(1), Algorithm::MovingAverage(8));
        assert_eq!(max(after(gentle)), 1.0);
        assert!(0.02 < of(gentle) && of(gentle) < of(wide) && of(wide) < 0.5);
    }

    #[test]
    fn what_is_about_even_or_stays_so_gains_nothing() {
        let even = [1.0, 1.0];
        assert_eq!(gain(&even, &even, &even), None);
        assert_eq!(gain(&[1.04, 0.96], &even, &even), None);
        assert_eq!(gain(&[2.0, 0.0], &[0.0, 2.0], &even), None);
        assert_eq!(gain(&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0]), None);
        // All wait for a key that cannot be parted, however even the others are.
        let (before, after) = ([4.0, 2.0, 0.3, 0.3], [4.0, 1.0, 0.8, 0.8]);
        assert_eq!(gain(&before, &after, &after), None);
    }
}
