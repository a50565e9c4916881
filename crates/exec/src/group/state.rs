//! States of aggregates: one column of numbers per aggregate, one entry per group, one loop per window.

use super::input::Values;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;
use crate::expr::integers_to_array;
use crate::filter::value_bounds;
use eris_column::Dictionary;
use eris_fragment::{FragmentError, Type};
use eris_kernels::Isa;
use eris_types::Code;
use std::sync::Arc;

/// The states of one aggregate.
#[derive(Debug)]
pub(crate) enum State {
    /// COUNT
    Count(Vec<i64>),
    /// SUM of integers and decimals. Sums of stored integers cannot overflow 128 bits; whether they fit their type is
    /// decided at the end, whatever the order of the rows was.
    SumIntegers {
        sums: Vec<i128>,
        seen: Vec<bool>,
        /// What has to be added to each stored integer.
        offset: i128,
    },
    /// SUM of floats
    SumFloats { sums: Vec<f64>, seen: Vec<bool> },
    /// MIN and MAX of stored integers, and of floats by their place in the total order.
    Extreme {
        best: Vec<i64>,
        seen: Vec<bool>,
        max: bool,
    },
    /// MIN and MAX of decimals of more than 18 digits
    ExtremeWide {
        best: Vec<i128>,
        seen: Vec<bool>,
        max: bool,
    },
    /// MIN and MAX of text
    ExtremeText {
        /// Of the codes met, the best place in the dictionary's order, or [`NONE`].
        ranks: Vec<u32>,
        /// Of the strings met otherwise.
        texts: Vec<Option<Box<str>>>,
        dictionary: Option<Dictionary>,
        max: bool,
    },
}

/// No rank.
const NONE: u32 = u32::MAX;

/// Which group each row of a window belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    /// All to group 0.
    One(usize),
    /// One number per row.
    Each(&'a [u32]),
}

impl Numbers<'_> {
    /// Calls `f` with each row that counts and its group.
    #[inline(always)]
    fn for_each(self, counts: Option<&BooleanBuffer>, mut f: impl FnMut(usize, usize)) {
        match (self, counts) {
            (Numbers::One(rows), None) => (0..rows).for_each(|row| f(row, 0)),
            (Numbers::One(_), Some(counts)) => counts.set_indices().for_each(|row| f(row, 0)),
            (Numbers::Each(numbers), None) => {
                for (row, &number) in numbers.iter().enumerate() {
                    f(row, number as usize);
                }
            }
            (Numbers::Each(numbers), Some(counts)) => {
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
            (Numbers::Each(numbers), None) => {
                for (&number, &value) in numbers.iter().zip(values) {
                    f(number as usize, value);
                }
            }
            _ => self.for_each(counts, |row, number| f(number, values[row])),
        }
    }
}

