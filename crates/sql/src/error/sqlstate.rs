//! SQLSTATEs: five characters that tell a program what kind of failure it was. Eris gives those that PostgreSQL gives.
//!
//! The first two characters are the class, such as `23` for a broken constraint or `42` for a mistake in the statement.
//! Source: PostgreSQL's manual, Appendix A.
//!
//! What PostgreSQL takes and Eris does not is 0A000. What only Eris has, such as system tables that cannot be changed,
//! has the code of what comes closest. Where the same mistake has another code, `error_text` says why.

use super::SqlErrorKind;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use eris_files::{FileFaultKind, FrameFaultKind};
use eris_fragment::FragmentError;
use eris_home::HomeError;
use std::error::Error;
use std::fmt;

/// The server cannot go on, such as at its end.
const ADMIN_SHUTDOWN: SqlState = SqlState("57P01");
const DATA_EXCEPTION: SqlState = SqlState("22000");
const INTERNAL_ERROR: SqlState = SqlState("XX000");
const OUT_OF_MEMORY: SqlState = SqlState("53200");
const QUERY_CANCELED: SqlState = SqlState("57014");

/// A SQLSTATE, such as `42P01` for a table that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlState(&'static str);

impl SqlState {
    pub(crate) const IO_ERROR: SqlState = SqlState("58030");

    /// What is wrong with a file.
    pub(crate) fn of_file(fault: &FileFaultKind) -> SqlState {
        match fault {
            FileFaultKind::Missing { .. }
            | FileFaultKind::NoMatch
            | FileFaultKind::NothingToRead => SqlState("58P01"),
            FileFaultKind::Unreadable(_)
            | FileFaultKind::Remote
            | FileFaultKind::Unwritable { .. }
            | FileFaultKind::NotEmpty
            | FileFaultKind::Changed => SqlState::IO_ERROR,
            FileFaultKind::Pattern { .. }
            | FileFaultKind::UnknownFormat
            | FileFaultKind::ForeignFormat(_)
            | FileFaultKind::NoName => SqlState("22023"),
            _ => SqlState("22P04"),
        }
    }

