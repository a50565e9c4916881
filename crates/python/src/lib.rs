//! Eris for Python: the native part of the module `eris_db`.
//!
//! ```text
//! [python] ─ sql ─ engine
//! ```
//!
//! ```text
//! Python        connection.execute ─┐                               ┌─▶ rows, arrays, frames
//!               GIL released        ▼                               │
//! this crate    wait: polls, looks for signals every 50 ms ── result: batches of a stream
//! ```
//!
//! A door translates and decides nothing. Everything that runs longer than a moment runs without the GIL. Python code
//! is only called by the thread that called this module, and, for frames, by threads of the database that may wait.
//!
//! What is nicer to write in Python is there: `python/eris_db`.

#![deny(unsafe_code)]

mod calls;
mod connection;
mod database;
mod error;
mod executor;
mod exported;
mod frame;
mod held;
mod import;
mod job;
mod key_index;
mod lifetime;
mod lists;
mod numpy_api;
mod numpy_out;
mod opened;
mod parameters;
mod result;
mod rows;
mod stream;
mod values;
mod wait;

use pyo3::prelude::*;

/// The native part of `eris_db`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::frame::{Frame, numpy_column};
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::key_index::KeyIndex;
    #[pymodule_export]
    use crate::lifetime::{close_all, forked};
    #[pymodule_export]
    use crate::result::Result;
    #[pymodule_export]
    use crate::rows::Rows;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
