//! Whether keys of a table get other owners, and which.
//!
//! ```text
//!              │ AEU 0        │ AEU 1              │ AEU 0 …         ranges; what keeps their owners busy, by samples
//!              │ ▁▁▁▁▁▁▁▁▁▁▁▁ │ ▁▁▁▇▇▇▇▇▇▇▇▁▁▁▁▁▁▁ │ ▁▁▁
//!                               ──────▶│                              what AEU 1 has too much: from the end of its
//!                                                                     busiest range at which the other owner's lie
//! ```
//! How much an AEU should have says the same algorithm as for bare indexes. But rows with a key that came in its order
//! lie in many ranges, of which most are as good here as there: only so much moves as somebody has too much of.

use super::Balancing;
use super::experience::{Experience, HORIZON, Move, Offer};
use super::loads::{gain, imbalance, max, whole_gain};
use super::target::{and_wider, targets};
use crate::Shift;
use eris_home::Algorithm;
use eris_numa::Topology;
use eris_types::AeuId;
use std::time::Duration;

/// Rows per second that are moved, before any were.
pub(super) const FIRST_RATE: f64 = 3e5;
/// Keys per second of those that are linked: the two owners' time to copy their entries.
const UNSHARE_RATE: f64 = 4e6;
/// What a statement takes that moves rows.
const STATEMENT: f64 = 2e-3;
/// An owner who has no more than this part of the mean above it gives nothing, and no piece is smaller.
const CLOSE: f64 = 0.05;

/// Keys of one owner, by their numbers.
#[derive(Clone, Debug)]
pub(super) struct BusyRange {
    /// The first and the last.
    pub low: i64,
    pub high: i64,
    pub aeu: AeuId,
    /// The time that its owner was busy with them.
    pub weight: f64,
    /// Keys that were asked for, ascending, each as likely as any other.
    pub samples: Vec<i64>,
}

impl BusyRange {
    /// How many numbers there are between two, at most all of this range's.
    fn width(&self, (least, greatest): (i64, i64)) -> f64 {
        let (low, high) = (self.low.max(least), self.high.min(greatest));
        (high as f64 - low as f64 + 1.0).max(0.0)
    }

    /// Is another's from now on, and no piece again.
    fn give(&mut self, to: AeuId) -> BusyRange {
        self.aeu = to;
        let piece = self.clone();
        self.weight = 0.0;
        piece
    }
}

/// What is known of a table.
pub(super) struct Looked<'a> {
    /// All ranges, in their order.
    pub ranges: Vec<BusyRange>,
    /// Of each AEU.
    pub rows: &'a [u64],
    /// The least and the greatest key.
    pub extent: (i64, i64),
    /// Whether keys are linked within a node.
    pub links: bool,
}

/// Looks at a table; `None`: all stays. `must` be even, whether or not that pays.
pub(super) fn decide(
    Looked {
        ranges,
        rows,
        extent,
        links,
    }: Looked<'_>,
    time: Duration,
    topology: &Topology,
    balancing: Balancing,
    must: bool,
    experience: &mut Experience,
) -> Option<(Vec<BusyRange>, f64)> {
    let mut loads = vec![0.0; rows.len()];
    let mut widths = vec![0.0; rows.len()];
    for range in &ranges {
        loads[range.aeu.index()] += range.weight;
        widths[range.aeu.index()] += range.width(extent);
    }
    if !experience.is_uneven(&loads, balancing.threshold) && !must {
        return None;
    }
    let algorithm = balancing.algorithm?;
    let distributed =
        |algorithm| distribute(&ranges, &loads, &targets(&loads, algorithm), topology);
    let (_, best) = distributed(Algorithm::OneShot);
    let whole = whole_gain(&loads, &best)?;
    let per_second = max(loads.iter().copied()) / time.as_secs_f64().max(1e-3);
    let ways = and_wider(algorithm, loads.len()).map(distributed);
    let mut offers = ways.filter_map(|(pieces, after)| {
        let gain = gain(whole, &loads, &after, &best)? * per_second * HORIZON.as_secs_f64();
        let moves = pieces.iter().map(|(piece, from)| {
            let share = piece.width(extent) / widths[from.index()].max(1.0);
            Move {
                shift: shift(piece),
                from: *from,
                keys: rows[from.index()] as f64 * share.min(1.0),
                others: 0.0,
            }
        });
        let moves: Vec<Move> = moves.collect();
        let node = |aeu: AeuId| topology.node_of(aeu);
        let cost = moves.iter().map(|one| {
            let rate = match links && node(one.from) == node(one.shift.to) {
                true => UNSHARE_RATE,
                false => experience.rate(),
            };
            STATEMENT + one.keys / rate
        });
        Some(Offer {
            plan: (pieces, after),
            cost: cost.sum(),
            moves,
            gain,
        })
    });
    let offer = match must {
        true => offers.next(),
        false => experience.first_that_pays(offers),
    };
    let (pieces, after) = offer?.plan;
    experience.expect(&after);
    let pieces = pieces.into_iter().map(|(piece, _)| piece).collect();
    Some((pieces, imbalance(&loads)))
}

