//! SUM and AVG of intervals: each part is summed by itself, and for an average the sums are divided together.
//!
//! ```text
//!  state    count | months | days | nanoseconds        exact: no sum of so many rows leaves its type
//! ```
//!
//! **Stands for** DataFusion's sum, which wraps around silently. **Adds** the average.

use crate::arithmetic::interval::of_parts;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, IntervalMonthDayNanoArray,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::sync::Arc;

/// Digits of the sum of nanoseconds.
const DIGITS: u8 = 38;

/// What is made of the sums.
#[derive(Clone, Copy, Debug)]
pub(super) enum Figure {
    Sum,
    Average,
}

/// The fields of the state.
pub(super) fn state_fields(name: &str) -> Vec<FieldRef> {
    use DataType::{Decimal128, Int64};
    let parts = [
        ("count", Int64),
        ("months", Int64),
        ("days", Int64),
        ("nanoseconds", Decimal128(DIGITS, 0)),
    ];
    let field = |(part, of)| Arc::new(Field::new(format!("{name}[{part}]"), of, true));
    parts.map(field).into()
}

/// The accumulator of all rows seen.
pub(super) fn of_rows(figure: Figure) -> Box<dyn Accumulator> {
    let total = Total::default();
    Box::new(TotalOfRows { total, figure })
}

/// The accumulator of many groups.
pub(super) fn of_groups(figure: Figure) -> Box<dyn GroupsAccumulator> {
    let totals = Vec::new();
    Box::new(TotalsOfGroups { totals, figure })
}

/// Sums of the parts of intervals.
#[derive(Clone, Debug, Default)]
struct Total {
    count: i64,
    months: i64,
    days: i64,
    nanoseconds: i128,
}

impl Total {
    fn add(&mut self, interval: IntervalMonthDayNano, sign: i64) {
        self.count += sign;
        self.months += sign * i64::from(interval.months);
        self.days += sign * i64::from(interval.days);
        self.nanoseconds += i128::from(sign) * i128::from(interval.nanoseconds);
    }

    fn merge(&mut self, other: &Total) {
        self.count += other.count;
        self.months += other.months;
        self.days += other.days;
        self.nanoseconds += other.nanoseconds;
    }

    /// `None` if nothing was added.
    fn figure(&self, figure: Figure) -> Result<Option<IntervalMonthDayNano>> {
        if self.count == 0 {
            return Ok(None);
        }
        let figure = match figure {
            Figure::Sum => self.sum(),
            Figure::Average => self.average(),
        };
        let out_of_range = || exec_datafusion_err!("an interval is out of range");
        figure.ok_or_else(out_of_range).map(Some)
    }

    fn sum(&self) -> Option<IntervalMonthDayNano> {
        let (months, days) = (self.months.try_into().ok()?, self.days.try_into().ok()?);
        let nanoseconds = self.nanoseconds.try_into().ok()?;
        Some(IntervalMonthDayNano::new(months, days, nanoseconds))
    }

    fn average(&self) -> Option<IntervalMonthDayNano> {
        let parts = [
            self.months as f64,
            self.days as f64,
            self.nanoseconds as f64 / 1e3,
        ];
        of_parts(parts.map(|part| part / self.count as f64))
    }
}

/// The sums of a state, row by row.
fn totals(states: &[ArrayRef]) -> impl Iterator<Item = Total> {
    let [counts, months, days] =
        [0, 1, 2].map(|place: usize| states[place].as_primitive::<Int64Type>().values());
    let nanoseconds = states[3].as_primitive::<Decimal128Type>().values();
    (0..counts.len()).map(move |row| Total {
        count: counts[row],
        months: months[row],
        days: days[row],
        nanoseconds: nanoseconds[row],
    })
}

/// Sums as a state.
fn state(totals: &[Total]) -> Result<Vec<ArrayRef>> {
    let integers = |part: fn(&Total) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(totals.iter().map(part)))
    };
    let nanoseconds = totals.iter().map(|total| total.nanoseconds);
    let nanoseconds = Decimal128Array::from_iter_values(nanoseconds);
    Ok(vec![
        integers(|total| total.count),
        integers(|total| total.months),
        integers(|total| total.days),
        Arc::new(nanoseconds.with_precision_and_scale(DIGITS, 0)?),
    ])
}

#[derive(Debug)]
struct TotalOfRows {
    total: Total,
    figure: Figure,
}

impl TotalOfRows {
    fn add(&mut self, intervals: &ArrayRef, sign: i64) {
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let known = intervals.iter().flatten();
        known.for_each(|interval| self.total.add(interval, sign));
    }
}

impl Accumulator for TotalOfRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0], -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        totals(states).for_each(|total| self.total.merge(&total));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let parts = state(std::slice::from_ref(&self.total))?;
        let parts = parts
            .iter()
            .map(|part| ScalarValue::try_from_array(part, 0));
        parts.collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let figure = self.total.figure(self.figure)?;
        Ok(ScalarValue::IntervalMonthDayNano(figure))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// Per row, the interval that counts.
fn counted<'a>(
    intervals: &'a ArrayRef,
    filter: Option<&'a BooleanArray>,
) -> impl Iterator<Item = Option<IntervalMonthDayNano>> + 'a {
    let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>().iter();
    intervals.enumerate().map(move |(row, interval)| {
        let counts = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        interval.filter(|_| counts)
    })
}

struct TotalsOfGroups {
    totals: Vec<Total>,
    figure: Figure,
}

impl TotalsOfGroups {
    fn emit(&mut self, emit: EmitTo) -> Vec<Total> {
        emit.take_needed(&mut self.totals)
    }
}

impl GroupsAccumulator for TotalsOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        self.totals.resize(all, Total::default());
        for (interval, group) in counted(&values[0], filter).zip(groups) {
            if let Some(interval) = interval {
                self.totals[*group].add(interval, 1);
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let totals = counted(&values[0], filter).map(|interval| {
            let mut total = Total::default();
            if let Some(interval) = interval {
                total.add(interval, 1);
            }
            total
        });
        state(&totals.collect::<Vec<_>>())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        self.totals.resize(all, Total::default());
        for (total, group) in totals(states).zip(groups) {
            self.totals[*group].merge(&total);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let totals = self.emit(emit);
        let figures = totals.iter().map(|total| total.figure(self.figure));
        let figures = figures.collect::<Result<IntervalMonthDayNanoArray>>()?;
        Ok(Arc::new(figures))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        state(&self.emit(emit))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.totals.capacity() * size_of::<Total>()
    }
}
