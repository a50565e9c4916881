//! What is wrong with a frame.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// What a program's frame failed with: an error of the program, which comes back to it as it was. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FrameError(Arc<dyn Error + Send + Sync>);

impl FrameError {
    /// The program's own error.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        FrameError(Arc::new(error))
    }

    /// The same, to be looked at.
    pub fn get(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is wrong with a frame, and where.
#[derive(Clone, Debug)]
pub struct FrameFault {
    frame: Arc<str>,
    column: Option<String>,
    kind: FrameFaultKind,
}

impl FrameFault {
    pub(super) fn new(frame: &Arc<str>, column: Option<String>, kind: FrameFaultKind) -> Self {
        FrameFault {
            frame: Arc::clone(frame),
            column,
            kind,
        }
    }

    /// The program failed when it was asked for a frame.
    pub fn raised(frame: &str, error: FrameError) -> Self {
        FrameFault::new(&frame.into(), None, FrameFaultKind::Raised(error))
    }

    /// What is wrong.
    pub fn kind(&self) -> &FrameFaultKind {
        &self.kind
    }
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame \"{}\": ", self.frame)?;
        if let Some(column) = &self.column {
            write!(f, "column \"{column}\": ")?;
        }
        self.kind.fmt(f)
    }
}

/// The kinds of what can be wrong with a frame.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFaultKind {
    /// The program itself failed.
    #[error("{0}")]
    Raised(FrameError),
    /// It has no columns.
    #[error("it has no columns")]
    NoColumns,
    /// Two columns have one name.
    #[error("two columns have this name")]
    DoubledColumn,
    /// A type that SQL does not have.
    #[error("there is no type of SQL for values of Arrow's type {0}")]
    UnknownType(String),
    /// A batch has another type than the schema said.
    #[error("the schema says {declared}, but a batch has {found}")]
    OtherType {
        /// What the batch has.
        found: String,
        /// What the schema says.
        declared: String,
    },
    /// A batch has another number of columns than the schema said.
    #[error("a batch has {found} columns, where {expected} were asked for")]
    OtherWidth {
        /// What the batch has.
        found: usize,
        /// What was asked for.
        expected: usize,
    },
    /// Buffers do not hold what they should, or a value does not fit.
    #[error("its values are no values: {0}")]
    Invalid(String),
    /// A date or timestamp that no calendar has.
    #[error("a date or timestamp is out of range")]
    NoDate,
}
