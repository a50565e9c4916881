//! Arrow's data and numpy's arrays, as they come in.
//!
//! ```text
//! __arrow_c_stream__, __arrow_c_array__   buffers are shared
//! numpy arrays                            numbers are shared where they lie behind each other; NaT is NULL
//! lists                                   of one type: lists.rs
//! ```

use crate::error::{data_error, is_data_error};
use crate::lists::list;
use crate::numpy_api;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, PrimitiveArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions, RecordBatchReader, make_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::nullif::nullif;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3_arrow::buffer::AnyBufferProtocol;
use pyo3_arrow::input::AnyArray;
use pyo3_arrow::{PyArray, PyArrayReader, PySchema};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Work with buffers of others, which may panic where they are not what they say.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| {
        Err(ArrowError::CDataInterface(
            "the data is not what its type says".to_owned(),
        ))
    })
}

/// An Arrow error as an exception; one that crossed Arrow's interface comes back as itself.
pub fn arrow_error(py: Python<'_>, error: ArrowError) -> PyErr {
    if let ArrowError::ExternalError(inner) = &error
        && let Some(raised) = inner.downcast_ref::<PyErr>()
    {
        return raised.clone_ref(py);
    }
    data_error(py, error.to_string())
}

/// The batches of an object with Arrow's PyCapsule interface. Rows are structs there.
pub fn reader(object: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let py = object.py();
    let structs = match object.hasattr(intern!(py, "__arrow_c_array__"))? {
        true => AnyArray::Array(object.extract::<PyArray>()?).into_reader()?,
        false => AnyArray::Stream(object.extract::<PyArrayReader>()?).into_reader()?,
    };
    let field = structs.field();
    let DataType::Struct(fields) = field.data_type() else {
        let text = format!(
            "rows are needed, and these are values of type {}",
            field.data_type()
        );
        return Err(data_error(py, text));
    };
    let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
    let schema = Arc::new(schema);
    let of = Arc::clone(&schema);
    let batches = structs.map(move |rows| guarded(|| of_structs(&rows?, &of)));
    Ok(Box::new(RecordBatchIterator::new(batches, schema)))
}

/// Structs as rows. All columns of a struct that is NULL are: what is below it has no meaning.
fn of_structs(structs: &ArrayRef, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let rows = structs.as_struct_opt().ok_or_else(|| {
        let found = structs.data_type();
        ArrowError::CDataInterface(format!("rows were declared, and {found} was found"))
    })?;
    let columns = match rows.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => rows.columns().to_vec(),
        Some(nulls) => {
            let is_null = BooleanArray::new(!nulls.inner(), None);
            let columns = rows.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| match column.data_type() {
                DataType::Union(..) | DataType::RunEndEncoded(..) => {
                    let (name, kind) = (field.name(), column.data_type());
                    Err(ArrowError::NotYetImplemented(format!(
                        "column \"{name}\": rows that are NULL have a value of type {kind}"
                    )))
                }
                _ => nullif(column, &is_null),
            });
            columns.collect::<Result<_, _>>()?
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// All batches of an object with Arrow's PyCapsule interface, or of a dict of columns.
pub fn batches(object: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let py = object.py();
    if let Ok(columns) = object.cast::<PyDict>() {
        let batch = of_columns(columns)?;
        return Ok((batch.schema(), vec![batch]));
    }
    let reader = reader(object)?;
    let schema = reader.schema();
    let batches = py.detach(|| guarded(|| reader.collect::<Result<Vec<_>, _>>()));
    Ok((schema, batches.map_err(|error| arrow_error(py, error))?))
}

/// Rows in one batch, whose buffers hold what their types say.
pub fn checked_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let py = object.py();
    let batch = batch(object)?;
    let valid = py.detach(|| batch.columns().iter().try_for_each(checked));
    valid.map_err(|error| arrow_error(py, error))?;
    Ok(batch)
}

/// Rows in one batch, for those who check its buffers.
pub fn batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let py = object.py();
    // Some of their columns have to be mended first.
    let module = object.get_type().module()?.to_string();
    let is_mended = ["pandas.", "polars."]
        .iter()
        .any(|library| module.starts_with(library));
    let is_known = !is_mended
        && (object.cast::<PyDict>().is_ok()
            || object.hasattr(intern!(py, "__arrow_c_stream__"))?
            || object.hasattr(intern!(py, "__arrow_c_array__"))?);
    let (schema, batches) = match is_known {
        true => batches(object)?,
        false => batches(
            &py.import("eris_db._frames")?
                .call_method1("rows", (object,))?,
        )?,
    };
    let joined = py.detach(|| match batches.as_slice() {
        [one] => Ok(one.clone()),
        all => guarded(|| concat_batches(&schema, all)),
    });
    joined.map_err(|error| arrow_error(py, error))
}

