//! Columns that files' names add to their rows: the name itself, and what directories such as `year=2024` say.

use crate::kind::ValueKind;
use crate::values::ValueFormats;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::path::{Component, Path, PathBuf};

/// What stands for NULL in the name of a directory.
const NULL_DIRECTORY: &str = "__HIVE_DEFAULT_PARTITION__";

/// What is written by its number.
const SPECIAL: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Columns that are the same in all rows of a file.
#[derive(Debug, Default)]
pub(crate) struct AddedColumns {
    pub names: Vec<String>,
    /// Those of each file.
    pub values: Vec<Vec<ScalarValue>>,
}

impl AddedColumns {
    /// The columns for these files. Where nothing is said of directories, their names add columns if all files have the
    /// same.
    pub fn of(files: &[PathBuf], filename: Option<&str>, directories: Option<bool>) -> Self {
        let mut added = AddedColumns {
            names: Vec::new(),
            values: vec![Vec::new(); files.len()],
        };
        if let Some(name) = filename {
            added.names.push(name.to_owned());
            for (values, file) in added.values.iter_mut().zip(files) {
                let shown = file.to_string_lossy().into_owned();
                values.push(ScalarValue::Utf8View(Some(shown)));
            }
        }
        let partitions: Vec<_> = files.iter().map(|file| partition(file)).collect();
        let keys = partitions.first().map(|partition| names(partition));
        let are_same = partitions
            .iter()
            .all(|partition| Some(names(partition)) == keys);
        if let Some(keys) = keys
            && directories.unwrap_or(are_same)
        {
            for key in &keys {
                added.add_key(key, &partitions);
            }
        }
        added
    }

    fn add_key(&mut self, key: &str, partitions: &[Vec<(String, Option<String>)>]) {
        let values: Vec<Option<&str>> = (partitions.iter())
            .map(|partition| {
                let found = partition.iter().find(|(name, _)| name == key);
                found.and_then(|(_, value)| value.as_deref())
            })
            .collect();
        let data_type = type_of(values.iter().copied().flatten());
        self.names.push(key.to_owned());
        for (row, value) in self.values.iter_mut().zip(values) {
            let null = || ScalarValue::try_from(&data_type).expect("the type has constants");
            let value = value.map(|text| ScalarValue::try_from_string(text.to_owned(), &data_type));
            row.push(value.map_or_else(null, |value| value.unwrap_or_else(|_| null())));
        }
    }
}

/// The name of the directory of files in which a column has this value.
pub fn partition_directory(column: &str, value: Option<&str>) -> String {
    let encoded = |text| utf8_percent_encode(text, &SPECIAL).to_string();
    let value = value.map_or(NULL_DIRECTORY.to_owned(), encoded);
    format!("{}={value}", encoded(column))
}

/// The keys and values in the names of a file's directories.
fn partition(file: &Path) -> Vec<(String, Option<String>)> {
    let directories = file.parent().map(Path::components);
    let parts = directories
        .into_iter()
        .flatten()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str()?.split_once('='),
            _ => None,
        });
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parts = parts.map(|(key, value)| {
        let value = (value != NULL_DIRECTORY).then(|| decoded(value));
        (decoded(key), value)
    });
    parts.collect()
}

fn names(partition: &[(String, Option<String>)]) -> Vec<String> {
    partition.iter().map(|(name, _)| name.clone()).collect()
}

/// The type of all these values: integers, dates, timestamps, or else strings.
fn type_of<'a>(values: impl Iterator<Item = &'a str>) -> DataType {
    let formats = ValueFormats::default();
    // `month=01` is a number.
    let values = values.map(|text| match text.trim_start_matches('0') {
        "" if !text.is_empty() => "0",
        digits if text.bytes().all(|byte| byte.is_ascii_digit()) => digits,
        _ => text,
    });
    let kind = values.fold(ValueKind::Unknown, |kind, text| kind.with(text, &formats));
    match kind {
        ValueKind::Integer | ValueKind::Date | ValueKind::Timestamp => kind.data_type(),
        _ => DataType::Utf8View,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(files: &[&str], filename: Option<&str>, directories: Option<bool>) -> AddedColumns {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        AddedColumns::of(&files, filename, directories)
    }

    #[test]
    fn directories_add_columns() {
        let files = [
            "/d/year=2024/city=K%C3%B6ln/a.csv",
            "/d/year=2025/city=__HIVE_DEFAULT_PARTITION__/b.csv",
        ];
        let found = added(&files, None, None);
        assert_eq!(found.names, ["year", "city"]);
        let text = |text: Option<&str>| ScalarValue::Utf8View(text.map(str::to_owned));
        let int = |value| ScalarValue::Int64(Some(value));
        assert_eq!(found.values[0], [int(2024), text(Some("Köln"))]);
        assert_eq!(found.values[1], [int(2025), text(None)]);
        assert!(added(&files, None, Some(false)).names.is_empty());
    }

    #[test]
    fn directories_that_differ_add_columns_only_if_that_is_said() {
        let files = ["a=1/x.csv", "b/x.csv"];
        assert!(added(&files, None, None).names.is_empty());
        let found = added(&files, Some("filename"), Some(true));
        assert_eq!(found.names, ["filename", "a"]);
        assert_eq!(found.values[1][1], ScalarValue::Int64(None));
    }
}
