//! Python's values as parameters of statements.

use crate::error::{data_error, programming_error};
use crate::{import, values};
use arrow_array::types::DecimalType;
use arrow_array::types::{Decimal128Type, IntervalMonthDayNano};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, IntervalUnit};
use eris_sql::{Parameter, PreparedStatement};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyList,
    PyMapping, PyMemoryView, PySequence, PyString, PyTime, PyTuple,
};
use std::sync::Arc;

const DAY_US: i64 = 86_400_000_000;
/// Digits of the widest decimal.
const DIGITS: usize = 38;

/// The values of a statement's parameters: a sequence in their order, or a mapping by their names.
pub fn values(given: &Bound<'_, PyAny>, statement: &PreparedStatement) -> PyResult<Vec<Parameter>> {
    let py = given.py();
    // Exact types first: whether something is a mapping is asked by Python's code.
    let values: Vec<Bound<'_, PyAny>> = if let Ok(list) = given.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.iter().collect()
    } else if given.cast::<PyString>().is_ok() || given.cast::<PyBytes>().is_ok() {
        let text = "parameters are a list, a tuple or a dict: write [value] for a single one";
        return Err(programming_error(py, text));
    } else if let Ok(named) = given.cast::<PyMapping>() {
        return named_values(named, statement);
    } else if let Ok(sequence) = given.cast::<PySequence>() {
        sequence.try_iter()?.collect::<PyResult<_>>()?
    } else {
        let kind = given.get_type().name()?;
        let text = format!("parameters are a list, a tuple or a dict, and no {kind}");
        return Err(programming_error(py, text));
    };
    let values = values.iter().enumerate();
    values
        .map(|(position, value)| parameter(value, &format!("${}", position + 1)))
        .collect()
}

/// The values of parameters with names.
fn named_values(
    named: &Bound<'_, PyMapping>,
    statement: &PreparedStatement,
) -> PyResult<Vec<Parameter>> {
    let py = named.py();
    let names = statement.parameter_names();
    let values = names.iter().map(|name| {
        let value = named.get_item(&name[1..]);
        let value = value.map_err(|_| {
            programming_error(py, format!("no value is given for parameter {name}"))
        })?;
        parameter(&value, name)
    });
    let values = values.collect::<PyResult<Vec<_>>>()?;
    if named.len()? > names.len() {
        for key in named.keys()? {
            let key = key.to_string();
            if !names.iter().any(|name| name[1..] == key) {
                return Err(programming_error(
                    py,
                    format!("the statement has no parameter ${key}"),
                ));
            }
        }
    }
    Ok(values)
}

/// A value; `name` is for messages.
pub fn parameter(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Parameter> {
    let py = value.py();
    // The most frequent ones first, and exact types before those that inherit.
    if value.is_none() {
        return Ok(Parameter::NULL);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str().map_err(|_| {
            data_error(
                py,
                format!("parameter {name}: the text has a surrogate, which is no character"),
            )
        });
        return Ok(Parameter::from(text?));
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Parameter::from(value.is_true()));
    }
    if value.cast::<PyInt>().is_ok() {
        return integer(value, name);
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Parameter::from(value.value()));
    }
    match one(value, name)? {
        Some(array) if array.is_null(0) => Ok(Parameter::NULL),
        Some(array) => {
            let parameter = Parameter::of_array(array.as_ref(), 0);
            parameter.map_err(|error| crate::error::sql_error(py, &error))
        }
        None => other(value, name),
    }
}