/// The error of a column, with its name if it is one of ours.
fn of_column(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    match is_data_error(py, &error) {
        true => data_error(py, format!("column \"{name}\": {}", error.value(py))),
        false => error,
    }
}

/// A dict of columns as rows.
fn of_columns(columns: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
    let py = columns.py();
    let named = columns.iter().map(|(name, values)| {
        let name = name.str()?.to_string();
        let column = column(&values).map_err(|error| of_column(py, &name, error))?;
        Ok((column.field(&name), column.values))
    });
    let named = named.collect::<PyResult<Vec<_>>>()?;
    if let [(first, one), others @ ..] = named.as_slice() {
        let length = one.len();
        if let Some((field, other)) = others.iter().find(|(_, other)| other.len() != length) {
            let (first, name, found) = (first.name(), field.name(), other.len());
            let text =
                format!("column \"{first}\" has {length} values, but column \"{name}\" {found}");
            return Err(data_error(py, text));
        }
    }
    let (fields, values): (Vec<Field>, Vec<ArrayRef>) = named.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new(schema, values).map_err(|error| arrow_error(py, error))
}

/// Columns: of an object with Arrow's interface, or a list of (name, type). A type is numpy's name, "str" or "bytes",
/// or an array that has it.
pub fn schema(object: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let py = object.py();
    let Ok(columns) = object.cast::<PyList>() else {
        if object.hasattr(intern!(py, "__arrow_c_schema__"))? {
            return Ok(object.extract::<PySchema>()?.into_inner());
        }
        return Ok(reader(object)?.schema());
    };
    let fields = columns.iter().map(|named| {
        let (name, of): (String, Bound<'_, PyAny>) = named.extract()?;
        let Ok(dtype) = of.cast::<PyString>() else {
            return Ok(column(&of)?.field(&name));
        };
        let data_type = numpy_type(dtype.to_str()?).ok_or_else(|| {
            let text = format!("numpy's type {dtype} has no counterpart in SQL");
            data_error(py, text)
        })?;
        Ok(Field::new(name, data_type, true))
    });
    Ok(Arc::new(Schema::new(fields.collect::<PyResult<Vec<_>>>()?)))
}

/// The type of arrays of numpy with this name of their values'.
fn numpy_type(dtype: &str) -> Option<DataType> {
    let unit = |text: &str| {
        Some(match text.strip_suffix(']')? {
            "s" => TimeUnit::Second,
            "ms" => TimeUnit::Millisecond,
            "us" => TimeUnit::Microsecond,
            "ns" => TimeUnit::Nanosecond,
            _ => return None,
        })
    };
    Some(match dtype {
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "str" => DataType::Utf8View,
        "bytes" => DataType::BinaryView,
        other => match (
            other.strip_prefix("datetime64["),
            other.strip_prefix("timedelta64["),
        ) {
            (Some(text), _) => DataType::Timestamp(unit(text)?, None),
            (_, Some(text)) => DataType::Duration(unit(text)?),
            _ => return None,
        },
    })
}

/// Rejects buffers that do not hold what their type says.
fn checked(column: &ArrayRef) -> Result<(), ArrowError> {
    guarded(|| column.to_data().validate_full())
}

/// Values of one column, whose buffers hold what their type says.
pub fn array(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = object.py();
    let array = column(object)?.values;
    py.detach(|| checked(&array))
        .map_err(|error| arrow_error(py, error))?;
    Ok(array)
}

/// Whether it is an object of numpy, or of a class below one, whose arrays can be used then. To ask for its type would
/// import numpy.
pub fn is_of_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for class in object.get_type().mro().iter() {
        let module = class.getattr(intern!(object.py(), "__module__"))?;
        let module = module.to_string();
        if module == "numpy" || module.starts_with("numpy.") {
            numpy_api::load(object.py())?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether it is a single value of numpy that is masked.
pub fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    match object.getattr_opt(intern!(py, "mask"))? {
        Some(mask) if object.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0 => {
            mask.is_truthy()
        }
        _ => Ok(false),
    }
}

/// A column of some object.
pub struct Column {
    pub values: ArrayRef,
    /// What its field says of it, such as that it has UUIDs.
    metadata: HashMap<String, String>,
}

/// How a field says what it is to Arrow's users, and that it has UUIDs.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.uuid");

/// The field, which says so if it has UUIDs of the engine.
pub fn with_uuids(field: Field) -> Field {
    let (key, name) = EXTENSION;
    match field.data_type() {
        DataType::FixedSizeBinary(16) => {
            field.with_metadata([(key.to_owned(), name.to_owned())].into())
        }
        _ => field,
    }
}

impl Column {
    /// Values that were made of Python's: among these only UUIDs have a fixed size.
    fn made(values: ArrayRef) -> Self {
        let field = with_uuids(Field::new("", values.data_type().clone(), true));
        Column {
            values,
            metadata: field.metadata().clone(),
        }
    }

    /// Its field, with this name.
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.values.data_type().clone(), true);
        field.with_metadata(self.metadata.clone())
    }
}

