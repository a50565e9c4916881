//! What a statement led to: rows that are pulled, or a number of rows that were written.
//!
//! ```text
//! execute ── Running ──┬── batches ── fetchone, iteration: a row at a time
//!                      │           ── arrow, pl, df, numpy: all that are left
//!                      │           ── __arrow_c_stream__: handed to the consumer, who pulls
//!                      └── a number
//! ```

use crate::error::{interface_error, not_pickled, not_supported_error, programming_error};
use crate::exported::{Collected, export};
use crate::lifetime::Closed;
use crate::numpy_out::numpy_column;
use crate::stream::{Batches, Exported};
use crate::values::{Row, rows_of};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use pyo3_arrow::ffi::to_schema_pycapsule;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a statement led to. Rows are computed while they are read; what is not read is not computed.
///
/// >>> result = eris_db.sql("SELECT * FROM range(3) AS r(i)")
/// >>> result.fetchone()
/// (0,)
/// >>> [i for (i,) in result]
/// [1, 2]
#[pyclass(module = "eris_db", frozen, weakref)]
pub struct Result {
    /// None: the statement has no rows.
    schema: Option<SchemaRef>,
    tag: &'static str,
    written: Option<u64>,
    /// Where its rows come from.
    closed: Option<Closed>,
    rows: Mutex<Unread>,
}

/// What nobody has read yet.
#[derive(Default)]
struct Unread {
    /// A batch that is read row by row, from this row on.
    current: Option<(RecordBatch, usize)>,
    /// Batches that were read ahead, to be shown.
    ahead: std::collections::VecDeque<RecordBatch>,
    rest: Option<Batches>,
    read: u64,
    /// Somebody else has them.
    is_taken: bool,
}

impl Result {
    pub fn rows(batches: Batches) -> Self {
        Result {
            schema: Some(Arc::clone(batches.schema())),
            tag: "SELECT",
            written: None,
            closed: Some(batches.closed().clone()),
            rows: Mutex::new(Unread {
                rest: Some(batches),
                ..Unread::default()
            }),
        }
    }

    /// Rows that are there already.
    pub fn of_batch(batch: RecordBatch) -> Self {
        Result {
            schema: Some(batch.schema()),
            tag: "SELECT",
            written: None,
            closed: None,
            rows: Mutex::new(Unread {
                ahead: [batch].into(),
                ..Unread::default()
            }),
        }
    }

    pub fn done(tag: &'static str, written: Option<u64>) -> Self {
        Result {
            schema: None,
            tag,
            written,
            closed: None,
            rows: Mutex::default(),
        }
    }

    pub fn has_rows(&self) -> bool {
        self.schema.is_some()
    }

    pub fn written(&self) -> Option<u64> {
        self.written
    }

    pub fn tag(&self) -> &'static str {
        self.tag
    }

    /// Its columns; an error if it has none.
    fn columns(&self, py: Python<'_>) -> PyResult<&SchemaRef> {
        self.schema
            .as_ref()
            .ok_or_else(|| programming_error(py, format!("{} has no rows", self.tag)))
    }

    fn unread(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Unread>> {
        self.columns(py)?;
        if self.closed.as_ref().is_some_and(Closed::is_closed) {
            return Err(interface_error(
                py,
                "the connection of this result is closed",
            ));
        }
        let unread = crate::wait::lock(py, &self.rows)?;
        match unread.is_taken {
            true => Err(interface_error(
                py,
                "the rows of this result were handed on, or it was closed",
            )),
            false => Ok(unread),
        }
    }

    /// All rows that are left.
    fn collect(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let mut unread = self.unread(py)?;
        let mut batches = unread.take_ahead();
        if let Some(rest) = unread.rest.take() {
            while let Some(batch) = rest.next(py)? {
                batches.push(batch);
            }
        }
        unread.read += batches
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum::<u64>();
        Ok(batches)
    }

    /// All rows that are left, for a library that reads Arrow's C stream at once.
    fn collected(&self, py: Python<'_>, strings: &str) -> PyResult<Collected> {
        let schema = Arc::clone(self.columns(py)?);
        let batches = self.collect(py)?;
        Collected { schema, batches }.with_strings(py, strings)
    }
}

impl Unread {
    fn take_ahead(&mut self) -> Vec<RecordBatch> {
        let mut batches = Vec::with_capacity(self.ahead.len() + 1);
        if let Some((batch, row)) = self.current.take()
            && row < batch.num_rows()
        {
            batches.push(batch.slice(row, batch.num_rows() - row));
        }
        batches.extend(self.ahead.drain(..));
        batches
    }

