//! Whether something moves, and what.

use super::Balancing;
use super::experience::{Experience, HORIZON, Move, Offer};
use super::lend::{Lent, lend};
use super::loads::{by_owner, gain, imbalance, max, whole_gain};
use super::target::{CumulativeLoad, SampledLoad, and_wider, bounds, targets};
use crate::{SegmentLoad, Shift};
use eris_home::Algorithm;
use eris_numa::Topology;
use eris_types::AeuId;

/// Fewer keys asked for in a period tell nothing.
pub(super) const FEW_ASKED: u64 = 1_000;
/// More segments than these per owner, and every owner gets one range again: a batch is looked up in one segment after
/// the other.
const MOST_SEGMENTS: usize = 16;

/// What is to be done.
pub(crate) struct Decision {
    pub shifts: Vec<Shift>,
    pub imbalance: f64,
}

/// Looks at an index's segments, in the order of their keys; `None`: all stays.
pub(crate) fn decide(
    segments: &[SegmentLoad],
    topology: &Topology,
    balancing: Balancing,
    experience: &mut Experience,
) -> Option<Decision> {
    let algorithm = balancing.algorithm?;
    let asked: u64 = segments.iter().map(|segment| segment.asked).sum();
    if asked < FEW_ASKED {
        experience.expect_nothing();
        return None;
    }
    let segments = &experience.steady(segments)[..];
    let owners = in_order(segments, topology.aeus().len());
    let busy = by_owner(segments, owners.len());
    if !experience.is_uneven(&busy, balancing.threshold) {
        return None;
    }
    let loads: Vec<f64> = owners.iter().map(|(aeu, _)| busy[aeu.index()]).collect();
    let way = |algorithm| {
        let wanted = targets(&loads, algorithm);
        match segments.len() <= MOST_SEGMENTS * owners.len() {
            true => least(segments, &owners, &busy, &wanted, topology),
            false => in_ranges(segments, &owners, &wanted),
        }
    };
    let (_, best) = way(Algorithm::OneShot);
    let whole = whole_gain(&busy, &best)?;
    let ways = and_wider(algorithm, owners.len()).map(way);
    let offers = ways.filter_map(|(shifts, after)| {
        let gain = gain(whole, &busy, &after, &best)? * HORIZON.as_secs_f64();
        let moves = moves(segments, &shifts);
        Some(Offer {
            cost: copied(&moves, topology) / experience.rate(),
            plan: (shifts, after),
            moves,
            gain,
        })
    });
    let (shifts, after) = experience.first_that_pays(offers)?.plan;
    experience.expect(&after);
    Some(Decision {
        shifts,
        imbalance: imbalance(&busy),
    })
}

/// As few keys as possible move. With the loads of the owners then.
fn least(
    segments: &[SegmentLoad],
    owners: &[(AeuId, u64)],
    busy: &[f64],
    wanted: &[f64],
    topology: &Topology,
) -> (Vec<Shift>, Vec<f64>) {
    let mut targets = vec![0.0; busy.len()];
    for ((aeu, _), wanted) in owners.iter().zip(wanted) {
        targets[aeu.index()] = *wanted;
    }
    let Lent { shifts, loads } = lend(segments, busy, &targets, topology);
    (shifts, loads)
}

/// Every owner gets one range, so that there are few segments again.
fn in_ranges(
    segments: &[SegmentLoad],
    owners: &[(AeuId, u64)],
    wanted: &[f64],
) -> (Vec<Shift>, Vec<f64>) {
    let line = segments.iter().map(|segment| SampledLoad {
        low: segment.low,
        weight: segment.busy.as_secs_f64(),
        samples: segment.samples.clone(),
    });
    let line = CumulativeLoad::new(&line.collect::<Vec<_>>(), u64::MAX);
    let lows: Vec<u64> = owners.iter().map(|(_, low)| *low).collect();
    let bounds = bounds(&line, &lows, wanted);
    let highs = bounds.iter().skip(1).map(|next| next.checked_sub(1));
    let highs = highs.chain([Some(u64::MAX)]);
    let ranges = owners.iter().zip(&bounds).zip(highs);
    let shifts: Vec<Shift> = ranges
        .filter_map(|(((to, _), &low), high)| {
            let (to, high) = (*to, high.filter(|high| *high >= low)?);
            Some(Shift { low, high, to })
        })
        .collect();
    let mut after = vec![0.0; owners.len()];
    for shift in &shifts {
        let end = shift.high.checked_add(1);
        after[shift.to.index()] =
            end.map_or(line.before(u64::MAX), |end| line.before(end)) - line.before(shift.low);
    }
    (shifts, after)
}