/// Values of one column, for those who check their buffers.
pub fn column(object: &Bound<'_, PyAny>) -> PyResult<Column> {
    let py = object.py();
    if is_of_numpy(object)?
        && let Ok(numbers) = object.cast::<PyUntypedArray>()
    {
        return numpy(numbers).map(Column::made);
    }
    if object.hasattr(intern!(py, "__arrow_c_array__"))?
        || object.hasattr(intern!(py, "__arrow_c_stream__"))?
    {
        let reader = object.extract::<AnyArray>()?.into_reader()?;
        let field = reader.field();
        let data_type = field.data_type().clone();
        let joined = py.detach(|| {
            guarded(|| {
                let chunks = reader.collect::<Result<Vec<_>, _>>()?;
                let parts: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
                let joined = match parts.as_slice() {
                    [] => arrow_array::new_empty_array(&data_type),
                    parts => concat(parts)?,
                };
                Ok(joined)
            })
        });
        let values = joined.map_err(|error| arrow_error(py, error))?;
        let metadata = field.metadata().clone();
        return Ok(Column { values, metadata });
    }
    if object.hasattr(intern!(py, "to_numpy"))? {
        return column(&object.call_method0(intern!(py, "to_numpy"))?);
    }
    let values: Vec<Bound<'_, PyAny>> = if let Ok(list) = object.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        tuple.iter().collect()
    } else if object.cast::<PyString>().is_ok() {
        return Err(data_error(
            py,
            "a list of values is needed, and no single text",
        ));
    } else {
        object.try_iter()?.collect::<PyResult<_>>()?
    };
    list(py, &values).map(Column::made)
}

/// An array of numpy with one dimension.
fn numpy(array: &Bound<'_, PyUntypedArray>) -> PyResult<ArrayRef> {
    let py = array.py();
    if array.ndim() != 1 {
        let text = format!(
            "an array of one dimension is needed, and this one has {}",
            array.ndim()
        );
        return Err(data_error(py, text));
    }
    let is_masked = array.hasattr(intern!(py, "mask"))?;
    let kind: String = array.dtype().getattr(intern!(py, "kind"))?.extract()?;
    if is_masked && matches!(kind.as_str(), "b" | "i" | "u" | "f") {
        let values = numpy(array.getattr("data")?.cast::<PyUntypedArray>()?)?;
        let mask = py
            .import("numpy.ma")?
            .call_method1("getmaskarray", (array,))?;
        let mask = numpy(mask.cast::<PyUntypedArray>()?)?;
        let known = nullif(&values, mask.as_boolean());
        return known.map_err(|error| arrow_error(py, error));
    }
    if is_masked {
        let values = array.call_method0("tolist")?.cast_into::<PyList>()?;
        return list(py, &values.iter().collect::<Vec<_>>());
    }
    match kind.as_str() {
        "M" | "m" => {
            let numpy = py.import("numpy")?;
            let unit = numpy.call_method1("datetime_data", (array.dtype(),))?;
            let (unit, count): (String, i64) = unit.extract()?;
            let (letter, target) = match (unit.as_str(), count) {
                ("s" | "ms" | "us" | "ns", 1) => (unit.as_str(), None),
                ("Y" | "M" | "W" | "D" | "h" | "m", _) => ("s", Some("s")),
                _ => ("ns", Some("ns")),
            };
            let values = match target {
                Some(target) => array.call_method1("astype", (format!("{kind}8[{target}]"),))?,
                None => array.as_any().clone(),
            };
            let ticks = values.call_method1("view", ("i8",))?;
            let ticks = numbers(ticks.cast::<PyUntypedArray>()?)?;
            let unit = match letter {
                "s" => TimeUnit::Second,
                "ms" => TimeUnit::Millisecond,
                "us" => TimeUnit::Microsecond,
                _ => TimeUnit::Nanosecond,
            };
            let data_type = match kind.as_str() {
                "M" => DataType::Timestamp(unit, None),
                _ => DataType::Duration(unit),
            };
            let ticks = ticks.as_primitive::<Int64Type>();
            let nulls = nulls_where(ticks.values(), |tick| *tick == i64::MIN);
            let times = ticks
                .to_data()
                .into_builder()
                .data_type(data_type)
                .nulls(nulls)
                .build();
            Ok(make_array(times.map_err(|error| arrow_error(py, error))?))
        }
        "O" | "U" | "S" | "T" => {
            let values = array.call_method0("tolist")?.cast_into::<PyList>()?;
            list(py, &values.iter().collect::<Vec<_>>())
        }
        "b" => {
            let values = copied::<bool>(&array.as_any().clone().cast_into::<PyArray1<bool>>()?)?;
            Ok(Arc::new(BooleanArray::from(values)))
        }
        _ => numbers(array),
    }
}

