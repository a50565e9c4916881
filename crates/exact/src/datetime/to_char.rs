//! `to_char(date, 'YYYY-MM-DD')` with PostgreSQL's patterns.
//!
//! **Stands for** DataFusion's function of this name, which reads patterns such as `%Y-%m`, and shows PostgreSQL's as
//! they are. DataFusion's function is `strftime` here, as in DuckDB.
//!
//! ```text
//!  YYYY YYY YY Y  IYYY      year, ISO year           HH24  HH HH12     hour
//!  Q  MM  IW  WW  DDD  DD   quarter … day            MI SS MS US       minute … microsecond
//!  D  ID                    day of the week          AM PM am pm       half of the day
//!  MONTH Month month MON …  name, padded to 9        "words"           as they are
//!  DAY Day day DY …         name, padded to 9        FM                without padding, for what follows
//! ```

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt::Write;
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ToChar {
    signature: Signature,
}

impl Default for ToChar {
    fn default() -> Self {
        ToChar {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &str {
        "to_char"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match &types[0] {
            DataType::Date32 | DataType::Timestamp(..) | DataType::Null => Ok(DataType::Utf8View),
            _ => plan_err!("to_char function requires a date or timestamp as arguments"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(|arrays| show(&arrays[0], &arrays[1]), Vec::new())(&args.args)
    }
}

fn show(times: &ArrayRef, patterns: &ArrayRef) -> Result<ArrayRef> {
    let times = cast(times, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let patterns = cast(patterns, &DataType::Utf8View)?;
    let patterns = patterns.as_string_view();
    let mut out = StringViewBuilder::with_capacity(times.len());
    let mut known: Option<(&str, Vec<Part>)> = None;
    let mut string = String::new();
    for row in 0..times.len() {
        if times.is_null(row) || patterns.is_null(row) {
            out.append_null();
            continue;
        }
        let pattern = patterns.value(row);
        if known.as_ref().is_none_or(|(text, _)| *text != pattern) {
            known = Some((pattern, parts(pattern)?));
        }
        let parts = known.as_ref().map_or(&[][..], |(_, parts)| parts);
        let time = time_of(times.value(row))?;
        string.clear();
        for part in parts {
            part.write(&time, &mut string);
        }
        out.append_value(&string);
    }
    Ok(Arc::new(out.finish()))
}

/// The time of so many microseconds since 1970.
fn time_of(micros: i64) -> Result<NaiveDateTime> {
    match DateTime::from_timestamp_micros(micros) {
        Some(time) => Ok(time.naive_utc()),
        None => exec_err!("TIMESTAMP out of range"),
    }
}

/// How letters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Title,
    Lower,
}

type NumberOf = fn(&NaiveDateTime) -> i32;
type NameOf = fn(&NaiveDateTime) -> &'static str;

/// A part of a pattern.
enum Part {
    Words(String),
    /// A number with so many digits at least.
    Number(NumberOf, usize),
    /// A name of so many characters at least: of a month or a day of the week, whole or its first three letters.
    Name(NameOf, Case, usize, bool),
    Half(Case, bool),
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

fn month(time: &NaiveDateTime) -> &'static str {
    MONTHS[time.month0() as usize]
}

fn day(time: &NaiveDateTime) -> &'static str {
    DAYS[time.weekday().num_days_from_monday() as usize]
}

/// Patterns of numbers, and their digits. Longer ones come before those with which they begin.
const NUMBERS: [(&str, NumberOf, usize); 24] = [
    ("YYYY", |of| of.year(), 4),
    ("YYY", |of| of.year().rem_euclid(1_000), 3),
    ("YY", |of| of.year().rem_euclid(100), 2),
    ("Y", |of| of.year().rem_euclid(10), 1),
    ("IYYY", |of| of.iso_week().year(), 4),
    ("IYY", |of| of.iso_week().year().rem_euclid(1_000), 3),
    ("IW", |of| of.iso_week().week() as i32, 2),
    (
        "IDDD",
        |of| (of.iso_week().week0() * 7 + weekday(of)) as i32,
        3,
    ),
    ("ID", |of| weekday(of) as i32, 1),
    ("Q", |of| of.month0() as i32 / 3 + 1, 1),
    ("MM", |of| of.month() as i32, 2),
    ("WW", |of| of.ordinal0() as i32 / 7 + 1, 2),
    ("W", |of| of.day0() as i32 / 7 + 1, 1),
    ("DDD", |of| of.ordinal() as i32, 3),
    ("DD", |of| of.day() as i32, 2),
    ("D", |of| of.weekday().number_from_sunday() as i32, 1),
    ("HH24", |of| of.hour() as i32, 2),
    ("HH12", |of| of.hour12().1 as i32, 2),
    ("HH", |of| of.hour12().1 as i32, 2),
    ("MI", |of| of.minute() as i32, 2),
    ("SSSS", |of| of.num_seconds_from_midnight() as i32, 1),
    ("SS", |of| of.second() as i32, 2),
    ("MS", |of| (of.nanosecond() / 1_000_000) as i32, 3),
    ("US", |of| (of.nanosecond() / 1_000) as i32, 6),
];

/// From Monday, which is 1, on.
fn weekday(time: &NaiveDateTime) -> u32 {
    time.weekday().number_from_monday()
}

/// Patterns of names, in capitals.
const NAMES: [(&str, NameOf, bool); 4] = [
    ("MONTH", month, true),
    ("MON", month, false),
    ("DAY", day, true),
    ("DY", day, false),
];

/// The parts of a pattern.
fn parts(pattern: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    let mut words = String::new();
    let mut pads = true;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            words.push_str(&quoted[..end]);
            rest = quoted.get(end + 1..).unwrap_or_default();
            continue;
        }
        if !first.is_ascii_alphabetic() {
            words.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        if !words.is_empty() {
            parts.push(Part::Words(std::mem::take(&mut words)));
        }
        if let Some(behind) = strip(rest, "FM") {
            pads = false;
            rest = behind;
            continue;
        }
        let (part, behind) = part(rest, pads)?;
        parts.push(part);
        rest = behind;
    }
    if !words.is_empty() {
        parts.push(Part::Words(words));
    }
    Ok(parts)
}

/// The part with which a pattern begins, and what follows.
fn part(rest: &str, pads: bool) -> Result<(Part, &str)> {
    for (name, of, whole) in NAMES {
        if let Some(behind) = strip(rest, name) {
            let width = if whole && pads { 9 } else { 0 };
            return Ok((Part::Name(of, case(rest), width, whole), behind));
        }
    }
    for (name, dotted) in [("A.M.", true), ("P.M.", true), ("AM", false), ("PM", false)] {
        if let Some(behind) = strip(rest, name) {
            return Ok((Part::Half(case(rest), dotted), behind));
        }
    }
    for (name, of, digits) in NUMBERS {
        if let Some(behind) = strip(rest, name) {
            let digits = if pads { digits } else { 1 };
            return Ok((Part::Number(of, digits), behind));
        }
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
    let unknown = &rest[..end.unwrap_or(rest.len())];
    exec_err!("to_char does not know the pattern '{unknown}'")
}

/// What follows a pattern, in whatever case it is written.
fn strip<'a>(rest: &'a str, name: &str) -> Option<&'a str> {
    let (start, behind) = rest.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(behind)
}

fn case(pattern: &str) -> Case {
    let mut letters = pattern.chars().filter(char::is_ascii_alphabetic);
    let mut is_upper = || {
        letters
            .next()
            .is_some_and(|letter| letter.is_ascii_uppercase())
    };
    match (is_upper(), is_upper()) {
        (true, true) => Case::Upper,
        (true, false) => Case::Title,
        _ => Case::Lower,
    }
}

impl Part {
    fn write(&self, time: &NaiveDateTime, out: &mut String) {
        // Writing to a string does not fail.
        match self {
            Part::Words(words) => out.push_str(words),
            Part::Number(of, digits) => {
                let _ = write!(out, "{:0digits$}", of(time));
            }
            Part::Name(of, case, width, whole) => {
                let name = of(time);
                let name = if *whole { name } else { &name[..3] };
                let name = match case {
                    Case::Upper => name.to_ascii_uppercase(),
                    Case::Title => name[..1].to_ascii_uppercase() + &name[1..],
                    Case::Lower => name.to_owned(),
                };
                let _ = write!(out, "{name:width$}");
            }
            Part::Half(case, dotted) => {
                let half = match (time.hour() < 12, dotted) {
                    (true, false) => "am",
                    (true, true) => "a.m.",
                    (false, false) => "pm",
                    (false, true) => "p.m.",
                };
                match case {
                    Case::Upper => out.push_str(&half.to_ascii_uppercase()),
                    _ => out.push_str(half),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parts, time_of};

    fn shown(micros: i64, pattern: &str) -> String {
        let mut out = String::new();
        for part in parts(pattern).unwrap() {
            part.write(&time_of(micros).unwrap(), &mut out);
        }
        out
    }

    #[test]
    fn patterns_are_postgresql_s() {
        // Thursday, 2024-02-29 15:04:05.000678
        let time = 1_709_219_045_000_678;
        for (pattern, expected) in [
            ("YYYY-MM-DD HH24:MI:SS.US", "2024-02-29 15:04:05.000678"),
            ("YYYY-MM", "2024-02"),
            ("DD Mon YYYY, HH12:MI PM", "29 Feb 2024, 03:04 PM"),
            ("Day, DD Month YY", "Thursday , 29 February  24"),
            ("FMDay, FMDD FMMonth", "Thursday, 29 February"),
            ("FMMM/FMDD", "2/29"),
            ("DY MON dy mon", "THU FEB thu feb"),
            ("IYYY-IW-ID Q DDD D", "2024-09-4 1 060 5"),
            ("\"Year\" YYYY", "Year 2024"),
            ("a.m. am", "p.m. pm"),
            ("SSSS MS", "54245 000"),
        ] {
            assert_eq!(shown(time, pattern), expected, "{pattern}");
        }
        assert_eq!(shown(-1, "YYYY-MM-DD HH24:MI"), "1969-12-31 23:59");
        assert!(parts("YYYY-XX").is_err());
    }
}
