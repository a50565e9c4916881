//! What moving keys and rows has taught so far: what a key takes, how quickly they are copied, and whether they only go
//! forth and back.

use super::loads::max;
use crate::{SegmentLoad, Shift, Shifted};
use eris_types::AeuId;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a workload is expected to stay as it is.
pub(super) const HORIZON: Duration = Duration::from_secs(10);
/// Keys per second that are copied, before any were.
const FIRST_RATE: f64 = 5e6;
/// So many times what moving takes must be gained at most.
const MOST_CAUTION: f64 = 16.0;
/// So many times what a key took before is believed at once.
const BELIEVED: f64 = 2.0;
/// Of fewer keys than these perhaps no operation was timed.
const FEW_TIMED: u64 = 256;
/// The busiest owner may exceed the mean by so many times the threshold of the standard deviation.
const BUSIEST: f64 = 2.0;
/// The part of what was known that the newest transfers replace.
const NEWEST: f64 = 0.3;
/// The same of what a key takes.
const NEWEST_COST: f64 = 0.1;
/// What keys take differs by this part of the usual from core to core, and from one moment to the next: only what is
/// beyond tells of the keys.
const COMMON: f64 = 0.25;

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
    /// The owners' loads as they were the last time, or as a cycle should have left them, as so many times the mean.
    outlook: Vec<f64>,
}

impl Default for Experience {
    fn default() -> Self {
        Experience::of(FIRST_RATE)
    }
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

/// What a cycle may do.
pub(super) struct Offer<T> {
    pub plan: T,
    pub moves: Vec<Move>,
    /// Seconds that it saves, and takes.
    pub gain: f64,
    pub cost: f64,
}

impl Experience {
    /// None yet, but that so many keys or rows may be copied per second.
    pub fn of(rate: f64) -> Self {
        Experience {
            rate,
            last: None,
            caution: 1.0,
            costs: HashMap::new(),
            outlook: Vec::new(),
        }
    }

    /// Whether the standard deviation of the owners' loads exceeds a threshold, or the busiest one the mean by more
    /// than twice as much: all wait for that one, however many others are even. As far as it was to be expected: what
    /// one look shows may be an accident, for while an owner stands still the others are not asked either.
    pub(super) fn is_uneven(&mut self, loads: &[f64], threshold: f64) -> bool {
        let expected = self.expect(loads);
        if max(loads.iter().copied()) <= 0.0 {
            self.expect_nothing();
            return false;
        }
        let common = |(now, before): (&f64, f64)| match (now - 1.0, before - 1.0) {
            (now, before) if now * before > 0.0 => now.signum() * now.abs().min(before.abs()),
            _ => 0.0,
        };
        let common: Vec<f64> = self.outlook.iter().zip(expected).map(common).collect();
        let squares: f64 = common.iter().map(|one| one * one).sum();
        (squares / loads.len().max(1) as f64).sqrt() > threshold
            || max(common) > BUSIEST * threshold
    }

    /// Such loads are to be expected from here on; returns those that were.
    pub(super) fn expect(&mut self, loads: &[f64]) -> Vec<f64> {
        let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        let shares = loads
            .iter()
            .map(|load| if mean > 0.0 { load / mean } else { 1.0 });
        std::mem::replace(&mut self.outlook, shares.collect())
    }

    /// What was seen last tells nothing of what comes.
    pub(super) fn expect_nothing(&mut self) {
        self.outlook.clear();
    }

    /// The segments with times that no accident makes.
    ///
    /// How often keys are asked for is counted, and may change at once. What a key takes is measured, and not so easily
    /// believed: of small operations one in many is timed, and one that lasts long because the machine did something
    /// else would stand for as many. So costs are learnt slowly, and small differences are none.
    pub(super) fn steady(&mut self, segments: &[SegmentLoad]) -> Vec<SegmentLoad> {
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
        for one in segments {
            let before = known.get(&one.low).copied().unwrap_or(usual);
            let now = match timed(&one) {
                true => cost(one).clamp(before / BELIEVED, before * BELIEVED),
                false => before,
            };
            let learnt = before + NEWEST_COST * (now - before);
            self.costs.insert(one.low, learnt);
        }
        let mut learnt: Vec<f64> = self.costs.values().copied().collect();
        learnt.sort_by(f64::total_cmp);
        let usual = learnt[learnt.len() / 2];
        let steady = segments.iter().map(|one| SegmentLoad {
            busy: Duration::from_secs_f64(beyond(self.costs[&one.low], usual) * one.asked as f64),
            ..one.clone()
        });
        steady.collect()
    }

    /// Keys or rows per second that are copied.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The first that pays, if it does so with [caution](Self::caution_for), too: what only goes forth and back is not
    /// to be had by going further.
    pub(super) fn first_that_pays<T>(
        &self,
        mut offers: impl Iterator<Item = Offer<T>>,
    ) -> Option<Offer<T>> {
        let offer = offers.find(|offer| offer.gain > offer.cost)?;
        let caution = self.caution_for(&offer.moves);
        (offer.gain > offer.cost * caution).then_some(offer)
    }