    /// The batch with the next row, and which row that is.
    fn next_row(&mut self, py: Python<'_>) -> PyResult<Option<&(RecordBatch, usize)>> {
        while self
            .current
            .as_ref()
            .is_none_or(|(batch, row)| *row >= batch.num_rows())
        {
            let next = match self.ahead.pop_front() {
                Some(batch) => Some(batch),
                None => match &self.rest {
                    Some(rest) => rest.next(py)?,
                    None => None,
                },
            };
            match next {
                None => {
                    self.current = None;
                    self.rest = None;
                    return Ok(None);
                }
                Some(batch) => self.current = Some((batch, 0)),
            }
        }
        Ok(self.current.as_ref())
    }
}

#[pymethods]
impl Result {
    /// PEP 249: a tuple (name, type, None, None, None, None, null_ok) per column; None if there are no rows. Types are
    /// those of Arrow, as text.
    #[getter]
    pub fn description<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(schema) = &self.schema else {
            return Ok(None);
        };
        let columns = schema.fields().iter().map(|field| {
            let none = py.None();
            let type_code = crate::values::type_code(py, field.data_type())?;
            let nullable = field.is_nullable();
            (
                field.name(),
                type_code,
                &none,
                &none,
                &none,
                &none,
                nullable,
            )
                .into_pyobject(py)
        });
        Ok(Some(PyList::new(
            py,
            columns.collect::<PyResult<Vec<_>>>()?,
        )?))
    }

    /// The names of the columns.
    #[getter(columns)]
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.iter().flat_map(|schema| schema.fields().iter());
        fields.map(|field| field.name().clone()).collect()
    }

    /// How many rows were written; -1 if the statement has rows, which nobody has counted yet.
    #[getter]
    pub fn rowcount(&self) -> i64 {
        self.written.map_or(-1, |rows| rows as i64)
    }

    /// The kind of statement, such as INSERT or CREATE TABLE.
    #[getter]
    fn statement(&self) -> &'static str {
        self.tag
    }

    /// The next row as a tuple; None behind the last one.
    pub fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut unread = self.unread(py)?;
        let Some((batch, row)) = unread.next_row(py)? else {
            return Ok(None);
        };
        let found = Row::new(batch).tuple(py, *row)?;
        if let Some((_, row)) = &mut unread.current {
            *row += 1;
        }
        unread.read += 1;
        Ok(Some(found))
    }

    /// At most so many of the next rows, as a list of tuples.
    #[pyo3(signature = (size=1))]
    pub fn fetchmany<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        let mut unread = self.unread(py)?;
        while rows.len() < size {
            let Some((batch, row)) = unread.next_row(py)? else {
                break;
            };
            let (from, wanted) = (*row, size - rows.len());
            let to = batch.num_rows().min(from.saturating_add(wanted));
            rows_of(py, batch, from..to, &rows)?;
            unread.read += (to - from) as u64;
            if let Some((_, row)) = &mut unread.current {
                *row = to;
            }
        }
        Ok(rows)
    }

    /// All rows that are left, as a list of tuples.
    pub fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.fetchmany(py, usize::MAX)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.fetchone(py)
    }

    /// All rows that are left, as a pyarrow.Table. strings: "view" as they are, or "string" or "large_string".
    #[pyo3(signature = (*, strings="view"))]
    pub fn arrow<'py>(&self, py: Python<'py>, strings: &str) -> PyResult<Bound<'py, PyAny>> {
        let collected = self.collected(py, strings)?;
        py.import("pyarrow")?.call_method1("table", (collected,))
    }

    /// A pyarrow.RecordBatchReader, which pulls the rows that are left.
    #[pyo3(signature = (*, strings="view"))]
    pub fn reader<'py>(slf: &Bound<'py, Self>, strings: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let schema = Collected {
            schema: Arc::clone(slf.get().columns(py)?),
            batches: Vec::new(),
        };
        let reader = py.import("pyarrow")?.getattr("RecordBatchReader")?;
        let pyarrow = py.import("pyarrow")?;
        let kwargs = PyDict::new(py);
        if strings != "view" {
            let wanted = pyarrow.call_method1("schema", (schema.with_strings(py, strings)?,))?;
            kwargs.set_item("schema", wanted)?;
        }
        reader.call_method("from_stream", (slf,), Some(&kwargs))
    }

    /// All rows that are left, as a polars.DataFrame.
    pub fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut fields = self.columns(py)?.fields().iter();
        if let Some(field) = fields.find(|field| matches!(field.data_type(), DataType::Interval(_)))
        {
            let text = format!(
                "column \"{}\": Polars has no type for INTERVAL; epoch() gives its seconds",
                field.name()
            );
            return Err(not_supported_error(py, text));
        }
        let collected = self.collected(py, "view")?;
        py.import("polars")?.call_method1("DataFrame", (collected,))
    }

    /// All rows that are left, as a pandas.DataFrame. Integers with NULLs become floats, as pandas does it.
    pub fn df<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = Arc::clone(self.columns(py)?);
        let pandas = py.import("pandas")?;
        let batches = self.collect(py)?;
        let columns = PyDict::new(py);
        let texts = arrow_texts(py, &schema, &batches)?;
        for (position, field) in schema.fields().iter().enumerate() {
            let column = match &texts {
                Some(texts) if *field.data_type() == DataType::Utf8View => {
                    let column = texts.call_method1("column", (position,))?;
                    let kwargs = PyDict::new(py);
                    kwargs.set_item("dtype", "str")?;
                    pandas.call_method("array", (column,), Some(&kwargs))?
                }
                _ => numpy_column(py, &schema, &batches, position, true)?,
            };
            columns.set_item(position, column)?;
        }
        let kwargs = PyDict::new(py);
        kwargs.set_item("copy", false)?;
        let frame = pandas.call_method("DataFrame", (columns,), Some(&kwargs))?;
        frame.setattr("columns", self.column_names())?;
        Ok(frame)
    }

    /// All rows that are left, as a dict of numpy arrays; columns with NULLs are masked arrays.
    pub fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let schema = Arc::clone(self.columns(py)?);
        let mut names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let text = format!(
                "two columns are called \"{}\": give one of them another name with AS",
                pair[0]
            );
            return Err(programming_error(py, text));
        }
        let batches = self.collect(py)?;
        let columns = PyDict::new(py);
        for (position, field) in schema.fields().iter().enumerate() {
            columns.set_item(
                field.name(),
                numpy_column(py, &schema, &batches, position, false)?,
            )?;
        }
        Ok(columns)
    }

    /// Arrow's PyCapsule interface: a stream of the rows that are left, which the consumer pulls.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = Arc::clone(self.columns(py)?);
        let mut unread = self.unread(py)?;
        let ahead = unread.take_ahead();
        unread.is_taken = true;
        let exported = Exported::new(Arc::clone(&schema), ahead, unread.rest.take());
        export(py, schema, exported, requested_schema)
    }

    /// Arrow's PyCapsule interface: the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.columns(py)?.as_ref())?)
    }

    /// The first rows, without reading them: at most so many, and whether there are more.
    fn _peek<'py>(&self, py: Python<'py>, size: usize) -> PyResult<(Bound<'py, PyList>, bool)> {
        let mut unread = self.unread(py)?;
        let shown = PyList::empty(py);
        let mut batches = unread.take_ahead();
        let mut rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        while rows <= size
            && let Some(rest) = &unread.rest
        {
            match rest.next(py)? {
                Some(batch) => {
                    rows += batch.num_rows();
                    batches.push(batch);
                }
                None => unread.rest = None,
            }
        }
        for batch in &batches {
            let wanted = batch.num_rows().min(size - shown.len());
            rows_of(py, batch, 0..wanted, &shown)?;
        }
        unread.ahead = batches.into();
        Ok((shown, rows > size))
    }

    /// Gives up the rows that are left.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut unread = crate::wait::lock(py, &self.rows)?;
        unread.is_taken = true;
        unread.take_ahead();
        match unread.rest.take() {
            Some(rest) => rest.close(py),
            None => Ok(()),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        match (&this.schema, this.written) {
            (Some(_), _) => match shown(slf, "text") {
                // Debuggers and notebooks show whatever there is.
                Err(error) if !error.is_instance_of::<PyKeyboardInterrupt>(slf.py()) => {
                    Ok(format!("<eris_db.Result, {}>", error.value(slf.py())))
                }
                shown => shown,
            },
            (None, Some(rows)) => Ok(format!("{} {rows}", this.tag)),
            (None, None) => Ok(this.tag.to_owned()),
        }
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Option<String>> {
        match slf.get().has_rows() {
            // What was handed on has no rows to show: the text says so.
            true => Ok(shown(slf, "html").ok()),
            false => Ok(None),
        }
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(not_pickled(slf.py(), &slf.get_type()))
    }
}

/// The first rows as a table.
fn shown(result: &Bound<'_, Result>, form: &str) -> PyResult<String> {
    let py = result.py();
    let display = py.import(intern!(py, "eris_db._display"))?;
    display.call_method1(form, (result,))?.extract()
}

/// The rows as a table of pyarrow, if pandas keeps texts in Arrow's form, as it does from version 3 on where pyarrow is
/// installed.
fn arrow_texts<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut fields = schema.fields().iter();
    if !fields.any(|field| *field.data_type() == DataType::Utf8View) {
        return Ok(None);
    }
    let version: String = py.import("pandas")?.getattr("__version__")?.extract()?;
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    let Some(pyarrow) = py.import("pyarrow").ok().filter(|_| major >= Some(3)) else {
        return Ok(None);
    };
    let collected = Collected {
        schema: Arc::clone(schema),
        batches: batches.to_vec(),
    };
    pyarrow.call_method1("table", (collected,)).map(Some)
}
