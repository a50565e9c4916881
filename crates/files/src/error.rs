//! What reading and writing files can fail with.
//!
//! ```text
//! file 'taxi.csv': line 7: column 2 "fare": 'abc' is no DOUBLE
//!       └ path     └ line  └ column        └ kind              hint: what the user might do about it
//! ```

mod kind;

pub(crate) use kind::Cause;
pub use kind::{FileFaultKind, Misfit, TypeOrigin};

use crate::column::ColumnRef;
use crate::frame::FrameFault;
use datafusion::error::DataFusionError;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What reading or writing files failed with. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Something is wrong with a file, or with what is in it.
    #[error("{0}")]
    Fault(Arc<FileFault>),
    /// A type was given for a column that the file does not have.
    #[error("types: the file has no column {column}")]
    UnknownColumn {
        /// The column, as it was named.
        column: ColumnRef,
        /// The columns that the file has.
        known: Vec<String>,
    },
    /// Something is wrong with a frame.
    #[error("{0}")]
    Frame(Arc<FrameFault>),
    /// The rows that were to be written could not be computed.
    #[error("{0}")]
    Rows(Arc<DataFusionError>),
    /// Nobody waits any more.
    #[error("cancelled")]
    Cancelled,
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub struct FileFault {
    path: String,
    line: Option<u64>,
    column: Option<ColumnPlace>,
    kind: FileFaultKind,
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPlace {
    /// It counts from 1.
    pub number: usize,
    /// None: the file has more fields than columns.
    pub name: Option<String>,
}

impl FileError {
    /// A file as a whole is wrong.
    pub(crate) fn new(path: impl AsRef<Path>, kind: FileFaultKind) -> Self {
        FileError::at(path, None, None, kind)
    }

    /// A line is wrong. Lines count from 1.
    pub(crate) fn line(path: impl AsRef<Path>, line: u64, kind: FileFaultKind) -> Self {
        FileError::at(path, Some(line), None, kind)
    }

    /// A column of a line is wrong.
    pub(crate) fn column(
        path: impl AsRef<Path>,
        line: u64,
        column: ColumnPlace,
        kind: FileFaultKind,
    ) -> Self {
        FileError::at(path, Some(line), Some(column), kind)
    }

    fn at(
        path: impl AsRef<Path>,
        line: Option<u64>,
        column: Option<ColumnPlace>,
        kind: FileFaultKind,
    ) -> Self {
        FileError::Fault(Arc::new(FileFault {
            path: path.as_ref().to_string_lossy().into_owned(),
            line,
            column,
            kind,
        }))
    }

    /// What the user might do about it, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            FileError::Fault(fault) => fault.hint(),
            FileError::UnknownColumn { known, .. } => {
                Some(format!("its columns are {}", known.join(", ")))
            }
            FileError::Frame(_) | FileError::Rows(_) | FileError::Cancelled => None,
        }
    }
}

impl FileFault {
    /// The file, as the user named it or as a pattern led to it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line, from 1, if one is wrong.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The column, if one is wrong.
    pub fn column(&self) -> Option<&ColumnPlace> {
        self.column.as_ref()
    }

    /// What is wrong.
    pub fn kind(&self) -> &FileFaultKind {
        &self.kind
    }

    /// What is wrong and where in the file, in words.
    pub fn reason(&self) -> String {
        let line = self.line.map(|line| format!("line {line}: "));
        let column = self.column.as_ref().map(|column| format!("{column}: "));
        let (line, column) = (line.unwrap_or_default(), column.unwrap_or_default());
        format!("{line}{column}{}", self.kind)
    }

    /// What the user might do about it, if known.
    pub fn hint(&self) -> Option<String> {
        self.kind.hint(&self.path)
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file '{}': {}", self.path, self.reason())
    }
}

impl fmt::Display for ColumnPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}", self.number)?;
        match &self.name {
            Some(name) => write!(f, " \"{name}\""),
            None => Ok(()),
        }
    }
}

impl From<FileError> for DataFusionError {
    /// The error travels through DataFusion and is recovered whole behind it, by its type.
    fn from(error: FileError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// At most 60 characters of a text, on one line.
pub fn shortened(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(60)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_where() {
        let place = ColumnPlace {
            number: 2,
            name: Some("fare".into()),
        };
        let shown = || "abc".to_owned();
        let kind = || FileFaultKind::UnclosedQuote { shown: shown() };
        for (error, message) in [
            (
                FileError::new("a.csv", FileFaultKind::Empty),
                "file 'a.csv': the file is empty",
            ),
            (
                FileError::line("a.csv", 7, FileFaultKind::NoObject { shown: shown() }),
                "file 'a.csv': line 7: no JSON object: 'abc'",
            ),
            (
                FileError::column("a.csv", 7, place, kind()),
                "file 'a.csv': line 7: column 2 \"fare\": a quote that nothing closes: 'abc'",
            ),
        ] {
            assert_eq!(error.to_string(), message);
        }
    }
}
