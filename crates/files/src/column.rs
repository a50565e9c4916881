//! The columns that a text file is read as.

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use std::fmt;
use std::sync::Arc;

/// A column of a text file: with the rules of a table's column if the file is copied into one.
#[derive(Clone, Debug)]
pub struct FileColumn {
    /// Its name, its type, and whether it may be NULL.
    pub field: FieldRef,
    /// Most characters of a string.
    pub max_characters: Option<u64>,
}

/// A column of which the user speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// Its name.
    Name(String),
    /// From 0.
    Number(usize),
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnRef::Name(name) => write!(f, "\"{name}\""),
            ColumnRef::Number(number) => write!(f, "{}", number + 1),
        }
    }
}

/// The columns' schema.
pub(crate) fn schema(columns: &[FileColumn]) -> SchemaRef {
    let fields = columns.iter().map(|column| Arc::clone(&column.field));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
