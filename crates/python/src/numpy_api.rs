//! numpy's functions, which its crate looks up when they are used first.
//!
//! To look them up runs Python code. If Ctrl-C came meanwhile, the crate would panic. Only the main thread hears it, so
//! that another one looks them up.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::thread;

/// Whether they are those that this module knows, once they were looked up.
static IS_KNOWN: OnceLock<bool> = OnceLock::new();

/// The module numpy, whose arrays can be used from now on.
///
/// # Errors
/// There is none, or its functions are not those that this module knows.
pub fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    load(py)?;
    py.import("numpy")
}

/// The same for whoever does not need the module.
///
/// # Errors
/// As [`numpy`].
pub fn load(py: Python<'_>) -> PyResult<()> {
    if let Some(true) = IS_KNOWN.get() {
        return Ok(());
    }
    let version = py.import("numpy")?.getattr("__version__")?;
    if IS_KNOWN.get().is_none() {
        // An array, and the right to write to it.
        let load = || {
            Python::attach(|py| drop(PyArray1::<u64>::zeros(py, 0, false).try_readwrite()));
        };
        let thread = thread::Builder::new();
        let loaded = py.detach(|| thread.spawn(load).map(|thread| thread.join()));
        let _ = IS_KNOWN.set(loaded?.is_ok());
    }
    match IS_KNOWN.get() {
        Some(true) => Ok(()),
        _ => Err(PyImportError::new_err(format!(
            "numpy {version} has not the functions that this module needs"
        ))),
    }
}
