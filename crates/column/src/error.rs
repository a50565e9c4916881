//! Why an array could not be encoded.

use arrow_schema::{ArrowError, DataType};
use eris_numa::OutOfMemory;

/// Why an array could not become a column chunk. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The node's memory or the budget is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A string is not in the dictionary version that was given.
    #[error("'{0}' is not in the dictionary")]
    NotInDictionary(String),
    /// No column can have this type.
    #[error("type {0} is not supported")]
    UnsupportedType(DataType),
    /// A decimal has more digits than its type allows.
    #[error("{value} does not fit in {data_type}")]
    OutOfRange {
        /// The unscaled value.
        value: i128,
        /// Its declared type.
        data_type: DataType,
    },
    /// The array could not be brought into a form that can be encoded.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
