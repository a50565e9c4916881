//! What every row passes on its way into a table, whichever statement writes it.
//!
//! ```text
//! rows ── coerce: defaults, casts ── row_rules: NOT NULL, CHECK ── references: FOREIGN KEY ── table_writer ── writer
//!                                                                  unique_keys: UNIQUE ──────────┘
//! ```

pub(crate) mod at_source;
pub(crate) mod coerce;
pub(crate) mod locks;
pub(crate) mod quick;
pub(crate) mod references;
pub(crate) mod row_rules;
pub(crate) mod table_writer;
pub(crate) mod targets;
pub(crate) mod unique_keys;
