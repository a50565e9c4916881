//! Whether something moves, and what.

use super::Balancing;
use super::lend::{Lent, lend};
use super::target::{Line, Load, bounds, targets};
use crate::key_index::{SegmentLoad, Shift, Shifted};
use eris_numa::Topology;
use eris_types::AeuId;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Fewer keys asked for in a period tell nothing.
pub(super) const FEW_ASKED: u64 = 1_000;
/// So many times what a key usually takes is believed.
const UNUSUAL: f64 = 1.5;
/// Of fewer keys than these perhaps no operation was timed.
const FEW_TIMED: u64 = 256;
/// How long a workload is expected to stay as it is.
pub(super) const HORIZON: Duration = Duration::from_secs(10);
/// Keys per second that are copied, before any were.
const FIRST_RATE: f64 = 5e6;
/// So many times what moving takes must be gained at most.
const MOST_CAUTION: f64 = 16.0;
/// More segments than these per owner, and every owner gets one range again: a batch is looked up in one segment after the other.
const MOST_SEGMENTS: usize = 16;
/// A cycle that leaves the busiest owner with more than this part of its load is no use: it would only cut segments smaller.
pub(super) const USE: f64 = 0.95;
/// The part of what was known that the newest transfers replace.
const NEWEST: f64 = 0.3;
/// The same of what a key takes.
const NEWEST_COST: f64 = 0.2;

/// What an index has taught about moving its keys.
#[derive(Debug)]
pub(crate) struct Experience {
    /// Keys per second that an owner copies beside its other work.
    rate: f64,
    /// What moved last, and from when that is.
    last: Option<(Instant, Vec<(Shift, AeuId)>)>,
    /// How many times what moving takes must be gained.
    caution: f64,
    /// Seconds that a key takes, by the first key of its segment.
    costs: HashMap<u64, f64>,
}

impl Default for Experience {
    fn default() -> Self {
        Experience::of(FIRST_RATE)
    }
}

/// What is to be done.
pub(crate) struct Decision {
    pub shifts: Vec<Shift>,
    pub imbalance: f64,
}

/// The load of the busiest owner, as so many times the mean.
pub(crate) fn imbalance(loads: &[f64]) -> f64 {
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    match mean > 0.0 {
        true => loads.iter().fold(0.0, |a: f64, b| a.max(*b)) / mean,
        false => 1.0,
    }
}

/// How busy each owner was with some segments.
pub(crate) fn by_owner(segments: &[SegmentLoad], owners: usize) -> Vec<f64> {
    let mut loads = vec![0.0; owners];
    for segment in segments {
        loads[segment.aeu.index()] += segment.busy.as_secs_f64();
    }
    loads
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
        return None;
    }
    let segments = &experience.steady(segments)[..];
    let owners = in_order(segments, topology.aeus().len());
    let busy = by_owner(segments, owners.len());
    let loads: Vec<f64> = owners.iter().map(|(aeu, _)| busy[aeu.index()]).collect();
    if deviation(&loads) <= balancing.threshold {
        return None;
    }
    let wanted = targets(&loads, algorithm);
    let (shifts, after) = match segments.len() <= MOST_SEGMENTS * owners.len() {
        true => least(segments, &owners, &busy, &wanted, topology),
        false => in_ranges(segments, &owners, &wanted),
    };
    let before = max(loads.iter().copied());
    let gain = (1.0 - after / before) * HORIZON.as_secs_f64();
    let moves = moves(segments, &shifts);
    let cost = copied(&moves, topology) / experience.rate * experience.caution_for(&moves);
    if after > USE * before || gain <= cost || moves.is_empty() {
        return None;
    }
    Some(Decision {
        shifts,
        imbalance: imbalance(&loads),
    })
}

/// As few keys as possible move. With the load of the busiest owner then.
fn least(
    segments: &[SegmentLoad],
    owners: &[(AeuId, u64)],
    busy: &[f64],
    wanted: &[f64],
    topology: &Topology,
) -> (Vec<Shift>, f64) {
    let mut targets = vec![0.0; busy.len()];
    for ((aeu, _), wanted) in owners.iter().zip(wanted) {
        targets[aeu.index()] = *wanted;
    }
    let Lent { shifts, loads } = lend(segments, busy, &targets, topology);
    (shifts, max(loads.into_iter()))
}