/// Which pieces go from whom to others, so that owners have the loads that are wanted, or nearly; and those that they
/// have then.
fn distribute(
    ranges: &[BusyRange],
    loads: &[f64],
    wanted: &[f64],
    topology: &Topology,
) -> (Vec<(BusyRange, AeuId)>, Vec<f64>) {
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    let close = CLOSE * mean;
    let (mut ranges, mut loads) = (ranges.to_vec(), loads.to_vec());
    let mut pieces: Vec<(BusyRange, AeuId)> = Vec::new();
    let node = |aeu: usize| topology.node_of(AeuId(aeu as u16));
    for is_near in [true, false] {
        for from in 0..loads.len() {
            for to in (0..loads.len()).filter(|&to| (node(from) == node(to)) == is_near) {
                loop {
                    let amount = (loads[from] - wanted[from]).min(wanted[to] - loads[to]);
                    if amount <= 0.0 || loads[from] - mean <= close {
                        break;
                    }
                    let owners = (AeuId(from as u16), AeuId(to as u16));
                    let Some(piece) = take(&mut ranges, owners, amount.max(close)) else {
                        break;
                    };
                    loads[from] -= piece.weight;
                    loads[to] += piece.weight;
                    pieces.push((piece, owners.0));
                }
            }
        }
    }
    (pieces, loads)
}

/// The piece as keys of a bare index would be: in the same order.
pub(super) fn shift(piece: &BusyRange) -> Shift {
    let number = |number: i64| number as u64 ^ 1 << 63;
    Shift {
        low: number(piece.low),
        high: number(piece.high),
        to: piece.aeu,
    }
}

