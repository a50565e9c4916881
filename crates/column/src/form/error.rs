//! Why bytes are no stored form.

use arrow_schema::{ArrowError, DataType};
use eris_numa::OutOfMemory;

/// Why a column chunk could not be read. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The bytes end before the form does.
    #[error("the stored form is cut short")]
    Short,
    /// It was written by a later version.
    #[error("the stored form is of a later version")]
    Version,
    /// No encoding is written like this.
    #[error("the stored form has an unknown encoding, {0:#04x}")]
    Encoding(u8),
    /// The values are of another domain.
    #[error("the stored form is not of type {0}")]
    Type(DataType),
    /// It is of another number of rows.
    #[error("the stored form has {stored} rows instead of {expected}")]
    Rows {
        /// As it says.
        stored: u64,
        /// As the caller says.
        expected: usize,
    },
    /// Some part contradicts another one, or the values.
    #[error("the stored form is damaged: {0}")]
    Damaged(&'static str),
    /// Views of text are no views, or the text is none.
    #[error("the stored form is damaged: {0}")]
    Text(ArrowError),
    /// The node's memory or the budget is exhausted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// An error unless the condition holds.
pub(super) fn ensure(holds: bool, damage: &'static str) -> Result<(), FormError> {
    match holds {
        true => Ok(()),
        false => Err(FormError::Damaged(damage)),
    }
}