impl State {
    /// Makes entries for new groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            State::Count(counts) => counts.resize(groups, 0),
            State::SumIntegers { sums, seen, .. } => {
                sums.resize(groups, 0);
                seen.resize(groups, false);
            }
            State::SumFloats { sums, seen } => {
                sums.resize(groups, 0.0);
                seen.resize(groups, false);
            }
            State::Extreme { best, seen, max } => {
                best.resize(groups, if *max { i64::MIN } else { i64::MAX });
                seen.resize(groups, false);
            }
            State::ExtremeWide { best, seen, max } => {
                best.resize(groups, if *max { i128::MIN } else { i128::MAX });
                seen.resize(groups, false);
            }
            State::ExtremeText { ranks, texts, .. } => {
                ranks.resize(groups, NONE);
                texts.resize(groups, None);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            State::Count(counts) => counts.capacity() * 8,
            State::SumIntegers { sums, seen, .. } => sums.capacity() * 16 + seen.capacity(),
            State::SumFloats { sums, seen } => sums.capacity() * 8 + seen.capacity(),
            State::Extreme { best, seen, .. } => best.capacity() * 8 + seen.capacity(),
            State::ExtremeWide { best, seen, .. } => best.capacity() * 16 + seen.capacity(),
            State::ExtremeText { ranks, texts, .. } => {
                let strings: usize = texts.iter().flatten().map(|text| text.len()).sum();
                ranks.capacity() * 4 + texts.capacity() * size_of::<Option<Box<str>>>() + strings
            }
        }
    }

    /// Counts rows.
    pub(crate) fn count(&mut self, numbers: Numbers<'_>, counts: Option<&BooleanBuffer>) {
        let State::Count(totals) = self else {
            unreachable!("only COUNT counts");
        };
        match (numbers, counts) {
            (Numbers::One(rows), None) => totals[0] += rows as i64,
            (Numbers::One(_), Some(counts)) => totals[0] += counts.count_set_bits() as i64,
            _ => numbers.for_each(counts, |_, number| totals[number] += 1),
        }
    }

    /// Takes in the values of the rows that count. `None`: a sum left 128 bits.
    pub(crate) fn update(
        &mut self,
        isa: Isa,
        numbers: Numbers<'_>,
        values: &Values<'_>,
        counts: Option<&BooleanBuffer>,
    ) -> Option<()> {
        match (self, values) {
            (State::SumIntegers { sums, seen, offset }, Values::Integers(values)) => {
                if let (Numbers::One(rows @ 1..), None) = (numbers, counts) {
                    sums[0] += isa.sum_i64(values) + *offset * rows as i128;
                    seen[0] = true;
                } else if *offset == 0 {
                    numbers.zip(values, counts, |number, value| {
                        sums[number] += value as i128;
                        seen[number] = true;
                    });
                } else {
                    numbers.zip(values, counts, |number, value| {
                        sums[number] += value as i128 + *offset;
                        seen[number] = true;
                    });
                }
            }
            (State::SumIntegers { sums, seen, .. }, Values::Wide(values)) => {
                let mut overflow = false;
                numbers.zip(values, counts, |number, value| {
                    let (sum, over) = sums[number].overflowing_add(value);
                    sums[number] = sum;
                    seen[number] = true;
                    overflow |= over;
                });
                if overflow {
                    return None;
                }
            }
            (State::SumFloats { sums, seen }, Values::Floats(values)) => {
                if let (Numbers::One(1..), None) = (numbers, counts) {
                    sums[0] += isa.sum_f64(values);
                    seen[0] = true;
                } else {
                    numbers.zip(values, counts, |number, value| {
                        sums[number] += value;
                        seen[number] = true;
                    });
                }
            }
            (State::Extreme { best, seen, max }, Values::Integers(values)) => {
                extreme(isa, numbers, values, counts, best, seen, *max);
            }
            (State::Extreme { best, seen, max }, Values::Floats(values)) => {
                let values: Vec<i64> = values.iter().map(|&value| total_order(value)).collect();
                extreme(isa, numbers, &values, counts, best, seen, *max);
            }
            // Computed decimals of up to 18 digits.
            (State::Extreme { best, seen, max }, Values::Wide(values)) => {
                let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
                extreme(isa, numbers, &values, counts, best, seen, *max);
            }
            (State::ExtremeWide { best, seen, max }, Values::Wide(values)) => {
                extreme_wide(numbers, values, counts, best, seen, *max);
            }
            (State::ExtremeWide { best, seen, max }, Values::Integers(values)) => {
                let values: Vec<i128> = values.iter().map(|&value| value as i128).collect();
                extreme_wide(numbers, &values, counts, best, seen, *max);
            }
            (
                State::ExtremeText {
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
            (State::ExtremeText { texts, max, .. }, Values::Texts(values)) => {
                let max = *max;
                numbers.for_each(counts, |row, number| {
                    let (text, best) = (values.value(row), &mut texts[number]);
                    let better = match best {
                        None => true,
                        Some(best) => text != &**best && (text > &**best) == max,
                    };
                    if better {
                        *best = Some(text.into());
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
            State::Count(counts) => Arc::new(Int64Array::from(counts)),
            State::SumIntegers { sums, seen, .. } => {
                let (low, high) = value_bounds(state).expect("the plan checked it");
                if sums.iter().any(|sum| *sum < low || *sum > high) {
                    return None;
                }
                let nulls = nulls(seen);
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
            State::SumFloats { sums, seen } => floats(&data_type, sums, nulls(seen)),
            State::Extreme { best, seen, .. } => match data_type {
                DataType::Float32 | DataType::Float64 => {
                    let best = best.into_iter().map(from_total_order).collect();
                    floats(&data_type, best, nulls(seen))
                }
                _ => integers_to_array(&data_type, best, nulls(seen)),
            },
            State::ExtremeWide { best, seen, .. } => {
                let array = Decimal128Array::new(best.into(), nulls(seen));
                Arc::new(array.with_data_type(data_type))
            }
            State::ExtremeText {
                ranks,
                texts,
                dictionary,
                max,
            } => {
                let coded = |rank: u32| {
                    let dictionary = dictionary.as_ref().filter(|_| rank != NONE)?;
                    let code: Code = dictionary.rank().code(rank);
                    dictionary.get(code)
                };
                let best = ranks.iter().zip(&texts).map(|(&rank, text)| {
                    match (coded(rank), text.as_deref()) {
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

/// Of groups, those without a value are NULL.
fn nulls(seen: Vec<bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(seen)).filter(|nulls| nulls.null_count() > 0)
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
    numbers: Numbers<'_>,
    values: &[i64],
    counts: Option<&BooleanBuffer>,
    best: &mut [i64],
    seen: &mut [bool],
    max: bool,
) {
    if let (Numbers::One(_), None) = (numbers, counts) {
        if let Some((low, high)) = isa.min_max_i64(values) {
            best[0] = if max { best[0].max(high) } else { best[0].min(low) };
            seen[0] = true;
        }
    } else if max {
        numbers.zip(values, counts, |number, value| {
            best[number] = best[number].max(value);
            seen[number] = true;
        });
    } else {
        numbers.zip(values, counts, |number, value| {
            best[number] = best[number].min(value);
            seen[number] = true;
        });
    }
}

fn extreme_wide(
    numbers: Numbers<'_>,
    values: &[i128],
    counts: Option<&BooleanBuffer>,
    best: &mut [i128],
    seen: &mut [bool],
    max: bool,
) {
    numbers.zip(values, counts, |number, value| {
        let best = &mut best[number];
        *best = if max { value.max(*best) } else { value.min(*best) };
        seen[number] = true;
    });
}

/// The error for a state that does not fit.
pub(crate) fn overflow(what: &str) -> FragmentError {
    FragmentError::Overflow {
        what: what.to_owned(),
    }
}