    /// The five characters.
    pub fn code(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// How a statement contradicts the catalogue, its own types or itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mistake {
    /// A table or view does not exist.
    UndefinedTable,
    /// A column does not exist.
    UndefinedColumn,
    /// No function or operator has this name, or takes arguments of these types.
    UndefinedFunction,
    /// An index, constraint, setting, type or window does not exist.
    UndefinedObject,
    /// A schema does not exist.
    UndefinedSchema,
    /// A catalogue does not exist.
    UndefinedCatalog,
    /// A prepared statement does not exist.
    UndefinedPreparedStatement,
    /// A parameter does not exist, or has no value.
    UndefinedParameter,
    /// A table, view or index has this name already.
    DuplicateTable,
    /// A column occurs twice.
    DuplicateColumn,
    /// A schema has this name already.
    DuplicateSchema,
    /// A constraint or an option occurs twice.
    DuplicateObject,
    /// A prepared statement has this name already.
    DuplicatePreparedStatement,
    /// Two tables in FROM, or two queries in WITH, have one name.
    DuplicateAlias,
    /// Several tables have a column of this name.
    AmbiguousColumn,
    /// A type is not the one that is needed.
    DatatypeMismatch,
    /// A type cannot be turned into another one.
    CannotCoerce,
    /// The type of a parameter cannot be told.
    IndeterminateDatatype,
    /// An object is of another kind, such as a view in the place of a table.
    WrongObjectType,
    /// A position in ORDER BY or GROUP BY, or the columns of ON CONFLICT, refer to nothing.
    InvalidColumnReference,
    /// Columns and values are not as many, or clauses do not go together.
    Syntax,
    /// A column is neither grouped nor aggregated, or an aggregate stands where none may.
    Grouping,
    /// A window function stands where none may, or its frame contradicts itself.
    Windowing,
    /// The definition of a table contradicts itself.
    InvalidTableDefinition,
    /// The definition of a column contradicts itself.
    InvalidColumnDefinition,
    /// A foreign key refers to what it cannot refer to.
    InvalidForeignKey,
    /// The definition of a view or an index contradicts itself.
    InvalidObjectDefinition,
    /// Other objects depend on it.
    DependentObjects,
    /// Only the system may change it.
    InsufficientPrivilege,
    /// The system has taken the name.
    ReservedName,
    /// A setting cannot be changed now.
    CannotChangeSetting,
    /// An option, a setting or an argument does not have this value.
    InvalidParameterValue,
    /// LIMIT is negative or no number.
    InvalidLimit,
    /// OFFSET is negative or no number.
    InvalidOffset,
    /// The argument of ntile() is not positive.
    InvalidNtile,
    /// The number of a value, as nth_value() takes it, is not positive.
    InvalidNthValue,
    /// An argument of power(), or of a root, has no result.
    InvalidPower,
    /// A window's frame begins or ends a negative number of rows away.
    InvalidFrameOffset,
    /// A string is no value of a type.
    InvalidTextRepresentation,
    /// A number is out of its type's range.
    NumericOutOfRange,
    /// A string is no date, time or interval.
    InvalidDatetimeFormat,
    /// A date or time is out of range.
    DatetimeOverflow,
    /// An interval is out of range.
    IntervalOverflow,
    /// Division by zero.
    DivisionByZero,
    /// An escape character escapes nothing.
    InvalidEscapeSequence,
    /// A regular expression is wrong.
    InvalidRegularExpression,
    /// A string or a script is too large.
    TooLarge,
    /// A sequence has given its last number.
    SequenceLimit,
    /// A value is given to a column that is always generated.
    GeneratedAlways,
    /// A subquery that is used as a value has several rows, or one row would be changed twice.
    CardinalityViolation,
    /// An expression or a view is nested too deeply.
    TooComplex,
    /// An object is not in the state that is needed: it was changed meanwhile, or is not ready.
    NotReady,
    /// A mistake that DataFusion tells in words that nobody here knows.
    Other,
}

impl Mistake {
    /// The SQLSTATE.
    pub fn sqlstate(self) -> SqlState {
        SqlState(match self {
            Mistake::UndefinedTable => "42P01",
            Mistake::UndefinedColumn => "42703",
            Mistake::UndefinedFunction => "42883",
            Mistake::UndefinedObject => "42704",
            Mistake::UndefinedSchema => "3F000",
            Mistake::UndefinedCatalog => "3D000",
            Mistake::UndefinedPreparedStatement => "26000",
            Mistake::UndefinedParameter => "42P02",
            Mistake::DuplicateTable => "42P07",
            Mistake::DuplicateColumn => "42701",
            Mistake::DuplicateSchema => "42P06",
            Mistake::DuplicateObject => "42710",
            Mistake::DuplicatePreparedStatement => "42P05",
            Mistake::DuplicateAlias => "42712",
            Mistake::AmbiguousColumn => "42702",
            Mistake::DatatypeMismatch => "42804",
            Mistake::CannotCoerce => "42846",
            Mistake::IndeterminateDatatype => "42P18",
            Mistake::WrongObjectType => "42809",
            Mistake::InvalidColumnReference => "42P10",
            Mistake::Syntax => "42601",
            Mistake::Grouping => "42803",
            Mistake::Windowing => "42P20",
            Mistake::InvalidTableDefinition => "42P16",
            Mistake::InvalidColumnDefinition => "42611",
            Mistake::InvalidForeignKey => "42830",
            Mistake::InvalidObjectDefinition => "42P17",
            Mistake::DependentObjects => "2BP01",
            Mistake::InsufficientPrivilege => "42501",
            Mistake::ReservedName => "42939",
            Mistake::CannotChangeSetting => "55P02",
            Mistake::InvalidParameterValue => "22023",
            Mistake::InvalidLimit => "2201W",
            Mistake::InvalidOffset => "2201X",
            Mistake::InvalidNtile => "22014",
            Mistake::InvalidNthValue => "22016",
            Mistake::InvalidPower => "2201F",
            Mistake::InvalidFrameOffset => "22013",
            Mistake::InvalidTextRepresentation => "22P02",
            Mistake::NumericOutOfRange => "22003",
            Mistake::InvalidDatetimeFormat => "22007",
            Mistake::DatetimeOverflow => "22008",
            Mistake::IntervalOverflow => "22015",
            Mistake::DivisionByZero => "22012",
            Mistake::InvalidEscapeSequence => "22025",
            Mistake::InvalidRegularExpression => "2201B",
            Mistake::TooLarge => "54000",
            Mistake::SequenceLimit => "2200H",
            Mistake::GeneratedAlways => "428C9",
            Mistake::CardinalityViolation => "21000",
            Mistake::TooComplex => "54001",
            Mistake::NotReady => "55000",
            // The code of the class, for nobody knows which of its members it is.
            Mistake::Other => "42000",
        })
    }
}

/// The rule of a table that a row breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// NULL in a column that is NOT NULL.
    NotNull,
    /// A key that another row has.
    Unique,
    /// A row that refers to none, or a row that others refer to is taken away.
    ForeignKey,
    /// A CHECK that is false.
    Check,
    /// A string with more characters than its column allows.
    Length,
    /// A string that is no value of its column's type.
    Text,
    /// A value out of the range of its column's type.
    Range,
    /// A string that is no date or time.
    Datetime,
    /// A date or time out of range.
    DatetimeRange,
    /// A row that a statement would change twice.
    Twice,
}

