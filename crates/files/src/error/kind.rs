//! The kinds of faults: what each says, and what the user might do about it.

use crate::column::FileColumn;
use crate::format::endings;
use datafusion::arrow::datatypes::DataType;
use eris_exact::types::sql_name;
use std::error::Error;
use std::path::PathBuf;

/// What another library or the operating system says of a fault.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFaultKind {
    /// It is not there.
    #[error("no such file")]
    Missing {
        /// A file beside it whose name is like it.
        similar: Option<PathBuf>,
    },
    /// No name matches the pattern.
    #[error("no file matches")]
    NoMatch,
    /// No file in the directory has a known format.
    #[error("a directory without files to read")]
    NothingToRead,
    /// What looks like a pattern is none.
    #[error("the pattern is wrong at character {character}: {reason}")]
    Pattern {
        /// It counts from 1.
        character: usize,
        /// Why.
        reason: &'static str,
    },
    /// Neither its name nor an option says which format it has.
    #[error("its name does not tell which format the file has")]
    UnknownFormat,
    /// Its name has the ending of a format that is not read or written.
    #[error("files that end with {0} are not read or written")]
    ForeignFormat(&'static str),
    /// Its name is an address.
    #[error("it is on another machine, but only files of this one are read and written")]
    Remote,
    /// It could not be read.
    #[error("{0}")]
    Unreadable(Cause),
    /// It could not be written.
    #[error("cannot be written: {cause}")]
    Unwritable {
        /// Why.
        cause: Cause,
        /// The directory in which it was to be, if that is missing.
        missing: Option<PathBuf>,
    },
    /// The name is the empty string.
    #[error("the name is empty")]
    NoName,
    /// A directory is to be made where one with files is.
    #[error("the directory is not empty")]
    NotEmpty,
    /// It is not what its name says.
    #[error("damaged, cut off, or no {0} at all")]
    Damaged(&'static str),
    /// A column has a number in it that is no date or timestamp.
    #[error("column \"{0}\" has a date or timestamp that is out of range")]
    NoDate(String),
    /// It has no bytes.
    #[error("the file is empty")]
    Empty,
    /// Its schema has no columns.
    #[error("no columns in it")]
    NoColumns,
    /// It has nothing from which columns could be found.
    #[error("{0}, so it has no columns")]
    NoRecords(&'static str),
    /// Its columns are others than those of the first file.
    #[error("its columns are not those of '{}'", first.display())]
    OtherColumns {
        /// The first file.
        first: PathBuf,
    },
    /// A column of intervals, in a format that has none as SQL knows them.
    #[error("column \"{0}\" is an INTERVAL, which Parquet files have only in part")]
    Interval(String),
    /// One of its columns has nothing in common with that of another file.
    #[error("column \"{column}\" is {found}, but {wanted} in '{}'", first.display())]
    OtherType {
        /// The column.
        column: String,
        /// SQL's name of its type.
        found: String,
        /// That in the files before.
        wanted: String,
        /// The first of these files.
        first: PathBuf,
    },
    /// Somebody has replaced it meanwhile.
    #[error("its columns have changed")]
    Changed,
    /// It is no JSON, for no reason that could be told.
    #[error("it is no JSON")]
    NoJson,
    /// A record of CSV that has no end.
    #[error(
        "no end of the record within {most} bytes: a quote may be missing, or the line is longer than max_line_size"
    )]
    EndlessRecord {
        /// Most bytes of a record.
        most: usize,
    },
    /// An object of JSON that has no end.
    #[error("no end of the object within {most} bytes")]
    EndlessObject {
        /// Most bytes of an object.
        most: usize,
    },
    /// A record has more or fewer fields than there are columns.
    #[error("{found} fields, but {wanted} columns: '{shown}'")]
    FieldCount {
        /// The fields.
        found: usize,
        /// The columns.
        wanted: usize,
        /// What separates them.
        delimiter: String,
        /// The record.
        shown: String,
    },
    /// A text in quotes has no end.
    #[error("a quote that nothing closes: '{shown}'")]
    UnclosedQuote {
        /// The record.
        shown: String,
    },
    /// A text in quotes goes on behind them.
    #[error("text behind the closing quote: '{shown}'")]
    BehindQuote {
        /// The record.
        shown: String,
    },
    /// The header is another than the first file's.
    #[error("the header names ({}), but that of the first file ({})", .found.join(", "), .first.join(", "))]
    OtherHeader {
        /// The names of this header.
        found: Vec<String>,
        /// Those of the first file's.
        first: Vec<String>,
    },
    /// A file of JSON that is read as CSV.
    #[error("it holds JSON, not CSV")]
    JsonAsCsv,
    /// A byte that no text in UTF-8 has there.
    #[error("byte 0x{0:02X} is no UTF-8")]
    NotUtf8(u8),
    /// An object breaks a rule of JSON.
    #[error("character {character}: {reason}: '{shown}'")]
    MalformedJson {
        /// Within its line, from 1.
        character: usize,
        /// Which rule.
        reason: String,
        /// The object.
        shown: String,
    },
    /// Something else than an object.
    #[error("no JSON object: '{shown}'")]
    NoObject {
        /// What there is.
        shown: String,
    },
    /// A comma that separates no objects.
    #[error("a comma without an object behind it")]
    StrayComma,
    /// A value does not fit into its column.
    #[error("{}", misfit.says(shown, column))]
    Value {
        /// Why not.
        misfit: Misfit,
        /// The value.
        shown: String,
        /// The column.
        column: FileColumn,
        /// Who says that the column has its type.
        origin: TypeOrigin,
    },
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is no value of the column's type.
    Type,
    /// It is a number that the column's type does not reach.
    Range,
    /// It is NULL, which the column must not be.
    Null,
    /// It has too many characters.
    Long,
}

