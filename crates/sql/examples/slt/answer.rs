//! Whether rows are those that a file expects, which says so in its own way.

use crate::client::Rows;
use crate::script::Dialect;
use md5::{Digest, Md5};
use regex::Regex;
use sqllogictest::{DefaultColumnType, SortMode};
use std::sync::LazyLock;

/// What a file expects of a query.
pub struct Expected<'a> {
    pub dialect: Dialect,
    pub types: &'a [DefaultColumnType],
    pub sort: Option<SortMode>,
    /// Whether the query orders its rows.
    pub ordered: bool,
    /// Whether it takes some of its rows, in no order: any will do, if they are as many.
    pub limited: bool,
    pub lines: &'a [String],
}

/// `None` if the rows are as expected; else what came, in the file's manner.
pub fn difference(rows: &Rows, columns: usize, expected: &Expected<'_>) -> Option<String> {
    let mut rows: Vec<Vec<String>> = rows.iter().map(|row| shown_row(row, expected)).collect();
    if let [line] = expected.lines
        && let Some((count, _)) = line.split_once(" values hashing to ")
    {
        sort(&mut rows, expected.sort);
        let values: Vec<&String> = rows.iter().flatten().collect();
        let hash = hash(&values);
        let same = count.parse() == Ok(values.len()) && line.ends_with(&hash);
        let first: Vec<_> = values.iter().take(20).map(|value| value.as_str()).collect();
        return (!same).then(|| {
            format!(
                "{} values hashing to {hash}: {} …",
                values.len(),
                first.join(" ")
            )
        });
    }
    let mut wanted = match split(expected, rows.len(), columns) {
        Some(wanted) => wanted,
        None => return Some(joined(&rows)),
    };
    let any_rows = expected.limited && !expected.ordered && rows.len() == wanted.len();
    if any_rows || same(&rows, &wanted) {
        return None;
    }
    sort(&mut rows, expected.sort);
    sort(&mut wanted, expected.sort);
    // DuckDB's tables have an order, and its files rely on it.
    if expected.dialect == Dialect::DuckDb && !expected.ordered && expected.sort.is_none() {
        let (mut rows, mut wanted) = (rows.clone(), wanted.clone());
        sort(&mut rows, Some(SortMode::RowSort));
        sort(&mut wanted, Some(SortMode::RowSort));
        if same(&rows, &wanted) {
            return None;
        }
    }
    (!same(&rows, &wanted)).then(|| joined(&rows))
}

