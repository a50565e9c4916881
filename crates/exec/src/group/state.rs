//! States of aggregates: one column of numbers per aggregate, one entry per group, one loop per window.

use super::seen::SeenGroups;
use crate::bounds::value_bounds;
use crate::expr::integers_to_array;
use crate::values::Values;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use eris_column::{Dictionary, wide_array};
use eris_fragment::{FragmentError, Type};
use eris_kernels::Isa;
use eris_types::Code;
use std::sync::Arc;

/// There are no more workers than these bits can number.
const WORKER_BITS: u32 = 16;

/// The states of one aggregate.
#[derive(Debug)]
pub(crate) enum AggregateState {
    /// COUNT
    Count(Vec<i64>),
    /// SUM of integers and decimals: `sums + rest`. Sums of stored integers cannot overflow 128 bits; whether they fit
    /// their type is decided at the end, whatever the order of the rows was.
    SumIntegers {
        sums: Vec<i64>,
        /// What left the 64 bits of `sums`, and all that was never in them; of the groups up to the last one that has
        /// any.
        rest: Vec<i128>,
        seen: SeenGroups,
        /// What has to be added to each stored integer.
        offset: i128,
    },
    /// SUM of floats
    SumFloats { sums: Vec<f64>, seen: SeenGroups },
    /// MIN and MAX of stored integers, and of floats by their place in the total order.
    Extreme {
        best: Vec<i64>,
        seen: SeenGroups,
        max: bool,
    },
    /// MIN and MAX of decimals of more than 18 digits
    ExtremeWide {
        best: Vec<i128>,
        seen: SeenGroups,
        max: bool,
    },
    /// MIN and MAX of strings
    ExtremeString {
        /// Of the codes met, the best place in the dictionary's order, or [`NONE`].
        ranks: Vec<u32>,
        /// Of the strings met otherwise.
        strings: Vec<Option<Box<str>>>,
        dictionary: Option<Dictionary>,
        max: bool,
    },
}

/// No rank.
pub(super) const NONE: u32 = u32::MAX;

/// Which group each row of a window belongs to.
#[derive(Clone, Copy)]
pub(crate) enum GroupNumbers<'a> {
    /// All to group 0.
    One(usize),
    /// One number per row.
    Each(&'a [u32]),
}

impl GroupNumbers<'_> {
    /// Calls `f` with each row that counts and its group.
    #[inline(always)]
    pub(super) fn for_each(self, counts: Option<&BooleanBuffer>, mut f: impl FnMut(usize, usize)) {
        match (self, counts) {
            (GroupNumbers::One(rows), None) => (0..rows).for_each(|row| f(row, 0)),
            (GroupNumbers::One(_), Some(counts)) => counts.set_indices().for_each(|row| f(row, 0)),
            (GroupNumbers::Each(numbers), None) => {
                for (row, &number) in numbers.iter().enumerate() {
                    f(row, number as usize);
                }
            }
            (GroupNumbers::Each(numbers), Some(counts)) => {
                for row in counts.set_indices() {
                    f(row, numbers[row] as usize);
                }
            }
        }
    }

    /// Calls `f` with the group and the value of each row that counts.
    #[inline(always)]
    fn zip<T: Copy>(
        self,
        values: &[T],
        counts: Option<&BooleanBuffer>,
        mut f: impl FnMut(usize, T),
    ) {
        match (self, counts) {
            (GroupNumbers::Each(numbers), None) => {
                for (&number, &value) in numbers.iter().zip(values) {
                    f(number as usize, value);
                }
            }
            _ => self.for_each(counts, |row, number| f(number, values[row])),
        }
    }
}

