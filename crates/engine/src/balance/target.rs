//! Where partitions should end: the configurable algorithm of the ERIS paper (Section 3.3.1, Figure 6).
//!
//! ```text
//! partition          1   2   3   4   5   6   7   8
//! load               0   0  25  25  25  25   0   0        what its owner was busy with in the last period
//! One-Shot        12.5 12.5 …                             every partition gets the average of all
//! MA1                0 8.3 16.7 25 25 16.7 8.3   0        every one gets the average of itself and its neighbours
//! ```
//!
//! From the loads that partitions should have follow their bounds, by the keys that were sampled: a partition begins at
//! the key up to which the others before it have theirs.

use eris_home::Algorithm;

/// An algorithm, and then those that go further, up to One-Shot among so many owners: for whoever finds that a cycle
/// gains too little or does not pay.
///
/// The more even neighbours are, the less does the average over few of them differ from what each has, though others
/// have much more. The paper's bounds move by however little that is; here each piece that moves is a segment more.
pub(super) fn and_wider(algorithm: Algorithm, owners: usize) -> impl Iterator<Item = Algorithm> {
    std::iter::successors(Some(algorithm), move |way| match *way {
        Algorithm::MovingAverage(neighbours) if neighbours + 1 < owners => {
            Some(Algorithm::MovingAverage((2 * neighbours).max(1)))
        }
        _ => None,
    })
}

/// What was asked of some keys, from `low` up to the next ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledLoad {
    pub low: u64,
    /// In any unit.
    pub weight: f64,
    /// Keys that were asked for, ascending, each as likely as any other.
    pub samples: Vec<u64>,
}

/// Keys that a partition goes by for which nothing was sampled.
pub(super) const UNSAMPLED: u64 = 16;

/// A bound stays where it is if the loads before it differ from what they should be by no more than this part of the
/// average.
pub(super) const CLOSE: f64 = 0.05;

/// The loads that partitions should have. Their sum stays.
pub(crate) fn targets(loads: &[f64], algorithm: Algorithm) -> Vec<f64> {
    let reach = match algorithm {
        Algorithm::OneShot => loads.len(),
        Algorithm::MovingAverage(neighbours) => neighbours,
    };
    let average = |window: &[f64]| window.iter().sum::<f64>() / window.len() as f64;
    let averages: Vec<f64> = (0..loads.len())
        .map(|at| {
            let end = loads.len().min(at.saturating_add(reach).saturating_add(1));
            average(&loads[at.saturating_sub(reach)..end])
        })
        .collect();
    // Those at the ends average over fewer.
    let (sum, of_averages) = (loads.iter().sum::<f64>(), averages.iter().sum::<f64>());
    match of_averages > 0.0 {
        true => averages
            .iter()
            .map(|load| load * sum / of_averages)
            .collect(),
        false => averages,
    }
}

/// The lower bounds of partitions that have about these loads, ascending: one where the partition before it has no key.
/// `lows` are those that they have now, of which the first stays.
pub(crate) fn bounds(line: &CumulativeLoad, lows: &[u64], targets: &[f64]) -> Vec<u64> {
    let total: f64 = targets.iter().sum();
    let close = CLOSE * total / targets.len().max(1) as f64;
    let mut bounds = Vec::with_capacity(lows.len());
    let mut before = 0.0;
    for (&low, target) in lows.iter().zip(targets) {
        let bound = match bounds.last() {
            None => low,
            Some(_) if (line.before(low) - before).abs() <= close => low,
            Some(_) => line.reached(before).unwrap_or(low),
        };
        bounds.push(bounds.last().map_or(bound, |last| bound.max(*last)));
        before += target;
    }
    bounds
}

/// All samples in the order of their keys, and the load up to each.
pub(crate) struct CumulativeLoad {
    /// A key, and the load of all before it.
    points: Vec<(u64, f64)>,
    all: f64,
}

impl CumulativeLoad {
    /// Of loads in the order of their keys. `last` is the greatest key.
    pub fn new(parts: &[SampledLoad], last: u64) -> Self {
        let mut line = CumulativeLoad {
            points: Vec::new(),
            all: 0.0,
        };
        let highs = parts.iter().skip(1).map(|next| next.low.saturating_sub(1));
        for (part, high) in parts.iter().zip(highs.chain([last])) {
            if part.weight <= 0.0 {
                continue;
            }
            match part.samples.is_empty() {
                false => line.add(part.weight, &part.samples),
                true => {
                    let step = high.saturating_sub(part.low) / UNSAMPLED;
                    let spread = (0..UNSAMPLED).map(|at| part.low + at * step);
                    line.add(part.weight, &spread.collect::<Vec<_>>());
                }
            }
        }
        line
    }

    fn add(&mut self, weight: f64, keys: &[u64]) {
        let each = weight / keys.len() as f64;
        for &key in keys {
            // Accesses of one key cannot be parted.
            if self.points.last().is_none_or(|(last, _)| *last < key) {
                self.points.push((key, self.all));
            }
            self.all += each;
        }
    }

