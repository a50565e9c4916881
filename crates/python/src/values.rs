//! Values of Arrow arrays as Python objects.
//!
//! ```text
//! BOOLEAN bool · integers int · REAL DOUBLE float · DECIMAL decimal.Decimal · VARCHAR str · BLOB bytes
//! UUID uuid.UUID · DATE datetime.date · TIME datetime.time · TIMESTAMP datetime.datetime, aware with a time zone
//! INTERVAL datetime.timedelta, a month of 30 days · lists list · structs dict · NULL None
//! ```
//!
//! Python's times have microseconds: what is finer is cut off. Dates and times that Python does not have, such as those
//! before the year 1, are text.

use crate::error::kept;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList, PyString, PyTime,
    PyTuple, PyTzInfo,
};
use std::ops::Range;

const DAY_US: i64 = 86_400_000_000;
/// Days from 0001-01-01 to 1970-01-01, and the last day of the year 9999.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;

/// The rows of a batch.
pub struct Row<'a>(&'a RecordBatch);

impl<'a> Row<'a> {
    pub fn new(batch: &'a RecordBatch) -> Self {
        Row(batch)
    }

    /// One row.
    pub fn tuple<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyTuple>> {
        let cells = self.0.columns().iter().map(|column| value(py, column, row));
        PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)
    }
}

/// Adds rows of a batch to a list.
pub fn rows_of(
    py: Python<'_>,
    batch: &RecordBatch,
    rows: Range<usize>,
    into: &Bound<'_, PyList>,
) -> PyResult<()> {
    // Column by column: the type of each is looked at once.
    let columns = batch.columns().iter().map(|column| {
        let mut values = Vec::with_capacity(rows.len());
        extend(py, column, rows.clone(), &mut values)?;
        Ok(values.into_iter())
    });
    let mut columns = columns.collect::<PyResult<Vec<_>>>()?;
    for _ in rows {
        let cells = columns
            .iter_mut()
            .map(|column| column.next().expect("as many as rows"));
        into.append(PyTuple::new(py, cells.collect::<Vec<_>>())?)?;
    }
    Ok(())
}

/// One value.
pub fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let mut values = Vec::with_capacity(1);
    extend(py, array, row..row + 1, &mut values)?;
    Ok(values.pop().expect("one row was asked for"))
}