fn integer(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Parameter> {
    if let Ok(value) = value.extract::<i64>() {
        return Ok(Parameter::from(value));
    }
    if let Ok(value) = value.extract::<u64>() {
        return Ok(Parameter::from(value));
    }
    // Python makes no text of very long ones.
    let bits: u64 = value
        .call_method0(intern!(value.py(), "bit_length"))?
        .extract()?;
    let digits = match bits {
        0..=127 => value.str()?.to_string(),
        _ => String::new(),
    };
    let wide = digits
        .parse::<i128>()
        .ok()
        .filter(|_| digits.trim_start_matches('-').len() <= DIGITS);
    let wide = wide.ok_or_else(|| {
        data_error(
            value.py(),
            format!("parameter {name}: an integer has at most {DIGITS} digits"),
        )
    })?;
    decimal(value.py(), wide, DIGITS as u8, 0)
}

fn decimal(py: Python<'_>, value: i128, digits: u8, scale: i8) -> PyResult<Parameter> {
    let array = Decimal128Array::from(vec![value]).with_precision_and_scale(digits, scale);
    let array = array.map_err(|error| data_error(py, error.to_string()))?;
    Parameter::of_array(&array, 0).map_err(|error| crate::error::sql_error(py, &error))
}

/// A value of one of Python's own types, as an array of one value; `None` if it is none.
pub fn one(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<ArrayRef>> {
    let py = value.py();
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(Arc::new(BinaryViewArray::from_iter_values([
            bytes.as_bytes()
        ]))));
    }
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(Some(Arc::new(BinaryViewArray::from_iter_values([
            bytes.to_vec()
        ]))));
    }
    if value.cast::<PyDateTime>().is_ok() {
        // Not a time is not equal to itself.
        if value.ne(value)? {
            return Ok(Some(Arc::new(TimestampMicrosecondArray::from(vec![None]))));
        }
        let (us, is_aware) = timestamp(value)?;
        let array = TimestampMicrosecondArray::from(vec![us]);
        return Ok(Some(match is_aware {
            true => Arc::new(array.with_timezone("UTC")),
            false => Arc::new(array),
        }));
    }
    if value.cast::<PyDate>().is_ok() {
        let ordinal: i32 = value.call_method0(intern!(py, "toordinal"))?.extract()?;
        return Ok(Some(Arc::new(Date32Array::from(vec![ordinal - 719_163]))));
    }
    if value.cast::<PyTime>().is_ok() {
        if !value.getattr(intern!(py, "tzinfo"))?.is_none() {
            let text = format!("parameter {name}: a TIME has no time zone");
            return Err(data_error(py, text));
        }
        return Ok(Some(Arc::new(Time64MicrosecondArray::from(vec![clock(
            value,
        )?]))));
    }
    if value.cast::<PyDelta>().is_ok() {
        let days: i32 = value.getattr(intern!(py, "days"))?.extract()?;
        let seconds: i64 = value.getattr(intern!(py, "seconds"))?.extract()?;
        let us: i64 = value.getattr(intern!(py, "microseconds"))?.extract()?;
        let interval = IntervalMonthDayNano::new(0, days, (seconds * 1_000_000 + us) * 1_000);
        return Ok(Some(Arc::new(IntervalMonthDayNanoArray::from(vec![
            interval,
        ]))));
    }
    if value.cast::<PyMemoryView>().is_ok() {
        let bytes: Vec<u8> = value.call_method0(intern!(py, "tobytes"))?.extract()?;
        return Ok(Some(Arc::new(BinaryViewArray::from_iter_values([bytes]))));
    }
    if value.is_instance(values::imported(
        py,
        "decimal",
        "Decimal",
        &values::DECIMAL,
    )?)? {
        return decimal_of(value, name).map(Some);
    }
    if value.is_instance(values::imported(py, "uuid", "UUID", &values::UUID)?)? {
        let bytes: Vec<u8> = value.getattr(intern!(py, "bytes"))?.extract()?;
        let array = FixedSizeBinaryArray::try_from_iter([bytes].into_iter());
        let array = array.map_err(|error| data_error(py, error.to_string()))?;
        return Ok(Some(Arc::new(array)));
    }
    match value.get_type().name()? == "NAType" {
        true => Ok(Some(arrow_array::new_null_array(&DataType::Null, 1))),
        false => Ok(None),
    }
}

/// Microseconds since 1970, of a point in time if it is aware.
fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<(i64, bool)> {
    let py = value.py();
    let offset = value.call_method0(intern!(py, "utcoffset"))?;
    let ordinal: i64 = value.call_method0(intern!(py, "toordinal"))?.extract()?;
    let local = (ordinal - 719_163) * DAY_US + clock(value)?;
    if offset.is_none() {
        return Ok((local, false));
    }
    let days: i64 = offset.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i64 = offset.getattr(intern!(py, "seconds"))?.extract()?;
    let us: i64 = offset.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok((local - days * DAY_US - seconds * 1_000_000 - us, true))
}

