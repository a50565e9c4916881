//! The `date` table: one row per day.

use crate::calendar::Day;
use crate::table::SsbTable;
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use std::ops::Range;
use std::sync::Arc;

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Month and day of the ten holidays.
const HOLIDAYS: [(i32, i32); 10] = [
    (1, 1),
    (2, 20),
    (4, 20),
    (5, 20),
    (7, 20),
    (8, 20),
    (9, 20),
    (10, 20),
    (11, 20),
    (12, 24),
];

/// Days `rows` after 1992-01-01. No randomness here.
pub(crate) fn batch(rows: Range<u64>) -> RecordBatch {
    let days: Vec<Day> = rows.map(|row| Day::at(row as i32)).collect();
    let number = |of: &dyn Fn(&Day) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(days.iter().map(of)))
    };
    let text = |of: &dyn Fn(&Day) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(days.iter().map(of)))
    };
    let month = |day: &Day| MONTHS[day.month as usize - 1];
    let columns = vec![
        number(&|d| d.key()),
        text(&|d| format!("{} {}, {}", month(d), d.day, d.year)),
        text(&|d| WEEKDAYS[d.weekday as usize].to_owned()),
        text(&|d| month(d).to_owned()),
        number(&|d| d.year),
        number(&|d| d.year * 100 + d.month),
        text(&|d| format!("{}{}", &month(d)[..3], d.year)),
        number(&|d| d.weekday + 1),
        number(&|d| d.day),
        number(&|d| d.day_of_year),
        number(&|d| d.month),
        number(&|d| (d.day_of_year - 1) / 7 + 1),
        text(&|d| selling_season(d.month).to_owned()),
        number(&|d| i32::from(d.weekday == 6)),
        number(&|d| i32::from(d.is_last_of_month())),
        number(&|d| i32::from(HOLIDAYS.contains(&(d.month, d.day)))),
        number(&|d| i32::from((1..=5).contains(&d.weekday))),
    ];
    RecordBatch::try_new(SsbTable::Date.schema(), columns).expect("columns are built to the schema")
}

fn selling_season(month: i32) -> &'static str {
    match month {
        1..=3 => "Winter",
        4 => "Spring",
        5..=8 => "Summer",
        9 | 10 => "Fall",
        _ => "Christmas",
    }
}