/// The values of an array of numpy, one behind the other.
fn copied<T: numpy::Element + Copy>(array: &Bound<'_, PyArray1<T>>) -> PyResult<Vec<T>> {
    let readable = array.try_readonly()?;
    Ok(match readable.as_slice() {
        Ok(values) => values.to_vec(),
        Err(_) => readable.as_array().to_vec(),
    })
}

/// Numbers, shared with numpy where they lie behind each other. Whoever changes them while a statement reads them
/// changes what it reads, as with any producer of Arrow's data.
fn numbers(array: &Bound<'_, PyUntypedArray>) -> PyResult<ArrayRef> {
    use arrow_array::types as arrow;
    fn primitive<T: ArrowPrimitiveType>(
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Option<ArrayRef>>
    where
        T::Native: numpy::Element + Copy,
    {
        match array.cast::<PyArray1<T::Native>>() {
            Ok(array) => {
                let values = copied(array)?.into();
                Ok(Some(Arc::new(PrimitiveArray::<T>::new(values, None))))
            }
            Err(_) => Ok(None),
        }
    }
    let py = array.py();
    let flag = |of: Bound<'_, PyAny>, name: &str| of.getattr(name)?.is_truthy();
    if array.is_c_contiguous()
        && flag(array.getattr(intern!(py, "flags"))?, "aligned")?
        && flag(array.dtype().into_any(), "isnative")?
        && let Ok(buffer) = array.extract::<AnyBufferProtocol>()
    {
        return Ok(buffer.into_arrow_array()?);
    }
    let of = [
        primitive::<arrow::Int64Type>,
        primitive::<arrow::Float64Type>,
        primitive::<arrow::Int32Type>,
        primitive::<arrow::Float32Type>,
        primitive::<arrow::UInt64Type>,
        primitive::<arrow::UInt32Type>,
        primitive::<arrow::Int16Type>,
        primitive::<arrow::UInt16Type>,
        primitive::<arrow::Int8Type>,
        primitive::<arrow::UInt8Type>,
    ];
    for typed in of {
        if let Some(found) = typed(array)? {
            return Ok(found);
        }
    }
    let dtype = array.dtype();
    if dtype
        .getattr(intern!(py, "byteorder"))?
        .extract::<String>()?
        == ">"
    {
        let native =
            array.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))?;
        return column(&native).map(|column| column.values);
    }
    if dtype.to_string() == "float16" {
        let wider = array.call_method1("astype", ("float32",))?;
        return column(&wider).map(|column| column.values);
    }
    Err(data_error(
        py,
        format!("numpy's type {dtype} has no counterpart in SQL"),
    ))
}

impl Column {
    /// The same with times in UTC.
    ///
    /// # Errors
    /// They are no times.
    pub fn in_utc(self) -> Result<Self, ArrowError> {
        let DataType::Timestamp(unit, None) = *self.values.data_type() else {
            let found = self.values.data_type();
            return Err(ArrowError::CastError(format!(
                "times are needed, not {found}"
            )));
        };
        let builder = self.values.to_data().into_builder();
        let times = builder.data_type(DataType::Timestamp(unit, Some("UTC".into())));
        let values = make_array(times.build()?);
        Ok(Column { values, ..self })
    }

    /// Floats without NaN: pandas has no other NULL for them.
    pub fn without_nan(self) -> Self {
        let values = without_nan(self.values);
        Column { values, ..self }
    }
}

fn without_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let nulls = nulls_where(floats.values(), |value| value.is_nan());
            let nulls = NullBuffer::union(floats.nulls(), nulls.as_ref());
            Arc::new(Float64Array::new(floats.values().clone(), nulls))
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let nulls = nulls_where(floats.values(), |value| value.is_nan());
            let nulls = NullBuffer::union(floats.nulls(), nulls.as_ref());
            Arc::new(Float32Array::new(floats.values().clone(), nulls))
        }
        _ => array,
    }
}

/// NULL where the condition holds; `None` if that is nowhere.
fn nulls_where<T>(values: &[T], is_null: impl Fn(&T) -> bool) -> Option<NullBuffer> {
    if !values.iter().any(&is_null) {
        return None;
    }
    let valid = BooleanBuffer::collect_bool(values.len(), |row| !is_null(&values[row]));
    Some(NullBuffer::new(valid))
}
