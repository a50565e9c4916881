//! Which keys go from owners that have too much to do to those that have too little: as few as possible, and as near.
//!
//! ```text
//! owner        0      1         2         3                 target: ▄▄ each
//! load         ▁      ▇▇        ▇▇        ▁
//! segments  [ cold ][ hot ··· ][ ··· hot ][ cold ]
//!               ▲         └─┐      └────────┐
//!               └── to 0 ───┘               └── to 3        what nobody asks for stays where it is
//! ```
//!
//! The paper's partitions are one range each (Section 3.3.1), so that a bound that moves moves all others behind it,
//! and keys that nobody asks for go along. An owner here may have several segments, and gives what it has too much of
//! from the end of one to whoever is to have more.

use super::target::UNSAMPLED;
use crate::{SegmentLoad, Shift};
use eris_numa::Topology;
use eris_types::AeuId;

/// An owner who has no more than this part of the mean above it gives nothing, and no piece is smaller: each becomes a
/// segment more, which makes batches take longer.
const CLOSE: f64 = 0.1;
/// A piece may have so many times the load that would make two owners' equal, and a whole segment by so much less than
/// is wanted.
const MOST: f64 = 1.5;

/// What goes to whom.
pub(super) struct Lent {
    /// In the order of the keys.
    pub shifts: Vec<Shift>,
    /// The load of every owner then, by its number.
    pub loads: Vec<f64>,
}

/// A segment, or what is left of it.
struct Stock {
    low: u64,
    high: u64,
    /// The last key that there is, about.
    end: u64,
    weight: f64,
    /// Keys that were asked for, ascending; none if it cannot be parted any more.
    samples: Vec<u64>,
}

/// Loads and targets are by the owners' numbers.
pub(super) fn lend(
    segments: &[SegmentLoad],
    loads: &[f64],
    targets: &[f64],
    topology: &Topology,
) -> Lent {
    let mut loads = loads.to_vec();
    let mean = targets.iter().sum::<f64>() / targets.len().max(1) as f64;
    let close = CLOSE * mean;
    let mut shifts = Vec::new();
    let mut donors: Vec<usize> = (0..loads.len()).collect();
    donors.sort_by(|&a, &b| (loads[b] - targets[b]).total_cmp(&(loads[a] - targets[a])));
    for donor in donors {
        if loads[donor] <= targets[donor] || loads[donor] - mean <= close {
            continue;
        }
        let aeu = AeuId(donor as u16);
        let own = segments.iter().filter(|segment| segment.aeu == aeu);
        let mut stocks: Vec<Stock> = own
            .filter(|one| !one.busy.is_zero())
            .map(Stock::of)
            .collect();
        while loads[donor] > targets[donor] && loads[donor] - mean > close {
            let missing = |&other: &usize| targets[other] - loads[other];
            let needy = (0..loads.len()).filter(|other| missing(other) > 0.0);
            let near =
                |other: &usize| topology.node_of(AeuId(*other as u16)) == topology.node_of(aeu);
            let first = |a: &usize, b: &usize| {
                near(a)
                    .cmp(&near(b))
                    .then(missing(a).total_cmp(&missing(b)))
            };
            let Some(to) = needy.max_by(first) else {
                break;
            };
            let wanted = (loads[donor] - targets[donor]).min(missing(&to)).max(close);
            // The receiver shall not be the one that has too much then.
            let most = MOST * (loads[donor] - loads[to]) / 2.0;
            let Some((low, high, weight)) = take(&mut stocks, wanted, most) else {
                break;
            };
            loads[donor] -= weight;
            loads[to] += weight;
            let to = AeuId(to as u16);
            shifts.push(Shift { low, high, to });
        }
    }
    shifts.sort_by_key(|shift| shift.low);
    Lent { shifts, loads }
}

/// Keys with about so much load: a whole segment that has no more, or else the end of the busiest.
fn take(stocks: &mut Vec<Stock>, wanted: f64, most: f64) -> Option<(u64, u64, f64)> {
    let heaviest = |among: &mut dyn Iterator<Item = (usize, f64)>| {
        among.max_by(|(_, a), (_, b)| a.total_cmp(b))
    };
    let weights = |stocks: &[Stock]| {
        let weights = stocks.iter().map(|stock| stock.weight);
        weights.enumerate().collect::<Vec<_>>()
    };
    let all = weights(stocks);
    let mut fitting = all.iter().copied();
    let mut fitting = fitting
        .by_ref()
        .filter(|(_, weight)| (wanted / MOST..=wanted * (1.0 + CLOSE)).contains(weight));
    if let Some((at, weight)) = heaviest(&mut fitting) {
        let Stock { low, high, .. } = stocks.swap_remove(at);
        return Some((low, high, weight));
    }
    while let Some((at, _)) = heaviest(&mut weights(stocks).into_iter()) {
        if let Some(part) = stocks[at].part(wanted, most) {
            return Some(part);
        }
        stocks.swap_remove(at);
    }
    None
}

impl Stock {
    fn of(segment: &SegmentLoad) -> Stock {
        let &SegmentLoad { low, high, .. } = segment;
        // The last one's keys end somewhere before the greatest number.
        let greatest = segment.samples.last().copied().unwrap_or(high);
        let end = match high {
            u64::MAX => greatest.max(low),
            high => high,
        };
        // What was asked for before the segment was parted may be another's by now.
        let mut samples = segment.samples.clone();
        samples.retain(|key| (low..=high).contains(key));
        if samples.is_empty() {
            let step = (end - low) / UNSAMPLED;
            samples = (0..UNSAMPLED).map(|at| low + at * step).collect();
        }
        Stock {
            low,
            high,
            end,
            weight: segment.busy.as_secs_f64(),
            samples,
        }
    }