/// Appends values.
pub fn extend<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    rows: Range<usize>,
    into: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let none = || py.None().into_bound(py);
    macro_rules! each {
        ($typed:expr, $made:expr) => {{
            let typed = $typed;
            for row in rows {
                into.push(match typed.is_null(row) {
                    true => none(),
                    false => $made(typed.value(row), row)?,
                });
            }
        }};
    }
    macro_rules! integers {
        ($type:ty) => {
            each!(array.as_primitive::<$type>(), |value, _| Ok::<_, PyErr>(
                PyInt::new(py, value).into_any()
            ))
        };
    }
    let text = |row: usize| -> PyResult<Bound<'py, PyAny>> {
        let options = FormatOptions::default();
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options);
        let shown = formatter.and_then(|formatter| formatter.value(row).try_to_string());
        let shown = shown.map_err(|error| crate::error::data_error(py, error.to_string()))?;
        Ok(PyString::new(py, &shown).into_any())
    };
    match array.data_type() {
        DataType::Null => into.extend(rows.map(|_| none())),
        DataType::Boolean => each!(array.as_boolean(), |value, _| Ok::<_, PyErr>(
            PyBool::new(py, value).to_owned().into_any()
        )),
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Float32 => each!(array.as_primitive::<Float32Type>(), |value: f32, _| {
            Ok::<_, PyErr>(PyFloat::new(py, value.into()).into_any())
        }),
        DataType::Float64 => each!(array.as_primitive::<Float64Type>(), |value, _| {
            Ok::<_, PyErr>(PyFloat::new(py, value).into_any())
        }),
        DataType::Utf8View => {
            let texts = array.as_string_view();
            let mut known = KnownTexts::new(rows.len());
            for row in rows {
                into.push(match texts.is_null(row) {
                    true => none(),
                    false => known
                        .text(py, texts.views()[row], texts.value(row))
                        .into_any(),
                });
            }
        }
        DataType::Utf8 => each!(array.as_string::<i32>(), |value, _| {
            Ok::<_, PyErr>(PyString::new(py, value).into_any())
        }),
        DataType::LargeUtf8 => each!(array.as_string::<i64>(), |value, _| {
            Ok::<_, PyErr>(PyString::new(py, value).into_any())
        }),
        DataType::BinaryView => each!(array.as_binary_view(), |value, _| {
            Ok::<_, PyErr>(PyBytes::new(py, value).into_any())
        }),
        DataType::Binary => each!(array.as_binary::<i32>(), |value, _| {
            Ok::<_, PyErr>(PyBytes::new(py, value).into_any())
        }),
        DataType::FixedSizeBinary(16) => {
            let class = imported(py, "uuid", "UUID", &UUID)?;
            let kwargs = PyDict::new(py);
            each!(array.as_fixed_size_binary(), |value: &[u8], _| {
                kwargs.set_item(intern!(py, "bytes"), PyBytes::new(py, value))?;
                class.call((), Some(&kwargs))
            });
        }
        DataType::Decimal128(..) => {
            let class = imported(py, "decimal", "Decimal", &DECIMAL)?;
            let typed = array.as_primitive::<Decimal128Type>();
            each!(typed, |_, row| class.call1((typed.value_as_string(row),)));
        }
        DataType::Date32 => each!(array.as_primitive::<Date32Type>(), |days: i32, row| {
            match DAYS.contains(&days.into()) {
                true => date(py, days.into()),
                false => text(row),
            }
        }),
        DataType::Date64 => each!(array.as_primitive::<Date64Type>(), |ms: i64, row| {
            match DAYS.contains(&(ms / 86_400_000)) {
                true => date(py, ms / 86_400_000),
                false => text(row),
            }
        }),
        DataType::Time64(TimeUnit::Microsecond) => {
            each!(array.as_primitive::<Time64MicrosecondType>(), |us, _| time(
                py, us
            ));
        }
        DataType::Time64(_) => {
            each!(
                array.as_primitive::<Time64NanosecondType>(),
                |ns: i64, _| time(py, ns / 1000)
            );
        }
        DataType::Timestamp(unit, zone) => {
            let zone = match zone {
                Some(_) => Some(PyTzInfo::utc(py)?.to_owned()),
                None => None,
            };
            let made = |us: Option<i64>, row: usize| match us {
                Some(us) if DAYS.contains(&us.div_euclid(DAY_US)) => {
                    datetime(py, us, zone.as_ref())
                }
                _ => text(row),
            };
            match unit {
                TimeUnit::Second => each!(
                    array.as_primitive::<TimestampSecondType>(),
                    |of: i64, row| made(of.checked_mul(1_000_000), row)
                ),
                TimeUnit::Millisecond => each!(
                    array.as_primitive::<TimestampMillisecondType>(),
                    |of: i64, row| made(of.checked_mul(1_000), row)
                ),
                TimeUnit::Microsecond => each!(
                    array.as_primitive::<TimestampMicrosecondType>(),
                    |of: i64, row| made(Some(of), row)
                ),
                TimeUnit::Nanosecond => each!(
                    array.as_primitive::<TimestampNanosecondType>(),
                    |of: i64, row| made(Some(of.div_euclid(1_000)), row)
                ),
            }
        }
        DataType::Interval(_) => {
            let typed = array.as_primitive_opt::<IntervalMonthDayNanoType>();
            let Some(typed) = typed else {
                for row in rows {
                    into.push(text(row)?);
                }
                return Ok(());
            };
            for row in rows {
                if typed.is_null(row) {
                    into.push(none());
                    continue;
                }
                let interval = typed.value(row);
                let us = interval.nanoseconds / 1000;
                let days = i64::from(interval.months) * 30
                    + i64::from(interval.days)
                    + us.div_euclid(DAY_US);
                let us = us.rem_euclid(DAY_US);
                let days = i32::try_from(days).unwrap_or(i32::MAX);
                let delta = PyDelta::new(
                    py,
                    days,
                    (us / 1_000_000) as i32,
                    (us % 1_000_000) as i32,
                    false,
                );
                into.push(match delta {
                    Ok(delta) => delta.into_any(),
                    // Longer than Python has them.
                    Err(_) => text(row)?,
                });
            }
        }
        DataType::List(_) => each!(array.as_list::<i32>(), |items: ArrayRef, _| list(
            py, &items
        )),
        DataType::LargeList(_) => each!(array.as_list::<i64>(), |items: ArrayRef, _| list(
            py, &items
        )),
        DataType::Struct(fields) => {
            let typed = array.as_struct();
            for row in rows {
                if typed.is_null(row) {
                    into.push(none());
                    continue;
                }
                let made = PyDict::new(py);
                for (field, column) in fields.iter().zip(typed.columns()) {
                    made.set_item(field.name(), value(py, column, row)?)?;
                }
                into.push(made.into_any());
            }
        }
        _ => {
            for row in rows {
                into.push(match array.is_null(row) {
                    true => none(),
                    false => text(row)?,
                });
            }
        }
    }
    Ok(())
}