fn joined(rows: &[Vec<String>]) -> String {
    rows.iter()
        .map(|row| row.join("\t"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn sort(rows: &mut Vec<Vec<String>>, mode: Option<SortMode>) {
    match mode {
        None | Some(SortMode::NoSort) => {}
        Some(SortMode::RowSort) => rows.sort_unstable(),
        Some(SortMode::ValueSort) => {
            *rows = rows.drain(..).flatten().map(|value| vec![value]).collect();
            rows.sort_unstable();
        }
    }
}

fn hash(values: &[&String]) -> String {
    let mut hash = Md5::new();
    for value in values {
        hash.update(value.as_bytes());
        hash.update(b"\n");
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn shown_row(row: &[Option<String>], expected: &Expected<'_>) -> Vec<String> {
    let types = expected
        .types
        .iter()
        .map(Some)
        .chain(std::iter::repeat(None));
    row.iter()
        .zip(types)
        .map(|(value, kind)| shown(value.as_deref(), kind, expected.dialect))
        .collect()
}

/// A value as the dialect writes it.
fn shown(value: Option<&str>, kind: Option<&DefaultColumnType>, dialect: Dialect) -> String {
    let value = match value {
        None => return "NULL".to_owned(),
        Some("") => return "(empty)".to_owned(),
        Some(value) => value,
    };
    match dialect {
        Dialect::Sqlite => {}
        Dialect::DuckDb => return value.replace('\0', "\\0"),
        Dialect::Other => return value.to_owned(),
    }
    let flag = |value: &str| match value {
        "true" => Some(1.0),
        "false" => Some(0.0),
        other => other.parse::<f64>().ok(),
    };
    match kind {
        Some(DefaultColumnType::Integer) => match value.parse::<i128>() {
            Ok(_) => value.to_owned(),
            // The reference cuts, and takes text for 0.
            Err(_) => format!("{}", flag(value).unwrap_or(0.0).trunc() as i64),
        },
        Some(DefaultColumnType::FloatingPoint) => format!("{:.3}", flag(value).unwrap_or(0.0)),
        _ => value
            .chars()
            .map(|c| if (' '..='~').contains(&c) { c } else { '@' })
            .collect(),
    }
}

/// The expected lines as rows of values: one value per line, or one row per line.
fn split(expected: &Expected<'_>, rows: usize, columns: usize) -> Option<Vec<Vec<String>>> {
    let lines = expected.lines;
    let by_value = columns > 0 && lines.len() == rows * columns;
    let tabbed = lines.iter().any(|line| line.contains('\t'));
    if by_value && (columns == 1 || !tabbed) {
        return Some(lines.chunks(columns).map(<[String]>::to_vec).collect());
    }
    if lines.len() != rows {
        return None;
    }
    let cut = |line: &String| -> Vec<String> {
        if tabbed || expected.dialect == Dialect::DuckDb {
            line.split('\t').map(str::to_owned).collect()
        } else {
            // Values with blanks in them: compared as a whole.
            vec![line.clone()]
        }
    };
    Some(lines.iter().map(cut).collect())
}

fn same(rows: &[Vec<String>], wanted: &[Vec<String>]) -> bool {
    rows.len() == wanted.len()
        && rows
            .iter()
            .zip(wanted)
            .all(|(row, wanted)| same_row(row, wanted))
}

fn same_row(row: &[String], wanted: &[String]) -> bool {
    if row.len() == wanted.len()
        && row
            .iter()
            .zip(wanted)
            .all(|(value, wanted)| same_value(value, wanted))
    {
        return true;
    }
    // One text per row: the words of both have to agree.
    let words = |row: &[String]| -> Vec<String> {
        row.iter()
            .flat_map(|value| value.split_whitespace().map(str::to_owned))
            .collect()
    };
    let (row, wanted) = (words(row), words(wanted));
    row.len() == wanted.len()
        && row
            .iter()
            .zip(&wanted)
            .all(|(value, wanted)| same_value(value, wanted))
}

/// A key of a struct, around which DuckDB puts quotes.
static KEY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"'(\w+)': ").expect("it is an expression"));

/// Zeros at the end of a timestamp.
static FRACTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(:\d\d(?:\.\d*[1-9])?)\.?0+$").expect("it is an expression"));

/// Equal up to the way in which numbers, truth values and versions are written.
fn same_value(value: &str, wanted: &str) -> bool {
    if value == wanted {
        return true;
    }
    if let Some(pattern) = wanted.strip_prefix("<REGEX>:") {
        return Regex::new(&format!("(?s)^(?:{pattern})$"))
            .is_ok_and(|pattern| pattern.is_match(value));
    }
    if let Some(pattern) = wanted.strip_prefix("<!REGEX>:") {
        return Regex::new(&format!("(?s)^(?:{pattern})$"))
            .is_ok_and(|pattern| !pattern.is_match(value));
    }
    let flag = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    };
    if let (Some(left), Some(right)) = (flag(value), flag(wanted)) {
        return left == right;
    }
    // As it is written in 57_600_000.
    let integer = |text: &str| text.replace('_', "").parse::<i128>().ok();
    if let (Some(left), Some(right)) = (integer(value), integer(wanted)) {
        return left == right;
    }
    if let (Ok(left), Ok(right)) = (value.parse::<f64>(), wanted.parse::<f64>()) {
        let scale = left.abs().max(right.abs());
        return left == right
            || left.is_nan() && right.is_nan()
            || (left - right).abs() <= scale * 1e-6
            // As it is written with six digits behind the point.
            || (left - right).abs() <= 5.1e-7
                && wanted.rsplit_once('.').is_some_and(|(_, digits)| digits.len() == 6);
    }
    let plain = |text: &str| {
        let text = FRACTION.replace(text, "$1");
        KEY.replace_all(&text, "$1: ")
            .replacen('T', " ", 1)
            .trim_end_matches("+00")
            .trim()
            .to_owned()
    };
    plain(value) == plain(wanted)
}