    /// Takes keys with about so much load, and no more than `most`, from the end that is asked for more; without keys
    /// behind them that are not asked for, if these are many.
    fn part(&mut self, wanted: f64, most: f64) -> Option<(u64, u64, f64)> {
        let (first, last) = (*self.samples.first()?, *self.samples.last()?);
        let count = self.samples.len();
        let each = self.weight / count as f64;
        let some = ((wanted / each).round() as usize).min(count);
        let (before, behind) = (first - self.low, self.end.saturating_sub(last));
        let from_the_end = behind <= before;
        let place = if from_the_end { count - some } else { some };
        // Accesses of one key cannot be parted.
        let cuts = (1..count).filter(|&at| self.samples[at - 1] < self.samples[at]);
        let cut = cuts.min_by_key(|at| at.abs_diff(place))?;
        let taken = if from_the_end { count - cut } else { cut };
        let weight = each * taken as f64;
        if weight > most {
            return None;
        }
        let (hot, next) = (last - first, self.samples[cut]);
        let gap = hot / count as u64 + 1;
        let rest = self.samples.split_off(cut);
        self.weight -= weight;
        Some(if from_the_end {
            let high = match behind > hot {
                true => last.saturating_add(gap).min(self.high),
                false => self.high,
            };
            (self.high, self.end) = (next - 1, next - 1);
            (next, high, weight)
        } else {
            let low = match before > hot {
                true => first.saturating_sub(gap).max(self.low),
                false => self.low,
            };
            (self.low, self.samples) = (next, rest);
            (low, next - 1, weight)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const WIDTH: u64 = 1 << 20;

    /// One segment per owner, asked for in a part of its keys.
    fn segments(busy: &[(f64, std::ops::Range<u64>)]) -> Vec<SegmentLoad> {
        let parts = busy.iter().zip(0..).map(|((busy, hot), at)| {
            let (low, next) = (at * WIDTH, (at + 1) * WIDTH);
            let step = (hot.end - hot.start) / 100;
            SegmentLoad {
                aeu: AeuId(at as u16),
                low,
                high: next - 1,
                keys: WIDTH,
                bytes: WIDTH * 16,
                asked: 1_000,
                busy: Duration::from_secs_f64(*busy),
                samples: match *busy > 0.0 {
                    true => (0..100).map(|key| low + hot.start + key * step).collect(),
                    false => Vec::new(),
                },
            }
        });
        parts.collect()
    }

    fn lent(segments: &[SegmentLoad]) -> Lent {
        let loads: Vec<f64> = segments.iter().map(|one| one.busy.as_secs_f64()).collect();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let targets = vec![mean; loads.len()];
        lend(segments, &loads, &targets, &Topology::fake(4, 2))
    }

    fn keys(lent: &Lent) -> u64 {
        lent.shifts.iter().map(|one| one.high - one.low + 1).sum()
    }

    #[test]
    fn hot_halves_go_to_the_idle_and_cold_keys_stay() {
        let all = || 0..WIDTH;
        let lent = lent(&segments(&[
            (0.0, all()),
            (0.0, all()),
            (1.0, all()),
            (1.0, all()),
            (1.0, all()),
            (1.0, all()),
            (0.0, all()),
            (0.0, all()),
        ]));
        assert!(
            lent.loads.iter().all(|load| (load - 0.5).abs() < 0.03),
            "{:?}",
            lent.loads
        );
        assert_eq!(lent.shifts.len(), 4);
        assert!(keys(&lent).abs_diff(2 * WIDTH) < WIDTH / 16);
        assert!(
            lent.shifts
                .iter()
                .all(|one| (2..6).contains(&(one.low / WIDTH)))
        );
    }

    #[test]
    fn a_hot_end_goes_without_the_cold_rest_and_stays_near() {
        // Of AEU 2 the last tenth is asked for, of AEU 4 the first, of AEU 6 some in the middle; their neighbours on
        // the node are idle.
        let (all, tenth) = (0..WIDTH, WIDTH / 10);
        let idle = (0.0, all.clone());
        let lent = lent(&segments(&[
            idle.clone(),
            idle.clone(),
            (1.0, 9 * tenth..10 * tenth),
            idle.clone(),
            (1.0, 0..tenth),
            idle.clone(),
            (1.0, 5 * tenth..6 * tenth),
            idle,
        ]));
        assert!(
            lent.loads.iter().all(|load| *load < 0.55),
            "{:?}",
            lent.loads
        );
        assert!(keys(&lent) < 3 * tenth, "{}", keys(&lent));
        for (from, near) in [(2, 3), (4, 5), (6, 7)] {
            let shifts = lent.shifts.iter();
            let mut of = shifts.filter(|one| one.low / WIDTH == from);
            assert!(of.any(|one| one.to == AeuId(near)));
        }
        // Nothing is given twice.
        assert!(lent.shifts.is_sorted_by(|a, b| a.high < b.low));
    }

    #[test]
    fn one_key_that_all_ask_for_stays_alone() {
        let mut all = segments(&[(1.0, 0..WIDTH), (0.0, 0..1), (0.0, 0..1), (0.0, 0..1)]);
        all[0].samples = [vec![10; 50], vec![500], vec![777; 49]].concat();
        let loads = [1.0, 0.0, 0.0, 0.0];
        let lent = lend(&all, &loads, &[0.25; 4], &Topology::fake(2, 2));
        assert!(
            lent.loads.iter().all(|load| *load <= 0.51),
            "{:?}",
            lent.loads
        );
        all[0].samples = vec![10; 100];
        let lent = lend(&all, &loads, &[0.25; 4], &Topology::fake(2, 2));
        assert!(lent.shifts.is_empty());
    }
}