impl AggregateState {
    /// Makes entries for new groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            AggregateState::Count(counts) => counts.resize(groups, 0),
            AggregateState::SumIntegers { sums, seen, .. } => {
                sums.resize(groups, 0);
                seen.grow(groups);
            }
            AggregateState::SumFloats { sums, seen } => {
                sums.resize(groups, 0.0);
                seen.grow(groups);
            }
            AggregateState::Extreme { best, seen, max } => {
                best.resize(groups, if *max { i64::MIN } else { i64::MAX });
                seen.grow(groups);
            }
            AggregateState::ExtremeWide { best, seen, max } => {
                best.resize(groups, if *max { i128::MIN } else { i128::MAX });
                seen.grow(groups);
            }
            AggregateState::ExtremeString { ranks, strings, .. } => {
                ranks.resize(groups, NONE);
                strings.resize(groups, None);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            AggregateState::Count(counts) => counts.capacity() * 8,
            AggregateState::SumIntegers {
                sums, rest, seen, ..
            } => sums.capacity() * 8 + rest.capacity() * 16 + seen.bytes(),
            AggregateState::SumFloats { sums, seen } => sums.capacity() * 8 + seen.bytes(),
            AggregateState::Extreme { best, seen, .. } => best.capacity() * 8 + seen.bytes(),
            AggregateState::ExtremeWide { best, seen, .. } => best.capacity() * 16 + seen.bytes(),
            AggregateState::ExtremeString { ranks, strings, .. } => {
                let bytes: usize = strings.iter().flatten().map(|string| string.len()).sum();
                ranks.capacity() * 4 + strings.capacity() * size_of::<Option<Box<str>>>() + bytes
            }
        }
    }

    /// Counts so many rows more in group 0; `None` if they cannot be counted: those of all workers together, which are
    /// added up without a check, have to fit.
    pub(crate) fn count_more(&mut self, rows: u64) -> Option<()> {
        let AggregateState::Count(totals) = self else {
            unreachable!("only COUNT counts");
        };
        let total = totals[0].checked_add(i64::try_from(rows).ok()?)?;
        totals[0] = Some(total).filter(|total| *total <= i64::MAX >> WORKER_BITS)?;
        Some(())
    }

    /// Counts rows.
    #[inline(never)]
    pub(crate) fn count(&mut self, numbers: GroupNumbers<'_>, counts: Option<&BooleanBuffer>) {
        let AggregateState::Count(totals) = self else {
            unreachable!("only COUNT counts");
        };
        match (numbers, counts) {
            (GroupNumbers::One(rows), None) => totals[0] += rows as i64,
            (GroupNumbers::One(_), Some(counts)) => totals[0] += counts.count_set_bits() as i64,
            _ => {
                let totals = &mut totals[..];
                numbers.for_each(counts, |_, number| totals[number] += 1);
            }
        }
    }

    fn seen(&mut self) -> Option<&mut SeenGroups> {
        match self {
            AggregateState::SumIntegers { seen, .. }
            | AggregateState::SumFloats { seen, .. }
            | AggregateState::Extreme { seen, .. }
            | AggregateState::ExtremeWide { seen, .. } => Some(seen),
            AggregateState::Count(_) | AggregateState::ExtremeString { .. } => None,
        }
    }

    /// Takes in the values of the rows that count. `None`: a sum left 128 bits.
    ///
    /// Its loops and those of [`AggregateState::count`] are a tenth slower where they are inlined.
    #[inline(never)]
    pub(crate) fn update(
        &mut self,
        isa: Isa,
        numbers: GroupNumbers<'_>,
        values: &Values<'_>,
        counts: Option<&BooleanBuffer>,
    ) -> Option<()> {
        if let Some(seen) = self.seen() {
            seen.mark(numbers, counts);
        }
        match (self, values) {
            (
                AggregateState::SumIntegers {
                    sums, rest, offset, ..
                },
                Values::Integers(values),
            ) if matches!((numbers, counts), (GroupNumbers::One(_), None)) => {
                rest.resize(sums.len(), 0);
                rest[0] += isa.sum_i64(values) + *offset * values.len() as i128;
            }
            (
                AggregateState::SumIntegers {
                    sums, rest, offset, ..
                },
                Values::Integers(values),
            ) if *offset != 0 => {
                rest.resize(sums.len(), 0);
                let (rest, offset) = (&mut rest[..], *offset);
                numbers.zip(values, counts, |number, value| {
                    rest[number] += value as i128 + offset;
                });
            }
            (AggregateState::SumIntegers { sums, rest, .. }, Values::Integers(values)) => {
                let sums = &mut sums[..];
                numbers.zip(values, counts, |number, value| {
                    add(sums, rest, number, value);
                });
            }
            (AggregateState::SumIntegers { sums, rest, .. }, Values::Wide(values)) => {
                rest.resize(sums.len(), 0);
                let rest = &mut rest[..];
                let mut overflow = false;
                numbers.zip(values, counts, |number, value| {
                    let (sum, over) = rest[number].overflowing_add(value);
                    rest[number] = sum;
                    overflow |= over;
                });
                if overflow {
                    return None;
                }
            }
            (AggregateState::SumFloats { sums, .. }, Values::Floats(values)) => {
                if let (GroupNumbers::One(_), None) = (numbers, counts) {
                    sums[0] += isa.sum_f64(values);
                } else {
                    let sums = &mut sums[..];
                    numbers.zip(values, counts, |number, value| {
                        sums[number] += value;
                    });
                }
            }
            (AggregateState::Extreme { best, max, .. }, Values::Integers(values)) => {
                extreme(isa, numbers, values, counts, best, *max);
            }
            (AggregateState::Extreme { best, max, .. }, Values::Floats(values)) => {
                let values: Vec<i64> = values.iter().map(|&value| total_order(value)).collect();
                extreme(isa, numbers, &values, counts, best, *max);
            }
            // Computed decimals of up to 18 digits.
            (AggregateState::Extreme { best, max, .. }, Values::Wide(values)) => {
                let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
                extreme(isa, numbers, &values, counts, best, *max);
            }
            (AggregateState::ExtremeWide { best, max, .. }, Values::Wide(values)) => {
                extreme_wide(numbers, values, counts, best, *max);
            }
            (AggregateState::ExtremeWide { best, max, .. }, Values::Integers(values)) => {
                let values: Vec<i128> = values.iter().map(|&value| value as i128).collect();
                extreme_wide(numbers, &values, counts, best, *max);
            }
            (
                AggregateState::ExtremeString {
                    ranks,
                    dictionary: Some(dictionary),
                    max,
                    ..
                },
                Values::Codes(codes),
            ) => {
                let rank_of = dictionary.rank().ranks();
                let max = *max;
                numbers.zip(codes, counts, |number, code| {
                    let (rank, best) = (rank_of[code as usize], &mut ranks[number]);
                    if *best == NONE || (rank > *best) == max {
                        *best = rank;
                    }
                });
            }
            (AggregateState::ExtremeString { strings, max, .. }, Values::Strings(values)) => {
                let max = *max;
                numbers.for_each(counts, |row, number| {
                    let (string, best) = (values.value(row), &mut strings[number]);
                    let better = match best {
                        None => true,
                        Some(best) => string != &**best && (string > &**best) == max,
                    };
                    if better {
                        *best = Some(string.into());
                    }
                });
            }
            _ => unreachable!("the plan pairs states with the values of their domain"),
        }
        Some(())
    }

    /// The state column. `None`: a sum does not fit its type.
    pub(crate) fn finish(self, state: &Type) -> Option<ArrayRef> {
        let data_type = DataType::from(state);
        Some(match self {
            AggregateState::Count(counts) => Arc::new(Int64Array::from(counts)),
            AggregateState::SumIntegers {
                sums, rest, seen, ..
            } => {
                let rest = rest.into_iter().chain(std::iter::repeat(0));
                let sums = sums.into_iter().zip(rest);
                let sums = sums.map(|(sum, rest)| rest.checked_add(sum as i128));
                let sums: Vec<i128> = sums.collect::<Option<_>>()?;
                let (low, high) = value_bounds(state).expect("the plan checked it");
                if sums.iter().any(|sum| *sum < low || *sum > high) {
                    return None;
                }
                let nulls = seen.into_nulls();
                match data_type {
                    DataType::Decimal128(..) => {
                        let array = Decimal128Array::new(sums.into(), nulls);
                        Arc::new(array.with_data_type(data_type))
                    }
                    DataType::UInt64 => {
                        let sums: Vec<u64> = sums.into_iter().map(|sum| sum as u64).collect();
                        Arc::new(UInt64Array::new(sums.into(), nulls))
                    }
                    _ => {
                        let sums = sums.into_iter().map(|sum| sum as i64).collect();
                        integers_to_array(&data_type, sums, nulls)
                    }
                }
            }
            AggregateState::SumFloats { sums, seen } => floats(&data_type, sums, seen.into_nulls()),
            AggregateState::Extreme { best, seen, .. } => match data_type {
                DataType::Float32 | DataType::Float64 => {
                    let best = best.into_iter().map(from_total_order).collect();
                    floats(&data_type, best, seen.into_nulls())
                }
                _ => integers_to_array(&data_type, best, seen.into_nulls()),
            },
            AggregateState::ExtremeWide { best, seen, .. } => {
                wide_array(&data_type, best.into(), seen.into_nulls())
            }
            AggregateState::ExtremeString {
                ranks,
                strings,
                dictionary,
                max,
            } => {
                let coded = |rank: u32| {
                    let dictionary = dictionary.as_ref().filter(|_| rank != NONE)?;
                    let code: Code = dictionary.rank().code(rank);
                    dictionary.get(code)
                };
                let best = ranks.iter().zip(&strings).map(|(&rank, string)| {
                    match (coded(rank), string.as_deref()) {
                        (Some(left), Some(right)) if max => Some(left.max(right)),
                        (Some(left), Some(right)) => Some(left.min(right)),
                        (left, right) => left.or(right),
                    }
                });
                Arc::new(best.collect::<StringViewArray>())
            }
        })
    }
}

