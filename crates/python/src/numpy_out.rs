//! Columns of batches as arrays of numpy.
//!
//! ```text
//! integers, floats, BOOLEAN   their own types; for pandas integers with NULLs are float64 and BOOLEAN is object
//! DATE, TIMESTAMP             datetime64[s] (dates), [s], [ms], [us], [ns]; NaT for NULL
//! DECIMAL                     float64
//! all others, INTERVAL too    objects, as rows have them
//! ```

use crate::numpy_api;
use crate::values;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The column at a position of all batches. `for_pandas`: as pandas wants it, else NULLs are masked.
pub fn numpy_column<'py>(
    py: Python<'py>,
    schema: &Schema,
    batches: &[RecordBatch],
    position: usize,
    for_pandas: bool,
) -> PyResult<Bound<'py, PyAny>> {
    // Where there is none this says so.
    numpy_api::load(py)?;
    let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(position)).collect();
    let column = Column { parts, for_pandas };
    match schema.field(position).data_type() {
        DataType::Boolean if column.has_nulls() && for_pandas => column.objects(py),
        DataType::Boolean => column.booleans(py),
        DataType::Int8 => column.integers::<Int8Type>(py),
        DataType::Int16 => column.integers::<Int16Type>(py),
        DataType::Int32 => column.integers::<Int32Type>(py),
        DataType::Int64 => column.integers::<Int64Type>(py),
        DataType::UInt8 => column.integers::<UInt8Type>(py),
        DataType::UInt16 => column.integers::<UInt16Type>(py),
        DataType::UInt32 => column.integers::<UInt32Type>(py),
        DataType::UInt64 => column.integers::<UInt64Type>(py),
        DataType::Float32 => column.floats::<Float32Type>(py, f32::NAN),
        DataType::Float64 => column.floats::<Float64Type>(py, f64::NAN),
        DataType::Decimal128(_, scale) => {
            let divisor = 10_f64.powi((*scale).into());
            let values = py.detach(|| {
                column.map::<Decimal128Type, f64>(|value| value as f64 / divisor, f64::NAN)
            });
            column.masked(py, values.into_pyarray(py).into_any())
        }
        DataType::Date32 => {
            let seconds = py.detach(|| {
                column.map::<Date32Type, i64>(|days| i64::from(days) * 86_400, i64::MIN)
            });
            column.times(py, seconds, "s")
        }
        DataType::Timestamp(unit, _) => {
            let (values, unit) = py.detach(|| match unit {
                TimeUnit::Second => (
                    column.map::<TimestampSecondType, i64>(|time| time, i64::MIN),
                    "s",
                ),
                TimeUnit::Millisecond => (
                    column.map::<TimestampMillisecondType, i64>(|time| time, i64::MIN),
                    "ms",
                ),
                TimeUnit::Microsecond => (
                    column.map::<TimestampMicrosecondType, i64>(|time| time, i64::MIN),
                    "us",
                ),
                TimeUnit::Nanosecond => (
                    column.map::<TimestampNanosecondType, i64>(|time| time, i64::MIN),
                    "ns",
                ),
            });
            let times = column.times(py, values, unit)?;
            match (schema.field(position).data_type(), for_pandas) {
                (DataType::Timestamp(_, Some(zone)), true) => {
                    let index = py
                        .import("pandas")?
                        .call_method1("DatetimeIndex", (times,))?;
                    index.call_method1("tz_localize", (&**zone,))
                }
                _ => Ok(times),
            }
        }
        _ => column.objects(py),
    }
}

struct Column<'a> {
    parts: Vec<&'a ArrayRef>,
    for_pandas: bool,
}

impl Column<'_> {
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    fn has_nulls(&self) -> bool {
        self.parts.iter().any(|part| part.null_count() > 0)
    }

    /// Every value by a function; `null` where there is none.
    fn map<T: ArrowPrimitiveType, O: Copy>(&self, of: impl Fn(T::Native) -> O, null: O) -> Vec<O> {
        let mut values = Vec::with_capacity(self.len());
        for part in &self.parts {
            let part = part.as_primitive::<T>();
            match part.null_count() {
                0 => values.extend(part.values().iter().map(|value| of(*value))),
                _ => values.extend(part.iter().map(|value| value.map_or(null, &of))),
            }
        }
        values
    }

    fn integers<'py, T: ArrowPrimitiveType>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>
    where
        T::Native: Element + Copy + Default,
    {
        if self.for_pandas && self.has_nulls() {
            let values = self.map::<T, T::Native>(|value| value, T::Native::default());
            let floats = values
                .into_pyarray(py)
                .call_method1("astype", ("float64",))?;
            floats.call_method1("__setitem__", (self.mask(py), f64::NAN))?;
            return Ok(floats);
        }
        let values = py.detach(|| self.map::<T, T::Native>(|value| value, T::Native::default()));
        self.masked(py, values.into_pyarray(py).into_any())
    }

    fn floats<'py, T: ArrowPrimitiveType>(
        &self,
        py: Python<'py>,
        nan: T::Native,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        T::Native: Element + Copy,
    {
        let values = py.detach(|| self.map::<T, T::Native>(|value| value, nan));
        self.masked(py, values.into_pyarray(py).into_any())
    }

    fn booleans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut values = Vec::with_capacity(self.len());
        for part in &self.parts {
            values.extend(part.as_boolean().iter().map(Option::unwrap_or_default));
        }
        self.masked(py, values.into_pyarray(py).into_any())
    }

    fn times<'py>(
        &self,
        py: Python<'py>,
        values: Vec<i64>,
        unit: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        values
            .into_pyarray(py)
            .call_method1("view", (format!("M8[{unit}]"),))
    }

    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut values = Vec::with_capacity(self.len());
        for part in &self.parts {
            values::extend(py, part, 0..part.len(), &mut values)?;
        }
        let numpy = numpy_api::numpy(py)?;
        // An assignment, for a list of lists would become an array of two dimensions.
        let array = numpy.call_method1("empty", (values.len(), "O"))?;
        for (position, value) in values.into_iter().enumerate() {
            array.set_item(position, value)?;
        }
        Ok(array)
    }

    fn mask<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        let mut mask = Vec::with_capacity(self.len());
        for part in &self.parts {
            mask.extend((0..part.len()).map(|row| part.is_null(row)));
        }
        mask.into_pyarray(py)
    }

    /// NULLs of numbers as numpy says it; pandas takes NaN for them.
    fn masked<'py>(
        &self,
        py: Python<'py>,
        values: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.for_pandas || !self.has_nulls() {
            return Ok(values);
        }
        let kwargs = PyDict::new(py);
        kwargs.set_item("mask", self.mask(py))?;
        py.import("numpy.ma")?
            .call_method("array", (values,), Some(&kwargs))
    }
}