/// Every owner gets one range, so that there are few segments again.
fn in_ranges(
    segments: &[SegmentLoad],
    owners: &[(AeuId, u64)],
    wanted: &[f64],
) -> (Vec<Shift>, f64) {
    let line = segments.iter().map(|segment| Load {
        low: segment.low,
        weight: segment.busy.as_secs_f64(),
        samples: segment.samples.clone(),
    });
    let line = Line::new(&line.collect::<Vec<_>>(), u64::MAX);
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
    let after = shifts.iter().map(|shift| {
        let end = shift.high.checked_add(1);
        end.map_or(line.before(u64::MAX), |end| line.before(end)) - line.before(shift.low)
    });
    let after = max(after);
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

pub(super) fn max(loads: impl Iterator<Item = f64>) -> f64 {
    loads.fold(0.0, f64::max)
}

/// Keys of one segment that get another owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub shift: Shift,
    pub from: AeuId,
    /// About how many they are, and how many stay.
    pub keys: f64,
    pub others: f64,
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

/// About how many keys the owner copies that copies most: to other nodes all, else the smaller part of a segment that is parted.
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
    max(of.into_iter())
}

impl Experience {
    /// None yet, but that so many keys or rows may be copied per second.
    pub fn of(rate: f64) -> Self {
        Experience {
            rate,
            last: None,
            caution: 1.0,
            costs: HashMap::new(),
        }
    }

    /// The segments with times that no accident makes: of small operations one in many is timed, and one that lasts long by chance, because the
    /// machine did something else, would stand for as many. A key of one segment takes half as long again as most, or as much less, but no more; and what it
    /// takes is learnt slowly, for that changes less than what is asked for.
    fn steady(&mut self, segments: &[SegmentLoad]) -> Vec<SegmentLoad> {
        let cost = |one: &SegmentLoad| one.busy.as_secs_f64() / one.asked.max(1) as f64;
        let timed = |one: &&SegmentLoad| one.asked >= FEW_TIMED;
        let mut costs: Vec<f64> = segments.iter().filter(timed).map(cost).collect();
        costs.sort_by(f64::total_cmp);
        let Some(&usual) = costs.get(costs.len() / 2) else {
            // Too little was asked for to tell anything, and nothing is to be forgotten for it.
            let untold = segments.iter().map(|one| SegmentLoad {
                busy: Duration::ZERO,
                ..one.clone()
            });
            return untold.collect();
        };
        let known = std::mem::take(&mut self.costs);
        let steady = segments.iter().map(|one| {
            let before = known.get(&one.low).copied().unwrap_or(usual);
            let now = match timed(&one) {
                true => before + NEWEST_COST * (cost(one) - before),
                false => before,
            };
            let cost = now.clamp(usual / UNUSUAL, usual * UNUSUAL);
            self.costs.insert(one.low, cost);
            SegmentLoad {
                busy: Duration::from_secs_f64(cost * one.asked as f64),
                ..one.clone()
            }
        });
        steady.collect()
    }

    /// Keys or rows per second that are copied.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How many times the cost must be gained by these: twice as many if most of them only go back, and less after a while. That loads are even in between says nothing: those
    /// of a workload that alternates are, whenever it has just been followed.
    pub(super) fn caution_for(&self, moves: &[Move]) -> f64 {
        let Some((when, last)) = &self.last else {
            return 1.0;
        };
        let horizons = when.elapsed().as_secs_f64() / HORIZON.as_secs_f64();
        let caution = (self.caution * 0.5_f64.powf(horizons)).max(1.0);
        let goes_back = |next: &Move| {
            last.iter().any(|(before, from)| {
                let overlap = before.low <= next.shift.high && next.shift.low <= before.high;
                overlap && *from == next.shift.to && before.to == next.from
            })
        };
        let back: f64 = moves
            .iter()
            .filter(|next| goes_back(next))
            .map(|back| back.keys)
            .sum();
        let all: f64 = moves.iter().map(|all| all.keys).sum();
        match horizons < 1.0 && back > all / 2.0 {
            true => 2.0 * caution,
            false => caution,
        }
    }

