//! What a statement can fail with, told in the user's terms: what, where in the text, and what to do about it.

pub(crate) mod duration;
pub(crate) mod error_text;
pub(crate) mod position;
pub(crate) mod sql_terms;
mod sqlstate;
pub(crate) mod values;

pub use sqlstate::{Mistake, SqlState, Violation};

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use eris_exact::{MixedTypes, SpillError};
use eris_files::{FileError, FrameFault};
use eris_fragment::FragmentError;
use eris_home::HomeError;
use error_text::Told;
use position::{Excerpt, Position};
use sql_terms::{in_sql, of_schema};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A statement that failed. Cheap to clone.
///
/// `Display` gives the message, then, where the place is known, the line with a caret, then the hint:
///
/// ```text
/// line 2:6: table "lineordr" does not exist
///   FROM lineordr
///        ^
/// hint: did you mean "lineorder"?
/// ```
#[derive(Clone, Debug)]
pub struct SqlError {
    kind: SqlErrorKind,
    place: Option<Box<Excerpt>>,
    hint: Option<Box<str>>,
}

/// The kinds of failure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlErrorKind {
    /// The text is no SQL.
    #[error("syntax error: {0}")]
    Syntax(String),
    /// SQL that Eris does not do (yet).
    #[error("not supported yet: {0}")]
    NotSupported(String),
    /// The statement contradicts the catalogue, its own types or itself.
    #[error("{1}")]
    Invalid(Mistake, String),
    /// A row breaks a rule of its table; the statement left no trace.
    #[error("{1}")]
    Constraint(Violation, String),
    /// A file that the statement names cannot be read.
    #[error("file '{path}': {reason}")]
    File {
        /// As the statement names it.
        path: String,
        /// Why.
        reason: String,
        /// Whether it is missing, cannot be read, or does not hold what it should.
        sqlstate: SqlState,
    },
    /// A frame, a relation of the calling program, is no table or failed while it was read.
    #[error("{0}")]
    Frame(Arc<FrameFault>),
    /// What does not fit into memory could not be put on the disk either.
    #[error("{0}")]
    Spill(SpillError),
    /// A fragment failed while it ran.
    #[error("{}", in_sql(&.0.to_string()))]
    Fragment(FragmentError),
    /// Whoever holds the tables rejected it.
    #[error("{0}")]
    Home(Arc<HomeError>),
    /// An operator above the fragments failed while it ran.
    #[error("{}", innermost(.0))]
    Execution(Arc<DataFusionError>),
    /// It took longer than `statement_timeout` allows.
    #[error("stopped after {}: longer than statement_timeout allows", duration::Milliseconds(*.0))]
    Timeout(std::time::Duration),
    /// Another session ended it.
    #[error("stopped by KILL from session {0}")]
    Killed(u64),
    /// A bug in Eris; only this statement is affected.
    #[error("internal error: {0}; this is a bug in Eris, only this statement is affected")]
    Internal(String),
}

impl SqlError {
    /// An error of this kind, place unknown.
    pub(crate) fn new(kind: SqlErrorKind) -> Self {
        SqlError {
            kind,
            place: None,
            hint: None,
        }
    }

    pub(crate) fn invalid(mistake: Mistake, message: impl Into<String>) -> Self {
        Self::new(SqlErrorKind::Invalid(mistake, message.into()))
    }

    pub(crate) fn not_supported(what: impl Into<String>) -> Self {
        Self::new(SqlErrorKind::NotSupported(what.into()))
    }

    pub(crate) fn constraint(violation: Violation, message: impl Into<String>) -> Self {
        Self::new(SqlErrorKind::Constraint(violation, message.into()))
    }

    pub(crate) fn at(mut self, place: Option<Excerpt>) -> Self {
        if self.place.is_none() {
            self.place = place.map(Box::new);
        }
        self
    }