/// The owners in the order of their first keys; one without any where its number belongs. With the first key of each.
fn in_order(segments: &[SegmentLoad], owners: usize) -> Vec<(AeuId, u64)> {
    let mut firsts: Vec<Option<u64>> = vec![None; owners];
    for segment in segments {
        firsts[segment.aeu.index()].get_or_insert(segment.low);
    }
    let mut next = u64::MAX;
    let mut order: Vec<(AeuId, u64)> = Vec::with_capacity(owners);
    for (aeu, first) in firsts.iter().enumerate().rev() {
        next = first.unwrap_or(next);
        order.push((AeuId(aeu as u16), next));
    }
    order.reverse();
    // All keys have an owner, also those before the first that anybody asked for.
    order.sort_by_key(|(_, first)| *first);
    order
}

fn moves(segments: &[SegmentLoad], shifts: &[Shift]) -> Vec<Move> {
    let mut moves = Vec::new();
    for segment in segments {
        // The last one's keys end somewhere before the greatest number.
        let greatest = segment.samples.last().copied().unwrap_or(segment.high);
        let end = match segment.high {
            u64::MAX => greatest.max(segment.low),
            high => high,
        };
        let away = shifts.iter().filter(|shift| shift.to != segment.aeu);
        for shift in away {
            let (low, high) = (shift.low.max(segment.low), shift.high.min(segment.high));
            if low > high {
                continue;
            }
            let width = high.min(end).saturating_sub(low);
            let share = width as f64 / (end - segment.low).max(1) as f64;
            let keys = segment.keys as f64 * share.min(1.0);
            moves.push(Move {
                shift: Shift {
                    low,
                    high,
                    ..*shift
                },
                from: segment.aeu,
                keys,
                others: segment.keys as f64 - keys,
            });
        }
    }
    moves
}

