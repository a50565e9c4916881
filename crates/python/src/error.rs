//! Errors as exceptions of PEP 249. Their classes are in `_errors.py`.
//!
//! ```text
//! SQLSTATE 22… DataError · 23… IntegrityError · 0A… NotSupportedError · XX… InternalError
//!          26… 2B… 34… 3… 42… ProgrammingError · all others OperationalError
//! an exception that a frame raised: itself
//! ```

use eris_sql::{FrameFaultKind, SqlError, SqlErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{intern, sync::PyOnceLock};
use std::error::Error;
use std::fmt;

/// An object of Python that is made once.
///
/// It is made before the cell is locked: making it may run other threads, and a process that forks then would find the
/// lock held for ever.
pub fn kept<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<&'py Bound<'py, PyAny>> {
    if let Some(known) = cell.get(py) {
        return Ok(known.bind(py));
    }
    let made = make()?.unbind();
    Ok(cell.get_or_init(py, || made).bind(py))
}

/// A class of `_errors.py`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static ERRORS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let errors = kept(py, &ERRORS, || Ok(py.import("eris_db._errors")?.into_any()))?;
    errors.getattr(name)
}

fn new_error(py: Python<'_>, name: &str, sqlstate: &str, message: String) -> PyErr {
    let made = class(py, name).and_then(|class| {
        let raised = class.call1((message,))?;
        raised.setattr(intern!(py, "sqlstate"), sqlstate)?;
        Ok(raised)
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An exception of a frame's code, which threads of the database may show when Python has ended.
pub struct Raised(pub PyErr);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To show an exception runs Python.
        match Python::try_attach(|_| self.0.to_string()) {
            Some(text) => f.write_str(&text),
            None => f.write_str("Python has ended"),
        }
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Raised {}

/// The module is used in a way that it cannot be: a closed connection, a forked process.
pub fn interface_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_error(py, "InterfaceError", "08003", message.into())
}

/// What is asked contradicts itself, and no SQL is at fault.
pub fn programming_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_error(py, "ProgrammingError", "42000", message.into())
}

/// A value is none of the type that is needed.
pub fn data_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_error(py, "DataError", "22000", message.into())
}

/// Whether it is a DataError.
pub fn is_data_error(py: Python<'_>, error: &PyErr) -> bool {
    class(py, "DataError").is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

/// SQL has no such thing, or Eris does not do it.
pub fn not_supported_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_error(py, "NotSupportedError", "0A000", message.into())
}

/// The engine failed.
pub fn operational_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    new_error(py, "OperationalError", "58000", message.into())
}

/// A failed statement.
pub fn sql_error(py: Python<'_>, error: &SqlError) -> PyErr {
    let hint = error.hint().map(|hint| {
        hint.replace("start with --memory", "open the database with memory=")
            .replace("without --read-only", "without read_only=True")
    });
    sql_error_with_hint(py, error, hint.as_deref())
}

/// The same with another hint, where what helps elsewhere does not help in Python.
pub fn sql_error_with_hint(py: Python<'_>, error: &SqlError, hint: Option<&str>) -> PyErr {
    if let Some(raised) = raised(py, error) {
        return raised;
    }
    let sqlstate = error.sqlstate().code();
    let name = match &sqlstate[..2] {
        "22" => "DataError",
        "23" => "IntegrityError",
        "0A" => "NotSupportedError",
        "XX" => "InternalError",
        "21" | "26" | "2B" | "34" | "3D" | "3F" | "42" => "ProgrammingError",
        _ => "OperationalError",
    };
    let made = class(py, name).and_then(|class| {
        let mut message = error.to_string();
        if let (Some(known), Some(hint)) = (error.hint(), hint) {
            message = message.replace(known, hint);
        }
        let raised = class.call1((message,))?;
        raised.setattr(intern!(py, "sqlstate"), sqlstate)?;
        raised.setattr(intern!(py, "hint"), hint)?;
        let position = error
            .position()
            .map(|position| (position.line, position.column));
        raised.setattr(intern!(py, "position"), position)?;
        Ok(raised)
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception of Python code that a statement failed with.
fn raised(py: Python<'_>, error: &SqlError) -> Option<PyErr> {
    let SqlErrorKind::Frame(fault) = error.kind() else {
        return None;
    };
    let FrameFaultKind::Raised(raised) = fault.kind() else {
        return None;
    };
    let Raised(raised) = raised.get().downcast_ref::<Raised>()?;
    Some(raised.clone_ref(py))
}

/// `__reduce__` of what belongs to its process.
pub fn not_pickled(py: Python<'_>, class: &Bound<'_, PyType>) -> PyErr {
    let name = class
        .name()
        .map_or_else(|_| String::new(), |name| name.to_string());
    interface_error(
        py,
        format!(
            "{name} belongs to its process and cannot be pickled: connect in the other process"
        ),
    )
}