    pub(crate) fn with_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(|hint| hint.into().into_boxed_str());
        self
    }

    /// The error of a part of a statement that its text does not contain, such as a view's query: the message begins
    /// with the part's name, and the place is not told.
    pub(crate) fn within(mut self, part: &str) -> Self {
        self.place = None;
        match &mut self.kind {
            SqlErrorKind::Syntax(text)
            | SqlErrorKind::NotSupported(text)
            | SqlErrorKind::Invalid(_, text)
            | SqlErrorKind::Constraint(_, text)
            | SqlErrorKind::Internal(text) => *text = format!("{part}: {text}"),
            SqlErrorKind::File { reason, .. } => *reason = format!("{reason} (read by {part})"),
            SqlErrorKind::Execution(error) => {
                let mistake = sqlstate::mistake_of_execution(error);
                self.kind = SqlErrorKind::Invalid(mistake, format!("{part}: {}", innermost(error)));
            }
            SqlErrorKind::Fragment(_)
            | SqlErrorKind::Frame(_)
            | SqlErrorKind::Home(_)
            | SqlErrorKind::Spill(_)
            | SqlErrorKind::Timeout(_)
            | SqlErrorKind::Killed(_) => {}
        }
        self
    }

    /// Whether it is this mistake.
    pub(crate) fn is(&self, mistake: Mistake) -> bool {
        matches!(&self.kind, SqlErrorKind::Invalid(found, _) if *found == mistake)
    }

    /// What failed.
    pub fn kind(&self) -> &SqlErrorKind {
        &self.kind
    }

    /// The kind of failure as programs know it.
    pub fn sqlstate(&self) -> SqlState {
        self.kind.sqlstate()
    }

    /// The message alone, without place and hint.
    pub fn message(&self) -> String {
        self.kind.to_string()
    }

    /// Where in the text that was given to the session, if known.
    pub fn position(&self) -> Option<Position> {
        self.place.as_ref().map(|place| place.position)
    }

    /// What the user might do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether the statement was cancelled, as opposed to failed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind, SqlErrorKind::Fragment(FragmentError::Cancelled))
    }

    /// An error that came out of planning or running, with our own errors inside of it recovered whole.
    pub(crate) fn from_datafusion(error: DataFusionError) -> Self {
        if let Some(own) = recover(&error) {
            return own;
        }
        let root = error.find_root();
        let exhausted = matches!(root, DataFusionError::ResourcesExhausted(_));
        if let Some(told) = error_text::tell(&innermost(&error)).filter(|_| !exhausted) {
            return told.into();
        }
        match root {
            // Subqueries are what is left so.
            DataFusionError::NotImplemented(what)
                if what.starts_with("Physical plan does not support logical expression") =>
            {
                misplaced("a subquery in this place, referring to rows around it")
            }
            DataFusionError::Plan(what) if what.contains("subquery can only be used in") => {
                misplaced("a subquery in this place")
            }
            DataFusionError::NotImplemented(what) => {
                Self::not_supported(in_sql(what.trim_end_matches('.')))
            }
            DataFusionError::SchemaError(schema, _) => match of_schema(schema) {
                Some(told) => told.into(),
                None => Self::invalid(Mistake::Other, innermost(&error)),
            },
            DataFusionError::Plan(_) => Self::invalid(Mistake::Other, innermost(&error)),
            DataFusionError::Configuration(_) => {
                Self::invalid(Mistake::InvalidParameterValue, innermost(&error))
            }
            DataFusionError::SQL(parser, _) => Self::new(SqlErrorKind::Syntax(parser.to_string())),
            DataFusionError::ResourcesExhausted(_) => {
                FragmentError::OutOfMemory(innermost(&error)).into()
            }
            DataFusionError::Internal(_) => Self::new(SqlErrorKind::Internal(innermost(&error))),
            _ => Self::new(SqlErrorKind::Execution(Arc::new(error))),
        }
    }

    /// The error as something that can travel through DataFusion and be recovered whole behind it.
    pub(crate) fn into_datafusion(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

fn misplaced(what: &str) -> SqlError {
    let hint = "write it as a join, or in the list of a query in FROM";
    SqlError::not_supported(what).with_hint(Some(hint))
}

/// Our own error inside of another crate's error: found by type along the chain of sources.
fn recover(error: &DataFusionError) -> Option<SqlError> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<SqlError>() {
            return Some(error.clone());
        }
        if let Some(error) = error.downcast_ref::<FragmentError>() {
            return Some(error.clone().into());
        }
        if let Some(error) = error.downcast_ref::<SpillError>() {
            return Some(error.clone().into());
        }
        if let Some(error) = error.downcast_ref::<MixedTypes>() {
            let mixed = SqlError::invalid(Mistake::DatatypeMismatch, error.to_string());
            return Some(mixed.with_hint(Some("CAST one of the two to the other's type")));
        }
        if let Some(error) = error.downcast_ref::<FileError>() {
            return Some(error.clone().into());
        }
        // What an error of input and output wraps is not its source, but part of it.
        let inner = error.downcast_ref::<std::io::Error>();
        if let Some(inner) = inner.and_then(std::io::Error::get_ref) {
            if let Some(own) = inner.downcast_ref::<SqlError>() {
                return Some(own.clone());
            }
            if let Some(error) = inner.downcast_ref::<SpillError>() {
                return Some(error.clone().into());
            }
        }
        next = error.source();
    }
    None
}

