//! Which format a file has: by an option, by its function, or by its name.

use crate::compression::without_ending;
use crate::error::{FileError, FileFaultKind};

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Text of fields, separated by a delimiter.
    Csv,
    /// Objects, line by line or in an array.
    Json,
    /// Parquet.
    Parquet,
    /// Arrow's IPC, as file or as stream.
    Arrow,
}

/// Endings of names, and what they say.
const ENDINGS: [(&str, Format); 12] = [
    (".csv", Format::Csv),
    (".tsv", Format::Csv),
    (".tbl", Format::Csv),
    (".json", Format::Json),
    (".jsonl", Format::Json),
    (".ndjson", Format::Json),
    (".parquet", Format::Parquet),
    (".pq", Format::Parquet),
    (".arrow", Format::Arrow),
    (".arrows", Format::Arrow),
    (".feather", Format::Arrow),
    (".ipc", Format::Arrow),
];

/// Endings of files that others than Eris read and write.
const FOREIGN: [&str; 16] = [
    ".xlsx", ".xls", ".ods", ".db", ".duckdb", ".sqlite", ".avro", ".orc", ".xml", ".html", ".pdf",
    ".zip", ".bz2", ".xz", ".lz4", ".7z",
];

/// Where the process' own streams and pipes have their names.
const STREAMS: [&str; 4] = ["/dev/stdin", "/dev/stdout", "/dev/fd/", "/proc/self/fd/"];

impl Format {
    /// By the name's ending, in front of that of a compression. A stream has no ending, and is CSV.
    pub fn of_name(name: &str) -> Option<Format> {
        if STREAMS.iter().any(|stream| name.starts_with(stream)) {
            return Some(Format::Csv);
        }
        let name = without_ending(name).to_ascii_lowercase();
        let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, format)| *format)
    }

    /// The format of a file that is written, if nothing else is said: by its name, or CSV.
    ///
    /// # Errors
    /// The name says that it is another one.
    pub fn of_target(name: &str) -> Result<Format, FileError> {
        let lower = name.to_ascii_lowercase();
        if let Some(foreign) = FOREIGN.iter().find(|foreign| lower.ends_with(**foreign)) {
            return Err(FileError::new(name, FileFaultKind::ForeignFormat(foreign)));
        }
        Ok(Format::of_name(name).unwrap_or(Format::Csv))
    }

    /// By an option's value.
    pub fn named(word: &str) -> Option<Format> {
        Some(match word.to_ascii_lowercase().as_str() {
            "csv" | "text" | "tsv" => Format::Csv,
            "json" | "jsonl" | "ndjson" => Format::Json,
            "parquet" => Format::Parquet,
            "arrow" | "ipc" | "feather" => Format::Arrow,
            _ => return None,
        })
    }

    /// Its name, as an option's value and as the ending of files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }
}

/// Whether a name that is no table's means a file.
pub fn is_file_name(name: &str) -> bool {
    Format::of_name(name).is_some() || name.contains(['/', '*'])
}

/// For messages: the endings that are known.
pub(crate) fn endings() -> String {
    let endings: Vec<_> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
    endings.join(", ")
}