/// About how many keys the owner copies that copies most: to other nodes all, else the smaller part of a segment that
/// is parted.
fn copied(moves: &[Move], topology: &Topology) -> f64 {
    let mut of = vec![0.0; topology.aeus().len()];
    for Move {
        shift,
        from,
        keys,
        others,
    } in moves
    {
        let is_near = topology.node_of(shift.to) == topology.node_of(*from);
        of[from.index()] += if is_near { keys.min(*others) } else { *keys };
    }
    max(of)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Shifted;
    use std::time::Duration;

    pub(crate) fn segments(busy: &[f64], keys: u64) -> Vec<SegmentLoad> {
        let width = 1 << 20;
        let parts = busy.iter().zip(0..).map(|(&busy, at)| {
            let (low, next) = (at * width, (at + 1) * width);
            SegmentLoad {
                aeu: AeuId(at as u16),
                low,
                high: if at + 1 == 8 { u64::MAX } else { next - 1 },
                keys,
                bytes: keys * 16,
                asked: (busy * 1e6) as u64,
                busy: Duration::from_secs_f64(busy),
                samples: (0..100).map(|key| low + key * width / 100).collect(),
            }
        });
        parts.collect()
    }

    fn balancing(algorithm: Algorithm) -> Balancing {
        Balancing {
            algorithm: Some(algorithm),
            ..Balancing::default()
        }
    }

    /// At the second look: what the first one shows may be an accident.
    pub(crate) fn one_shot(
        segments: &[SegmentLoad],
        experience: &mut Experience,
    ) -> Option<Decision> {
        let (topology, way) = (Topology::fake(4, 2), balancing(Algorithm::OneShot));
        assert!(decide(segments, &topology, way, experience).is_none());
        decide(segments, &topology, way, experience)
    }

    #[test]
    fn even_loads_and_idle_indexes_stay() {
        let experience = &mut Experience::default();
        let even = segments(&[0.5, 0.52, 0.49, 0.5, 0.51, 0.5, 0.47, 0.5], 1 << 20);
        assert!(one_shot(&even, experience).is_none());
        let idle = segments(&[0.0, 0.0, 0.0001, 0.0, 0.0, 0.0, 0.0, 0.0], 1 << 20);
        assert!(one_shot(&idle, experience).is_none());
        let off = Balancing {
            algorithm: None,
            ..Balancing::default()
        };
        let uneven = segments(&[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 1 << 20);
        assert!(decide(&uneven, &Topology::fake(4, 2), off, experience).is_none());
    }

    #[test]
    fn uneven_loads_move_if_moving_is_worth_it() {
        let busy = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        let experience = &mut Experience::default();
        let decision = one_shot(&segments(&busy, 1 << 20), experience).expect("it pays");
        assert!((decision.imbalance - 2.0).abs() < 1e-9);
        let shifts = decision.shifts.iter();
        let ranges: Vec<(u64, u64)> = shifts
            .map(|shift| (shift.low >> 19, (shift.high + 1) >> 19))
            .collect();
        assert_eq!(ranges, [(4, 5), (6, 7), (8, 9), (10, 11)]);
        // 2^30 keys take minutes, and nobody knows what is asked for by then.
        assert!(one_shot(&segments(&busy, 1 << 30), experience).is_none());
    }

    #[test]
    fn one_owner_that_all_wait_for_gives_a_little_to_many() {
        let topology = Topology::fake(8, 4);
        let busy: Vec<f64> = (0..32).map(|at| if at == 7 { 2.0 } else { 1.0 }).collect();
        let mut all = segments(&busy, 1 << 20);
        all[7].high = all[8].low - 1;
        all[31].high = u64::MAX;
        for algorithm in [Algorithm::OneShot, Algorithm::MovingAverage(8)] {
            let (way, experience) = (balancing(algorithm), &mut Experience::default());
            assert!(decide(&all, &topology, way, experience).is_none());
            let decision = decide(&all, &topology, way, experience).expect("it pays");
            let moved = moves(&all, &decision.shifts);
            assert!(moved.len() > 2 && moved.iter().all(|one| one.from == AeuId(7)));
        }
    }

    #[test]
    fn many_segments_become_one_range_per_owner_again() {
        let busy = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        let whole = segments(&busy, 1 << 20);
        let parts = whole.iter().flat_map(|one| {
            (0..32).map(|part| SegmentLoad {
                low: one.low + (part << 15),
                high: match part {
                    31 => one.high,
                    _ => one.low + ((part + 1) << 15) - 1,
                },
                keys: one.keys / 32,
                busy: one.busy / 32,
                samples: Vec::new(),
                ..one.clone()
            })
        });
        let decision = one_shot(&parts.collect::<Vec<_>>(), &mut Experience::default());
        let shifts = decision.expect("it pays").shifts;
        let bounds: Vec<u64> = shifts.iter().map(|shift| shift.low >> 19).collect();
        assert_eq!(bounds, [0, 5, 6, 7, 8, 9, 10, 11]);
    }

    /// Ranges of 2^20 keys with owners, as segments. Of each the last key is asked for, so much.
    fn hot_keys(owners: &[u16], busy: &[f64]) -> Vec<SegmentLoad> {
        let mut segments: Vec<SegmentLoad> = Vec::new();
        for (mut one, &owner) in self::segments(busy, 1 << 20).into_iter().zip(owners) {
            let asked = (one.busy.as_secs_f64() * 20.0) as usize;
            one.samples = vec![one.high; asked];
            one.aeu = AeuId(owner);
            match segments.last_mut().filter(|last| last.aeu == one.aeu) {
                Some(last) => {
                    last.high = one.high;
                    last.keys += one.keys;
                    last.asked += one.asked;
                    last.busy += one.busy;
                    last.samples.extend(one.samples);
                }
                None => segments.push(one),
            }
        }
        segments
    }

    /// A workload alternates: now the first key is asked for as much as the two others, now not at all, so that the
    /// others should be one owner's, or two. In between each owner is asked for as much as the other.
    #[test]
    fn keys_swing_a_few_times_only_however_even_loads_are_in_between() {
        let topology = Topology::fake(2, 1);
        let way = balancing(Algorithm::OneShot);
        let experience = &mut Experience::default();
        let (mut owners, mut swings) = ([0, 1, 1], 0);
        for round in 0..20 {
            let busy = [[0.0, 0.5, 0.5], [1.0, 0.5, 0.5]][round % 2];
            let loads = hot_keys(&owners, &busy);
            assert!(decide(&loads, &topology, way, experience).is_none());
            if let Some(Decision { shifts, .. }) = decide(&loads, &topology, way, experience) {
                let shifted = moves(&loads, &shifts).into_iter().map(|one| Shifted {
                    shift: one.shift,
                    from: one.from,
                    result: Ok(crate::Moved {
                        keys: one.keys as u64,
                        ..Default::default()
                    }),
                    time: Duration::from_secs(1),
                });
                experience.learn(&shifted.collect::<Vec<_>>(), |_| false);
                for (owner, at) in owners.iter_mut().zip(0..) {
                    let is_in =
                        |one: &&Shift| (one.low..=one.high).contains(&(((at + 1) << 20) - 1));
                    *owner = shifts.iter().find(is_in).map_or(*owner, |one| one.to.0);
                }
                swings += 1;
            }
            let of = |owner: u16| owners.iter().filter(|one| **one == owner).count() as f64;
            let even = owners.map(|owner| 1.0 / of(owner));
            let even = hot_keys(&owners, &even);
            assert!(decide(&even, &topology, way, experience).is_none());
        }
        assert!((1..8).contains(&swings), "{swings} times to and fro");
    }

    #[test]
    fn keys_of_the_last_owner_are_not_taken_for_nothing() {
        let busy = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 4.0];
        let decision = one_shot(&segments(&busy, 1 << 20), &mut Experience::default());
        let shifts = decision.expect("it pays").shifts;
        let moved = moves(&segments(&busy, 1 << 20), &shifts);
        let of_last: f64 = moved
            .iter()
            .filter(|one| one.from == AeuId(7))
            .map(|one| one.keys)
            .sum();
        assert!(of_last > 0.5 * f64::from(1 << 20), "{of_last}");
    }

    /// So many keys per owner, of which the middle half are asked for: after how many cycles the busiest owner has
    /// little more than the mean.
    fn cycles(algorithm: Algorithm, keys: u64) -> usize {
        const OWNERS: u64 = 32;
        let topology = Topology::fake(8, 4);
        let way = Balancing {
            threshold: 0.05,
            ..balancing(algorithm)
        };
        let experience = &mut Experience::default();
        let hot = OWNERS * keys / 4..OWNERS * keys * 3 / 4;
        let mut ranges: Vec<(u64, u64, u16)> = (0..OWNERS)
            .map(|at| (at * keys, (at + 1) * keys - 1, at as u16))
            .collect();
        for cycle in 0..400 {
            let loads: Vec<SegmentLoad> = ranges
                .iter()
                .map(|&(low, high, owner)| {
                    let asked = hot.end.min(high + 1).saturating_sub(hot.start.max(low));
                    let first = hot.start.max(low);
                    SegmentLoad {
                        aeu: AeuId(owner),
                        low,
                        high,
                        keys: high + 1 - low,
                        bytes: (high + 1 - low) * 16,
                        asked,
                        busy: Duration::from_nanos(asked * 5_000),
                        samples: (0..asked.min(64))
                            .map(|at| first + at * asked / asked.min(64))
                            .collect(),
                    }
                })
                .collect();
            let of = by_owner(&loads, OWNERS as usize);
            if imbalance(&of) < 1.2 {
                return cycle;
            }
            let Some(Decision { shifts, .. }) = decide(&loads, &topology, way, experience) else {
                continue;
            };
            for Shift { low, high, to } in shifts {
                let mut next = Vec::new();
                for (from, until, owner) in ranges {
                    if until < low || high < from {
                        next.push((from, until, owner));
                        continue;
                    }
                    if from < low {
                        next.push((from, low - 1, owner));
                    }
                    next.push((from.max(low), until.min(high), to.0));
                    if high < until {
                        next.push((high + 1, until, owner));
                    }
                }
                ranges = next;
            }
            ranges.dedup_by(|next, before| {
                let is_one = next.2 == before.2;
                if is_one {
                    before.1 = next.1;
                }
                is_one
            });
        }
        usize::MAX
    }

    #[test]
    fn a_gentle_algorithm_arrives_too() {
        let gentle = |neighbours, keys| cycles(Algorithm::MovingAverage(neighbours), keys);
        let at_once = cycles(Algorithm::OneShot, 1 << 16);
        let (some, few) = (gentle(8, 1 << 16), gentle(1, 1 << 16));
        let all = format!("{at_once}, {some}, and {few} cycles");
        assert!(at_once <= some && some < few, "{all}");
        assert!(at_once < 4 && some < 12 && few < 40, "{all}");
        // To copy so many takes longer than a small step saves.
        let (some, few) = (gentle(8, 40 << 20), gentle(1, 5 << 20));
        assert!(some < 12 && few < 60, "{some}, and {few} cycles");
    }
}
