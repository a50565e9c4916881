//! Why a script ended before its end.

use crate::arriving::ArrivingError;
use crate::commands::CommandError;
use crate::format::FormatError;
use eris_sql::{Position, SqlError, SqlErrorKind};
use std::io;
use std::path::PathBuf;

/// Why a script ended early.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A statement failed; the message says where.
    #[error(transparent)]
    Statement(#[from] SqlError),
    /// A command to the shell failed.
    #[error("{}{error}", line(.start))]
    Command {
        /// Where it is in the script.
        start: Position,
        /// Why.
        error: CommandError,
    },
    /// A file that the script includes failed.
    #[error("{}: {error}", file.display())]
    Included {
        /// Its name.
        file: PathBuf,
        /// Why.
        error: Box<ScriptError>,
    },
    /// The result could not be printed.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The script itself could not be read.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The script cannot be cut into statements.
    #[error(transparent)]
    Script(#[from] ArrivingError),
}

impl ScriptError {
    /// What a statement failed with, if it was one that failed.
    pub fn statement(&self) -> Option<&SqlError> {
        match self {
            ScriptError::Statement(error) => Some(error),
            ScriptError::Included { error, .. } => error.statement(),
            _ => None,
        }
    }

    /// The error of the output, if it is one: then nobody can see results any more. Otherwise the same.
    pub fn into_output(self) -> Result<FormatError, ScriptError> {
        match self {
            ScriptError::Format(error @ FormatError::Output(_)) => Ok(error),
            ScriptError::Included { file, error } => {
                let included = |error| ScriptError::Included {
                    file,
                    error: Box::new(error),
                };
                error.into_output().map_err(included)
            }
            other => Err(other),
        }
    }

    /// Whether all that happened is that the reader of our output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            ScriptError::Format(error) => error.is_closed_pipe(),
            ScriptError::Statement(error) => is_closed_output(error),
            ScriptError::Included { error, .. } => error.is_closed_pipe(),
            _ => false,
        }
    }
}

/// Whether a COPY … TO STDOUT failed because nobody reads it any more.
fn is_closed_output(error: &SqlError) -> bool {
    /// The system's number of the error.
    const EPIPE: i32 = 32;
    match error.kind() {
        SqlErrorKind::File { path, reason, .. } => {
            path == "/dev/stdout"
                && reason.contains(&io::Error::from_raw_os_error(EPIPE).to_string())
        }
        _ => false,
    }
}

fn line(start: &Position) -> String {
    match start {
        &Position::START => String::new(),
        start => format!("line {start}: "),
    }
}

/// Errors of the output; those of the input say so.
impl From<io::Error> for ScriptError {
    fn from(error: io::Error) -> Self {
        ScriptError::Format(error.into())
    }
}