/// Adds to a sum, of whose 64 bits little ever leaves.
#[inline(always)]
pub(super) fn add(sums: &mut [i64], rest: &mut Vec<i128>, group: usize, value: i64) {
    let (sum, left) = sums[group].overflowing_add(value);
    sums[group] = sum;
    if left {
        let groups = sums.len();
        carry(rest, groups, group, value);
    }
}

#[cold]
fn carry(rest: &mut Vec<i128>, groups: usize, group: usize, value: i64) {
    rest.resize(groups, 0);
    rest[group] += i128::from(value.signum()) << 64;
}

fn floats(data_type: &DataType, values: Vec<f64>, nulls: Option<NullBuffer>) -> ArrayRef {
    match data_type {
        DataType::Float32 => {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        _ => Arc::new(Float64Array::new(values.into(), nulls)),
    }
}

/// The place of a float in IEEE 754's total order, in which NaN is greatest.
fn total_order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn from_total_order(place: i64) -> f64 {
    f64::from_bits((place ^ (((place >> 63) as u64) >> 1) as i64) as u64)
}

fn extreme(
    isa: Isa,
    numbers: GroupNumbers<'_>,
    values: &[i64],
    counts: Option<&BooleanBuffer>,
    best: &mut [i64],
    max: bool,
) {
    if let (GroupNumbers::One(_), None) = (numbers, counts) {
        if let Some((low, high)) = isa.min_max_i64(values) {
            best[0] = if max {
                best[0].max(high)
            } else {
                best[0].min(low)
            };
        }
    } else if max {
        numbers.zip(values, counts, |number, value| {
            best[number] = best[number].max(value);
        });
    } else {
        numbers.zip(values, counts, |number, value| {
            best[number] = best[number].min(value);
        });
    }
}

fn extreme_wide(
    numbers: GroupNumbers<'_>,
    values: &[i128],
    counts: Option<&BooleanBuffer>,
    best: &mut [i128],
    max: bool,
) {
    numbers.zip(values, counts, |number, value| {
        let best = &mut best[number];
        *best = if max {
            value.max(*best)
        } else {
            value.min(*best)
        };
    });
}

/// The error for a state that does not fit.
pub(crate) fn overflow(what: &str) -> FragmentError {
    FragmentError::Overflow {
        what: what.to_owned(),
    }
}