    /// Takes in how quickly keys were moved.
    /// `is_linked` tells which were not, as far as they need not be.
    pub fn learn(&mut self, shifted: &[Shifted], is_linked: impl Fn(&Shifted) -> bool) {
        let moves = shifted.iter().map(|one| Move {
            shift: one.shift,
            from: one.from,
            keys: one.result.as_ref().map_or(0.0, |moved| moved.keys as f64),
            others: 0.0,
        });
        // What went back once may do so again; and what fails is not tried all the time.
        self.caution = self.caution_for(&moves.collect::<Vec<_>>());
        if shifted.iter().any(|one| one.result.is_err()) {
            self.caution *= 2.0;
        }
        self.caution = self.caution.min(MOST_CAUTION);
        let mut rates = Vec::new();
        for one in shifted {
            if let Ok(moved) = &one.result
                && moved.copied > 0
                && !is_linked(one)
            {
                rates.push(moved.keys as f64 / one.time.as_secs_f64().max(1e-6));
            }
        }
        if !rates.is_empty() {
            let newest = rates.iter().sum::<f64>() / rates.len() as f64;
            self.rate += NEWEST * (newest - self.rate);
        }
        let moved = shifted.iter().map(|one| (one.shift, one.from)).collect();
        self.last = Some((Instant::now(), moved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::Algorithm;

    fn segments(busy: &[f64], keys: u64) -> Vec<SegmentLoad> {
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

    fn one_shot(segments: &[SegmentLoad], experience: &mut Experience) -> Option<Decision> {
        let topology = Topology::fake(4, 2);
        decide(
            segments,
            &topology,
            balancing(Algorithm::OneShot),
            experience,
        )
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
    fn an_operation_that_lasts_long_by_chance_moves_nothing() {
        let mut all = segments(&[0.5; 8], 1 << 20);
        all[3].busy *= 5;
        let experience = &mut Experience::default();
        assert!(one_shot(&all, experience).is_none());
        // What lasts is learnt.
        let believed = |experience: &mut Experience| {
            let believed = experience.steady(&all);
            believed[3].busy.as_secs_f64() / believed[2].busy.as_secs_f64()
        };
        for _ in 0..5 {
            believed(experience);
        }
        assert!((believed(experience) - UNUSUAL).abs() < 1e-6);
        // A quiet period teaches nothing, and forgets nothing.
        let known = experience.costs.clone();
        let mut quiet = all.clone();
        quiet.iter_mut().for_each(|one| one.asked = FEW_TIMED - 1);
        assert!(one_shot(&quiet, experience).is_none());
        assert_eq!(experience.costs, known);
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

    #[test]
    fn what_goes_forth_and_back_has_to_pay_more_each_time() {
        let experience = &mut Experience::default();
        let shifted = |from: u16, to: u16| Shifted {
            shift: Shift {
                low: 10,
                high: 20,
                to: AeuId(to),
            },
            from: AeuId(from),
            result: Ok(crate::Moved {
                keys: 1_000,
                ..Default::default()
            }),
            time: Duration::from_millis(100),
        };
        let near = |caution: f64, expected: f64| (caution - expected).abs() < 0.1 * expected;
        for (turn, expected) in [1.0, 2.0, 4.0, 8.0, 16.0, 16.0].into_iter().enumerate() {
            let (from, to) = if turn % 2 == 0 { (0, 1) } else { (1, 0) };
            experience.learn(&[shifted(from, to)], |_| false);
            assert!(near(experience.caution, expected), "{}", experience.caution);
        }
        // After a while it is as good as new.
        let (when, _) = experience.last.as_mut().expect("learnt");
        *when -= 4 * HORIZON;
        assert!(near(experience.caution_for(&[]), 1.0));
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

    /// A workload alternates: now the first key is asked for as much as the two others, now not at all, so that the others should be one owner's, or two. In between each
    /// owner is asked for as much as the other.
    #[test]
    fn keys_swing_a_few_times_only_however_even_loads_are_in_between() {
        let topology = Topology::fake(2, 1);
        let way = balancing(Algorithm::OneShot);
        let experience = &mut Experience::default();
        let (mut owners, mut swings) = ([0, 1, 1], 0);
        for round in 0..20 {
            let busy = [[0.0, 0.5, 0.5], [1.0, 0.5, 0.5]][round % 2];
            let loads = hot_keys(&owners, &busy);
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
}