    /// How many times the cost must be gained by these: twice as many if most of them only go back, and less after a
    /// while. That loads are even in between says nothing: those of a workload that alternates are, whenever it has
    /// just been followed.
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

/// What a key takes, without what is common.
fn beyond(cost: f64, usual: f64) -> f64 {
    let common = COMMON * usual;
    usual + (cost - usual).signum() * ((cost - usual).abs() - common).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::decide::tests::{one_shot, segments};
    use super::super::loads::by_owner;
    use super::*;

    #[test]
    fn an_operation_that_lasts_long_by_chance_moves_nothing() {
        let even = segments(&[0.5; 8], 1 << 20);
        let mut all = even.clone();
        all[3].busy *= 5;
        let experience = &mut Experience::default();
        for look in [&all, &even, &even] {
            let steady = experience.steady(look);
            assert!(!experience.is_uneven(&by_owner(&steady, 8), 0.1));
        }
        // What lasts is learnt.
        let believed = |experience: &mut Experience| {
            let believed = experience.steady(&all);
            believed[3].busy.as_secs_f64() / believed[2].busy.as_secs_f64()
        };
        for _ in 0..50 {
            believed(experience);
        }
        assert!((believed(experience) - (5.0 - COMMON)).abs() < 0.1);
        assert_eq!(
            [0.8, 1.2, 1.5, 0.5].map(|cost| beyond(cost, 1.0)),
            [1.0, 1.0, 1.25, 0.75]
        );
        // A quiet period teaches nothing, and forgets nothing.
        let known = experience.costs.clone();
        let mut quiet = all.clone();
        quiet.iter_mut().for_each(|one| one.asked = FEW_TIMED - 1);
        assert!(one_shot(&quiet, experience).is_none());
        assert_eq!(experience.costs, known);
    }

    #[test]
    fn what_two_looks_show_is_uneven_and_what_a_cycle_has_left() {
        let experience = &mut Experience::default();
        let (uneven, even) = ([3.0, 1.0, 1.0, 3.0], [2.0; 4]);
        let mut look = |loads: &[f64], threshold| experience.is_uneven(loads, threshold);
        assert!(!look(&uneven, 0.2));
        assert!(look(&uneven, 0.4));
        assert!(!look(&uneven, 0.6));
        assert!(!look(&even, 0.2));
        // Others are busy now.
        assert!(!look(&uneven, 0.2));
        assert!(!look(&[1.0, 3.0, 3.0, 1.0], 0.2));
        // Only so far as both show it, however much is asked for.
        assert!(look(&[60.0, 100.0, 100.0, 140.0], 0.19));
        assert!(!look(&[60.0, 100.0, 100.0, 140.0], 0.3));
        experience.expect(&[5.0, 3.0, 3.0, 5.0]);
        assert!(experience.is_uneven(&uneven, 0.2));
        // Who is asked for nothing shows nothing.
        assert!(!experience.is_uneven(&[0.0; 4], 0.0));
        assert!(!experience.is_uneven(&uneven, 0.2));
    }

    #[test]
    fn one_owner_that_all_wait_for_is_enough() {
        let experience = &mut Experience::default();
        let mut loads = [1.0; 100];
        loads[7] = 1.5;
        assert!(!experience.is_uneven(&loads, 0.2));
        assert!(experience.is_uneven(&loads, 0.2));
        assert!(!experience.is_uneven(&loads, 0.3));
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

    #[test]
    fn what_does_not_pay_is_passed_over_but_not_what_only_goes_back() {
        let shift = |to| Shift {
            low: 10,
            high: 20,
            to: AeuId(to),
        };
        let offer = |(gain, cost), to| Offer {
            plan: to,
            moves: vec![Move {
                shift: shift(to),
                from: AeuId(1),
                keys: 1_000.0,
                others: 0.0,
            }],
            gain,
            cost,
        };
        let experience = &mut Experience::default();
        let first = |experience: &Experience, offers: [((f64, f64), u16); 2]| {
            let offers = offers.into_iter().map(|(worth, to)| offer(worth, to));
            experience.first_that_pays(offers).map(|offer| offer.plan)
        };
        assert_eq!(
            first(experience, [((1.0, 2.0), 0), ((3.0, 2.0), 2)]),
            Some(2)
        );
        assert_eq!(first(experience, [((1.0, 2.0), 0), ((2.0, 2.0), 2)]), None);
        assert_eq!(
            first(experience, [((3.0, 2.0), 0), ((9.0, 2.0), 2)]),
            Some(0)
        );
        // These keys have just come from there.
        let came = Shifted {
            shift: shift(1),
            from: AeuId(0),
            result: Ok(crate::Moved::default()),
            time: Duration::from_millis(100),
        };
        experience.learn(&[came], |_| false);
        assert_eq!(first(experience, [((3.0, 2.0), 0), ((9.0, 2.0), 2)]), None);
        assert_eq!(
            first(experience, [((5.0, 2.0), 0), ((9.0, 2.0), 2)]),
            Some(0)
        );
    }
}
