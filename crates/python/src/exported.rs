//! Rows on their way to other libraries, through Arrow's PyCapsule interface.

use crate::error::{data_error, programming_error};
use crate::stream::Exported;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_cast::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PySchema;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use std::sync::Arc;

/// Hands rows to a consumer of Arrow's C stream, in the form that it asks for.
pub fn export<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    exported: Exported,
    requested: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let asked = requested
        .map(|capsule| PySchema::from_arrow_pycapsule(&capsule))
        .transpose()?;
    let form = asked.and_then(|asked| Form::of(&schema, &asked.into_inner()));
    let schema = form
        .as_ref()
        .map_or(schema, |form| Arc::clone(&form.schema));
    let field = Field::new_struct("", schema.fields().clone(), false);
    let arrays = exported.map(move |batch| {
        let batch = match &form {
            Some(form) => form.of_batch(&batch?)?,
            None => batch?,
        };
        Ok(Arc::new(StructArray::from(batch)) as ArrayRef)
    });
    let arrays = ArrayIterator::new(arrays, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(arrays), None)?)
}

/// Another form of the same columns, as a consumer has asked for it.
struct Form {
    schema: SchemaRef,
    /// Where each column is found.
    columns: Vec<usize>,
}

impl Form {
    /// `None`: what is asked for cannot be had, so that the columns stay as they are. The consumer sees that.
    fn of(schema: &Schema, asked: &Schema) -> Option<Form> {
        if schema.fields().len() != asked.fields().len() {
            return None;
        }
        let mut columns = Vec::with_capacity(asked.fields().len());
        for (position, wanted) in asked.fields().iter().enumerate() {
            let found = match schema.field(position).name() == wanted.name() {
                true => position,
                false => schema.index_of(wanted.name()).ok()?,
            };
            if !can_cast_types(schema.field(found).data_type(), wanted.data_type()) {
                return None;
            }
            columns.push(found);
        }
        let schema = Arc::new(asked.clone());
        Some(Form { schema, columns })
    }

    /// # Errors
    /// A value does not fit.
    fn of_batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let columns = self.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(position, field)| {
            let cast = cast_with_options(batch.column(*position), field.data_type(), &options);
            cast.map_err(|error| {
                let (name, wanted) = (field.name(), field.data_type());
                ArrowError::CastError(format!("column \"{name}\" as {wanted}: {error}"))
            })
        });
        let columns = columns.collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// Rows that a library reads at once.
#[pyclass(frozen)]
pub struct Collected {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl Collected {
    /// The same with another form of strings.
    pub fn with_strings(self, py: Python<'_>, strings: &str) -> PyResult<Self> {
        let wanted = match strings {
            "view" => return Ok(self),
            "string" => DataType::Utf8,
            "large_string" => DataType::LargeUtf8,
            other => {
                let text = format!("strings={other:?}: it is view, string or large_string");
                return Err(programming_error(py, text));
            }
        };
        let fields = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.data_type() {
                DataType::Utf8View => field.as_ref().clone().with_data_type(wanted.clone()),
                _ => field.as_ref().clone(),
            });
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batches = py.detach(|| {
            let batches = self.batches.iter().map(|batch| {
                let columns = batch.columns().iter().zip(schema.fields());
                let columns = columns.map(|(column, field)| cast(column, field.data_type()));
                RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, _>>()?)
            });
            batches.collect::<Result<Vec<_>, _>>()
        });
        let batches = batches.map_err(|error| data_error(py, error.to_string()))?;
        Ok(Collected { schema, batches })
    }
}

#[pymethods]
impl Collected {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let exported = Exported::new(Arc::clone(&self.schema), self.batches.clone(), None);
        export(py, Arc::clone(&self.schema), exported, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }
}