/// The innermost message, without the prefixes of the layers it came through.
fn innermost(error: &DataFusionError) -> String {
    let root = error.find_root();
    let text = match root {
        DataFusionError::ArrowError(arrow, _) if matches!(**arrow, ArrowError::DivideByZero) => {
            "division by zero".to_owned()
        }
        DataFusionError::ArrowError(arrow, _) => match &**arrow {
            ArrowError::CastError(text)
            | ArrowError::ParseError(text)
            | ArrowError::ComputeError(text)
            | ArrowError::InvalidArgumentError(text) => text.clone(),
            other => other.to_string(),
        },
        DataFusionError::ParquetError(_) => "a Parquet file is damaged".to_owned(),
        DataFusionError::External(inner) => inner.to_string(),
        DataFusionError::SchemaError(schema, _) => schema.to_string(),
        other => other.message().into_owned(),
    };
    let text = text
        .split(DataFusionError::BACK_TRACE_SEP)
        .next()
        .unwrap_or_default();
    let text = text.trim().trim_end_matches('.');
    if is_offset_overflow(text) {
        return "the strings or lists of one batch take more than 2 GiB".to_owned();
    }
    in_sql(error_text::unprefixed(text))
}

/// Arrow counts the bytes of a batch's strings, and the elements of its lists, in 31 bits. Its kernels say so in
/// several ways.
fn is_offset_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("offset overflow")
}

/// What to do when the budget is used up.
const MORE_MEMORY: &str =
    "raise memory_limit (or start with --memory), or drop tables that are not needed";

const OPEN_TO_WRITE: &str = "open it without --read-only to change it; \
     temporary tables can be made and written";

impl From<Told> for SqlError {
    fn from(told: Told) -> Self {
        Self::new(told.kind).with_hint(told.hint)
    }
}

impl From<FragmentError> for SqlError {
    fn from(error: FragmentError) -> Self {
        if let FragmentError::Evaluation(inner) = &error {
            let text = match inner.downcast_ref::<DataFusionError>() {
                Some(error) => innermost(error),
                None => in_sql(&inner.to_string()),
            };
            if let Some(told) = error_text::tell(&text) {
                return told.into();
            }
        }
        let hint = matches!(error, FragmentError::OutOfMemory(_)).then_some(MORE_MEMORY);
        Self::new(SqlErrorKind::Fragment(error)).with_hint(hint)
    }
}

impl From<FileError> for SqlError {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Fault(fault) => SqlErrorKind::File {
                path: fault.path().to_owned(),
                reason: fault.reason(),
                sqlstate: SqlState::of_file(fault.kind()),
            },
            FileError::Rows(rows) => {
                return Self::from_datafusion(DataFusionError::Shared(Arc::clone(rows)));
            }
            FileError::Frame(fault) => SqlErrorKind::Frame(Arc::clone(fault)),
            FileError::Cancelled => SqlErrorKind::Fragment(FragmentError::Cancelled),
            // A type that names no column of the file contradicts it.
            other => SqlErrorKind::Invalid(Mistake::UndefinedColumn, other.to_string()),
        };
        Self::new(kind).with_hint(error.hint())
    }
}

impl From<ArrowError> for SqlError {
    fn from(error: ArrowError) -> Self {
        Self::from_datafusion(error.into())
    }
}

impl From<HomeError> for SqlError {
    fn from(error: HomeError) -> Self {
        if let HomeError::Fragment(error) = error {
            return error.into();
        }
        let hint = match &error {
            HomeError::OutOfMemory { .. } => Some(MORE_MEMORY),
            HomeError::ReadOnly { .. } => Some(OPEN_TO_WRITE),
            _ => None,
        };
        Self::new(SqlErrorKind::Home(Arc::new(error))).with_hint(hint)
    }
}

impl From<SpillError> for SqlError {
    fn from(error: SpillError) -> Self {
        let hint = match error.at_limit {
            true => "raise max_temp_directory_size, or memory_limit",
            false => "set temp_directory to a place with more room, or raise memory_limit",
        };
        Self::new(SqlErrorKind::Spill(error)).with_hint(Some(hint))
    }
}

impl Error for SqlError {}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => write!(f, "{}", self.kind)?,
            Some(place) => {
                write!(f, "line {}: {}\n{place}", place.position, self.kind)?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
