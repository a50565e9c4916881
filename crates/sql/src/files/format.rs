//! Which format a file has: by an option, by its function, or by its name.

use super::compression::without_ending;

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Csv,
    Json,
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

impl Format {
    /// By the name's ending, in front of that of a compression.
    pub fn of_name(name: &str) -> Option<Format> {
        let name = without_ending(name).to_ascii_lowercase();
        let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, format)| *format)
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

    /// The function that reads it.
    pub fn function(self) -> &'static str {
        match self {
            Format::Csv => "read_csv",
            Format::Json => "read_json",
            Format::Parquet => "read_parquet",
            Format::Arrow => "read_arrow",
        }
    }

    /// The functions that read files, without their other names.
    pub fn functions() -> impl Iterator<Item = &'static str> {
        [Format::Arrow, Format::Csv, Format::Json, Format::Parquet]
            .into_iter()
            .map(Format::function)
    }

    /// By the name of the function that reads it.
    pub fn of_function(name: &str) -> Option<Format> {
        Some(match name {
            "read_csv" | "read_csv_auto" => Format::Csv,
            "read_json" | "read_json_auto" | "read_ndjson" | "read_ndjson_auto" => Format::Json,
            "read_parquet" | "parquet_scan" => Format::Parquet,
            "read_arrow" | "read_ipc" => Format::Arrow,
            _ => return None,
        })
    }
}

/// For messages: the endings that are known.
pub(super) fn endings() -> String {
    let endings: Vec<_> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
    endings.join(", ")
}
