//! Dates and timestamps that no calendar has. Parquet and Arrow files keep them as numbers, of which a damaged file has
//! any. They could neither be shown nor counted with, and whoever does would not know the file.

use crate::error::FileFaultKind;
use chrono::NaiveDate;
use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampSecondType,
};
use std::ops::RangeInclusive;

const DAY_SECONDS: i64 = 86_400;

/// What is wrong with the rows, if a column has such a value.
pub(crate) fn fault(rows: &RecordBatch) -> Option<FileFaultKind> {
    let mut columns = rows.schema_ref().fields().iter().zip(rows.columns());
    let column = columns.find(|(_, column)| has_others(column));
    column.map(|(field, _)| FileFaultKind::NoDate(field.name().clone()))
}

fn has_others(column: &dyn Array) -> bool {
    let all = days();
    let ticks = |per_second: i64| {
        let of = |day: i64| day * DAY_SECONDS * per_second;
        of(*all.start())..=of(*all.end())
    };
    match column.data_type() {
        DataType::Date32 => has_outside::<Date32Type>(column, &all),
        DataType::Timestamp(TimeUnit::Second, _) => {
            has_outside::<TimestampSecondType>(column, &ticks(1))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            has_outside::<TimestampMillisecondType>(column, &ticks(1_000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            has_outside::<TimestampMicrosecondType>(column, &ticks(1_000_000))
        }
        _ => false,
    }
}

/// The days that a calendar has, counted from 1970.
fn days() -> RangeInclusive<i64> {
    let since = |day: NaiveDate| day.signed_duration_since(NaiveDate::default()).num_days();
    since(NaiveDate::MIN)..=since(NaiveDate::MAX)
}

fn has_outside<T: ArrowPrimitiveType>(column: &dyn Array, all: &RangeInclusive<i64>) -> bool
where
    T::Native: Into<i64>,
{
    let column = column.as_primitive::<T>();
    let values = column.values().iter();
    // Without an early end, so that it is done by vectors.
    let any = values.fold(false, |any, value| any | !all.contains(&(*value).into()));
    // What is below a NULL may be anything.
    any && column
        .iter()
        .flatten()
        .any(|value| !all.contains(&value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Date32Array, TimestampMicrosecondArray};
    use datafusion::arrow::buffer::NullBuffer;

    #[test]
    fn values_of_no_calendar_are_found_where_they_are_no_null() {
        let all = days();
        let last = *all.end() as i32;
        let dates = |values: Vec<i32>| Date32Array::from(values);
        assert!(!has_others(&dates(vec![0, last, *all.start() as i32])));
        assert!(has_others(&dates(vec![0, last + 1])));
        let (values, nulls) = (vec![i32::MAX].into(), NullBuffer::new_null(1));
        assert!(!has_others(&Date32Array::new(values, Some(nulls))));
        let far = TimestampMicrosecondArray::from(vec![i64::MAX]);
        assert!(has_others(&far));
    }
}