/// Texts that were made just now: of those that repeat, one object is enough.
///
/// A view holds a text of at most 12 bytes whole, so equal views are equal texts. Each has one place.
struct KnownTexts<'py>(Vec<Option<(u128, Bound<'py, PyString>)>>);

impl<'py> KnownTexts<'py> {
    const PLACES: usize = 4096;
    const INLINE: u32 = 12;

    /// For so many rows.
    fn new(rows: usize) -> Self {
        let worth = rows >= Self::PLACES / 16;
        KnownTexts(if worth {
            vec![None; Self::PLACES]
        } else {
            Vec::new()
        })
    }

    fn text(&mut self, py: Python<'py>, view: u128, text: &str) -> Bound<'py, PyString> {
        if self.0.is_empty() || view as u32 > Self::INLINE {
            return PyString::new(py, text);
        }
        let folded = (view >> 64) as u64 ^ view as u64;
        let place = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize;
        match &self.0[place] {
            Some((known, text)) if *known == view => text.clone(),
            _ => {
                let made = PyString::new(py, text);
                self.0[place] = Some((view, made.clone()));
                made
            }
        }
    }
}

pub static UUID: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
pub static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A class of Python's library.
pub fn imported<'py>(
    py: Python<'py>,
    module: &str,
    name: &str,
    cell: &'static PyOnceLock<Py<PyAny>>,
) -> PyResult<&'py Bound<'py, PyAny>> {
    kept(py, cell, || py.import(module)?.getattr(name))
}

fn list<'py>(py: Python<'py>, items: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let mut values = Vec::with_capacity(items.len());
    extend(py, items, 0..items.len(), &mut values)?;
    Ok(PyList::new(py, values)?.into_any())
}

/// Year, month and day of a day since 1970, by the algorithm of Howard Hinnant's `civil_from_days`.
fn civil(days: i64) -> (i32, u8, u8) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month as u8, day as u8)
}

fn date(py: Python<'_>, days: i64) -> PyResult<Bound<'_, PyAny>> {
    let (year, month, day) = civil(days);
    Ok(PyDate::new(py, year, month, day)?.into_any())
}

/// Hours, minutes, seconds and microseconds.
fn clock(us: i64) -> (u8, u8, u8, u32) {
    let seconds = us / 1_000_000;
    (
        (seconds / 3600) as u8,
        (seconds / 60 % 60) as u8,
        (seconds % 60) as u8,
        (us % 1_000_000) as u32,
    )
}

fn time(py: Python<'_>, us: i64) -> PyResult<Bound<'_, PyAny>> {
    if us < 0 {
        let text = format!("a TIME is not before the begin of its day: {us} microseconds");
        return Err(crate::error::data_error(py, text));
    }
    // SQL has the end of a day, Python does not.
    let (hour, minute, second, us) = clock(us.min(DAY_US - 1));
    Ok(PyTime::new(py, hour, minute, second, us, None)?.into_any())
}

fn datetime<'py>(
    py: Python<'py>,
    us: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (year, month, day) = civil(us.div_euclid(DAY_US));
    let (hour, minute, second, us) = clock(us.rem_euclid(DAY_US));
    Ok(PyDateTime::new(py, year, month, day, hour, minute, second, us, zone)?.into_any())
}

/// What `description` says of a type: an object that is equal to the right one of `STRING`, `NUMBER` and their kin.
pub fn type_code<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyAny>> {
    let types = py.import(intern!(py, "eris_db._types"))?;
    types.call_method1(intern!(py, "of_arrow"), (data_type.to_string(),))
}
