//! Bare indexes: 64-bit keys to 64-bit values, numpy in, numpy out.

use crate::database::Database;
use crate::error::{data_error, not_pickled, operational_error};
use crate::held::Held;
use crate::import::is_of_numpy;
use crate::numpy_api;
use eris_engine::{EngineError, KeyClient, KeyIndex as EngineIndex};
use numpy::{BorrowError, IntoPyArray, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::ops::Range;

/// An index of 64-bit keys to 64-bit values, without rows, types or snapshots. Keys and values are arrays of uint64.
///
/// A batch is executed by the workers that own its keys; threads that share an index wait for each other. Ctrl-C ends a
/// large batch between two parts of it: those before are done.
///
/// >>> import numpy
/// >>> database = eris_db.Database(memory="512MB", aeus=1)
/// >>> index = eris_db.KeyIndex(database)
/// >>> keys = numpy.array([1, 2, 3], dtype=numpy.uint64)
/// >>> index.put(keys, keys * 2)
/// 0
/// >>> index.get(keys)
/// array([2, 4, 6], dtype=uint64)
#[pyclass(module = "eris_db", frozen)]
pub struct KeyIndex {
    state: Held<IndexState>,
}

struct IndexState {
    client: KeyClient,
    /// Kept, so that its pages are.
    found: Vec<Option<u64>>,
    /// Its owners give its memory back when the last one is gone.
    _index: EngineIndex,
}

type Numbers<'py> = Bound<'py, PyArray1<u64>>;

#[pymethods]
impl KeyIndex {
    /// An empty index. low and high: the keys that are expected, which spreads them evenly over the workers; others are
    /// taken as well.
    #[new]
    #[pyo3(signature = (database, low=0, high=u64::MAX, *, name="index"))]
    fn new(
        py: Python<'_>,
        database: &Bound<'_, Database>,
        low: u64,
        high: u64,
        name: &str,
    ) -> PyResult<Self> {
        // Where there is none this says so.
        numpy_api::load(py)?;
        if low > high {
            return Err(data_error(
                py,
                format!("low is {low}, which is above high, {high}"),
            ));
        }
        let database = database.get().inner();
        let engine = database.engine(py)?;
        let index = engine.create_key_index(name, low..=high);
        let client = index.client().map_err(|error| failed(py, &error))?;
        let state = IndexState {
            client,
            found: Vec::new(),
            _index: index,
        };
        Ok(KeyIndex {
            state: Held::new(state, database.closed()),
        })
    }

    /// The values of keys; `default` for those that the index does not have. out: where they go.
    #[pyo3(signature = (keys, *, default=0, out=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: u64,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Numbers<'py>> {
        let keys = numbers(keys, "keys")?;
        let out = match out {
            Some(out) => numbers(&out, "out")?,
            None => PyArray1::<u64>::zeros(py, keys.len(), false),
        };
        if out.len() != keys.len() {
            let text = format!("{} keys, but out has {} places", keys.len(), out.len());
            return Err(data_error(py, text));
        }
        let mut writable = (out.try_readwrite()).map_err(|error| in_use(py, "out", &error))?;
        let values = writable
            .as_slice_mut()
            .map_err(|_| not_contiguous(py, "out"))?;
        self.with_keys(py, &keys, |client, part, keys, found| {
            client.get(keys, found)?;
            for (value, found) in values[part].iter_mut().zip(found) {
                *value = found.unwrap_or(default);
            }
            Ok(())
        })?;
        drop(writable);
        Ok(out)
    }

    /// Which of the keys the index has: an array of bool.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let mut has = Vec::new();
        self.with_keys(py, &numbers(keys, "keys")?, |client, _, keys, found| {
            client.get(keys, found)?;
            has.extend(found.iter().map(Option::is_some));
            Ok(())
        })?;
        Ok(has.into_pyarray(py))
    }

    /// Puts entries in; of keys that occur twice the last value stays. Returns how many keys were there before.
    fn put(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (keys, values) = (numbers(keys, "keys")?, numbers(values, "values")?);
        if values.len() != keys.len() {
            let text = format!("{} keys, but {} values", keys.len(), values.len());
            return Err(data_error(py, text));
        }
        let readable = (values.try_readonly()).map_err(|error| in_use(py, "values", &error))?;
        let values = readable
            .as_slice()
            .map_err(|_| not_contiguous(py, "values"))?;
        let mut replaced = 0;
        self.with_keys(py, &keys, |client, part, keys, found| {
            let entries = keys.iter().copied().zip(values[part].iter().copied());
            client.put(&entries.collect::<Vec<_>>(), found)?;
            replaced += found.iter().flatten().count() as u64;
            Ok(())
        })?;
        Ok(replaced)
    }

    /// Removes keys. Returns how many there were.
    fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut removed = 0;
        self.with_keys(py, &numbers(keys, "keys")?, |client, _, keys, found| {
            client.remove(keys, found)?;
            removed += found.iter().flatten().count() as u64;
            Ok(())
        })?;
        Ok(removed)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(not_pickled(slf.py(), &slf.get_type()))
    }
}

/// Keys that are handed on at once: Ctrl-C waits for them.
const PART: usize = 1 << 18;

impl KeyIndex {
    /// What is done with a client and a part of the keys while Python goes on; there is a place for what is found of
    /// each key. Signals are looked for between the parts.
    fn with_keys(
        &self,
        py: Python<'_>,
        keys: &Numbers<'_>,
        mut work: impl FnMut(
            &mut KeyClient,
            Range<usize>,
            &[u64],
            &mut [Option<u64>],
        ) -> Result<(), EngineError>
        + Send,
    ) -> PyResult<()> {
        let readable = (keys.try_readonly()).map_err(|error| in_use(py, "keys", &error))?;
        let keys = readable
            .as_slice()
            .map_err(|_| not_contiguous(py, "keys"))?;
        let mut state = self.state.lock(py)?;
        let IndexState { client, found, .. } = &mut *state;
        for (number, keys) in keys.chunks(PART).enumerate() {
            if number > 0 {
                py.check_signals()?;
            }
            let from = number * PART;
            let done = py.detach(|| {
                found.resize(keys.len(), None);
                work(client, from..from + keys.len(), keys, found)
            });
            done.map_err(|error| failed(py, &error))?;
        }
        Ok(())
    }
}

/// An array of keys or values.
fn numbers<'py>(given: &Bound<'py, PyAny>, what: &str) -> PyResult<Numbers<'py>> {
    let py = given.py();
    if is_of_numpy(given)?
        && let Ok(numbers) = given.cast::<PyArray1<u64>>()
    {
        return Ok(numbers.clone());
    }
    let found = match given.getattr("dtype") {
        Ok(dtype) => format!(
            "an array of {dtype} with {} dimensions",
            given.getattr("ndim")?
        ),
        Err(_) => format!("a {}", given.get_type().name()?),
    };
    Err(data_error(
        py,
        format!("{what}: an array of uint64 with one dimension is needed, and this is {found}"),
    ))
}

/// It is out itself, or another thread's, or not to be written.
fn in_use(py: Python<'_>, what: &str, error: &BorrowError) -> PyErr {
    data_error(py, format!("{what}: {error}"))
}

fn not_contiguous(py: Python<'_>, what: &str) -> PyErr {
    data_error(
        py,
        format!(
            "{what}: the array's values do not lie behind each other; numpy.ascontiguousarray copies them"
        ),
    )
}

fn failed(py: Python<'_>, error: &EngineError) -> PyErr {
    operational_error(py, error.to_string())
}