    /// The load of all keys before this one.
    pub fn before(&self, key: u64) -> f64 {
        let at = self.points.partition_point(|(point, _)| *point < key);
        self.points.get(at).map_or(self.all, |(_, before)| *before)
    }

    /// The first key before which there is so much load, or nearly.
    fn reached(&self, load: f64) -> Option<u64> {
        let at = self.points.partition_point(|(_, before)| *before < load);
        let (above, below) = (self.points.get(at), at.checked_sub(1));
        let below = below.map(|below| self.points[below]);
        match (below, above) {
            (Some((key, before)), Some((_, after))) if load - before < after - load => Some(key),
            (_, Some((key, _))) => Some(*key),
            // All load is before it.
            (Some((key, _)), None) => key.checked_add(1),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of the paper's Figure 6: eight partitions, of which those in the middle are asked for.
    const FIGURE: [f64; 8] = [0.0, 0.0, 25.0, 25.0, 25.0, 25.0, 0.0, 0.0];

    fn loads(weights: &[f64], width: u64) -> Vec<SampledLoad> {
        let parts = weights.iter().zip(0..).map(|(&weight, at)| SampledLoad {
            low: at * width,
            weight,
            samples: match weight > 0.0 {
                true => (0..100).map(|key| at * width + key * width / 100).collect(),
                false => Vec::new(),
            },
        });
        parts.collect()
    }

    #[test]
    fn one_shot_wants_equal_loads_and_a_moving_average_goes_some_of_the_way() {
        assert_eq!(targets(&FIGURE, Algorithm::OneShot), [12.5; 8]);
        assert_eq!(targets(&FIGURE, Algorithm::MovingAverage(7)), [12.5; 8]);
        assert_eq!(targets(&FIGURE, Algorithm::MovingAverage(0)), FIGURE);
        let gentle = targets(&FIGURE, Algorithm::MovingAverage(1));
        let expected = [
            0.0,
            25.0 / 3.0,
            50.0 / 3.0,
            25.0,
            25.0,
            50.0 / 3.0,
            25.0 / 3.0,
            0.0,
        ];
        let pairs = gentle.iter().zip(expected);
        pairs.for_each(|(target, expected)| assert!((target - expected).abs() < 1e-9));
        assert_eq!(targets(&[0.0; 3], Algorithm::OneShot), [0.0; 3]);
    }

    fn bounds_of(parts: &[SampledLoad], targets: &[f64]) -> Vec<u64> {
        let lows: Vec<u64> = parts.iter().map(|part| part.low).collect();
        bounds(&CumulativeLoad::new(parts, u64::MAX), &lows, targets)
    }

    #[test]
    fn the_papers_example_becomes_what_figure_7_shows() {
        let bounds = bounds_of(
            &loads(&FIGURE, 1_000),
            &targets(&FIGURE, Algorithm::OneShot),
        );
        // Partition 1 takes all of 2 and half of 3, 2 the other half of 3, and 3 half of 4.
        assert_eq!(bounds, [0, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000, 5_500]);
    }

    #[test]
    fn bounds_stay_where_loads_are_equal_or_there_are_none() {
        let balanced = loads(&[10.0, 10.2, 9.9, 10.0], 1_000);
        let weights: Vec<f64> = balanced.iter().map(|part| part.weight).collect();
        let equal = targets(&weights, Algorithm::OneShot);
        assert_eq!(bounds_of(&balanced, &equal), [0, 1_000, 2_000, 3_000]);
        let idle = loads(&[0.0; 4], 1_000);
        assert_eq!(bounds_of(&idle, &[0.0; 4]), [0, 1_000, 2_000, 3_000]);
    }

    #[test]
    fn one_hot_key_is_not_parted() {
        let mut parts = loads(&[0.0, 100.0, 0.0], 1_000);
        parts[1].samples = vec![1_500; 100];
        let bounds = bounds_of(&parts, &targets(&[0.0, 100.0, 0.0], Algorithm::OneShot));
        let owners = bounds.iter().filter(|bound| **bound <= 1_500).count();
        assert!(owners >= 1, "somebody has it: {bounds:?}");
        assert!(bounds.is_sorted());
    }

    proptest! {
        #[test]
        fn bounds_give_every_partition_about_its_load(
            weights in prop::collection::vec(0..100u32, 1..12), reach in 0..12usize,
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let parts = loads(&weights, 1_000);
            let wanted = targets(&weights, Algorithm::MovingAverage(reach));
            let sum: f64 = weights.iter().sum();
            prop_assert!((wanted.iter().sum::<f64>() - sum).abs() < 1e-6);
            let bounds = bounds_of(&parts, &wanted);
            prop_assert!(bounds.is_sorted());
            let line = CumulativeLoad::new(&parts, u64::MAX);
            // One sample of the heaviest partition, and what is close enough to stay.
            let slack = weights.iter().fold(0.0, |a: f64, b| a.max(*b)) / 100.0 + CLOSE * sum / parts.len() as f64;
            let mut before = 0.0;
            for (bound, target) in bounds.iter().zip(&wanted) {
                prop_assert!((line.before(*bound) - before).abs() <= slack + 1e-6);
                before += target;
            }
        }
    }
}