impl Violation {
    /// The SQLSTATE.
    pub fn sqlstate(self) -> SqlState {
        SqlState(match self {
            Violation::NotNull => "23502",
            Violation::Unique => "23505",
            Violation::ForeignKey => "23503",
            Violation::Check => "23514",
            Violation::Length => "22001",
            Violation::Text => "22P02",
            Violation::Range => "22003",
            Violation::Datetime => "22007",
            Violation::DatetimeRange => "22008",
            Violation::Twice => "21000",
        })
    }
}

impl SqlErrorKind {
    /// The SQLSTATE.
    pub fn sqlstate(&self) -> SqlState {
        match self {
            SqlErrorKind::Syntax(_) => SqlState("42601"),
            SqlErrorKind::NotSupported(_) => SqlState("0A000"),
            SqlErrorKind::Invalid(mistake, _) => mistake.sqlstate(),
            SqlErrorKind::Constraint(violation, _) => violation.sqlstate(),
            SqlErrorKind::File { sqlstate, .. } => *sqlstate,
            SqlErrorKind::Frame(fault) => of_frame(fault.kind()),
            SqlErrorKind::Spill { .. } => SqlState("53100"),
            SqlErrorKind::Fragment(error) => of_fragment(error),
            SqlErrorKind::Home(error) => of_home(error),
            SqlErrorKind::Execution(error) => of_execution(error),
            SqlErrorKind::Timeout(_) | SqlErrorKind::Killed(_) => QUERY_CANCELED,
            SqlErrorKind::Internal(_) => INTERNAL_ERROR,
        }
    }
}

fn of_frame(fault: &FrameFaultKind) -> SqlState {
    match fault {
        // PostgreSQL's external_routine_exception.
        FrameFaultKind::Raised(_) => SqlState("38000"),
        FrameFaultKind::UnknownType(_) => SqlState("0A000"),
        FrameFaultKind::DoubledColumn => Mistake::DuplicateColumn.sqlstate(),
        FrameFaultKind::NoColumns => Mistake::InvalidTableDefinition.sqlstate(),
        FrameFaultKind::NoDate => Mistake::DatetimeOverflow.sqlstate(),
        _ => DATA_EXCEPTION,
    }
}

fn of_fragment(error: &FragmentError) -> SqlState {
    match error {
        FragmentError::NoSuchObject(_) => Mistake::UndefinedTable.sqlstate(),
        FragmentError::Cancelled => QUERY_CANCELED,
        FragmentError::OutOfMemory(_) => OUT_OF_MEMORY,
        FragmentError::Overflow { .. } => Mistake::NumericOutOfRange.sqlstate(),
        FragmentError::Evaluation(inner) => of_evaluation(&**inner),
        FragmentError::Panicked { .. } | FragmentError::Malformed { .. } => INTERNAL_ERROR,
        FragmentError::ShuttingDown => ADMIN_SHUTDOWN,
    }
}