/// Microseconds of the day.
fn clock(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    let part = |name: &Bound<'_, PyString>| value.getattr(name)?.extract::<i64>();
    let seconds = part(intern!(py, "hour"))? * 3600
        + part(intern!(py, "minute"))? * 60
        + part(intern!(py, "second"))?;
    Ok(seconds * 1_000_000 + part(intern!(py, "microsecond"))?)
}

/// A decimal of as many digits as it has.
fn decimal_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<ArrayRef> {
    let py = value.py();
    let wrong = |why: &str| data_error(py, format!("parameter {name}: the decimal {value} {why}"));
    let parts = value.call_method0(intern!(py, "as_tuple"))?;
    let Ok(exponent) = parts.getattr(intern!(py, "exponent"))?.extract::<i64>() else {
        return Err(wrong("is no number"));
    };
    let digits: Vec<u8> = parts.getattr(intern!(py, "digits"))?.extract()?;
    let is_negative = parts.getattr(intern!(py, "sign"))?.extract::<i64>()? == 1;
    let too_long = || wrong(&format!("has more than {DIGITS} digits"));
    // Zeros at the end that the exponent stands for.
    let (scale, zeros) = if exponent > 0 {
        (0, exponent)
    } else {
        (-exponent, 0)
    };
    if digits.len() as i64 + zeros > DIGITS as i64 || scale > DIGITS as i64 {
        return Err(too_long());
    }
    let ten = |value: i128, digit: u8| value.checked_mul(10)?.checked_add(digit.into());
    let digits = digits
        .iter()
        .copied()
        .chain(std::iter::repeat_n(0, zeros as usize));
    let value = digits.clone().try_fold(0_i128, ten).ok_or_else(too_long)?;
    let precision = digits.count().max(scale as usize).max(1) as u8;
    let value = if is_negative { -value } else { value };
    debug_assert!(precision <= Decimal128Type::MAX_PRECISION);
    let array = Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale as i8);
    Ok(Arc::new(
        array.map_err(|error| data_error(py, error.to_string()))?,
    ))
}

/// A list, or an object of numpy.
fn other(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Parameter> {
    let py = value.py();
    let sql = |parameter: Result<Parameter, eris_sql::SqlError>| {
        parameter.map_err(|error| crate::error::sql_error(py, &error))
    };
    let is_numpy = import::is_of_numpy(value)?;
    if is_numpy
        && value.hasattr(intern!(py, "ndim"))?
        && value.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0
    {
        let kind: String = value
            .getattr(intern!(py, "dtype"))?
            .getattr(intern!(py, "kind"))?
            .extract()?;
        if kind == "M" || kind == "m" {
            let array = py.import("numpy")?.call_method1("atleast_1d", (value,))?;
            let array = import::array(&array)?;
            if array.is_null(0) {
                return Ok(Parameter::NULL);
            }
            let array = match array.data_type() {
                DataType::Duration(_) => {
                    cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano))
                        .map_err(|error| data_error(py, error.to_string()))?
                }
                _ => array,
            };
            return sql(Parameter::of_array(array.as_ref(), 0));
        }
        if import::is_masked(value)? {
            return Ok(Parameter::NULL);
        }
        // What has no counterpart in Python is its own item.
        let item = value.call_method0(intern!(py, "item"))?;
        if !item.get_type().is(value.get_type()) {
            return parameter(&item, name);
        }
        return Err(no_counterpart(value, name)?);
    }
    let is_list = value.cast::<PyList>().is_ok()
        || value.cast::<PyTuple>().is_ok()
        || is_numpy
        || value.hasattr(intern!(py, "__arrow_c_array__"))?
        || value.hasattr(intern!(py, "__arrow_c_stream__"))?;
    if is_list && value.cast::<PyDict>().is_err() {
        let items = import::array(value)?;
        return sql(Parameter::list(&items));
    }
    Err(no_counterpart(value, name)?)
}

fn no_counterpart(value: &Bound<'_, PyAny>, name: &str) -> PyResult<PyErr> {
    let kind = value.get_type().name()?;
    let text = format!("parameter {name}: a value of type {kind} has no counterpart in SQL");
    Ok(data_error(value.py(), text))
}