/// Gives another owner so much of an owner's busiest range, or all of it; `None` if that cannot be: what is asked for
/// are too few keys.
fn take(ranges: &mut Vec<BusyRange>, (from, to): (AeuId, AeuId), amount: f64) -> Option<BusyRange> {
    let own = (0..ranges.len()).filter(|&at| ranges[at].aeu == from);
    let at = own.max_by(|&a, &b| ranges[a].weight.total_cmp(&ranges[b].weight))?;
    let is_behind = at > 0 && ranges[at - 1].aeu == to;
    let range = &mut ranges[at];
    if range.weight <= 0.0 {
        return None;
    }
    if range.weight <= 1.1 * amount {
        return Some(range.give(to));
    }
    let each = range.weight / range.samples.len().max(1) as f64;
    let wanted = (amount / each).round() as usize;
    // The samples of one key go together.
    let samples = &range.samples;
    let is_bound = |at: &usize| samples[*at - 1] < samples[*at];
    let mut bounds = (1..samples.len()).filter(is_bound);
    let cut = match is_behind {
        true => bounds.rfind(|at| *at <= wanted),
        false => bounds.find(|at| samples.len() - *at <= wanted),
    }?;
    let bound = samples[cut];
    let upper = BusyRange {
        low: bound,
        weight: each * (range.samples.len() - cut) as f64,
        samples: range.samples.split_off(cut),
        ..*range
    };
    range.high = bound - 1;
    range.weight = each * cut as f64;
    ranges.insert(at + 1, upper);
    Some(ranges[if is_behind { at } else { at + 1 }].give(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Ranges of a thousand numbers each, with some owners and loads.
    fn ranges(loads: &[(u16, f64)]) -> Vec<BusyRange> {
        let last = loads.len() as i64 - 1;
        let ranges = loads.iter().zip(0..).map(|(&(aeu, weight), at)| BusyRange {
            low: if at == 0 { i64::MIN } else { at * 1_000 },
            high: if at == last {
                i64::MAX
            } else {
                at * 1_000 + 999
            },
            aeu: AeuId(aeu),
            weight,
            samples: match weight > 0.0 {
                true => (0..100).map(|key| at * 1_000 + key * 10).collect(),
                false => Vec::new(),
            },
        });
        ranges.collect()
    }

    fn decided(loads: &[(u16, f64)], rows: u64, must: bool) -> Option<Vec<(i64, i64, u16)>> {
        let extent = (0, loads.len() as i64 * 1_000 - 1);
        let balancing = Balancing {
            algorithm: Some(Algorithm::OneShot),
            ..Balancing::default()
        };
        let experience = &mut Experience::of(FIRST_RATE);
        let (ranges, topology) = (ranges(loads), Topology::fake(2, 2));
        let rows = [rows; 4];
        let mut look = || {
            let ranges = ranges.clone();
            let looked = Looked {
                ranges,
                rows: &rows,
                extent,
                links: false,
            };
            decide(looked, SECOND, &topology, balancing, must, experience)
        };
        // What one look shows may be an accident.
        let first = look();
        assert!(must || first.is_none());
        let decided = first.or_else(look);
        decided.map(|(pieces, _)| {
            let pieces = pieces.iter();
            pieces.map(|one| (one.low, one.high, one.aeu.0)).collect()
        })
    }

    #[test]
    fn what_is_even_or_costs_more_than_it_gains_stays() {
        let even = [(0, 0.5), (1, 0.45), (2, 0.55), (3, 0.5)];
        assert_eq!(decided(&even, 1_000, false), None);
        let hot = [(0, 0.8), (1, 0.0), (2, 0.0), (3, 0.0)];
        assert!(decided(&hot, 1_000_000, false).is_some());
        assert_eq!(decided(&hot, 20_000_000, false), None);
        let cool = [(0, 0.001), (1, 0.0), (2, 0.0), (3, 0.0)];
        assert_eq!(decided(&cool, 1_000_000, false), None);
        assert!(decided(&cool, 1_000_000, true).is_some());
    }

    #[test]
    fn only_what_somebody_has_too_much_of_moves_and_to_where_it_has_neighbours() {
        // AEU 0 has two ranges, and the second one is hot.
        let loads = [(0, 0.0), (1, 0.0), (0, 0.8), (1, 0.0), (2, 0.4), (3, 0.4)];
        let moved = decided(&loads, 1_000, false).expect("it pays");
        assert_eq!(moved, [(2_000, 2_499, 1)]);
    }

    #[test]
    fn one_hot_key_stays() {
        let mut hot = ranges(&[(0, 0.9), (1, 0.0)]);
        hot[0].samples = vec![7; 100];
        assert!(take(&mut hot, (AeuId(0), AeuId(1)), 0.45).is_none());
    }

    proptest! {
        #[test]
        fn pieces_are_cut_from_what_is_there(loads in prop::collection::vec((0..4u16, 0..100u32), 1..10)) {
            let loads: Vec<(u16, f64)> = loads.into_iter().map(|(aeu, load)| (aeu, f64::from(load))).collect();
            let before = ranges(&loads);
            let pieces = decided(&loads, 10, true).unwrap_or_default();
            for (place, (low, high, to)) in pieces.iter().enumerate() {
                let whose = before.iter().find(|range| range.low <= *low && *high <= range.high);
                prop_assert!(whose.is_some_and(|range| range.aeu.0 != *to), "{low} {high}");
                prop_assert!(low <= high);
                let others = pieces.iter().enumerate().filter(|(other, _)| *other != place);
                for (_, (other_low, other_high, _)) in others {
                    prop_assert!(high < other_low || other_high < low);
                }
            }
        }
    }
}