/// Who says which type a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeOrigin {
    /// The table, or an option.
    Given,
    /// So many first records of a CSV file.
    Records(usize),
    /// The first objects of a JSON file.
    Objects,
}

impl Misfit {
    fn says(self, shown: &str, column: &FileColumn) -> String {
        let data_type = || sql_name(column.field.data_type(), column.max_characters);
        match self {
            Misfit::Type => format!("'{shown}' is no {}", data_type()),
            Misfit::Range => format!("'{shown}' is out of range for {}", data_type()),
            Misfit::Null => "NULL, but the column is NOT NULL".to_owned(),
            Misfit::Long => format!("'{shown}' is too long for {}", data_type()),
        }
    }

    fn hint(self, shown: &str, column: &FileColumn) -> String {
        let name = column.field.name();
        match (self, column.field.data_type()) {
            (Misfit::Range, _) => format!("give column \"{name}\" a larger type"),
            (Misfit::Null, _) => {
                format!("give the column a value, or make column \"{name}\" nullable")
            }
            (Misfit::Long, _) => {
                format!("shorten it, or give column \"{name}\" a longer VARCHAR")
            }
            (Misfit::Type, DataType::Date32) => {
                "dates are written 2001-12-31; for others say dateformat '%d.%m.%Y'".to_owned()
            }
            (Misfit::Type, DataType::BinaryView) => {
                r"bytes that are no printable ASCII are written \xAB, a backslash \x5C".to_owned()
            }
            (Misfit::Type, DataType::Interval(_)) => {
                "intervals are written 1 year 2 months 3 days 04:05:06".to_owned()
            }
            (Misfit::Type, DataType::Time64(_)) => {
                "times are written 23:59:59, with at most 6 digits behind the second".to_owned()
            }
            (Misfit::Type, DataType::Timestamp(..)) => {
                "timestamps are written 2001-12-31 23:59:59; \
                for others say timestampformat '%d.%m.%Y %H:%M:%S'"
                    .to_owned()
            }
            (Misfit::Type, _) => {
                format!("correct the value; if it stands for a missing one, say NULL '{shown}'")
            }
        }
    }
}

