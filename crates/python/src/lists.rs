//! Lists of Python's values as columns: all of one type; None is NULL.

use crate::error::data_error;
use crate::import::{arrow_error, guarded, is_masked, is_of_numpy};
use crate::parameters;
use arrow_array::builder::StringViewBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use std::sync::Arc;

/// Values of one type, and None.
pub fn list(py: Python<'_>, values: &[Bound<'_, PyAny>]) -> PyResult<ArrayRef> {
    let mut plain = Vec::new();
    if let Some(first) = values.iter().find(|value| !value.is_none())
        && is_of_numpy(first)?
        && (!first.hasattr(intern!(py, "__len__"))? || is_masked(first)?)
    {
        for value in values {
            plain.push(scalar(value)?);
        }
    }
    let values = if plain.is_empty() { values } else { &plain };
    let is_missing = |value: &Bound<'_, PyAny>| -> PyResult<bool> {
        if value.is_none() {
            return Ok(true);
        }
        let kind = value.get_type().name()?;
        Ok(kind == "NAType" || kind == "MaskedConstant")
    };
    let mut first = None;
    for value in values {
        if !is_missing(value)? {
            first = Some(value);
            break;
        }
    }
    let Some(first) = first else {
        return Ok(Arc::new(NullArray::new(values.len())));
    };
    let other = |value: &Bound<'_, PyAny>, position: usize| -> PyErr {
        let kinds = (first.get_type().name(), value.get_type().name());
        let (Ok(expected), Ok(found)) = kinds else {
            return data_error(py, "values of different types");
        };
        data_error(
            py,
            format!(
                "value {position} is a {found}, where others are a {expected}: a column has one type"
            ),
        )
    };
    if first.cast::<PyString>().is_ok() {
        let mut texts = StringViewBuilder::with_capacity(values.len());
        for (position, value) in values.iter().enumerate() {
            match value.cast::<PyString>() {
                Ok(text) => texts.append_value(text.to_str().map_err(|_| {
                    data_error(
                        py,
                        format!("value {position} has a surrogate, which is no character"),
                    )
                })?),
                Err(_) if is_missing(value)? => texts.append_null(),
                Err(_) => return Err(other(value, position)),
            }
        }
        return Ok(Arc::new(texts.finish()));
    }
    if first.cast::<PyBool>().is_ok() {
        let mut flags = Vec::with_capacity(values.len());
        for (position, value) in values.iter().enumerate() {
            flags.push(match value.cast::<PyBool>() {
                Ok(flag) => Some(flag.is_true()),
                Err(_) if is_missing(value)? => None,
                Err(_) => return Err(other(value, position)),
            });
        }
        return Ok(Arc::new(BooleanArray::from(flags)));
    }
    let is_number = |value: &Bound<'_, PyAny>| {
        value.cast::<PyBool>().is_err()
            && (value.cast::<PyInt>().is_ok() || value.cast::<PyFloat>().is_ok())
    };
    if is_number(first) {
        return list_of_numbers(py, values, &is_missing, &other);
    }
    let mut parts: Vec<ArrayRef> = Vec::with_capacity(values.len());
    let mut data_type = None;
    for (position, value) in values.iter().enumerate() {
        if is_missing(value)? {
            parts.push(Arc::new(NullArray::new(1)));
            continue;
        }
        let Some(part) = parameters::one(value, "of a list")? else {
            let kind = value.get_type().name()?;
            return Err(data_error(
                py,
                format!("value {position}: a value of type {kind} has no counterpart in SQL"),
            ));
        };
        data_type = Some(match data_type {
            None => part.data_type().clone(),
            Some(known) => common(known, part.data_type()).ok_or_else(|| other(value, position))?,
        });
        parts.push(part);
    }
    let data_type = data_type.expect("a value that is not missing");
    let joined = guarded(|| {
        let parts = parts.iter().map(|part| cast(part, &data_type));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        concat(&parts)
    });
    joined.map_err(|error| arrow_error(py, error))
}

/// A scalar of numpy as a value of Python; any other value as it is.
fn scalar<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.is_none() || !is_of_numpy(value)? {
        return Ok(value.clone());
    }
    if is_masked(value)? {
        return Ok(py.None().into_bound(py));
    }
    let kind: String = value
        .getattr(intern!(py, "dtype"))?
        .getattr(intern!(py, "kind"))?
        .extract()?;
    // Python's times have microseconds; of nanoseconds numpy makes a number.
    let value = match kind.as_str() {
        "M" | "m" => value.call_method1(intern!(py, "astype"), (format!("{kind}8[us]"),))?,
        _ => value.clone(),
    };
    value.call_method0(intern!(py, "item"))
}

/// The type that holds both: decimals may differ in their digits.
fn common(known: DataType, other: &DataType) -> Option<DataType> {
    match (&known, other) {
        (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) => {
            let scale = *s.max(t);
            let whole = (*p as i8 - s).max(*q as i8 - t);
            let precision = u8::try_from(whole + scale).ok()?;
            (precision <= 38).then_some(DataType::Decimal128(precision, scale))
        }
        _ => (known == *other).then_some(known),
    }
}

fn list_of_numbers(
    py: Python<'_>,
    values: &[Bound<'_, PyAny>],
    is_missing: &dyn Fn(&Bound<'_, PyAny>) -> PyResult<bool>,
    other: &dyn Fn(&Bound<'_, PyAny>, usize) -> PyErr,
) -> PyResult<ArrayRef> {
    let mut has_floats = false;
    for (position, value) in values.iter().enumerate() {
        if value.cast::<PyFloat>().is_ok() {
            has_floats = true;
        } else if value.cast::<PyBool>().is_ok()
            || (value.cast::<PyInt>().is_err() && !is_missing(value)?)
        {
            return Err(other(value, position));
        }
    }
    if has_floats {
        let floats = values.iter().map(|value| match is_missing(value)? {
            true => Ok(None),
            false => value.extract::<f64>().map(Some),
        });
        return Ok(Arc::new(Float64Array::from(
            floats.collect::<PyResult<Vec<_>>>()?,
        )));
    }
    let signed = values.iter().map(|value| match is_missing(value)? {
        true => Ok(None),
        false => value.extract::<i64>().map(Some),
    });
    if let Ok(signed) = signed.collect::<PyResult<Vec<_>>>() {
        return Ok(Arc::new(Int64Array::from(signed)));
    }
    let unsigned = values.iter().map(|value| match is_missing(value)? {
        true => Ok(None),
        false => value.extract::<u64>().map(Some),
    });
    match unsigned.collect::<PyResult<Vec<_>>>() {
        Ok(unsigned) => Ok(Arc::new(UInt64Array::from(unsigned))),
        Err(_) => Err(data_error(py, "integers of a list have 64 bits")),
    }
}
