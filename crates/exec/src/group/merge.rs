//! States that leave a worker's table, and come into another's.

use super::state::{AggregateState, NONE, add};
use std::ops::Range;

/// The values of some groups.
fn of<T: Copy>(values: &[T], groups: &[u32]) -> Vec<T> {
    groups.iter().map(|&group| values[group as usize]).collect()
}

/// Calls `f` with an entry of ours and what is to be merged into it.
#[inline(always)]
fn each<T: Copy, U>(ours: &mut [T], theirs: &[U], numbers: &[u32], f: impl Fn(T, &U) -> T) {
    for (&number, value) in numbers.iter().zip(theirs) {
        let entry = &mut ours[number as usize];
        *entry = f(*entry, value);
    }
}

/// The greater of an entry of ours and what is to be merged into it, or the less.
#[inline(always)]
fn each_extreme<T: Copy + Ord>(ours: &mut [T], theirs: &[T], numbers: &[u32], max: bool) {
    if max {
        each(ours, theirs, numbers, |best, &other| best.max(other));
    } else {
        each(ours, theirs, numbers, |best, &other| best.min(other));
    }
}

impl AggregateState {
    /// The entries of some groups, in this order.
    pub(super) fn gather(&self, groups: &[u32]) -> AggregateState {
        match self {
            AggregateState::Count(counts) => AggregateState::Count(of(counts, groups)),
            AggregateState::SumIntegers {
                sums,
                rest,
                seen,
                offset,
            } => AggregateState::SumIntegers {
                sums: of(sums, groups),
                rest: match rest.is_empty() {
                    true => Vec::new(),
                    false => {
                        let rest = |&group: &u32| rest.get(group as usize).copied();
                        groups
                            .iter()
                            .map(|group| rest(group).unwrap_or(0))
                            .collect()
                    }
                },
                seen: seen.gather(groups),
                offset: *offset,
            },
            AggregateState::SumFloats { sums, seen } => AggregateState::SumFloats {
                sums: of(sums, groups),
                seen: seen.gather(groups),
            },
            AggregateState::Extreme { best, seen, max } => AggregateState::Extreme {
                best: of(best, groups),
                seen: seen.gather(groups),
                max: *max,
            },
            AggregateState::ExtremeWide { best, seen, max } => AggregateState::ExtremeWide {
                best: of(best, groups),
                seen: seen.gather(groups),
                max: *max,
            },
            AggregateState::ExtremeString {
                ranks,
                strings,
                dictionary,
                max,
            } => AggregateState::ExtremeString {
                ranks: of(ranks, groups),
                strings: groups
                    .iter()
                    .map(|&group| strings[group as usize].clone())
                    .collect(),
                dictionary: dictionary.clone(),
                max: *max,
            },
        }
    }

    /// Merges some groups' entries of another worker's state: each belongs to our group of the number beside it.
    /// `None`: a sum left 128 bits.
    pub(super) fn merge(
        &mut self,
        other: &AggregateState,
        groups: Range<usize>,
        numbers: &[u32],
    ) -> Option<()> {
        match (self, other) {
            (AggregateState::Count(ours), AggregateState::Count(theirs)) => {
                each(ours, &theirs[groups], numbers, |count, more| count + more);
            }
            (
                AggregateState::SumIntegers {
                    sums, rest, seen, ..
                },
                AggregateState::SumIntegers {
                    sums: theirs,
                    rest: more,
                    seen: other,
                    ..
                },
            ) => {
                seen.merge(other, groups.clone(), numbers);
                let all = &mut sums[..];
                for (&number, &sum) in numbers.iter().zip(&theirs[groups.clone()]) {
                    add(all, rest, number as usize, sum);
                }
                let more = more.get(groups.start..groups.end.min(more.len()));
                for (&number, &more) in numbers.iter().zip(more.unwrap_or_default()) {
                    rest.resize(sums.len(), 0);
                    let rest = &mut rest[number as usize];
                    *rest = rest.checked_add(more)?;
                }
            }
            (
                AggregateState::SumFloats { sums, seen },
                AggregateState::SumFloats {
                    sums: theirs,
                    seen: other,
                },
            ) => {
                seen.merge(other, groups.clone(), numbers);
                each(sums, &theirs[groups], numbers, |sum, more| sum + more);
            }
            (
                AggregateState::Extreme { best, seen, max },
                AggregateState::Extreme {
                    best: theirs,
                    seen: other,
                    ..
                },
            ) => {
                seen.merge(other, groups.clone(), numbers);
                each_extreme(best, &theirs[groups], numbers, *max);
            }
            (
                AggregateState::ExtremeWide { best, seen, max },
                AggregateState::ExtremeWide {
                    best: theirs,
                    seen: other,
                    ..
                },
            ) => {
                seen.merge(other, groups.clone(), numbers);
                each_extreme(best, &theirs[groups], numbers, *max);
            }
            (
                AggregateState::ExtremeString {
                    ranks,
                    strings,
                    dictionary,
                    max,
                },
                AggregateState::ExtremeString {
                    ranks: their_ranks,
                    strings: their_strings,
                    dictionary: other,
                    ..
                },
            ) => {
                if dictionary.is_none() {
                    dictionary.clone_from(other);
                }
                let max = *max;
                each(
                    ranks,
                    &their_ranks[groups.clone()],
                    numbers,
                    |best, &other| match best == NONE || other != NONE && (other > best) == max {
                        true => other,
                        false => best,
                    },
                );
                for (&number, theirs) in numbers.iter().zip(&their_strings[groups]) {
                    let Some(theirs) = theirs else { continue };
                    let best = &mut strings[number as usize];
                    let is_better = |best: &str| **theirs != *best && (&**theirs > best) == max;
                    if best.as_deref().is_none_or(is_better) {
                        *best = Some(theirs.clone());
                    }
                }
            }
            _ => unreachable!("states of one aggregate"),
        }
        Some(())
    }

    /// Forgets all groups, but keeps the room for them.
    pub(super) fn clear(&mut self) {
        match self {
            AggregateState::Count(counts) => counts.clear(),
            AggregateState::SumIntegers {
                sums, rest, seen, ..
            } => {
                sums.clear();
                rest.clear();
                seen.clear();
            }
            AggregateState::SumFloats { sums, seen } => {
                sums.clear();
                seen.clear();
            }
            AggregateState::Extreme { best, seen, .. } => {
                best.clear();
                seen.clear();
            }
            AggregateState::ExtremeWide { best, seen, .. } => {
                best.clear();
                seen.clear();
            }
            AggregateState::ExtremeString { ranks, strings, .. } => {
                ranks.clear();
                strings.clear();
            }
        }
    }
}