impl FileFaultKind {
    /// It could not be read, for this reason.
    pub(crate) fn unreadable(cause: impl Into<Cause>) -> Self {
        FileFaultKind::Unreadable(cause.into())
    }

    /// It could not be written, for this reason.
    pub(crate) fn unwritable(cause: impl Into<Cause>) -> Self {
        FileFaultKind::Unwritable {
            cause: cause.into(),
            missing: None,
        }
    }

    /// What the user might do about it, in the file of this name.
    pub(super) fn hint(&self, path: &str) -> Option<String> {
        Some(match self {
            Self::Missing { similar } => {
                format!("did you mean '{}'?", similar.as_ref()?.display())
            }
            Self::NothingToRead => format!("names in it have to end with {}", endings()),
            Self::UnknownFormat => format!(
                "names end with {}, perhaps with .gz or .zst behind it; \
                 or use read_csv('{path}'), read_json, read_parquet, read_arrow",
                endings()
            ),
            Self::ForeignFormat(_) => {
                "write CSV, JSON, Parquet or Arrow; (FORMAT csv) writes it under any name".to_owned()
            }
            Self::Remote => "download it first".to_owned(),
            Self::Unwritable { missing, .. } => {
                format!("create the directory '{}' first", missing.as_ref()?.display())
            }
            Self::JsonAsCsv => "read_json('…') reads it; with DELIMITER it is read as CSV".to_owned(),
            Self::NotEmpty => "name a new directory, or an empty one".to_owned(),
            Self::OtherColumns { .. } | Self::OtherHeader { .. } => {
                "union_by_name => true reads files with different columns".to_owned()
            }
            Self::Interval(name) => {
                format!("CAST column \"{name}\" to VARCHAR where the file is written, or use Arrow or CSV")
            }
            Self::OtherType { .. } => "read these files one by one".to_owned(),
            Self::FieldCount { delimiter, .. } => format!(
                "fields are separated by '{delimiter}'; a value that holds one needs quotes around it, \
                 and another delimiter is said with DELIMITER"
            ),
            Self::UnclosedQuote { .. } => {
                "close it; if quotes are ordinary characters in this file, say QUOTE ''".to_owned()
            }
            Self::BehindQuote { .. } => "a quote within quotes is written twice; \
                if quotes are ordinary characters in this file, say QUOTE ''"
                .to_owned(),
            Self::NotUtf8(_) => {
                "say how it is written, for instance: encoding 'latin-1'".to_owned()
            }
            Self::MalformedJson { .. } => "each record has to be one JSON object".to_owned(),
            Self::NoObject { .. } => {
                r#"each record has to be one object, such as {"a": 1, "b": "x"}"#.to_owned()
            }
            Self::StrayComma => {
                "objects are separated by one comma each, and none is behind the last".to_owned()
            }
            Self::Value {
                misfit,
                shown,
                column,
                origin,
            } => match origin {
                TypeOrigin::Given => misfit.hint(shown, column),
                TypeOrigin::Records(sample) => format!(
                    "the type was found in the first {sample} records; read_csv with types => {{'{}': 'VARCHAR'}}, \
                     all_varchar => true or sample_size => -1 reads others",
                    column.field.name()
                ),
                TypeOrigin::Objects => {
                    "the types were found in the file's first objects; COPY into a table with other types".to_owned()
                }
            },
            Self::NoMatch
            | Self::Pattern { .. }
            | Self::Unreadable(_)
            | Self::NoName
            | Self::Damaged(_)
            | Self::NoDate(_)
            | Self::Empty
            | Self::NoColumns
            | Self::NoRecords(_)
            | Self::Changed
            | Self::NoJson
            | Self::EndlessRecord { .. }
            | Self::EndlessObject { .. } => return None,
        })
    }
}
