//! How long work takes that lies in several places, if it stays there, and if idle workers take some of it.
//!
//! ```text
//!  place 0   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ stays
//!            ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ with help
//!  place 1   ▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒│           ▒: taken from place 0, at the rate of the way between them
//! ```
//!
//! With help all end at about one time. That time is searched for: the least at which what places have too much of fits
//! into what others can take.

/// A place and its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Bytes to be scanned.
    pub bytes: f64,
    /// Workers.
    pub workers: f64,
}

/// What is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Seconds if everything is done where it lies.
    pub pushed: f64,
    /// Seconds if idle workers help.
    pub pulled: f64,
    /// Bytes that they then take from other places.
    pub moved: f64,
}

/// Halvings of the time that is searched for.
const STEPS: usize = 40;

/// What work comes to. One worker scans `scan` bytes per second of its own place, and `rate(worker, home)` bytes per
/// second of another one.
pub fn spread(places: &[Place], scan: f64, rate: impl Fn(usize, usize) -> f64) -> Spread {
    let alone = |place: &Place| match place.bytes > 0.0 {
        true => place.bytes / (scan * place.workers),
        false => 0.0,
    };
    let pushed = places.iter().map(alone).fold(0.0, f64::max);
    let mut ways = Vec::new();
    for (helper, place) in places.iter().enumerate() {
        let homes = (0..places.len()).filter(|&home| home != helper && place.workers > 0.0);
        ways.extend(homes.map(|home| (rate(helper, home), helper, home)));
    }
    // The fastest ways are used first.
    ways.sort_by(|a, b| b.0.total_cmp(&a.0));
    let moved_within = |seconds: f64| {
        let left = |place: &Place| (place.bytes - scan * place.workers * seconds).max(0.0);
        let mut surplus: Vec<f64> = places.iter().map(left).collect();
        let idle = |place: &Place| (seconds - alone(place)).max(0.0) * place.workers;
        let mut spare: Vec<f64> = places.iter().map(idle).collect();
        let mut moved = 0.0;
        for &(rate, helper, home) in &ways {
            let taken = surplus[home].min(spare[helper] * rate);
            surplus[home] -= taken;
            spare[helper] -= taken / rate;
            moved += taken;
        }
        // A byte that is left is a rounding error.
        surplus.iter().all(|&left| left < 1.0).then_some(moved)
    };
    let (mut low, mut high) = (0.0, pushed);
    let mut moved = 0.0;
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        match moved_within(middle) {
            Some(bytes) => (high, moved) = (middle, bytes),
            None => low = middle,
        }
    }
    match high.is_finite() {
        true => Spread {
            pushed,
            pulled: high,
            moved,
        },
        // Memory without workers: somebody else's have to come.
        false => Spread {
            pushed,
            pulled: pushed,
            moved: 0.0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(bytes: &[f64]) -> Vec<Place> {
        let place = |&bytes| Place {
            bytes,
            workers: 2.0,
        };
        bytes.iter().map(place).collect()
    }

    #[test]
    fn even_work_stays() {
        let spread = spread(&places(&[8e9, 8e9]), 4e9, |_, _| 4e9);
        assert_eq!((spread.pushed, spread.moved), (1.0, 0.0));
        assert!((spread.pulled - 1.0).abs() < 1e-6);
    }

    #[test]
    fn work_of_one_place_is_shared_by_the_rates_of_the_ways() {
        let without_distance = spread(&places(&[8e9, 0.0]), 4e9, |_, _| 4e9);
        assert!((without_distance.pulled - 0.5).abs() < 1e-6);
        assert!((without_distance.moved - 4e9).abs() < 1e4);
        // At a third of the rate, a quarter moves.
        let far = spread(&places(&[8e9, 0.0]), 4e9, |_, _| 4e9 / 3.0);
        assert!((far.pulled - 0.75).abs() < 1e-6);
        assert!((far.moved - 2e9).abs() < 1e4);
    }

    #[test]
    fn the_nearest_help_first() {
        let rate = |helper, _| [0.0, 4e9, 1e9][helper];
        let spread = spread(&places(&[9e9, 0.0, 0.0]), 4e9, rate);
        // 9 GB / (8 + 8 + 2 GB/s).
        assert!((spread.pulled - 0.5).abs() < 1e-6);
        assert!((spread.moved - 5e9).abs() < 1e4);
    }

    #[test]
    fn nothing_takes_no_time() {
        let spread = spread(&places(&[0.0, 0.0]), 4e9, |_, _| 4e9);
        assert_eq!(
            (spread.pushed, spread.pulled, spread.moved),
            (0.0, 0.0, 0.0)
        );
    }
}