fn of_home(error: &HomeError) -> SqlState {
    match error {
        HomeError::Start(_) | HomeError::Open(_) => SqlState("58000"),
        HomeError::TooBusy { .. } => SqlState("53300"),
        HomeError::Type { .. } | HomeError::KeyColumn { .. } => SqlState("0A000"),
        HomeError::NoSuchObject(_) => Mistake::UndefinedTable.sqlstate(),
        HomeError::Shape { .. } => Mistake::DatatypeMismatch.sqlstate(),
        HomeError::Null { .. } => Violation::NotNull.sqlstate(),
        HomeError::PartitionColumn { .. } => Mistake::InvalidTableDefinition.sqlstate(),
        HomeError::Store { .. } => DATA_EXCEPTION,
        HomeError::OutOfMemory { .. } => OUT_OF_MEMORY,
        HomeError::Fragment(error) => of_fragment(error),
        HomeError::NoSuchRows { .. } | HomeError::DeletedTwice { .. } => {
            Violation::Twice.sqlstate()
        }
        HomeError::DuplicateKey { .. } => Violation::Unique.sqlstate(),
        HomeError::Shift { .. } | HomeError::Alike { .. } | HomeError::InUse { .. } => {
            Mistake::NotReady.sqlstate()
        }
        HomeError::Panicked { .. } => INTERNAL_ERROR,
        HomeError::DiskFull { .. } => SqlState("53100"),
        HomeError::LogFailed { .. } | HomeError::Checkpoint { .. } | HomeError::Files { .. } => {
            SqlState::IO_ERROR
        }
        // PostgreSQL's read_only_sql_transaction.
        HomeError::ReadOnly { .. } => SqlState("25006"),
        // PostgreSQL's transaction_resolution_unknown.
        HomeError::FateOpen { .. } => SqlState("08007"),
    }
}

/// An expression failed on a value: Arrow or DataFusion says how.
fn of_evaluation(error: &(dyn Error + Send + Sync + 'static)) -> SqlState {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<ArrowError>() {
            return mistake_of_arrow(error).map_or(DATA_EXCEPTION, Mistake::sqlstate);
        }
        if let Some(error) = error.downcast_ref::<DataFusionError>() {
            return of_execution(error);
        }
        next = error.source();
    }
    DATA_EXCEPTION
}

fn of_execution(error: &DataFusionError) -> SqlState {
    match error.find_root() {
        DataFusionError::IoError(_) | DataFusionError::ParquetError(_) => SqlState::IO_ERROR,
        DataFusionError::ArrowError(arrow, _) => {
            mistake_of_arrow(arrow).map_or(DATA_EXCEPTION, Mistake::sqlstate)
        }
        _ => DATA_EXCEPTION,
    }
}

/// What an operator that failed on a value would call a mistake of the statement.
pub(super) fn mistake_of_execution(error: &DataFusionError) -> Mistake {
    match error.find_root() {
        DataFusionError::ArrowError(arrow, _) => mistake_of_arrow(arrow).unwrap_or(Mistake::Other),
        _ => Mistake::Other,
    }
}

fn mistake_of_arrow(error: &ArrowError) -> Option<Mistake> {
    match error {
        ArrowError::DivideByZero => Some(Mistake::DivisionByZero),
        ArrowError::OffsetOverflowError(_) => Some(Mistake::TooLarge),
        ArrowError::ArithmeticOverflow(text) if text.contains("offset overflow") => {
            Some(Mistake::TooLarge)
        }
        ArrowError::ArithmeticOverflow(_) => Some(Mistake::NumericOutOfRange),
        ArrowError::CastError(_) | ArrowError::ParseError(_) => {
            Some(Mistake::InvalidTextRepresentation)
        }
        _ => None,
    }
}
